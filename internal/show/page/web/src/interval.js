// interval draws a dot with its interval for each row, the band of what counts as the same
// and the line of the baseline.
import * as Plot from "@observablehq/plot";
import {above, fit, halo, narrow, plot, verdict, widest} from "./common.js";

export function interval(spec, width) {
  const thin = above(width, spec.rows.map((r) => r.label));
  const rows = spec.rows.map((r, i) => ({...r, i}));
  const labels = widest(rows.map((r) => r.label)) + 14;
  const said = (r) => (r.more && !thin ? `${r.text}, ${r.more}` : r.text);
  const texts = widest(rows.map(said)) + 14;
  const step = thin ? 40 : 26;
  const name = (i) => rows[i]?.label ?? "";
  const lows = rows.map((r) => Math.min(r.low ?? r.value, r.beside ?? r.value));
  const highs = rows.map((r) => Math.max(r.high ?? r.value, r.beside ?? r.value));
  const edge = spec.line ?? rows[0]?.value ?? 0;
  const domain = limits(Math.min(...lows, edge, spec.band?.[0] ?? edge), Math.max(...highs, edge, spec.band?.[1] ?? edge));
  const color = (r) => verdict(r.verdict).color;
  return plot({
    width,
    height: 46 + rows.length * step + 8,
    marginLeft: thin ? 12 : labels + 10,
    marginRight: thin ? 16 : texts + 10,
    marginTop: 46,
    marginBottom: 8,
    x: {domain, axis: "top", label: spec.axis, labelAnchor: "left", labelArrow: "none", ticks: narrow(width) ? 4 : 7, grid: true, labelOffset: 40},
    y: {type: "band", domain: rows.map((r) => r.i), axis: null, padding: 0},
    symbol: {legend: false},
    marks: [
      spec.band ? Plot.rect([spec.band], {x1: "0", x2: "1", fill: "var(--band)"}) : null,
      spec.line == null ? null : Plot.ruleX([spec.line], {stroke: "var(--ink)", strokeWidth: 1.5}),
      Plot.ruleY(rows, {
        filter: (r) => r.low != null, y: "i", x1: "low", x2: "high", stroke: color, strokeWidth: 2.5, dy: thin ? 9 : 0,
      }),
      spec.beside
        ? Plot.dot(rows, {
            filter: (r) => r.beside != null, y: "i", x: "beside", r: 5, symbol: "diamond", fill: "var(--paper)", stroke: "var(--ink)", strokeWidth: 1.5,
            dy: thin ? 9 : 0, ariaLabel: (r) => (r.verdict ? `${r.label}, ${spec.beside}: ${r.beside}` : `${r.label}: ${r.text}`),
          })
        : null,
      Plot.dot(rows, {
        filter: (r) => r.beside == null || r.verdict, y: "i", x: "value", r: 5, fill: (r) => (r.verdict === "unclear" ? "var(--paper)" : color(r)), stroke: color, strokeWidth: 2,
        symbol: (r) => (r.verdict === "unclear" ? "circle" : verdict(r.verdict).symbol), dy: thin ? 9 : 0,
        ariaLabel: (r) => `${r.label}: ${r.text}`,
      }),
      thin
        ? [
            Plot.text(rows, {y: "i", text: (r) => fit(r.label, width - texts - 30), frameAnchor: "left", textAnchor: "start", dy: -7, fontSize: 12, ...halo}),
            Plot.text(rows, {y: "i", text: said, frameAnchor: "right", textAnchor: "end", dy: -7, fontSize: 12, ...halo, fill: color}),
          ]
        : [
            Plot.text(rows, {y: "i", text: "label", frameAnchor: "left", textAnchor: "end", dx: -12, fontSize: 13}),
            Plot.text(rows, {y: "i", text: said, frameAnchor: "right", textAnchor: "start", dx: 14, fontSize: 13, fill: color}),
          ],
    ],
  });
}

// limits leave some space beside what is drawn.
function limits(low, high) {
  const pad = 0.04 * (high - low || Math.abs(high) || 1);
  return [low - pad, high + pad];
}
