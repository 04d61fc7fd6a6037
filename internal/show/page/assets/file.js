// The download link saves the results that the page contains.
const link = document.getElementById("download");
link.href = URL.createObjectURL(new Blob([document.getElementById("report").textContent], {type: "application/json"}));
link.hidden = false;

// Printed pages show all details.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((d) => (d.open = true));
});
addEventListener("afterprint", () => opened.forEach((d) => (d.open = false)));
