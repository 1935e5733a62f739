// Draws the charts that are in sight; those in a closed part when it is opened, or for print.
(() => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const pictures = JSON.parse(document.getElementById("pictures").textContent);
  // `ast`: expressions are interpreted, as the page's policy lets none be evaluated.
  const options = { actions: false, renderer: "svg", tooltip: true, ast: true };
  const drawn = new Map();
  const draw = (place) => {
    const isPicture = place.id in pictures;
    if (isPicture ? drawn.has(place.id) : drawn.get(place.id) === place.clientWidth) return;
    drawn.set(place.id, place.clientWidth);
    const done = isPicture ? lba(place, pictures[place.id])
      : vegaEmbed(place, fit.fitted(specs[place.id], place.clientWidth), options)
        .then(() => fit.declutter(place));
    return done.catch((error) => {
      place.textContent = "This chart could not be drawn: " + error;
    });
  };
  const within = (part, kind = ".chart, .lba") => part.querySelectorAll(kind).forEach((place) => {
    if (!place.closest("details:not([open])")) draw(place);
  });
  within(document);
  document.querySelectorAll("details").forEach((part) => {
    part.addEventListener("toggle", () => { if (part.open) within(part); });
  });
  let turned;
  addEventListener("resize", () => { // pictures of sector against time follow by themselves
    clearTimeout(turned);
    turned = setTimeout(() => within(document, ".chart"), 200);
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    within(document);
  });
})();
