// SPDX-License-Identifier: Apache-2.0
// Draws a hundred thousand points of history, moves a pointer over them, and says what it took.
(async () => {
  const { figures } = await import("/page/figures.js");
  const now = Date.parse("2026-11-16T12:00:00Z"), at = (i) => new Date(now - 26000 * (100000 - i)).toISOString();
  const level = (i) => 0.4 + 0.03 * Math.sin(i / 4000) + 0.004 * ((i * 7919 % 101) / 101);
  const each = Array.from({ length: 100000 }, (_, i) => i);
  const view = {
    at: new Date(now).toISOString(), proposal: null, interval: null, days: [], delays: null, tiles: { labels: 0 },
    version: { thresholds: { "": { rule: "none" } } },
    steps: each.map((i) => ({ at: at(i), version: i, threshold: level(i) })),
    over_time: each.map((i) => ({ at: at(i), optimum: level(i) + 0.01, low: level(i), high: level(i) + 0.02 })),
  };
  const into = document.createElement("div");
  document.querySelector("main").append(into);
  let begun = performance.now();
  const draw = figures(into, view);
  const first = performance.now() - begun;
  const place = into.querySelector(".chart"), box = place.getBoundingClientRect();
  begun = performance.now();
  for (let i = 0; i < 100; ++i) place.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 60 + 3 * i, clientY: box.top + 9 }));
  const move = (performance.now() - begun) / 100;
  const points = [...place.querySelectorAll("polyline, polygon")].map((line) => line.getAttribute("points").split(" ").length);
  const lines = [...place.querySelectorAll("polyline")].map((line) => line.getAttribute("points").split(" ").map((pair) => Number(pair.split(",")[1])));
  const details = into.querySelector("details");
  details.open = true;
  await new Promise((done) => setTimeout(done, 100));
  return { first, move, points, wide: box.width, lowest: lines.map((ys) => Math.max(...ys)), highest: lines.map((ys) => Math.min(...ys)),
           rows: into.querySelectorAll("tbody tr").length, said: place.getAttribute("aria-valuetext") };
})()
