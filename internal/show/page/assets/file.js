// The download link saves the results that the page contains.
const link = document.getElementById("download");
link.href = URL.createObjectURL(new Blob([document.getElementById("report").textContent], {type: "application/json"}));
link.hidden = false;

// Printed pages show folded lists and what is open on the screen, and tables that are wider than a
// sheet in a smaller size. Otherwise browsers print the whole page smaller, and cut it.
const sheet = 690;
let opened = [], shrunk = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.list:not([open])")];
  opened.forEach((d) => (d.open = true));
  document.documentElement.classList.add("sheet");
  shrunk = [...document.querySelectorAll(".wide")].map((place) => ({place, width: place.scrollWidth})).filter((x) => x.width > sheet);
  document.documentElement.classList.remove("sheet");
  shrunk.forEach((x) => (x.place.style.zoom = sheet / x.width));
});
addEventListener("afterprint", () => {
  opened.forEach((d) => (d.open = false));
  shrunk.forEach((x) => (x.place.style.zoom = ""));
});
