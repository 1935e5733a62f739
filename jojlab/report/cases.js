// Filters and sorts cases, and opens the case that the address names.
//
// What is about a case has data-case, the case's id. The state of the page is the address's
// fragment, so that a link leads to what its sender saw: #case-ID is a case, and
// #?filter=ext4&sort=latency_p50 what is shown (compare.js adds its two cases).
const cases = (() => {
  const known = JSON.parse(document.getElementById("cases").textContent);
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

  // Reads and writes the settings in the fragment; another fragment is a place on the page.
  const settings = () => new URLSearchParams(
    location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  function keep(changes) {
    const all = settings();
    for (const [name, value] of Object.entries(changes)) {
      if (value) all.set(name, value); else all.delete(name);
    }
    const text = all.toString();
    history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
  }

  // Whether a case's text has every word, and none that begins with "-".
  const matches = (text, asked) => asked.every((word) => word.length > 1 && word[0] === "-"
    ? !text.includes(word.slice(1)) : text.includes(word));

  // What a filter acts on: the whole page, or in a study of several experiments its section.
  const scope = (box) => known.cases.length ? document : box.closest("section");

  function filter(box) {
    const within = scope(box), asked = words(box.value), shown = new Set(), all = new Set();
    const rows = box.closest("section").querySelectorAll("tr[data-case]");
    for (const row of rows) {
      const text = `${row.dataset.case} ${row.cells[0].textContent}`.toLowerCase();
      all.add(row.dataset.case);
      if (matches(text, asked)) shown.add(row.dataset.case);
    }
    within.querySelectorAll("[data-case]").forEach((part) => {
      if (all.has(part.dataset.case)) part.hidden = !shown.has(part.dataset.case);
    });
    const said = box.closest(".filter").querySelector("[role=status]");
    said.textContent = asked.length ? `${shown.size} of ${all.size} cases` : "";
    const names = new Set(known.cases.filter((each) => shown.has(each.id))
      .flatMap((each) => each.names));
    document.dispatchEvent(new CustomEvent("cases", {
      detail: known.cases.length && shown.size < all.size ? names : null,
    }));
  }

  // Sorts the rows of a table by a column; rows without a number come last, either way.
  function sort(table, place, down) {
    const body = table.tBodies[0], rows = [...body.rows];
    const key = (row) => {
      const cell = row.cells[place];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
    };
    const isNumbers = rows.some((row) => typeof key(row) === "number");
    const order = down ? -1 : 1;
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (!isNumbers) return order * x.localeCompare(y, "en", { numeric: true });
      if (typeof x !== "number" || typeof y !== "number") {
        return (typeof x !== "number") - (typeof y !== "number");
      }
      return order * (x - y);
    });
    body.append(...rows);
    [...table.tHead.rows[0].cells].forEach((head, other) => {
      if (other === place) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  function sortable(table, place) {
    const head = table.tHead.rows[0].cells[place], button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      sort(table, place, down);
      if (table.closest("#overview")) keep({ sort: place + 1, down: down ? "1" : "" });
    });
  }

  // The id that the fragment names; none where a link was cut off within an escape.
  function unescaped() {
    try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }
  }

  // Opens the parts that are about the case that the fragment names, and goes to its bill.
  function open() {
    const bill = location.hash.startsWith("#case-") && document.getElementById(unescaped());
    if (!bill) return;
    for (const part of document.querySelectorAll("#bill details, #commit details")) {
      if (part.dataset.case === bill.dataset.case) part.open = true;
    }
    bill.hidden = false;
    bill.scrollIntoView();
  }

  // Goes to what the fragment names.
  function arrive() {
    if (settings().has("first")) document.getElementById("compare")?.scrollIntoView();
    else open();
  }

  function begin() {
    for (const table of document.querySelectorAll("table:has(tr[data-case])")) {
      const heads = table.tHead.rows[0].cells;
      for (let place = 0; place < heads.length; place += 1) sortable(table, place);
    }
    const asked = settings(), overview = document.querySelector("#overview table");
    for (const place of document.querySelectorAll(".filter")) {
      const box = place.querySelector("input");
      place.hidden = false;
      box.addEventListener("input", () => {
        filter(box);
        if (known.cases.length) keep({ filter: box.value.trim() });
      });
      if (known.cases.length && asked.get("filter")) {
        box.value = asked.get("filter");
        filter(box);
      }
    }
    const column = Number(asked.get("sort")) - 1;
    if (overview && overview.tHead.rows[0].cells[column]) {
      sort(overview, column, asked.get("down") === "1");
    }
    addEventListener("hashchange", open);
    open();
  }

  return { known, settings, keep, begin, arrive };
})();
