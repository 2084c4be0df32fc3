// SPDX-License-Identifier: Apache-2.0
// Draws the three charts of the report out of the figures that stand in the page.
(() => {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // As limen writes numbers for people: every digit before the point, six in all after it.
  const number = (x) => (Math.abs(x) >= 1e15 || (x !== 0 && Math.abs(x) < 1e-4)
    ? x.toPrecision(4)
    : x.toLocaleString("en", Math.abs(x) >= 1e5 ? { maximumFractionDigits: 0 }
      : { maximumSignificantDigits: 6 }));
  const percent = (x) => `${(100 * x).toFixed(2)} %`;
  const tick = (u, splits) => splits.map((x) => x.toLocaleString("en", { maximumFractionDigits: 12 }));

  const axis = (label) => ({
    label, labelSize: 22, labelFont: "13px system-ui, sans-serif", font: "12px system-ui, sans-serif",
    stroke: color("--soft"), grid: { stroke: color("--rule"), width: 1 },
    ticks: { stroke: color("--rule"), width: 1 }, values: tick,
  });

  // A dot where the recommended threshold is, and a line down to it.
  const marked = (x, y, upright) => (u) => {
    const left = u.valToPos(x, "x", true), top = u.valToPos(y, "y", true), ctx = u.ctx;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color("--mark");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    if (upright) {
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(left, u.bbox.top);
      ctx.lineTo(left, u.bbox.top + u.bbox.height);
      ctx.stroke();
    }
    ctx.beginPath();
    ctx.arc(left, top, 5 * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fill();
    ctx.restore();
  };

  const charts = [];
  const draw = (id, data, given) => {
    const place = document.getElementById(id);
    const readout = place.parentNode.querySelector(".readout");
    const still = readout.textContent;
    const size = () => ({
      width: Math.max(220, Math.floor(place.clientWidth)),
      height: Math.round(Math.min(340, Math.max(260, place.clientWidth * 0.75))),
    });
    const chart = new uPlot({
      ...size(),
      legend: { show: false },
      scales: { x: { time: false, range: given.range }, y: { range: given.upwards } },
      axes: [axis(given.across), { ...axis(given.up), size: given.wide || 60 }],
      series: [{}, ...given.series],
      cursor: { y: false, points: { size: 7 } },
      hooks: {
        draw: given.mark ? [marked(...given.mark)] : [],
        setCursor: [(u) => {
          readout.textContent = u.cursor.idx == null ? still : given.says(u.cursor.idx);
        }],
      },
    }, data, place);
    charts.push({ chart, place, size });
  };

  const everything = () => {
    for (const { chart } of charts.splice(0)) chart.destroy();
    const line = (name, more) => ({ stroke: color(name), width: 2, points: { show: false }, ...more });
    const { curve, roc, fit, chosen } = figures;
    const at = (place, name) => `${name} ${curve.shown[place]}`;
    const widest = Math.max(...curve.loss.map((x) => number(x).length));

    draw("loss", [curve.at, curve.loss], {
      across: "threshold", up: "cost", wide: 22 + 7 * Math.min(widest, 12),
      series: [line("--line")],
      upwards: (u, low, high) => [0, high > 0 ? 1.05 * high : 1],
      mark: chosen.at === null ? null : [chosen.at, chosen.loss, true],
      says: (place) => {
        const end = place === 0 ? "Answering 1 to all" : place === curve.at.length - 1
          ? "Answering 0 to all" : at(place, "Threshold");
        return `${end} costs ${number(curve.loss[place])}, `
          + `${number(curve.loss[place] - chosen.loss)} above the lowest: `
          + `${number(curve.fp[place])} false positives, ${number(curve.fn[place])} false negatives; `
          + `${percent(curve.rate[place])} answered 1.`;
      },
    });

    draw("roc", [roc.fpr, roc.tpr, roc.hull], {
      across: "share of labels 0 answered 1", up: "share of labels 1 answered 1",
      range: () => [0, 1], upwards: () => [0, 1.02],
      series: [line("--line", { width: 1.5 }), line("--second", { spanGaps: true, width: 1.5 })],
      mark: [chosen.fpr, chosen.tpr, false],
      says: (place) => `At threshold ${roc.shown[place]}: ${percent(roc.tpr[place])} of labels 1 and `
        + `${percent(roc.fpr[place])} of labels 0 are answered 1.`
        + (roc.hull[place] === null ? "" : " Best for some costs."),
    });

    draw("fit", fit.diagonal === null ? [fit.at, fit.p] : [fit.at, fit.p, fit.diagonal], {
      across: "score", up: "share of label 1",
      upwards: () => [0, 1.02],
      series: [line("--line"), ...(fit.diagonal === null ? [] : [line("--soft", { width: 1, dash: [5, 4] })])],
      mark: null,
      says: (place) => `Scores around ${number(fit.at[place])}: ${percent(fit.p[place])} have label 1.`,
    });
    document.documentElement.dataset.drawn = charts.length;
  };

  everything();
  new ResizeObserver(() => {
    for (const { chart, size } of charts) {
      const wanted = size();
      if (chart.width !== wanted.width || chart.height !== wanted.height) chart.setSize(wanted);
    }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", everything);
  // Paper is light whatever the screen is.
  matchMedia("print").addEventListener("change", everything);
})();
