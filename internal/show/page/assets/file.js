// The data is in the page: the link saves it as a file.
const link = document.getElementById("download");
link.href = URL.createObjectURL(new Blob([document.getElementById("report").textContent], {type: "application/json"}));
link.hidden = false;

// Nobody can open on paper what is closed.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((d) => (d.open = true));
});
addEventListener("afterprint", () => opened.forEach((d) => (d.open = false)));
