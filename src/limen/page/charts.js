// SPDX-License-Identifier: Apache-2.0
// Line charts in SVG. Their colours are the page's CSS variables, so dark screens and paper need
// no second drawing.
//
// chart(place, {
//   x, lines: [{ y, as, text }],  columns; null in y is passed over; `as` is a class of page.css
//   across, up,              names of the axes
//   rangeX, rangeY,          [low, high]; what the data spans where none is given
//   marks: [{ x, y, as, text }],  dots; the first key goes to the first of them
//   upright,                 a line through each mark
//   band: { from, to, text },  a stretch of the x axis
//   says,                    point number -> a sentence, shown while a pointer or a key is on it
//   both,                    nearest in both directions, for curves that rise upright
// })
// What has a text stands in the legend.
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
    const step = [1, 2, 5, 10].find((times) => times * unit >= rough) * unit;
    const shown = [];
    for (let k = Math.ceil(low / step); k * step <= high; ++k) shown.push(k * step + 0);  // never -0
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const write = (value) => (digits > 8 || Math.abs(value) >= 1e12
      ? value.toExponential(2) : value.toLocaleString("en", { maximumFractionDigits: digits }));
    return shown.map((value) => [value, write(value)]);
  };

  // One entry each for what has a text, drawn with the classes of the chart.
  const legend = (place, { lines, marks, band, upright }) => {
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
    for (const mark of marks) entry(mark.text, (svg) => {
      if (upright) node(svg, "line", { class: mark.as, x1: 1, x2: 27, y1: 7, y2: 7 });
      node(svg, "circle", { class: mark.as, cx: 14, cy: 7, r: 4.5 });
    });
    if (band) entry(band.text, (svg) => node(svg, "rect", { class: "band", x: 1, width: 26, y: 1, height: 12 }));
    if (list.children.length) place.after(list);
  };

  return (place, given) => {
    const { x, lines, marks = [], band = null } = given;
    const rangeX = given.rangeX || span([x]);
    const rangeY = given.rangeY || span(lines.map((line) => line.y));
    const readout = place.parentNode.querySelector(".readout");
    const still = readout.textContent;
    let at = null, cursor, toX, toY;

    const draw = () => {
      const width = Math.max(220, place.clientWidth);
      const height = Math.round(Math.min(340, Math.max(260, width * 0.75)));
      const upwards = ticks(rangeY, 6), sideways = ticks(rangeX, Math.max(2, width / 75));
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
        node(svg, "text", { x: toX(value), y: bottom + 17, "text-anchor": "middle" }, text);
      }
      node(svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, given.across);
      node(svg, "text", { "text-anchor": "middle", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)` }, given.up);
      if (band) {  // never so narrow that nobody sees it
        const wide = Math.max(2, toX(band.to) - toX(band.from));
        const from = (toX(band.from) + toX(band.to) - wide) / 2;
        node(svg, "rect", { class: "band", x: from, width: wide, y: top, height: bottom - top });
      }
      for (const line of lines) {
        const points = [];
        x.forEach((value, i) => {
          if (line.y[i] !== null) points.push(`${toX(value).toFixed(1)},${toY(line.y[i]).toFixed(1)}`);
        });
        node(svg, "polyline", { class: line.as, points: points.join(" ") });
      }
      for (const mark of [...marks].reverse()) {  // the first one on top
        if (given.upright) {
          node(svg, "line", { class: mark.as, x1: toX(mark.x), x2: toX(mark.x), y1: top, y2: bottom });
        }
        node(svg, "circle", { class: mark.as, cx: toX(mark.x), cy: toY(mark.y), r: 5 });
      }
      cursor = node(svg, "g", { class: "cursor" });
      node(cursor, "line", { y1: top, y2: bottom });
      for (const _ of lines) node(cursor, "circle", { r: 4 });
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
      dots.forEach((dot, k) => {
        const value = lines[k].y[i];
        dot.style.display = value === null ? "none" : "";
        dot.setAttribute("cx", toX(x[i]));
        if (value !== null) dot.setAttribute("cy", toY(value));
      });
    };

    const nearest = (event) => {
      const box = place.getBoundingClientRect();
      let best = 0, least = Infinity;
      x.forEach((value, i) => {
        const across = toX(value) - (event.clientX - box.left);
        const up = given.both ? toY(lines[0].y[i]) - (event.clientY - box.top) : 0;
        if (across * across + up * up < least) [best, least] = [i, across * across + up * up];
      });
      return best;
    };

    // The first key goes to the first mark, the next ones go on from there.
    const start = () => {
      const from = marks.length ? marks[0].x : x[0];
      return x.reduce((best, value, i) => (Math.abs(value - from) < Math.abs(x[best] - from) ? i : best), 0);
    };
    const last = x.length - 1, stride = Math.ceil(x.length / 20);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -stride, PageUp: stride, Home: -last, End: last };
    const attributes = { role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": 0, "aria-valuetext": still };
    for (const [key, value] of Object.entries(attributes)) place.setAttribute(key, value);
    place.addEventListener("pointermove", (event) => point(nearest(event)));
    place.addEventListener("pointerdown", (event) => point(nearest(event)));
    place.addEventListener("pointerleave", () => point(null));
    place.addEventListener("blur", () => point(null));
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return point(null);
      if (!(event.key in steps)) return;
      event.preventDefault();
      point(at === null ? start() : Math.min(last, Math.max(0, at + steps[event.key])));
    });
    legend(place, { lines, marks, band, upright: given.upright });
    let drawn = 0;
    new ResizeObserver(() => {
      if (place.clientWidth !== drawn) draw();
      drawn = place.clientWidth;
    }).observe(place);
    draw();
  };
})();
