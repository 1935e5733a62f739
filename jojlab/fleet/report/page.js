// Draws the charts of the page, each as wide as its place, and again when that changes.
const specs = JSON.parse(document.getElementById("charts").textContent);
// `ast`: expressions are interpreted, as the page's policy lets none be evaluated.
const options = { actions: false, renderer: "svg", tooltip: true, ast: true };
const drawn = new Map();
const draw = (place) => {
  if (drawn.get(place.id) === place.clientWidth) return;
  drawn.set(place.id, place.clientWidth);
  const spec = { ...specs[place.id], width: Math.max(240, place.clientWidth - 260) };
  vegaEmbed(place, spec, options).catch((error) => {
    place.textContent = "This chart could not be drawn: " + error;
  });
};
const all = () => document.querySelectorAll(".chart").forEach(draw);
all();
let turned;
addEventListener("resize", () => { clearTimeout(turned); turned = setTimeout(all, 200); });
