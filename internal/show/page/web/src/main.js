// Draws the charts of a page into its figures. Go computes all figures (package page); what
// is here decides positions and marks only.
import {curve} from "./curve.js";
import {heat} from "./heat.js";
import {interval} from "./interval.js";
import {scaling} from "./scaling.js";
import {stack} from "./stack.js";
import {strip} from "./strip.js";
import {trip} from "./trip.js";
import {waterfall} from "./waterfall.js";

const kinds = {curve, heat, interval, scaling, stack, strip, trip, waterfall};

// onPaper is how wide charts are drawn to be printed, in px: as wide as a sheet.
const onPaper = 720;

// draw puts a chart of a width, else as wide as its figure, in the place of the one that is there.
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
  // In a frame of its own: a chart may change the height of what is observed.
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
