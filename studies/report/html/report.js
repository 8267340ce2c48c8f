// Fills the places that the page left for pictures.
const STUDIES = JSON.parse(document.getElementById("data").textContent).studies;
for (const host of document.querySelectorAll("[data-level]")) {
  const index = host.getAttribute("data-level");
  answers(STUDIES[index], index, host);
}
for (const host of document.querySelectorAll("[data-prices]")) {
  const index = host.getAttribute("data-prices");
  prices(index === "all" ? STUDIES : [STUDIES[index]], host);
}
for (const host of document.querySelectorAll("[data-errors]")) errors(STUDIES[host.getAttribute("data-errors")], host);
for (const host of document.querySelectorAll("[data-differences]")) differences(STUDIES[host.getAttribute("data-differences")], host);
for (const host of document.querySelectorAll("[data-compared]")) compared(STUDIES, host);
