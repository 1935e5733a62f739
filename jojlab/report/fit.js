// Fits a chart's Vega-Lite to the width that its place has, and hides labels that would lie over
// others. Charts are written for 760 pixels (shared/vega.py); nothing is cut, only laid out anew.
const fit = (() => {
  const NARROW = 640;
  const LETTER = 6.4; // pixels that a letter takes, about

  // Calls `visit` with every object below `spec`.
  function walk(spec, visit) {
    if (Array.isArray(spec)) spec.forEach((part) => walk(part, visit));
    else if (spec && typeof spec === "object") {
      visit(spec);
      for (const [name, part] of Object.entries(spec)) if (name !== "datasets") walk(part, visit);
    }
  }

  // The names of cases stand above their bars: beside them there is no room.
  function namesAbove(spec, width) {
    walk(spec, (part) => {
      if (part.field === "case" && part.axis) {
        Object.assign(part.axis,
          { labelAlign: "left", labelPadding: -2, labelOffset: -9, labelLimit: width - 20, zindex: 1 });
      }
      if (typeof part.mark === "object" && part.encoding?.y?.field === "case") {
        part.mark.yOffset = 7;
        if (part.mark.height) part.mark.height = { band: 0.4 };
      }
    });
  }

  // Makes the parts' heights room for a line of text above each bar.
  function taller(part) {
    if (part.height) part.height = Math.round(part.height * 1.7);
  }

  // Breaks the titles of axes that are longer than the chart.
  function titles(spec, width) {
    const most = Math.max(20, Math.floor((width - 60) / LETTER));
    walk(spec, (part) => {
      if (!part.field || typeof part.title !== "string" || part.title.length <= most) return;
      const lines = [""];
      for (const word of part.title.split(" ")) {
        const longer = `${lines.at(-1)} ${word}`.trim();
        if (longer.length > most) lines.push(word);
        else lines[lines.length - 1] = longer;
      }
      part.title = lines;
    });
  }

  function legends(spec, width) {
    walk(spec, (part) => {
      if (part.legend?.columns) {
        const longest = Math.max(...(part.scale?.domain || [""]).map((word) => String(word).length));
        part.legend.columns = Math.max(1, Math.floor((width - 20) / (longest * LETTER + 34)));
      }
    });
  }

  // Bars by case, in one panel or several below one another.
  function byCase(spec, width, narrow) {
    const panels = spec.vconcat || [spec];
    let longest = 0;
    walk(spec, (part) => {
      if (part.field === "case" && part.scale?.domain) {
        longest = Math.max(longest, ...part.scale.domain.map((word) => word.length));
      }
    });
    const above = narrow || longest * LETTER > 250;
    if (above) namesAbove(spec, width);
    const room = above ? 12 : Math.min(250, longest * LETTER) + 16;
    for (const panel of panels) {
      panel.width = width - room - 16;
      if (above) taller(panel);
    }
  }

  function grouped(spec, width, narrow) {
    const panels = spec.hconcat;
    const below = narrow && panels.length > 1;
    const each = below ? width - 70 : (width - 70 * panels.length) / panels.length;
    for (const panel of panels) {
      panel.width = Math.max(120, Math.floor(each));
      walk(panel, (part) => {
        if (part.field === "group" && part.sort && part.axis) {
          const longest = Math.max(...part.sort.map((word) => word.length));
          const aslant = longest * 7 * part.sort.length > panel.width;
          Object.assign(part.axis, aslant ? { labelAngle: -30, labelAlign: "right" }
            : { labelAngle: 0, labelAlign: "center" });
        }
      });
    }
    if (below) {
      spec.vconcat = panels;
      delete spec.hconcat;
    }
  }

  // Two halves of one picture: shares by count, and by bytes.
  function halves(spec, width, narrow) {
    if (!narrow) {
      const [first, ...rest] = spec.hconcat;
      const names = Math.min(250, longestCase(first) * LETTER) + 16;
      const each = Math.floor((width - names - 40) / spec.hconcat.length);
      for (const half of [first, ...rest]) half.width = each;
      return;
    }
    for (const half of spec.hconcat) {
      half.width = width - 28;
      const y = half.encoding.y;
      y.axis = { ticks: false, domain: false };
      namesAbove(half, width);
      taller(half);
    }
    spec.vconcat = spec.hconcat;
    delete spec.hconcat;
  }

  function longestCase(spec) {
    let longest = 0;
    walk(spec, (part) => {
      if (part.field === "case" && Array.isArray(part.sort)) {
        longest = Math.max(longest, ...part.sort.map((word) => word.length));
      }
    });
    return longest;
  }

  function histograms(spec, width, narrow) {
    const header = spec.facet.row.header;
    const longest = Math.max(...spec.facet.row.sort.map((word) => word.length));
    if (narrow || longest * LETTER > 250) {
      Object.assign(header, { labelOrient: "top", labelAnchor: "start", labelLimit: width - 20 });
      spec.spec.width = width - 60;
    } else {
      spec.spec.width = width - 80 - Math.min(260, longest * 7);
    }
  }

  // One commit: tracks below one another, their names at the left, or above where that is narrow.
  function commit(spec, width, narrow) {
    const room = narrow ? 76 : 190;
    for (const track of spec.vconcat) track.width = width - room - 20;
    if (!narrow) return;
    walk(spec, (part) => {
      if (part.minExtent) Object.assign(part, { minExtent: 66, titleX: -64, titleY: -18 });
    });
    spec.spacing = 24;
  }

  // Returns `spec` with the cases of those names alone; null where none is left. A copy.
  function only(spec, names) {
    const own = structuredClone(spec), kept = (name) => names.has(name);
    for (const [name, rows] of Object.entries(own.datasets || {})) {
      own.datasets[name] = rows.filter((row) => !("case" in row) || kept(row.case));
    }
    const shares = (panel) => {
      let all = 0, left = 0;
      walk(panel, (part) => {
        if (part.field !== "case") return;
        for (const [owner, key] of [[part.scale, "domain"], [part, "sort"]]) {
          if (!Array.isArray(owner?.[key])) continue;
          all = Math.max(all, owner[key].length);
          owner[key] = owner[key].filter(kept);
          left = Math.max(left, owner[key].length);
        }
      });
      if (panel.height && all && !panel.facet) {
        panel.height = Math.max(40, Math.round(panel.height * left / all));
      }
      return !all || left;
    };
    for (const side of ["vconcat", "hconcat"]) {
      if (own[side]) {
        own[side] = own[side].filter(shares);
        return own[side].length ? own : null;
      }
    }
    return shares(own) ? own : null;
  }

  // Returns `spec` for a place so wide. A copy: it may be drawn again for print.
  function fitted(spec, width) {
    const own = structuredClone(spec), narrow = width < NARROW;
    legends(own, width);
    titles(own, width);
    const laid = JSON.stringify(own, (name, part) => name === "datasets" ? undefined : part);
    if (own.facet) histograms(own, width, narrow);
    else if (own.hconcat) (laid.includes('"xOffset"') ? grouped : halves)(own, width, narrow);
    else if (laid.includes('"track"')) commit(own, width, narrow);
    else byCase(own, width, narrow);
    return own;
  }

  // Hides the words inside a chart that lie over an earlier one or end outside of it; the table
  // below and the tooltips have them.
  function declutter(place) {
    const svg = place.querySelector("svg");
    if (!svg) return;
    const whole = svg.getBoundingClientRect(), seen = place.getBoundingClientRect();
    const left = Math.max(whole.left, seen.left), right = Math.min(whole.right, seen.right);
    // Bars of requests; a word stands beside its own.
    const bars = place.querySelectorAll(".mark-rule.role-mark line, .mark-rule.role-mark path");
    const kept = [...bars].map((bar) => bar.getBoundingClientRect());
    for (const word of place.querySelectorAll(".mark-text.role-mark text")) {
      const box = word.getBoundingClientRect();
      const over = kept.some((other) => box.left < other.right && other.left < box.right
        && box.top < other.bottom - 2 && other.top < box.bottom - 2);
      if (over || box.right > right || box.left < left) word.style.visibility = "hidden";
      else if (box.width) kept.push(box);
    }
  }

  return { fitted, only, declutter };
})();
