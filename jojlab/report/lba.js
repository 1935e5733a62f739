// Draws the pictures of sector against time: reads the data of lba_data.py, draws on a canvas, and
// lets the reader zoom, move, hide and ask. No library.
const lba = (() => {
  const MARGIN = { left: 112, right: 14, top: 24, bottom: 34 };
  const GAP = 16; // between two zones of sectors
  const HEIGHT = 420;
  const SECTOR = 512;
  const { unpack, time, size, ticks } = lbaTools;

  class Picture {
    constructor(place, data, points, flushes) {
      Object.assign(this, { place, data, points, flushes, by: "class", hidden: new Set() });
      place.textContent = "";
      this.legend = place.appendChild(document.createElement("div"));
      this.legend.className = "lba-legend";
      this.canvas = place.appendChild(document.createElement("canvas"));
      this.canvas.tabIndex = 0;
      this.tip = place.appendChild(document.createElement("div"));
      this.tip.className = "lba-tip";
      this.longest = 0; // so that what began before the window is found
      for (const us of points.service_us) this.longest = Math.max(this.longest, us);
      this.reset();
      const inside = this.data.zones.map(() => 0);
      for (const sector of points.sector) inside[this.zones.indexOf(this.zoneOf(sector))]++;
      this.weights = inside.map(Math.sqrt);
      this.buildLegend();
      this.listen();
    }

    reset() {
      const pad = Math.max(1, this.data.end_us * 0.006);
      this.t0 = -pad; this.t1 = this.data.end_us + pad;
      this.zones = this.data.zones.map(([low, high]) => {
        const room = Math.max(8, (high - low) * 0.06);
        return { low: Math.max(0, low - room), high: high + room };
      });
    }

    // Zones share the height by the square root of what is in them; none is without room.
    layout() {
      this.width = Math.max(320, this.place.clientWidth);
      const all = HEIGHT - MARGIN.top - MARGIN.bottom - GAP * (this.zones.length - 1);
      const sum = this.weights.reduce((a, b) => a + b, 0) || 1;
      const shares = this.weights.map((w) => Math.max(0.14, w / sum));
      const total = shares.reduce((a, b) => a + b, 0);
      let y = HEIGHT - MARGIN.bottom; // the lowest sectors stand at the bottom
      this.zones.forEach((zone, i) => {
        zone.bottom = y;
        zone.top = y - all * shares[i] / total;
        y = zone.top - GAP;
      });
    }

    x(us) {
      return MARGIN.left
        + (us - this.t0) / (this.t1 - this.t0) * (this.width - MARGIN.left - MARGIN.right);
    }
    us(x) {
      return this.t0
        + (x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right) * (this.t1 - this.t0);
    }
    y(zone, sector) {
      return zone.bottom - (sector - zone.low) / (zone.high - zone.low) * (zone.bottom - zone.top);
    }
    sector(zone, y) {
      return zone.low + (zone.bottom - y) / (zone.bottom - zone.top) * (zone.high - zone.low);
    }
    zoneAt(y) {
      return this.zones.find((zone) => y >= zone.top - GAP / 2 && y <= zone.bottom + GAP / 2);
    }
    zoneOf(sector) {
      return this.zones[this.data.zones.findIndex(([a, b]) => sector >= a && sector <= b)];
    }

    kind(i) {
      if (this.by === "class") return this.data.classes[this.points.class[i]];
      const file = this.points.file[i];
      return file < 0 ? ["no file", this.data.none] : this.data.files[file];
    }

    // The first point that may reach into the window.
    from(us) {
      const begin = this.points.begin_us;
      let low = 0, high = begin.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (begin[middle] < us - this.longest) low = middle + 1; else high = middle;
      }
      return low;
    }

    draw() {
      this.layout();
      const ratio = devicePixelRatio || 1, style = getComputedStyle(this.place);
      this.canvas.width = this.width * ratio;
      this.canvas.height = HEIGHT * ratio;
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${HEIGHT}px`;
      const pen = this.pen = this.canvas.getContext("2d");
      this.ink = style.getPropertyValue("--ink");
      this.soft = style.getPropertyValue("--soft");
      this.line = style.getPropertyValue("--line");
      pen.scale(ratio, ratio);
      pen.font = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";
      this.drawPhases();
      this.drawAxes();
      for (const zone of this.zones) this.clipped(zone, () => this.drawFlushes(zone));
      this.drawPoints();
      if (this.box) this.drawBox();
    }

    clipped(zone, body) {
      this.pen.save();
      this.pen.beginPath();
      this.pen.rect(MARGIN.left, zone.top, this.width - MARGIN.left - MARGIN.right,
        zone.bottom - zone.top);
      this.pen.clip();
      body();
      this.pen.restore();
    }

    drawPhases() {
      const pen = this.pen, right = this.width - MARGIN.right;
      pen.textAlign = "left"; pen.textBaseline = "alphabetic"; pen.fillStyle = this.soft;
      if (this.data.phases.length < 2) return;
      const taken = []; // the longest phases are named first
      const spans = this.data.phases.map(([name, begin, end]) =>
        [name, Math.max(MARGIN.left, this.x(begin)), Math.min(right, this.x(end))]);
      for (const [name, x, to] of spans.sort((a, b) => b[2] - b[1] - a[2] + a[1])) {
        if (to < MARGIN.left || x > right) continue;
        pen.fillRect(x, 16, Math.max(1, to - x), 2);
        const wide = pen.measureText(name).width, at = Math.min(x, right - wide);
        if (taken.some(([from, until]) => at < until + 10 && at + wide + 10 > from)) continue;
        pen.fillText(name, at, 11);
        taken.push([at, at + wide]);
      }
    }

    drawAxes() {
      const pen = this.pen, right = this.width - MARGIN.right;
      pen.strokeStyle = this.line; pen.fillStyle = this.soft; pen.lineWidth = 1;
      const bottom = HEIGHT - MARGIN.bottom;
      const long = this.t1 - this.t0 > 4e6, unit = long ? 1e6 : 1e3;
      pen.textAlign = "center"; pen.textBaseline = "top";
      for (const v of ticks(this.t0 / unit, this.t1 / unit, this.width / 110)) {
        const x = Math.round(this.x(v * unit)) + 0.5;
        if (x < MARGIN.left) continue;
        for (const zone of this.zones) this.stroke(x, zone.top, x, zone.bottom);
        pen.fillText(String(+v.toPrecision(8)), x, bottom + 5);
      }
      pen.fillText(long ? "seconds" : "milliseconds", (MARGIN.left + right) / 2, bottom + 20);
      this.zones.forEach((zone, place) => {
        pen.textAlign = "right"; pen.textBaseline = "middle";
        const wanted = Math.max(2, (zone.bottom - zone.top) / 36);
        for (const v of ticks(zone.low, zone.high, wanted)) {
          const y = Math.round(this.y(zone, v)) + 0.5;
          if (y < zone.top + 4 || y > zone.bottom - 2) continue;
          this.stroke(MARGIN.left, y, right, y);
          pen.fillText(Math.round(v).toLocaleString("en"), MARGIN.left - 8, y);
        }
        if (place) { // what the axis leaves out
          const gap = this.data.zones[place][0] - this.data.zones[place - 1][1];
          pen.textAlign = "left";
          pen.fillText(`${size(gap * SECTOR)} without I/O`, MARGIN.left, zone.bottom + GAP / 2 + 1);
        }
      });
      pen.save();
      pen.translate(11, HEIGHT / 2); pen.rotate(-Math.PI / 2);
      pen.textAlign = "center"; pen.textBaseline = "middle";
      pen.fillText(`sector of ${this.data.device}`, 0, 0);
      pen.restore();
    }

    stroke(x, y, toX, toY) {
      this.pen.beginPath(); this.pen.moveTo(x, y); this.pen.lineTo(toX, toY); this.pen.stroke();
    }

    drawFlushes(zone) {
      if (this.hidden.has("flush")) return;
      const pen = this.pen, { begin_us, service_us } = this.flushes;
      pen.fillStyle = this.data.other;
      // Many of them at once would be a grey wall.
      const seen = begin_us.reduce((n, us) => n + (us >= this.t0 && us <= this.t1), 0);
      pen.globalAlpha = Math.max(0.03, Math.min(0.25, 20 / Math.max(1, seen)));
      for (let i = 0; i < begin_us.length; i++) {
        const x = this.x(begin_us[i]), to = this.x(begin_us[i] + service_us[i]);
        if (to >= MARGIN.left && x <= this.width) {
          pen.fillRect(x, zone.top, Math.max(1, to - x), zone.bottom - zone.top);
        }
      }
    }

    drawPoints() {
      const p = this.points, scale = (this.width - MARGIN.left - MARGIN.right) / (this.t1 - this.t0);
      // Where many lie over each other, the thickness shows how many.
      const seen = this.from(this.t1) - this.from(this.t0);
      for (const zone of this.zones) {
        this.clipped(zone, () => {
          this.pen.globalAlpha = Math.max(0.3, Math.min(1, 20000 / Math.max(1, seen)));
          const pen = this.pen, high = (zone.bottom - zone.top) / (zone.high - zone.low);
          for (let i = this.from(this.t0); i < p.sector.length && p.begin_us[i] <= this.t1; i++) {
            if (p.sector[i] > zone.high || p.sector[i] + p.sectors[i] < zone.low) continue;
            const [name, colour] = this.kind(i);
            if (this.hidden.has(name)) continue;
            const wide = Math.max(2.5, p.service_us[i] * scale);
            const tall = Math.max(2.5, p.sectors[i] * high);
            const x = this.x(p.begin_us[i]), y = this.y(zone, p.sector[i]) - tall;
            if (p.operation[i] === 0) {
              pen.fillStyle = colour;
              pen.fillRect(x, y, wide, tall);
            } else { // hollow: anything but a write
              pen.strokeStyle = colour;
              pen.strokeRect(x + 0.5, y + 0.5, Math.max(3, wide - 1), Math.max(3, tall - 1));
            }
          }
        });
      }
    }

    drawBox() {
      const { x, y, toX, toY } = this.box;
      this.pen.strokeStyle = this.ink;
      this.pen.setLineDash([4, 3]);
      this.pen.strokeRect(Math.min(x, toX), Math.min(y, toY), Math.abs(toX - x), Math.abs(toY - y));
      this.pen.setLineDash([]);
    }

    buildLegend() {
      this.legend.textContent = "";
      const sums = new Map(), { points } = this;
      for (let i = 0; i < points.sector.length; i++) {
        const [name, colour] = this.kind(i);
        const sum = sums.get(name) || { colour, bytes: 0, requests: 0 };
        sum.bytes += points.sectors[i] * SECTOR;
        sum.requests += points.requests[i];
        sums.set(name, sum);
      }
      const entries = [...sums].sort((a, b) => b[1].requests - a[1].requests);
      if (this.by === "class") { // the order of the story, as in every chart
        const order = this.data.classes.map(([name]) => name);
        entries.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
      }
      const flushes = this.flushes.begin_us.length;
      if (flushes) entries.push(["flush", { colour: this.data.other, requests: flushes }]);
      for (const [name, sum] of entries.slice(0, 12)) {
        this.button(name.split("/").pop() || name, sum.colour, this.hidden.has(name) ? "off" : "", () => {
          if (!this.hidden.delete(name)) this.hidden.add(name);
        }).title = `${name}: ${sum.requests.toLocaleString("en")}; click to hide or show`;
      }
      if (entries.length > 12) {
        this.legend.append(`and ${entries.length - 12} more files `);
      }
      if (this.data.files.length) {
        const other = this.by === "class" ? "file" : "class";
        this.button(`colour by ${other}`, "", "act", () => { this.by = other; this.hidden.clear(); });
      }
      this.button("show all", "", "act", () => this.reset());
    }

    button(text, colour, style, act) {
      const made = this.legend.appendChild(document.createElement("button"));
      made.type = "button";
      made.className = style;
      if (colour) {
        const spot = made.appendChild(document.createElement("i"));
        spot.style.background = colour;
      }
      made.append(text);
      made.addEventListener("click", () => { act(); this.buildLegend(); this.draw(); });
      return made;
    }

    zoom(zone, x, y, factor, vertical) {
      if (vertical && zone) {
        const at = this.sector(zone, y);
        zone.low = at - (at - zone.low) * factor; zone.high = at + (zone.high - at) * factor;
      } else {
        const at = this.us(x);
        this.t0 = at - (at - this.t0) * factor; this.t1 = at + (this.t1 - at) * factor;
      }
      this.draw();
    }

    listen() {
      const canvas = this.canvas, at = (e) => {
        const box = canvas.getBoundingClientRect();
        return [e.clientX - box.left, e.clientY - box.top];
      };
      canvas.addEventListener("wheel", (e) => { // the page scrolls until the picture is clicked
        if (document.activeElement !== canvas && !e.ctrlKey) return;
        e.preventDefault();
        const [x, y] = at(e), turn = e.deltaY || e.deltaX;
        this.zoom(this.zoneAt(y), x, y, turn > 0 ? 1.25 : 0.8, e.shiftKey);
      }, { passive: false });
      canvas.addEventListener("pointerdown", (e) => {
        const [x, y] = at(e);
        canvas.focus({ preventScroll: true });
        canvas.setPointerCapture(e.pointerId);
        this.box = { x, y, toX: x, toY: y, zone: this.zoneAt(y), move: e.shiftKey };
      });
      canvas.addEventListener("pointermove", (e) => {
        const [x, y] = at(e);
        if (!this.box) return this.ask(x, y);
        if (this.box.move) {
          const by = this.us(this.box.toX) - this.us(x);
          this.t0 += by; this.t1 += by;
        }
        this.box.toX = x; this.box.toY = y;
        this.draw();
      });
      canvas.addEventListener("pointerup", () => { this.zoomToBox(); this.box = null; this.draw(); });
      canvas.addEventListener("pointerleave", () => { this.tip.style.display = "none"; });
      canvas.addEventListener("dblclick", () => { this.reset(); this.draw(); });
      new ResizeObserver(() => this.draw()).observe(this.place);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    zoomToBox() {
      const { x, y, toX, toY, zone, move } = this.box || {};
      if (move || !(Math.abs(toX - x) > 5)) return;
      const from = this.us(Math.min(x, toX)), to = this.us(Math.max(x, toX));
      if (zone && Math.abs(toY - y) > 12) { // a flat box is about time alone
        const low = this.sector(zone, Math.min(zone.bottom, Math.max(y, toY)));
        const high = this.sector(zone, Math.max(zone.top, Math.min(y, toY)));
        zone.low = low; zone.high = Math.max(high, low + 8);
      }
      this.t0 = from; this.t1 = Math.max(to, from + 1);
    }

    // Say what lies nearest to the pointer.
    ask(x, y) {
      const p = this.points, zone = this.zoneAt(y);
      let best = -1, distance = 14;
      const until = this.us(x + distance);
      for (let i = this.from(this.us(x - distance)); zone && i < p.sector.length; i++) {
        if (p.begin_us[i] > until) break;
        if (this.zoneOf(p.sector[i]) !== zone || this.hidden.has(this.kind(i)[0])) continue;
        const left = this.x(p.begin_us[i]), low = this.y(zone, p.sector[i]);
        const right = this.x(p.begin_us[i] + p.service_us[i]);
        const high = this.y(zone, p.sector[i] + p.sectors[i]);
        const far = Math.hypot(Math.max(left - x, 0, x - right), Math.max(high - y, 0, y - low));
        if (far < distance) { best = i; distance = far; }
      }
      this.tip.style.display = best < 0 ? "none" : "block";
      if (best >= 0) this.tell(best, x, y);
    }

    tell(i, x, y) {
      const p = this.points, d = this.data, file = p.file[i];
      const many = p.requests[i] > 1 ? `${p.requests[i]} of them, ` : "";
      const lines = [
        `${d.operations[p.operation[i]]}: ${d.classes[p.class[i]][0]}`,
        file < 0 ? "" : d.files[file][0],
        `${many}${size(p.sectors[i] * SECTOR)}${many ? " of sectors" : ""} at sector `
          + p.sector[i].toLocaleString("en"),
        `${time(p.begin_us[i])}, for ${time(p.service_us[i])}${p.sync[i] ? ", synchronous" : ""}`,
      ];
      this.tip.textContent = lines.filter(Boolean).join("\n");
      const wide = this.tip.offsetWidth;
      this.tip.style.left = `${x + 16 + wide > this.width ? x - wide - 10 : x + 14}px`;
      this.tip.style.top = `${this.canvas.offsetTop + Math.min(y + 12, HEIGHT - 90)}px`;
    }
  }

  return async (place, data) => {
    const flushColumns = [["begin_us", true], ["service_us", false]];
    const points = await unpack(data.points, data.columns, data.count);
    const flushes = await unpack(data.flushes, flushColumns, data.flush_count);
    place.picture = new Picture(place, data, points, flushes);
    place.picture.draw();
  };
})();
