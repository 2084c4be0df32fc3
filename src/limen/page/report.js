// SPDX-License-Identifier: Apache-2.0
// Draws the three charts of the report out of the figures that stand in the page.
(() => {
  "use strict";
  const { curve, roc, fit, chosen } = JSON.parse(document.getElementById("figures").textContent);
  // As limen writes numbers for people: every digit before the point, six in all after it.
  const number = (x) => (Math.abs(x) >= 1e15 || (x !== 0 && Math.abs(x) < 1e-4)
    ? x.toPrecision(4)
    : x.toLocaleString("en", Math.abs(x) >= 1e5 ? { maximumFractionDigits: 0 }
      : { maximumSignificantDigits: 6 }));
  const percent = (x) => `${(100 * x).toFixed(2)} %`;
  const place = (id) => document.getElementById(id);

  chart(place("loss"), {
    x: curve.at, lines: [{ y: curve.loss, as: "first" }],
    across: "threshold", up: "cost",
    rangeY: [0, 1.05 * Math.max(...curve.loss) || 1],
    mark: { x: chosen.at, y: chosen.loss, upright: true },
    says: (i) => {
      const rule = i === 0 ? "Answering 1 to all" : i === curve.at.length - 1
        ? "Answering 0 to all" : `Threshold ${curve.shown[i]}`;
      return `${rule} costs ${number(curve.loss[i])}, `
        + `${number(curve.loss[i] - chosen.loss)} above the lowest: `
        + `${number(curve.fp[i])} false positives, ${number(curve.fn[i])} false negatives; `
        + `${percent(curve.rate[i])} answered 1.`;
    },
  });

  chart(place("roc"), {
    x: roc.fpr, lines: [{ y: roc.tpr, as: "first" }, { y: roc.hull, as: "second" }],
    across: "share of labels 0 answered 1", up: "share of labels 1 answered 1",
    rangeX: [0, 1], rangeY: [0, 1.02], both: true,
    mark: { x: chosen.fpr, y: chosen.tpr },
    says: (i) => `At threshold ${roc.shown[i]}: ${percent(roc.tpr[i])} of labels 1 and `
      + `${percent(roc.fpr[i])} of labels 0 are answered 1.`
      + (roc.hull[i] === null ? "" : " Best for some costs."),
  });

  const lines = [{ y: fit.p, as: "first" }];
  if (fit.diagonal !== null) lines.push({ y: fit.diagonal, as: "dashed" });
  chart(place("fit"), {
    x: fit.at, lines, across: "score", up: "share of label 1", rangeY: [0, 1.02],
    says: (i) => `Scores around ${number(fit.at[i])}: ${percent(fit.p[i])} have label 1.`,
  });
})();
