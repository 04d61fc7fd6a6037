// waterfall draws what each part adds, as a bar that begins where the one of the rung below ends.
import * as Plot from "@observablehq/plot";
import {above, fit, halo, maxOf, minOf, narrow, number, plot, verdict, widest} from "./common.js";

export function waterfall(spec, width) {
  const thin = above(width, spec.rows.map((r) => r.label));
  const rows = spec.rows.map((r, i) => ({...r, i}));
  const labels = widest(rows.map((r) => r.label)) + 8;
  const texts = widest(rows.map((r) => r.text)) + 10;
  const step = thin ? 42 : 28;
  const color = (r) => (r.verdict ? verdict(r.verdict).color : "var(--even)");
  const ends = rows.flatMap((r) => [r.from, r.to, r.low ?? r.to, r.high ?? r.to]);
  return plot({
    width,
    height: 46 + rows.length * step,
    marginLeft: thin ? 16 : labels + 12,
    marginRight: thin ? 20 : texts + 14,
    marginTop: 46,
    marginBottom: 6,
    x: {domain: [minOf(ends, 0), maxOf(ends) * 1.03], axis: "top", label: spec.axis, labelAnchor: "left", labelArrow: "none",
      labelOffset: 40, ticks: narrow(width) ? 4 : 7, tickFormat: number, grid: true},
    y: {type: "band", domain: rows.map((r) => r.i), axis: null, padding: 0.35},
    marks: [
      Plot.ruleX(rows.filter((r) => r.below != null), {x: "from", y1: (r) => r.below, y2: "i", stroke: "var(--even)", strokeDasharray: "2 2"}),
      Plot.barX(rows, {y: "i", x1: (r) => Math.min(r.from, r.to), x2: (r) => Math.max(r.from, r.to), fill: color,
        fillOpacity: (r) => (r.varies || r.verdict === "unclear" || r.verdict === "nothing" ? 0.35 : r.verdict ? 1 : 0.5), stroke: color,
        insetTop: thin ? 14 : 0, ariaLabel: (r) => `${r.label}: ${r.text}`}),
      Plot.ruleY(rows, {filter: (r) => r.low != null, y: "i", x1: "low", x2: "high", stroke: "var(--ink)", strokeWidth: 1.5, dy: thin ? 7 : 0}),
      thin
        ? [
            Plot.text(rows, {y: "i", text: (r) => fit(r.label, width - texts - 38), frameAnchor: "left", textAnchor: "start", dy: -9, fontSize: 12, ...halo}),
            Plot.text(rows, {y: "i", text: "text", frameAnchor: "right", textAnchor: "end", dy: -9, fontSize: 12, ...halo}),
          ]
        : [
            Plot.text(rows, {y: "i", text: "label", frameAnchor: "left", textAnchor: "end", dx: -8, fontSize: 13}),
            Plot.text(rows, {y: "i", text: "text", frameAnchor: "right", textAnchor: "start", dx: 12, fontSize: 13}),
          ],
    ],
  });
}
