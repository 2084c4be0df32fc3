// SPDX-License-Identifier: Apache-2.0
// Charts in SVG. Their colours are the page's CSS variables, so dark screens and paper need no
// second drawing. Returns a function that takes the same again, for figures that change.
//
// chart(place, {
//   x, lines: [{ y, as, text }],  columns; null in y is passed over; `as` is a class of page.css
//   lines: [{ x, y, step }], a line over an x of its own, level until its next point
//   areas: [{ low, high, as, text }],  what lies between two columns
//   bars: [{ y, as, each, text }],  from zero; `each`, a class for every bar, may replace `as`
//   room,                    how much of the x axis each bar has
//   across, up,              names of the axes
//   tickX, tickY,            (range, how many) -> [[value, text]]; chart.times is one, for dates
//   height,                  [least, most] pixels
//   rangeX, rangeY,          [low, high]; what the data spans where none is given
//   marks: [{ x, y, as, text }],  dots; the first key goes to the first of them
//   upright,                 a line through each mark
//   band: { from, to, text },  a stretch of the x axis
//   says,                    point number -> a sentence, shown while a pointer or a key is on it
//   both,                    nearest in both directions, for curves that rise upright
// })
// What has a text stands in the legend. Long columns are drawn downsample: no pixel changes.
const chart = (() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const node = (parent, name, given, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  };

  const span = (columns) => {
    let low = Infinity, high = -Infinity;
    for (const column of columns) for (const value of column) if (value !== null) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low < high ? [low, high] : [low - 0.5, low + 0.5];
  };

  // Numbers of 1, 2 or 5 units between the ends. Halves, because 1e308 - -1e308 is too large.
  const ticks = ([low, high], most) => {
    const rough = 2 * ((high / 2 - low / 2) / most);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const steps = [1, 2, 5, 10].map((times) => times * unit), fits = steps.findIndex((each) => each >= rough);
    const lone = Math.floor(high / steps[fits]) <= Math.ceil(low / steps[fits]);  // one number is no scale
    const step = steps[lone && fits > 0 ? fits - 1 : fits];
    const shown = [];
    for (let k = Math.ceil(low / step); k * step <= high; ++k) shown.push(k * step + 0);  // never -0
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const write = (value) => (digits > 8 || Math.abs(value) >= 1e12
      ? value.toExponential(2) : value.toLocaleString("en", { maximumFractionDigits: digits }));
    return shown.map((value) => [value, write(value)]);
  };

  // Dates between two times in milliseconds, in UTC: every so many seconds, hours or days.
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
  const DAYS = [1, 2, 4, 7, 14, 28, 91, 182, 365, 730, 1826, 3652];
  const times = ([low, high], most) => {
    const rough = Math.max(1, (high - low) / most / 1000);
    const step = 1000 * ([...STEPS, ...DAYS.map((days) => 86400 * days)].find((each) => each >= rough) || 86400 * Math.ceil(rough / 86400));
    const two = (value) => String(value).padStart(2, "0");
    const write = (value) => {
      const at = new Date(value), clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
      if (step >= 86400e3 * 182) return `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
      if (step >= 86400e3 || value % 86400e3 === 0) return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
      return step < 60e3 ? `${clock}:${two(at.getUTCSeconds())}` : clock;
    };
    const shown = [];
    for (let k = Math.ceil(low / step); k * step <= high; ++k) shown.push([k * step, write(k * step)]);
    return shown;
  };

  // One entry each for what has a text, drawn with the classes of the chart.
  const legend = ({ lines, areas, bars, marks, band, upright }) => {
    const list = document.createElement("ul");
    list.className = "legend";
    const entry = (text, draw) => {
      if (text === undefined) return;
      const item = list.appendChild(document.createElement("li"));
      draw(node(item, "svg", { viewBox: "0 0 28 14", "aria-hidden": "true" }));
      item.append(text);
    };
    for (const line of lines) {
      entry(line.text, (svg) => node(svg, "line", { class: line.as, x1: 1, x2: 27, y1: 7, y2: 7 }));
    }
    const patch = (as) => (svg) => node(svg, "rect", { class: as, x: 1, width: 26, y: 1, height: 12 });
    for (const area of areas) entry(area.text, patch(area.as));
    for (const bar of bars) entry(bar.text, patch(bar.as));
    for (const mark of marks) entry(mark.text, (svg) => {
      if (upright) node(svg, "line", { class: mark.as, x1: 1, x2: 27, y1: 7, y2: 7 });
      node(svg, "circle", { class: mark.as, cx: 14, cy: 7, r: 4.5 });
    });
    if (band) entry(band.text, patch("band"));
    list.hidden = !list.children.length;
    return list;
  };

  // The places of a path, at most four in each column of pixels: the first, the lowest, the
  // highest and the last, which is all that can be seen of the others.
  const downsample = (places, width) => {
    if (places.length <= 4 * width) return places;
    const kept = [];
    for (let from = 0, to; from < places.length; from = to) {
      const column = Math.floor(places[from][0]);
      let low = from, high = from;
      for (to = from + 1; to < places.length && Math.floor(places[to][0]) === column; ++to) {
        if (places[to][1] < places[low][1]) low = to;
        if (places[to][1] > places[high][1]) high = to;
      }
      for (const i of new Set([from, Math.min(low, high), Math.max(low, high), to - 1])) kept.push(places[i]);
    }
    return kept;
  };
  const path = (places, width) => downsample(places, width).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

  const draws = (place, given) => {
    let x, lines, areas, bars, marks, band, rangeX, rangeY, last, still, list;
    const readout = place.parentNode.querySelector(".readout");
    let at = null, cursor, toX, toY;

    const take = (next) => {
      given = next;
      ({ x, lines = [], areas = [], bars = [], marks = [], band = null } = given);
      rangeX = given.rangeX || span([x]);
      rangeY = given.rangeY || span([...lines.map((line) => line.y), ...areas.flatMap(({ low, high }) => [low, high]), ...bars.map((bar) => bar.y)]);
      last = x.length - 1;
      if (given.caption !== undefined) still = given.caption;
      else if (still === undefined) still = readout.textContent;
      if (at !== null && at > last) at = last;
      const renewed = legend({ lines, areas, bars, marks, band, upright: given.upright });
      if (list) list.replaceWith(renewed);
      else place.after(renewed);
      list = renewed;
    };

    const draw = () => {
      const width = Math.max(220, place.clientWidth);
      const [least, most] = given.height || [260, 340];
      const height = Math.round(Math.min(most, Math.max(least, width * 0.75)));
      const upwards = (given.tickY || ticks)(rangeY, 6), sideways = (given.tickX || ticks)(rangeX, Math.max(2, width / 75));
      const longest = Math.max(...upwards.map(([, text]) => text.length));
      const left = 28 + 7 * longest, right = width - 16, top = 10, bottom = height - 44;
      toX = (value) => left + (right - left) * ((value / 2 - rangeX[0] / 2) / (rangeX[1] / 2 - rangeX[0] / 2));
      toY = (value) => bottom - (bottom - top) * ((value / 2 - rangeY[0] / 2) / (rangeY[1] / 2 - rangeY[0] / 2));

      place.replaceChildren();
      const svg = node(place, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
      for (const [value, text] of upwards) {
        node(svg, "line", { class: "grid", x1: left, x2: right, y1: toY(value), y2: toY(value) });
        node(svg, "text", { x: left - 6, y: toY(value) + 4, "text-anchor": "end" }, text);
      }
      for (const [value, text] of sideways) {
        node(svg, "line", { class: "grid", x1: toX(value), x2: toX(value), y1: top, y2: bottom });
        const inside = Math.min(toX(value), width - 3.4 * text.length);  // or its end is cut off
        node(svg, "text", { x: inside, y: bottom + 17, "text-anchor": "middle" }, text);
      }
      node(svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, given.across);
      node(svg, "text", { "text-anchor": "middle", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)` }, given.up);
      if (band) {  // never so narrow that nobody sees it
        const wide = Math.max(2, toX(band.to) - toX(band.from));
        const from = (toX(band.from) + toX(band.to) - wide) / 2;
        node(svg, "rect", { class: "band", x: from, width: wide, y: top, height: bottom - top });
      }
      const wide = right - left;
      for (const area of areas) {
        const over = x.map((_, i) => i).filter((i) => area.low[i] !== null && area.high[i] !== null);
        const edge = (column) => over.map((i) => [toX(x[i]), toY(column[i])]);
        const points = `${path(edge(area.high), wide)} ${path(edge(area.low), wide).split(" ").reverse().join(" ")}`;
        node(svg, "polygon", { class: area.as, points });
      }
      const room = Math.max(1, Math.min(40, 0.76 * wide * given.room / (rangeX[1] - rangeX[0])));
      for (const bar of bars) bar.y.forEach((value, i) => {
        if (value === null) return;
        const [upper, lower] = [toY(Math.max(0, value)), toY(Math.min(0, value))];
        node(svg, "rect", {
          class: bar.each ? bar.each[i] : bar.as, x: toX(x[i]) - room / 2, width: room,
          y: upper, height: Math.max(1, lower - upper),
        });
      });
      for (const line of lines) {
        const across = line.x || x, points = [];
        let before = null;
        for (let i = 0; i < across.length; ++i) {
          if (line.y[i] === null) continue;
          const place = [toX(across[i]), toY(line.y[i])];
          if (line.step && before !== null) points.push([place[0], before]);
          points.push(place);
          before = place[1];
        }
        node(svg, "polyline", { class: line.as, points: path(points, wide) });
      }
      for (const mark of [...marks].reverse()) {  // the first one on top
        if (given.upright) {
          node(svg, "line", { class: mark.as, x1: toX(mark.x), x2: toX(mark.x), y1: top, y2: bottom });
        }
        node(svg, "circle", { class: mark.as, cx: toX(mark.x), cy: toY(mark.y), r: 5 });
      }
      cursor = node(svg, "g", { class: "cursor" });
      node(cursor, "line", { y1: top, y2: bottom });
      for (const line of lines) if (!line.x) node(cursor, "circle", { r: 4 });
      point(at);
    };

    // Put point number i into words and under the cursor; null takes both away.
    const point = (i) => {
      at = i;
      cursor.style.display = i === null ? "none" : "";
      readout.textContent = i === null ? still : given.says(i);
      if (i === null) return;
      place.setAttribute("aria-valuenow", i);
      place.setAttribute("aria-valuetext", readout.textContent);
      const [line, ...dots] = cursor.children;
      line.setAttribute("x1", toX(x[i]));
      line.setAttribute("x2", toX(x[i]));
      const common = lines.filter((line) => !line.x);
      dots.forEach((dot, k) => {
        const value = common[k].y[i];
        dot.style.display = value === null ? "none" : "";
        dot.setAttribute("cx", toX(x[i]));
        if (value !== null) dot.setAttribute("cy", toY(value));
      });
    };

    const nearest = (event) => {
      const box = place.getBoundingClientRect();
      if (!given.both) return closest(event.clientX - box.left, toX);
      let best = 0, least = Infinity;
      x.forEach((value, i) => {
        const across = toX(value) - (event.clientX - box.left);
        const up = toY(lines[0].y[i]) - (event.clientY - box.top);
        if (across * across + up * up < least) [best, least] = [i, across * across + up * up];
      });
      return best;
    };

    // The number of the point nearest to a place; x rises, so no more than a few are looked at.
    const closest = (wanted, shown) => {
      let low = 0, high = last;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (shown(x[middle]) < wanted) low = middle + 1;
        else high = middle;
      }
      return low > 0 && wanted - shown(x[low - 1]) <= shown(x[low]) - wanted ? low - 1 : low;
    };

    // The first key goes to the first mark, the next ones go on from there.
    const start = () => {
      const from = marks.length ? marks[0].x : x[0];
      return x.reduce((best, value, i) => (Math.abs(value - from) < Math.abs(x[best] - from) ? i : best), 0);
    };
    const step = (key) => {
      const stride = Math.ceil(x.length / 20);
      return { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -stride, PageUp: stride, Home: -last, End: last }[key];
    };
    const describe = () => {
      const attributes = { role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": at ?? 0, "aria-valuetext": still };
      for (const [key, value] of Object.entries(attributes)) place.setAttribute(key, value);
    };
    place.addEventListener("pointermove", (event) => point(nearest(event)));
    place.addEventListener("pointerdown", (event) => point(nearest(event)));
    place.addEventListener("pointerleave", () => point(null));
    place.addEventListener("blur", () => point(null));
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return point(null);
      const by = step(event.key);
      if (by === undefined) return;
      event.preventDefault();
      point(at === null ? start() : Math.min(last, Math.max(0, at + by)));
    });
    let drawn = 0;
    new ResizeObserver(() => {
      if (place.clientWidth !== drawn) draw();
      drawn = place.clientWidth;
    }).observe(place);
    const update = (next) => {
      take(next);
      describe();
      draw();
    };
    update(given);
    return update;
  };
  return Object.assign(draws, { times });
})();
