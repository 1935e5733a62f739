// Draws the charts that are in sight; those in a closed part when it is opened, or for print.
(() => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const pictures = JSON.parse(document.getElementById("pictures").textContent);
  const options = { actions: false, renderer: "svg", tooltip: true };
  const drawn = new Set();
  const draw = (place) => {
    if (drawn.has(place.id)) return;
    drawn.add(place.id);
    const done = place.id in pictures ? lba(place, pictures[place.id])
      : vegaEmbed(place, specs[place.id], options);
    return done.catch((error) => {
      place.textContent = "This chart could not be drawn: " + error;
    });
  };
  const within = (part) => part.querySelectorAll(".chart, .lba").forEach(draw);
  document.querySelectorAll(".chart, .lba").forEach((place) => {
    if (!place.closest("details:not([open])")) draw(place);
  });
  document.querySelectorAll("details").forEach((part) => {
    part.addEventListener("toggle", () => { if (part.open) within(part); });
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; within(part); });
  });
})();
