// SPDX-License-Identifier: Apache-2.0
// Draws the three charts of the report out of the figures that stand in the page.
(() => {
  "use strict";
  const { curve, roc, fit, best, word, side, first, marks, band, words: own } = JSON.parse(document.getElementById("figures").textContent);
  const { number, percent } = words;
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const place = (id) => document.getElementById(id);
  const shown = (x, y) => marks.map((mark) => ({ ...mark, x: mark[x], y: mark[y] }));

  chart(place("loss"), {
    x: curve.at, lines: [{ y: curve.loss, as: "first", text: `${word} on these rows` }],
    across: "threshold", up: word,
    rangeY: [Math.min(0, ...curve.loss), 1.05 * Math.max(0, ...curve.loss) || 1],
    marks: shown("at", "loss"), upright: true, band,
    says: (i) => {
      const rule = i === 0 ? capital(first ? own.all : own.none) : i === curve.at.length - 1
        ? capital(first ? own.none : own.all) : `Threshold ${curve.shown[i]}`;
      const value = curve.loss[i] === null ? "infinite" : number(curve.loss[i]);
      const away = best === null || curve.loss[i] === null ? ""
        : `, ${number(Math.abs(curve.loss[i] - best))} ${side}`;
      return `${rule}${word === "cost" ? " costs" : `: ${word}`} ${value}${away}: `
        + `${number(curve.fp[i])} false positives, ${number(curve.fn[i])} false negatives; `
        + `${percent(curve.rate[i])} ${own.called}.`
        + (band === null ? "" : ` ${curve.band[i] ? "Inside" : "Outside"} the 95 % interval.`);
    },
  });

  chart(place("roc"), {
    x: roc.fpr,
    lines: [{ y: roc.tpr, as: "first", text: "ROC curve" }, { y: roc.hull, as: "second", text: "its hull" }],
    across: `share of ${own.zeros} ${own.called}`, up: `share of ${own.ones} ${own.called}`,
    rangeX: [0, 1], rangeY: [0, 1.02], both: true,
    marks: shown("fpr", "tpr"),
    says: (i) => `${roc.shown[i]}: ${percent(roc.tpr[i])} of ${own.ones} and `
      + `${percent(roc.fpr[i])} of ${own.zeros} are ${own.called}.`
      + (roc.hull[i] === null ? "" : " Cheapest here for some costs."),
  });

  const lines = [{ y: fit.p, as: "first" }];
  if (fit.diagonal !== null) lines.push({ y: fit.diagonal, as: "dashed" });
  chart(place("fit"), {
    x: fit.at, lines, across: "score", up: `share of label ${own.label}`, rangeY: [0, 1.02],
    says: (i) => `Scores around ${number(fit.at[i])}: ${percent(fit.p[i])} have label ${own.label}.`,
  });

  // Say so where a table goes on at the side, and let keys scroll it.
  for (const scroll of document.querySelectorAll(".scroll")) {
    const more = document.createElement("p");
    more.className = "more";
    more.textContent = "Scroll this table sideways for more";
    scroll.after(more);
    const look = () => {
      const wide = scroll.scrollWidth > scroll.clientWidth + 1;
      more.hidden = !wide || scroll.scrollLeft + scroll.clientWidth > scroll.scrollWidth - 2;
      if (wide) scroll.tabIndex = 0;
      else scroll.removeAttribute("tabindex");
    };
    scroll.addEventListener("scroll", look);
    new ResizeObserver(look).observe(scroll);
    look();
  }
})();
