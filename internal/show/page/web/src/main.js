// Draws the charts of a page. Go computes all numbers (package page); this code only decides
// positions and marks.
import {curve} from "./curve.js";
import {heat} from "./heat.js";
import {interval} from "./interval.js";
import {scaling} from "./scaling.js";
import {stack} from "./stack.js";
import {strip} from "./strip.js";
import {tokens} from "./tokens.js";
import {trip} from "./trip.js";
import {waterfall} from "./waterfall.js";

const kinds = {curve, heat, interval, scaling, stack, strip, tokens, trip, waterfall};

// onPaper is the width of printed charts in px: that of a sheet.
const onPaper = 720;

// draw draws a chart into its place, instead of an earlier one, by default as wide as the place.
function draw(place, chart, width = Math.max(280, Math.floor(place.clientWidth))) {
  if (place.dataset.width === String(width)) return;
  place.dataset.width = width;
  let drawn;
  try {
    drawn = kinds[chart.kind](chart.spec, width);
  } catch (e) {
    console.error(chart.title, e);
    place.textContent = "This chart cannot be drawn here. Its figures are in the table.";
    return;
  }
  const svg = drawn.matches("svg") ? drawn : drawn.lastElementChild; // below its legend
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", chart.title);
  place.replaceChildren(drawn);
}

function charts() {
  const list = JSON.parse(document.getElementById("charts").textContent);
  const byPlace = new Map();
  for (const c of list) byPlace.set(document.getElementById(c.id), c);
  // A chart may change the height of its place, which must not happen while the observer reports.
  let printing = false;
  const redraw = (seen) => requestAnimationFrame(() => printing || seen.forEach((s) => draw(s.target, byPlace.get(s.target))));
  const watch = new ResizeObserver(redraw);
  for (const [place, c] of byPlace) {
    draw(place, c);
    watch.observe(place);
  }
  addEventListener("beforeprint", () => {
    printing = true;
    byPlace.forEach((c, place) => draw(place, c, onPaper));
  });
  addEventListener("afterprint", () => {
    printing = false;
    byPlace.forEach((c, place) => draw(place, c));
  });
  document.documentElement.dataset.drawn = list.length;
}

charts();
