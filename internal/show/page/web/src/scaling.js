// scaling draws a line for each mode by the size of the crowd, or by the points of a sweep.
import * as Plot from "@observablehq/plot";
import {legend, lineMark, maxOf, minOf, narrow, plot, ratio, series, widest, withLegend} from "./common.js";

export function scaling(spec, width) {
  const points = spec.series.flatMap((s, i) => s.points.map((p) => ({...p, i, label: s.label})));
  const marked = spec.line == null ? [0] : [spec.line, ...(spec.band ?? [])];
  const lowest = minOf([...marked, ...points.map((p) => p.low ?? p.value)]);
  const highest = maxOf([...marked, ...points.map((p) => p.high ?? p.value)]);
  const pad = spec.line == null ? 0 : 0.04 * (highest - lowest);
  const said = spec.line == null ? String : ratio;
  const each = Math.ceil(((widest(spec.shapes) + 8) * spec.shapes.length) / (width - 72)); // of names that have space
  const chart = plot({
    width,
    height: narrow(width) ? 280 : 340,
    marginLeft: 52,
    marginRight: 20,
    marginTop: 28,
    marginBottom: 44,
    x: {type: "point", domain: spec.shapes, ticks: spec.shapes.filter((_, i) => i % each === 0), label: spec.across, labelArrow: "none", padding: 0.3},
    y: {domain: spec.line == null ? [0, highest * 1.05 || 1] : [lowest - pad, highest + pad], label: spec.axis, labelArrow: "none", grid: true, ticks: 6,
      ...(spec.line == null ? {} : {tickFormat: ratio})},
    marks: [
      spec.band ? Plot.rect([spec.band], {y1: "0", y2: "1", fill: "var(--band)"}) : null,
      spec.line == null ? null : Plot.ruleY([spec.line], {stroke: "var(--ink)", strokeWidth: 1.5}),
      spec.series.flatMap((s, i) => {
        const own = points.filter((p) => p.i === i);
        const look = series(i);
        return [
          Plot.ruleX(own, {filter: (p) => p.low != null, x: "shape", y1: "low", y2: "high", stroke: look.color, strokeWidth: 1.5, dx: shift(i)}),
          Plot.line(own, {x: "shape", y: "value", stroke: look.color, strokeWidth: 2, strokeDasharray: look.dash, dx: shift(i), ariaLabel: () => s.label}),
          Plot.dot(own, {x: "shape", y: "value", fill: look.color, symbol: look.symbol, r: 4.5, dx: shift(i),
            ariaLabel: (p) => `${p.label}, ${p.shape}: ${said(p.value)}`}),
        ];
      }),
    ],
  });
  // The intervals of a point are moved apart, so that none hides another.
  function shift(i) {
    return 4 * (i - (spec.series.length - 1) / 2);
  }
  return withLegend(legend(spec.series.map((s) => s.label), lineMark), chart);
}
