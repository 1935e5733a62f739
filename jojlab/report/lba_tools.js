// What pictures of sector against time need beside drawing: unpacks the columns of lba_data.py, and
// writes times, sizes and the steps of an axis.
const lbaTools = (() => {
  async function unpack(text, columns, count) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let at = 0;
    const next = () => { // beyond 32 bits the shifts of JavaScript do not reach
      let value = 0, scale = 1, byte;
      do { byte = bytes[at++]; value += (byte & 0x7f) * scale; scale *= 128; } while (byte & 0x80);
      return value % 2 ? -(value + 1) / 2 : value / 2;
    };
    const result = {};
    for (const [name, delta] of columns) {
      const column = result[name] = new Float64Array(count);
      for (let i = 0, before = 0; i < count; i++) {
        column[i] = delta ? (before += next()) : next();
      }
    }
    return result;
  }

  const time = (us) => us >= 1e6 ? `${+(us / 1e6).toPrecision(7)} s`
    : us >= 1e3 ? `${+(us / 1e3).toPrecision(7)} ms` : `${us} µs`;
  const size = (bytes) => bytes >= 1 << 30 ? `${(bytes / (1 << 30)).toFixed(2)} GiB`
    : bytes >= 1 << 20 ? `${(bytes / (1 << 20)).toFixed(2)} MiB` : `${+(bytes / 1024).toFixed(2)} KiB`;

  // Round steps, about `wanted` of them between two values.
  function ticks(low, high, wanted) {
    const raw = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((f) => f * power >= raw);
    const found = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(v);
    return found;
  }

  return { unpack, time, size, ticks };
})();
