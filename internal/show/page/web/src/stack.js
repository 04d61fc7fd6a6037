// stack draws the parts of each row's sum, in the order of the legend.
import * as Plot from "@observablehq/plot";
import {above, areaMark, fit, halo, legend, maxOf, narrow, number, plot, textWidth, widest, withLegend} from "./common.js";

export function stack(spec, width) {
  const thin = above(width, spec.rows.map((r) => r.label));
  const rows = spec.rows.map((r, i) => ({...r, i, sum: r.values.reduce((a, b) => a + b, 0)}));
  const bars = rows.flatMap((r) => {
    let at = 0;
    return r.values.map((v, part) => ({i: r.i, part, label: r.label, x1: at, x2: (at += v), v}));
  });
  const labels = widest(rows.map((r) => r.label)) + 8;
  const texts = spec.whole ? 0 : widest(rows.map((r) => r.text)) + 10;
  const step = (thin ? 40 : 26) * (spec.dense ? 0.8 : 1);
  const chart = plot({
    width,
    height: 44 + rows.length * step,
    marginLeft: thin ? 14 : labels + 12,
    marginRight: thin ? 32 : texts + 14,
    marginTop: 44,
    marginBottom: 4,
    x: {domain: [0, spec.whole ?? maxOf(rows.map((r) => r.sum)) * 1.02], axis: "top", label: spec.axis, labelAnchor: "left", labelArrow: "none",
      labelOffset: 38, ticks: narrow(width) ? 4 : 6, tickFormat: number, grid: true, nice: spec.whole == null},
    y: {type: "band", domain: rows.map((r) => r.i), axis: null, padding: 0.3},
    marks: [
      Plot.barX(bars, {filter: (d) => d.v > 0, y: "i", x1: "x1", x2: "x2", fill: (d) => `var(--${spec.colors}${d.part})`,
        stroke: "var(--paper)", strokeWidth: 0.75, insetTop: thin ? 14 : 0,
        ariaLabel: (d) => `${d.label}, ${spec.parts[d.part]}: ${d.v}`}),
      thin
        ? Plot.text(rows, {y: "i", text: (r) => fit(r.label, width - 48 - (r.text ? textWidth("  " + r.text) : 0)) + (r.text ? "  " + r.text : ""), frameAnchor: "left", textAnchor: "start", dy: -8, fontSize: 12, ...halo})
        : [
            Plot.text(rows, {y: "i", text: "label", frameAnchor: "left", textAnchor: "end", dx: -8, fontSize: 13}),
            Plot.text(rows.filter((r) => !spec.whole || !r.sum), {y: "i", x: "sum", text: "text", textAnchor: "start", dx: 7, fontSize: 13}),
          ],
    ],
  });
  const used = spec.parts.map((_, part) => part).filter((part) => rows.some((r) => r.values[part] > 0));
  return withLegend(legend(used.map((part) => spec.parts[part]), (i) => areaMark(used[i], spec.colors)), chart);
}
