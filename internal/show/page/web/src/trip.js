// trip draws round trips on one axis of time: a row for each hop, a bar for each time between two
// steps, from the client down to the server and back up.
import * as Plot from "@observablehq/plot";
import {areaMark, fit, halo, legend, maxOf, narrow, plot, widest, withLegend} from "./common.js";

// colors is the number of swatches besides the pale one.
const colors = 9;

export function trip(spec, width) {
  const bold = 1.1; // how much wider than others bold texts are
  const labels = Math.max(widest(spec.trips.flatMap((t) => t.lanes)), bold * widest(spec.trips.map((t) => t.label)));
  const thin = narrow(width) || labels > 0.38 * width;
  const heads = [], lanes = [], bars = [], lines = [];
  let y = 0;
  spec.trips.forEach((t, of) => {
    heads.push({y: y++, label: t.label});
    const first = y;
    for (const label of t.lanes) lanes.push({y: y++, label});
    for (const b of t.bars) {
      const bar = {...b, y: first + b.lane, label: `${t.label}, ${t.lanes[b.lane]}, ${b.text}`};
      bars.push(bar);
      lines.push({of, x: b.from, y: bar.y}, {of, x: b.to, y: bar.y});
    }
  });
  const swatch = (part) => (spec.pale?.includes(part) ? colors : part % colors);
  const color = (b) => `var(--cpu${swatch(b.part)})`;
  const chart = plot({
    width,
    height: 46 + y * (thin ? 30 : 22) + 6,
    marginLeft: thin ? 8 : labels + 20,
    marginRight: 14,
    marginTop: 46,
    marginBottom: 6,
    x: {domain: [0, maxOf(bars.map((b) => b.to))], axis: "top", label: spec.axis, labelAnchor: "left", labelArrow: "none",
      labelOffset: 40, ticks: narrow(width) ? 5 : 10, grid: true},
    y: {type: "band", domain: [...Array(y).keys()], axis: null, padding: 0.15},
    marks: [
      Plot.line(lines, {x: "x", y: "y", z: "of", stroke: "var(--even)", strokeWidth: 0.75, dy: thin ? 6 : 0}),
      Plot.barX(bars, {y: "y", x1: "from", x2: "to", fill: color, stroke: color, strokeWidth: 0.75, insetTop: thin ? 13 : 2, insetBottom: 2,
        ariaLabel: "label"}),
      Plot.text(heads, {y: "y", text: (h) => (thin ? fit(h.label, width - 24, bold) : h.label), frameAnchor: "left", textAnchor: thin ? "start" : "end", dx: thin ? 0 : -8, dy: 2,
        fontSize: 13, fontWeight: 600, ...halo}),
      Plot.text(lanes, {y: "y", text: (l) => (thin ? fit(l.label, width - 24) : l.label), frameAnchor: "left",
        textAnchor: thin ? "start" : "end", dx: thin ? 0 : -8, dy: thin ? -7 : 0, fontSize: thin ? 11 : 13, ...halo}),
    ],
  });
  return withLegend(legend(spec.parts, (i) => areaMark(swatch(i), "cpu")), chart);
}
