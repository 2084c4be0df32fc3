// SPDX-License-Identifier: Apache-2.0
// Draws the three charts of the report out of the figures that stand in the page.
(() => {
  "use strict";
  const { curve, roc, fit, best, word, side, first, marks, band } = JSON.parse(document.getElementById("figures").textContent);
  const { number, percent } = words;
  const place = (id) => document.getElementById(id);
  const shown = (x, y) => marks.map((mark) => ({ ...mark, x: mark[x], y: mark[y] }));

  chart(place("loss"), {
    x: curve.at, lines: [{ y: curve.loss, as: "first", text: `${word} on these rows` }],
    across: "threshold", up: word,
    rangeY: [Math.min(0, ...curve.loss), 1.05 * Math.max(...curve.loss) || 1],
    marks: shown("at", "loss"), upright: true, band,
    says: (i) => {
      const rule = i === 0 ? `Answering ${first} to all` : i === curve.at.length - 1
        ? `Answering ${1 - first} to all` : `Threshold ${curve.shown[i]}`;
      const value = curve.loss[i] === null ? "infinite" : number(curve.loss[i]);
      const away = best === null || curve.loss[i] === null ? ""
        : `, ${number(Math.abs(curve.loss[i] - best))} ${side}`;
      return `${rule}${word === "cost" ? " costs" : `: ${word}`} ${value}${away}: `
        + `${number(curve.fp[i])} false positives, ${number(curve.fn[i])} false negatives; `
        + `${percent(curve.rate[i])} answered 1.`
        + (band === null ? "" : ` ${curve.band[i] ? "Inside" : "Outside"} the 95 % interval.`);
    },
  });

  chart(place("roc"), {
    x: roc.fpr,
    lines: [{ y: roc.tpr, as: "first", text: "ROC curve" }, { y: roc.hull, as: "second", text: "its hull" }],
    across: "share of labels 0 answered 1", up: "share of labels 1 answered 1",
    rangeX: [0, 1], rangeY: [0, 1.02], both: true,
    marks: shown("fpr", "tpr"),
    says: (i) => `At threshold ${roc.shown[i]}: ${percent(roc.tpr[i])} of labels 1 and `
      + `${percent(roc.fpr[i])} of labels 0 are answered 1.`
      + (roc.hull[i] === null ? "" : " Cheapest here for some costs."),
  });

  const lines = [{ y: fit.p, as: "first" }];
  if (fit.diagonal !== null) lines.push({ y: fit.diagonal, as: "dashed" });
  chart(place("fit"), {
    x: fit.at, lines, across: "score", up: "share of label 1", rangeY: [0, 1.02],
    says: (i) => `Scores around ${number(fit.at[i])}: ${percent(fit.p[i])} have label 1.`,
  });
})();
