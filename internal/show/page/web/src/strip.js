// strip draws each row's value in every round, which shows drift, jumps and clusters, and behind it
// the baseline's, faintly.
import * as Plot from "@observablehq/plot";
import {figure, maxOf, minOf, narrow, plot} from "./common.js";

export function strip(spec, width) {
  const thin = narrow(width);
  const top = spec.top ?? Infinity;
  const point = (row, [x, y]) => ({row, x, y: Math.min(y, top), real: y});
  const points = spec.rows.flatMap((s) => s.points.map((p) => point(s.label, p)));
  const base = spec.rows.find((r) => r.label === spec.baseline);
  const behind = base ? spec.rows.filter((r) => r !== base).flatMap((r) => base.points.map((p) => point(r.label, p))) : [];
  const xs = points.map((d) => d.x);
  const first = minOf(xs), last = maxOf(xs);
  const highest = maxOf(points.map((d) => d.y), 0);
  const lowest = minOf(points.map((d) => d.y), 0);
  const each = 74; // room for three figures on the axis
  return plot({
    width,
    height: 40 + spec.rows.length * each,
    marginLeft: 46,
    marginRight: 14,
    marginTop: 4,
    marginBottom: 36,
    x: {domain: [first - 0.5, last + 0.5], label: spec.axis, labelArrow: "none",
      ticks: integers(first, last, thin ? 6 : 12), tickFormat: (x) => String(x), tickSize: 3},
    y: {domain: [1.05 * lowest, 1.05 * highest || -0.05 * lowest || 1], ticks: 2, label: null, grid: true, tickFormat: figure, insetTop: 22},
    fy: {domain: spec.rows.map((r) => r.label), axis: null, padding: 0.08},
    marks: [
      Plot.frame({stroke: "var(--grid)"}),
      lowest < 0 ? Plot.ruleY([0], {stroke: "var(--even)"}) : null,
      Plot.line(behind, {x: "x", y: "y", fy: "row", stroke: "var(--even)", strokeWidth: 1.5, strokeOpacity: 0.7, strokeDasharray: "2 3"}),
      Plot.line(points, {x: "x", y: "y", fy: "row", stroke: "var(--c0)", strokeWidth: 1, strokeOpacity: 0.5}),
      Plot.dot(points, {x: "x", y: "y", fy: "row", fill: (d) => (d.real > top ? "var(--bad)" : "var(--c0)"), r: xs.length > 900 ? 1.5 : 3,
        symbol: (d) => (d.real > top ? "triangle" : "circle"), ariaLabel: (d) => `${d.row}, ${spec.axis} ${d.x}: ${d.real}`}),
      Plot.text(spec.rows, {fy: "label", text: "label", frameAnchor: "top-left", dx: 6, dy: 5, fontSize: 12, fontWeight: 600,
        stroke: "var(--paper)", strokeWidth: 4, fill: "var(--ink)"}),
    ],
  });
}

// integers returns about n round numbers between first and last.
function integers(first, last, n) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((s) => (last - first) / s <= n) ?? 10000;
  const out = [];
  for (let x = Math.ceil(first / step) * step; x <= last; x += step) out.push(x);
  return out;
}
