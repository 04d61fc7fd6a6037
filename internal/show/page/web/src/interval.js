// interval draws each row's value as a dot with its interval, or its range without a dot if the
// value varies, the band of differences that count as none, and the baseline as a line. Beside each
// row are its figure and its ratio, and below its label what Docker calls the row.
import * as Plot from "@observablehq/plot";
import {above, change, fit, halo, maxOf, minOf, plot, ratio, small, textWidth, verdict, widest} from "./common.js";

export function interval(spec, width) {
  const rows = spec.rows.map((r, i) => ({...r, i}));
  const at = layout(rows, width);
  const domain = domainOf(spec, rows);
  const most = Math.max(2, Math.min(7, Math.floor((width - at.left - at.right) / 70)));
  const ticks = spec.line == null ? most : around(spec.line, domain, most);
  const tickFormat = spec.change ? change : ratio;
  return plot({
    width,
    height: 46 + rows.length * at.step + 8,
    marginLeft: at.left,
    marginRight: at.right,
    marginTop: 46,
    marginBottom: 8,
    x: {domain, axis: "top", label: spec.axis, labelAnchor: "left", labelArrow: "none", ticks, tickFormat, grid: true, labelOffset: 40},
    y: {type: "band", domain: rows.map((r) => r.i), axis: null, padding: 0},
    symbol: {legend: false},
    marks: [
      spec.band ? Plot.rect([spec.band], {x1: "0", x2: "1", fill: "var(--band)"}) : null,
      spec.line == null ? null : baseline(spec.line, rows, at, tickFormat(spec.line)),
      values(spec, rows.filter((r) => !r.none), domain, at.dy),
      at.thin ? textsAbove(rows, width) : textsBeside(rows, at),
    ],
  });
}

// around returns about so many round numbers of the domain, at least one, and the line, which none is
// close to: a single figure is no scale.
function around(line, [from, to], most) {
  const rough = (to - from) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].findLast((n, i) => i === 0 || rough / power >= Math.sqrt([1, 1, 2, 5][i] * n));
  const first = step === 2 * line ? line : 0; // 100 %, 300 %, 500 %
  const out = [line];
  for (let n = Math.ceil((from - first) / step); first + n * step <= to; n++) {
    const x = first + n * step;
    if (Math.abs(x - line) > 0.6 * step) out.push(x);
  }
  return out.length > 1 || most > 20 ? out : around(line, [from, to], most + 1);
}

// baseline draws the line. Below texts it has a stroke for each row, so that it crosses none of them.
function baseline(line, rows, at, label) {
  const style = {stroke: "var(--ink)", strokeWidth: 1.5, ariaLabel: () => label};
  return at.thin ? Plot.tickX(rows, {y: "i", x: () => line, insetTop: at.step / 2 + at.dy - 10, insetBottom: 2, ...style}) : Plot.ruleX([line], style);
}

// color returns the colour of a row's verdict.
const color = (r) => verdict(r.verdict).color;

// said returns a row's ratio in words.
const said = (r) => (r.more ? `${r.text}, ${r.more}` : r.text);

// layout returns the sizes of the texts around the drawing, in px.
function layout(rows, width) {
  const labels = rows.map((r) => r.label);
  const second = rows.some((r) => r.docker || r.figure);
  if (above(width, labels)) {
    return {thin: true, step: second ? 56 : 40, dy: second ? 16 : 9, left: 22, right: 24};
  }
  const names = Math.max(widest(labels), Math.min(small * widest(rows.map((r) => r.docker ?? "")), 0.3 * width));
  const figures = widest(rows.map((r) => r.figure ?? ""));
  const gap = figures > 0 ? 14 : 0;
  return {
    thin: false, step: rows.some((r) => r.docker) ? 38 : 26, dy: 0, names, figures, gap,
    left: names + 24, right: figures + gap + widest(rows.map(said)) + 24,
  };
}

// domainOf returns the axis's ends, with some space beside the outermost marks.
function domainOf(spec, rows) {
  const edge = spec.line ?? rows[0]?.value ?? 0;
  const ends = rows.filter((r) => !r.none).flatMap((r) => [r.varies ? r.low : r.value, r.low ?? r.value, r.high ?? r.value, r.beside ?? r.value]);
  const all = [...(spec.limits ?? ends), edge, ...(spec.band ?? [])];
  const low = minOf(all), high = maxOf(all);
  const pad = 0.04 * (high - low || Math.abs(high) || 1);
  return [low - pad, high + pad];
}

// values returns the dots and their intervals. An interval that goes beyond the axis is cut at its
// end, and a triangle there points outward.
function values(spec, rows, [from, to], dy) {
  const inside = (x) => x >= from && x <= to;
  const low = (r) => (r.varies ? r.low : Math.min(r.low ?? r.value, r.value));
  const high = (r) => (r.varies ? r.high : Math.max(r.high ?? r.value, r.value));
  const arrow = (some, x, rotate) =>
    Plot.dot(some, {y: "i", x: () => x, dx: rotate < 180 ? 2 : -2, dy, r: 4, symbol: "triangle", rotate, fill: color});
  return [
    Plot.ruleY(rows.filter((r) => r.low != null && high(r) >= from && low(r) <= to), {
      y: "i", x1: (r) => Math.max(r.low, from), x2: (r) => Math.min(r.high, to), stroke: color, strokeWidth: (r) => (r.varies ? 6 : 2.5), dy,
      ariaLabel: (r) => (r.varies ? `${r.label}: ${r.text}` : null),
    }),
    spec.beside
      ? Plot.dot(rows.filter((r) => r.beside != null && inside(r.beside)), {
          y: "i", x: "beside", r: 5, symbol: "diamond", fill: "var(--paper)", stroke: "var(--ink)", strokeWidth: 1.5, dy,
          ariaLabel: (r) => (r.verdict ? `${r.label}, ${spec.beside}: ${ratio(r.beside)}` : `${r.label}: ${r.text}`),
        })
      : null,
    Plot.dot(rows.filter((r) => (r.beside == null || r.verdict) && !r.varies && inside(r.value)), {
      y: "i", x: "value", r: 5, fill: (r) => (r.verdict === "unclear" ? "var(--paper)" : color(r)), stroke: color, strokeWidth: 2,
      symbol: (r) => (r.verdict === "unclear" ? "circle" : verdict(r.verdict).symbol), dy, ariaLabel: (r) => `${r.label}: ${r.text}`,
    }),
    arrow(rows.filter((r) => high(r) > to || r.beside > to), to, 90),
    arrow(rows.filter((r) => low(r) < from || r.beside < from), from, 270),
  ];
}

// textsBeside returns the names left of the drawing and the figures right of it.
function textsBeside(rows, at) {
  const dy = (r) => (r.docker ? -7 : 0);
  const named = rows.some((r) => r.docker) ? [rows.filter((r) => r.docker), rows.filter((r) => !r.docker)] : [[], rows];
  return [
    named.map((some) => some.length ? Plot.text(some, {y: "i", text: "label", frameAnchor: "left", textAnchor: "end", dx: -12, dy: dy(some[0]), fontSize: 13}) : null),
    Plot.text(named[0], {y: "i", text: (r) => fit(r.docker, at.names, small), frameAnchor: "left", textAnchor: "end", dx: -12, dy: 8,
      fontSize: 13 * small, fill: "var(--soft)"}),
    at.figures ? Plot.text(rows, {y: "i", text: (r) => r.figure ?? "", frameAnchor: "right", textAnchor: "end", dx: 14 + at.figures, fontSize: 13}) : null,
    Plot.text(rows, {y: "i", text: said, frameAnchor: "right", textAnchor: "start", dx: 14 + at.figures + at.gap, fontSize: 13, fill: color}),
  ];
}

// textsAbove returns two lines above each row of a narrow drawing: label and ratio, then Docker's
// words and the figure.
function textsAbove(rows, width) {
  const second = rows.some((r) => r.docker || r.figure);
  const size = 12 / 13; // of what textWidth returns
  const line = (left, right, dy, fill, rightFill) => {
    return [
      Plot.text(rows, {y: "i", text: (r) => fit(left(r), width - size * textWidth(right(r)) - 58, size), frameAnchor: "left", textAnchor: "start", dy, fontSize: 12, ...halo, fill}),
      Plot.text(rows, {y: "i", text: right, frameAnchor: "right", textAnchor: "end", dy, fontSize: 12, ...halo, fill: rightFill}),
    ];
  };
  return [
    line((r) => r.label, (r) => r.text, second ? -18 : -7, "var(--ink)", color),
    second ? line((r) => r.docker ?? "", (r) => r.figure ?? "", -3, "var(--soft)", "var(--soft)") : null,
  ];
}
