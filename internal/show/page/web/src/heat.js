// heat draws a cell for each pair of nodes, darker if slower. Links that a fault explains have a
// frame.
import * as Plot from "@observablehq/plot";
import {maxOf, minOf, narrow, plot, widest} from "./common.js";

export function heat(spec, width) {
  const n = spec.nodes.length;
  const cells = spec.cells.map(([row, column, value, slow]) => ({row, column, value, slow, text: three(value)}));
  const name = (i) => spec.nodes[i];
  const left = Math.min(0.3 * width, widest(spec.nodes) + 10);
  const size = Math.min(56, (width - left - 12) / n);
  const top = Math.min(110, widest(spec.nodes) + 10);
  const values = cells.map((c) => c.value);
  const low = minOf(values), high = maxOf(values);
  // badness returns how bad a link is among the others, from 0 to 1, by ratio.
  const badness = (v) => (high > low && low > 0 ? Math.log(spec.higher ? high / v : v / low) / Math.log(high / low) : high > low ? (v - low) / (high - low) : 0);
  const fontSize = Math.min(13, size / 3.4);
  const each = Math.ceil(15 / size); // of names that have space
  const named = spec.nodes.map((_, i) => i).filter((i) => i % each === 0);
  const width_ = left + n * size + 12;
  return plot({
    width: narrow(width) ? Math.min(width, width_) : width_,
    height: top + n * size + 6,
    marginLeft: left,
    marginRight: 12,
    marginTop: top,
    marginBottom: 6,
    x: {type: "band", domain: spec.nodes.map((_, i) => i), axis: "top", ticks: named, tickFormat: name, label: null, padding: 0, tickRotate: top > size ? -90 : 0, tickSize: 0},
    y: {type: "band", domain: spec.nodes.map((_, i) => i), ticks: named, tickFormat: name, label: null, padding: 0, tickSize: 0},
    marks: [
      Plot.cell(cells, {x: "column", y: "row", inset: 0.75,
        fill: (c) => `color-mix(in oklab, var(--heat1) ${Math.round(100 * badness(c.value))}%, var(--heat0))`,
        ariaLabel: (c) => `${name(c.row)} to ${name(c.column)}: ${c.text}${c.slow ? ", explained by a fault" : ""}`}),
      Plot.cell(cells, {filter: "slow", x: "column", y: "row", inset: 1.5, fill: "none", stroke: "var(--bad)", strokeWidth: 2.5}),
      fontSize < 7
        ? null
        : Plot.text(cells, {x: "column", y: "row", text: "text", fontSize, fill: (c) => (badness(c.value) > 0.5 ? "var(--onheat1)" : "var(--onheat0)")}),
    ],
  });
}

// three formats a number with three digits, as chart.go does.
function three(x) {
  let digits = 3;
  for (let a = Math.abs(x); digits > 0 && a >= 0.9995; a /= 10) digits--;
  return x.toFixed(digits);
}
