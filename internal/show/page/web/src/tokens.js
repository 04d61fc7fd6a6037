// tokens draws how many tokens had left the server and had been read over time: a panel for each
// route, on one axis of time. The area between the curves is the time on the way. The curves are steps,
// because no token comes during a gap.
import * as Plot from "@observablehq/plot";
import {halo, legend, lineMark, maxOf, narrow, plot, series, withLegend} from "./common.js";

const curve = "step-after";

// most is the largest number of dots on a curve.
const most = 24;

export function tokens(spec, width) {
  const curves = [{key: "left", label: "left the server"}, {key: "read", label: "read by the client"}];
  const points = spec.routes.flatMap((r, of) => r.steps.map((s, i) => ({...s, of, label: r.label,
    dot: i % Math.ceil(r.steps.length / most) === 0 || i === r.steps.length - 1})));
  const panel = narrow(width) ? 150 : 190;
  const chart = plot({
    width,
    height: spec.routes.length * panel + 60,
    marginLeft: 44,
    marginRight: 20,
    marginTop: 34,
    marginBottom: 40,
    x: {domain: [0, maxOf(points.map((d) => d.read))], label: spec.axis, labelAnchor: "left", labelArrow: "none",
      ticks: narrow(width) ? 5 : 10, grid: true},
    y: {domain: [0, maxOf(points.map((d) => d.token))], label: "tokens", labelArrow: "none", ticks: 4, grid: true},
    fy: {domain: spec.routes.map((_, of) => of), axis: null, padding: 0.16},
    marks: [
      Plot.areaX(points, {y: "token", x1: "left", x2: "read", fy: "of", curve, fill: "var(--c1)", fillOpacity: 0.22}),
      ...curves.flatMap(({key, label}, i) => [
        Plot.line(points, {x: key, y: "token", fy: "of", curve, stroke: series(i).color, strokeWidth: 2, strokeDasharray: series(i).dash}),
        Plot.dot(points.filter((d) => d.dot), {x: key, y: "token", fy: "of", fill: series(i).color, symbol: series(i).symbol, r: 2.5,
          ariaLabel: (d) => `${d.label}, token ${d.token} ${label}: ${d[key]}`}),
      ]),
      Plot.text(spec.routes, {fy: (_, of) => of, text: (r) => `${r.label}: ${r.read}`, frameAnchor: "top-left",
        lineAnchor: "bottom", dy: -4, fontSize: 13, fontWeight: 600, ...halo}),
    ],
  });
  return withLegend(legend(curves.map((c) => c.label), lineMark), chart);
}
