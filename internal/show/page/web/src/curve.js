// curve draws latencies by percentile, with equal space for each nine: 90, 99, 99.9 %.
import * as Plot from "@observablehq/plot";
import {legend, lineMark, maxOf, narrow, number, plot, series, withLegend} from "./common.js";

const place = (percentile) => -Math.log10(1 - percentile / 100);
const ticks = [0, 50, 90, 99, 99.9, 99.99, 99.999];
const marked = [50, 90, 99, 99.9, 99.99, 99.999];

export function curve(spec, width) {
  const points = spec.series.flatMap((s, i) => s.points.map(([p, y]) => ({i, p, x: place(p), y, label: s.label})));
  const most = maxOf(points.map((d) => d.p));
  const shown = ticks.filter((t) => t <= most);
  const chart = plot({
    width,
    height: narrow(width) ? 300 : 380,
    marginLeft: 56,
    marginRight: 20,
    marginTop: 28,
    marginBottom: 40,
    x: {domain: [0, place(most)], ticks: shown.map(place), tickFormat: (x) => String(ticks[ticks.findIndex((t) => Math.abs(place(t) - x) < 1e-9)]),
      label: "percentile", labelArrow: "none", grid: true},
    y: {type: "log", label: spec.axis, labelArrow: "none", grid: true, ticks: 5, tickFormat: number},
    marks: spec.series.flatMap((s, i) => {
      const own = points.filter((d) => d.i === i);
      const look = series(i);
      return [
        Plot.line(own, {x: "x", y: "y", stroke: look.color, strokeWidth: 2, strokeDasharray: look.dash, ariaLabel: () => s.label}),
        Plot.dot(own.filter((d) => marked.includes(d.p)), {x: "x", y: "y", fill: look.color, symbol: look.symbol, r: 3.5,
          ariaLabel: (d) => `${d.label}, percentile ${d.p}: ${d.y}`}),
      ];
    }),
  });
  return withLegend(legend(spec.series.map((s) => s.label), lineMark), chart);
}
