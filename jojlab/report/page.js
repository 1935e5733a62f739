// Draws the charts that are in sight; those in a closed part when it is opened, or for print.
(() => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const pictures = JSON.parse(document.getElementById("pictures").textContent);
  // `ast`: expressions are interpreted, as the page's policy lets none be evaluated.
  const options = { actions: false, renderer: "svg", tooltip: true, ast: true };
  const drawn = new Map();
  let names = null; // of the cases that charts show; null: all
  const chart = (place) => {
    const spec = names ? fit.only(specs[place.id], names) : specs[place.id];
    if (!spec) return Promise.resolve(place.replaceChildren("No case is left to show."));
    return vegaEmbed(place, fit.fitted(spec, place.clientWidth), options)
      .then(() => fit.declutter(place));
  };
  const draw = (place) => {
    const isPicture = place.id in pictures;
    if (isPicture ? drawn.has(place.id) : drawn.get(place.id) === place.clientWidth) return;
    drawn.set(place.id, place.clientWidth);
    const done = isPicture ? lba(place, pictures[place.id]) : chart(place);
    return done.catch((error) => {
      place.textContent = "This chart could not be drawn: " + error;
    });
  };
  const within = (part, kind = ".chart, .lba") => Promise.all([...part.querySelectorAll(kind)]
    .filter((place) => !place.closest("details:not([open])")).map(draw));
  let filtered;
  document.addEventListener("cases", ({ detail }) => {
    names = detail;
    clearTimeout(filtered);
    filtered = setTimeout(() => {
      for (const name of Object.keys(specs)) drawn.delete(name);
      within(document, ".chart");
    }, 150);
  });
  cases.begin();
  within(document).then(cases.arrive); // charts have moved what lies below them
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
