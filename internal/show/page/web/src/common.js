// What all charts share. Colours are the page's CSS variables, so that they follow its theme.
import * as Plot from "@observablehq/plot";

export const narrow = (width) => width < 560;

// above reports whether labels go above their rows, for lack of space beside them.
export const above = (width, labels) => narrow(width) || widest(labels) > 0.38 * width;

// Colour is never alone: a verdict is also a word and a symbol.
export const verdicts = {
  better: {color: "var(--good)", symbol: "triangle"},
  gains: {color: "var(--good)", symbol: "triangle"},
  worse: {color: "var(--bad)", symbol: "square"},
  costs: {color: "var(--bad)", symbol: "square"},
  same: {color: "var(--even)", symbol: "circle"},
  nothing: {color: "var(--even)", symbol: "circle"},
  holds: {color: "var(--good)", symbol: "circle"},
  gone: {color: "var(--even)", symbol: "square"},
  reversed: {color: "var(--bad)", symbol: "square"},
  new: {color: "var(--bad)", symbol: "triangle"},
  unclear: {color: "var(--unsure)", symbol: "times"},
};
export const verdict = (v) => verdicts[v] ?? {color: "var(--ink)", symbol: "circle"};

// series returns the colour, symbol and dash pattern of line i, from 0. The first 64 differ.
const symbols = ["circle", "square", "triangle", "diamond", "cross", "star", "wye", "times"];
const dashes = ["none", "6 3", "2 3", "8 3 2 3"];
export function series(i) {
  return {color: `var(--c${i % 8})`, symbol: symbols[(i + Math.floor(i / 8)) % symbols.length], dash: dashes[Math.floor(i / 2) % dashes.length]};
}

// plot calls Plot.plot with the page's styles. The class name is fixed, because the page's content
// security policy has the checksum of the style element that Plot writes for it.
export function plot(options) {
  return Plot.plot({className: "chart", style: {background: "none", overflow: "visible", fontSize: "12px"}, ...options});
}

// small is the font size of annotations, relative to other texts.
export const small = 0.85;

// textWidth returns the width of a chart's text in px.
const pen = document.createElement("canvas").getContext("2d");
pen.font = "13px system-ui, sans-serif";
export const textWidth = (s) => pen.measureText(s).width;
export const widest = (texts) => maxOf(texts.map(textWidth), 0);

// minOf and maxOf take any number of values. A call's arguments are limited to about 100,000.
export const minOf = (values, most = Infinity) => values.reduce((a, b) => Math.min(a, b), most);
export const maxOf = (values, least = -Infinity) => values.reduce((a, b) => Math.max(a, b), least);

// legend returns a list of labels, each with its mark.
export function legend(labels, mark) {
  const list = document.createElement("ul");
  list.className = "legend";
  list.setAttribute("aria-hidden", "true"); // the table below the chart has the names
  labels.forEach((label, i) => {
    const item = document.createElement("li");
    item.append(mark(i), label);
    list.append(item);
  });
  return list;
}

// lineMark draws a line's mark for a legend.
export function lineMark(i) {
  const s = series(i);
  return plot({
    width: 34, height: 14, margin: 0, axis: null,
    x: {domain: [0, 1]}, y: {domain: [0, 1]},
    marks: [
      Plot.line([[0, 0.5], [1, 0.5]], {stroke: s.color, strokeWidth: 2, strokeDasharray: s.dash}),
      Plot.dot([[0.5, 0.5]], {symbol: s.symbol, fill: s.color, r: 4}),
    ],
  });
}

// areaMark draws a filled area's mark for a legend.
export function areaMark(i, parts) {
  const box = document.createElement("span");
  box.className = `swatch ${parts}${i}`;
  return box;
}

export function withLegend(list, chart) {
  const box = document.createElement("div");
  box.append(list, chart);
  return box;
}

// halo outlines texts, so that they stay legible on top of marks.
export const halo = {stroke: "var(--paper)", strokeWidth: 4, fill: "var(--ink)"};

// fit shortens a text until it fits into space px: an ellipsis takes the place of what is before its
// last third, because many names differ at their end. It leaves five characters alone, which would
// become no fewer. size is as small is.
export function fit(text, space, size = 1) {
  const shown = (n) => text.slice(0, Math.ceil((2 * n) / 3)).trimEnd() + "…" + text.slice(text.length - Math.floor(n / 3)).trimStart();
  if (text.length <= 5 || size * textWidth(text) <= space) return text;
  let n = text.length - 1;
  while (n > 4 && size * textWidth(shown(n)) > space) n--;
  return shown(n);
}

// number formats a number for an axis, without the zeros that fill up small ones.
export const number = (x) => String(Number(x.toPrecision(6)));

// figure formats a number for a narrow axis: "1000", or from 10,000 on "10k".
export const figure = (x) => (Math.abs(x) >= 1e4 ? `${number(x / 1000)}k` : number(x));

// ratio formats a ratio for an axis: "86 %", or from 10 on "12×".
export const ratio = (x) => (x >= 10 ? `${Number(x.toPrecision(6))}×` : `${Number((100 * x).toPrecision(6))} %`);

// change formats a ratio as a change for an axis: "-12 %".
export const change = (x) => `${x > 1 ? "+" : ""}${Number((100 * (x - 1)).toPrecision(6))} %`;
