// Fills the comparison of two cases: their figures and the rows of their bills beside each other.
(() => {
  const place = document.querySelector(".compare");
  if (!place) return;
  const [first, second] = place.querySelectorAll("select");
  const result = place.querySelector("[role=region]");
  const { known, settings, keep } = cases;
  const of = (id) => known.cases.find((each) => each.id === id);
  const SYNC = /^(fsync|fdatasync)( of .*)$/; // one row for both calls
  const short = (value) => value ? Number(value.toPrecision(4)).toLocaleString("en") : "0";
  const signed = (value) => value > 0 ? `+${short(value)}` : short(value).replace("-", "−");

  function table(heads, rows, firstNumber) {
    const whole = document.createElement("table"), box = document.createElement("div");
    const fill = (row, cells, name) => cells.forEach((text, column) => {
      const cell = document.createElement(name);
      cell.textContent = text;
      if (column >= firstNumber) cell.className = "n";
      row.append(cell);
    });
    fill(whole.createTHead().insertRow(), heads, "th");
    const body = whole.createTBody();
    for (const cells of rows) fill(body.insertRow(), cells, "td");
    box.className = "scroll";
    box.append(whole);
    return box;
  }

  function title(text) {
    const head = document.createElement("h3");
    head.textContent = text;
    return head;
  }

  // A ratio of two figures; of what is zero or not there, none.
  function ratio(a, b) {
    if (!a || !b || !a[0]) return "–";
    return a[0] === b[0] ? "equal" : `× ${short(b[0] / a[0])}`;
  }

  function figures(a, b) {
    const rows = known.figures.filter(([name]) => a.figures[name] || b.figures[name])
      .map(([name, words]) => [words, a.figures[name]?.[1] ?? "–", b.figures[name]?.[1] ?? "–",
        ratio(a.figures[name], b.figures[name])]);
    return table(["", a.label, b.label, "second / first"], [
      ["durability", a.durability, b.durability, ""],
      ["at risk", ...[a, b].map((each) => each.risk || "the manuals warn of nothing"), ""],
      ...rows,
    ], 1);
  }

  // The rows of both bills by what, file and cause: requests and KiB of each, and the difference.
  function bill(a, b, part) {
    const rows = new Map();
    [a, b].forEach((each, side) => each.bill.filter((row) => row[0] === part).forEach((row) => {
      const [, what, file, cause, requests, bytes] = row;
      const [, call, rest] = cause.match(SYNC) || [null, "", cause];
      const key = JSON.stringify([what, file, call && "sync", rest]);
      if (!rows.has(key)) rows.set(key, [[what, file, cause], [0, 0], [0, 0], call]);
      const found = rows.get(key);
      if (call !== found[3]) found[0][2] = `${found[3]} → ${call}${rest}`;
      found[1 + side][0] += requests;
      found[1 + side][1] += bytes;
    }));
    const all = [...rows.values()];
    const by = (row, value) => Math.abs(row[2][value] - row[1][value]);
    all.sort((x, y) => by(y, 1) - by(x, 1) || by(y, 0) - by(x, 0));
    const total = [["total", "", ""], [0, 0], [0, 0]];
    for (const [, ...sides] of all.map((row) => row.slice(0, 3))) {
      sides.forEach((side, place) => side.forEach((value, which) => {
        total[1 + place][which] += value;
      }));
    }
    const cells = ([name, x, y]) => [...name, short(x[0]), short(y[0]), signed(y[0] - x[0]),
      short(x[1] / 1024), short(y[1] / 1024), signed((y[1] - x[1]) / 1024)];
    const heads = ["what", "file", "cause", "requests, first", "second", "change", "KiB, first",
      "second", "change"];
    const found = table(heads, [...all, total].map(cells), 3);
    found.querySelector("tbody").lastElementChild.className = "total";
    return all.length ? [found] : [];
  }

  function show() {
    const a = of(first.value), b = of(second.value);
    const parts = known.parts.flatMap(([part, words]) => {
      const found = bill(a, b, part);
      return found.length ? [title(`${words[0].toUpperCase()}${words.slice(1)}`), ...found] : [];
    });
    result.replaceChildren(figures(a, b), ...parts);
  }

  function chosen() {
    show();
    keep({ first: first.value, second: second.value });
  }

  const asked = settings(), ids = [...first.options].map((option) => option.value);
  const valid = (id, otherwise) => ids.includes(id) ? id : otherwise;
  first.value = valid(asked.get("first"), ids[0]);
  second.value = valid(asked.get("second"), ids[1]);
  first.addEventListener("change", chosen);
  second.addEventListener("change", chosen);
  place.querySelector("button").addEventListener("click", () => {
    [first.value, second.value] = [second.value, first.value];
    chosen();
  });
  place.hidden = false;
  show();
})();
