// SPDX-License-Identifier: Apache-2.0
// The four charts of a point, each with the same figures as a table. `chart` and `words` come from
// charts.js and words.js, which the report uses too.
import { copied, element, row, rows, show, write } from "./dom.js";
import { watching } from "./proposal.js";

const MOST_ROWS = 500;
const finite = (value) => (typeof value === "number" ? value : null);
const falling = (view) => view.version.direction === "<=";
const cutOf = (view) => (value) => {
  if (value === null || value === undefined) return "–";
  if (finite(value) === null) return (value === "inf") === falling(view) ? "all" : "none";
  return words.cut({ rule: "at_least", threshold: value });
};
const proposed = ({ proposal }) => (proposal && !watching(proposal) ? proposal.thresholds[""] : undefined);
const time = (text) => Date.parse(text);
const HEIGHT = [250, 300];

// Where an interval is narrow beside all thresholds, how it is zoomed into: it and as much again
// on either side; null where it is wide.
const near = (view, x) => {
  const ends = view.interval && [view.interval.low, view.interval.high].map(finite);
  if (!ends || ends.includes(null)) return null;
  const all = x[x.length - 1] - x[0], wide = Math.max(ends[1] - ends[0], all / 100);
  const range = [Math.max(x[0], ends[0] - wide), Math.min(x[x.length - 1], ends[1] + wide)];
  return range[1] - range[0] < all / 2 && x.filter((at) => at >= range[0] && at <= range[1]).length > 1 ? range : null;
};

// A place for one chart. Its update takes what to draw, the rows of the table and how to write one;
// or null and a reason where there is nothing to draw.
const figure = (into, title, head, turned) => {
  const [made, places] = copied("figure");
  const { chart: place, readout, nothing, details } = places;
  write(places.title, title);
  place.setAttribute("aria-label", title);
  places.scroll.setAttribute("aria-label", `${title}, as a table`);
  places.head.append(element("tr", {}, ...head.map((each) => element("th", { scope: "col" }, each))));
  into.append(made);
  let draw = null, list = [], cells = null;
  if (turned) places.zoom.addEventListener("click", () => turned(places.zoom));
  const fillTable = () => {
    if (!details.open) return;
    rows(places.rows, list.slice(-MOST_ROWS).map((each) => row(cells(each))));
    show(places["left-out"], list.length > MOST_ROWS);
    write(places["left-out"], `The latest ${words.whole(MOST_ROWS)} of ${words.whole(list.length)}.`);
  };
  details.addEventListener("toggle", fillTable);
  return (given, why, rest) => {
    show(place.parentNode, given !== null);
    show(details, given !== null);
    show(nothing, given === null);
    write(nothing, given === null ? why : "");
    if (given === null) return;
    [list, cells] = [why, rest];
    fillTable();
    show(places.zoom, given.zoom !== undefined);
    write(places.zoom, given.zoom ?? "");
    if (draw) draw({ height: HEIGHT, ...given });
    else draw = chart(place, { height: HEIGHT, ...given });
  };
};

// The value in effect at some time, by the steps before it.
const inEffect = (steps, at) => {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low ? steps[low - 1].threshold : null;
};

const overTime = (update, view) => {
  const now = time(view.at), shownCut = cutOf(view);
  const steps = view.steps.map((each) => ({ ...each, at: time(each.at) }));
  const found = view.over_time.map((each) => ({ ...each, at: time(each.at) })).filter((each) => each.at <= now);
  const numbers = (list, name) => list.map((each) => finite(each[name]));
  if (!numbers(steps, "threshold").concat(numbers(found, "optimum")).some((value) => value !== null)) {
    update(null, "No threshold to draw yet.");
    return;
  }
  const x = found.length ? found.map((each) => each.at) : steps.map((each) => each.at);
  const blank = x.map(() => null);
  const column = (name) => (found.length ? numbers(found, name) : blank);
  const from = Math.min(x[0] ?? now, now - 1000), inside = steps.filter((each) => each.at >= from);
  const level = inEffect(steps, from);
  const line = [...(level === null ? [] : [{ at: from, threshold: level }]), ...inside];
  const end = { at: now, threshold: steps.length ? steps[steps.length - 1].threshold : null };
  const candidate = proposed(view)?.threshold ?? null;
  const marks = [];
  if (finite(end.threshold) !== null) marks.push({ x: now, y: end.threshold, as: "mark" });
  if (candidate !== null) marks.push({ x: now, y: candidate, as: "candidate", text: "candidate" });
  const values = [...numbers(found, "optimum"), ...numbers(found, "low"), ...numbers(found, "high"), ...numbers(line, "threshold"), candidate].filter((value) => value !== null);
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const room = 0.08 * (high - low) || Math.abs(high) * 0.1 || 0.1;
  update({
    x, across: "time (UTC)", up: "threshold", tickX: chart.times, marks,
    rangeX: [from, now], rangeY: [low - room, high + room],
    areas: found.some((each) => each.low !== null) ? [{ low: column("low"), high: column("high"), as: "spread", text: "its 95 % interval" }] : [],
    lines: [
      { y: column("optimum"), as: "second", text: found.length ? "cheapest in hindsight" : undefined },
      { x: [...line, end].map((each) => each.at), y: numbers([...line, end], "threshold"), as: "inforce", step: true, text: "in effect" },
    ],
    caption: found.length ? "Where the thin line leaves the thick one, another threshold would have been cheaper." : "The thresholds in effect.",
    says: (i) => {
      const each = found[i], level = shownCut(inEffect(steps, x[i]));
      if (!each) return `${words.when(x[i])}: in effect ${level}.`;
      const sure = each.low === null ? "" : ` (95 %: ${shownCut(each.low)} to ${shownCut(each.high)})`;
      return `${words.when(x[i])}: cheapest in hindsight ${shownCut(each.optimum)}${sure}; in effect ${level}.`;
    },
  }, found.length ? found : steps, (each) => [words.when(each.at), shownCut(inEffect(steps, each.at)), ...["optimum", "low", "high"].map((name) => shownCut(each[name]))]);
};

const costs = (update, view, curve, closer) => {
  let kept = curve ? curve.curve.filter((each) => finite(each.threshold) !== null) : [];
  if (kept.length < 2 || !curve.samples) {
    update(null, curve || !view.tiles.samples ? "Drawn once labels have come." : "Loading …");
    return;
  }
  const range = near(view, kept.map((each) => each.threshold)), zoomed = closer && range !== null;
  if (zoomed) kept = kept.filter((each) => each.threshold >= range[0] && each.threshold <= range[1]);
  const x = kept.map((each) => each.threshold), y = kept.map((each) => 1000 * each.loss / curve.samples);
  const cost = (at) => {  // of the next threshold on the side of the answers 1: the same answers
    const found = falling(view) ? x.findLastIndex((each) => each <= at) : x.findIndex((each) => each >= at);
    return y[found >= 0 ? found : falling(view) ? 0 : y.length - 1];
  };
  const inside = (at) => at >= x[0] && at <= x[x.length - 1];
  const marks = [];
  const now = view.version.thresholds[""].threshold, candidate = proposed(view)?.threshold;
  if (now !== undefined && inside(now)) marks.push({ x: now, y: cost(now), as: "mark", text: `in effect: ${words.cut(view.version.thresholds[""])}` });
  if (candidate !== undefined && inside(candidate)) marks.push({ x: candidate, y: cost(candidate), as: "candidate", text: `candidate: ${words.cut(proposed(view))}` });
  const ends = view.interval && [Math.max(view.interval.low, x[0]), Math.min(view.interval.high, x[x.length - 1])];
  const text = (total) => words.rate(total, curve.samples);
  const most = y.reduce((high, each) => Math.max(high, each), 0), least = y.reduce((low, each) => Math.min(low, each), most);
  const room = 0.08 * (most - least) || 0.1 * most || 1;
  update({
    x, across: "threshold", up: "cost per 1,000 decisions", marks, upright: true,
    zoom: range === null ? undefined : zoomed ? "Show all thresholds" : "Zoom to the interval",
    lines: [{ y, as: "first" }],
    rangeY: zoomed ? [least - room, most + room] : [0, 1.05 * most || 1],
    band: ends && ends[0] <= ends[1] ? { from: ends[0], to: ends[1], text: "95 % interval of the best threshold" } : null,
    caption: `On the ${words.count(curve.samples, "labelled sample")} that count now.${zoomed ? " The axis of costs does not begin at 0." : ""}`,
    says: (i) => `Threshold ${words.number(x[i])} costs ${text(kept[i].loss)} per 1,000 decisions.`,
  }, kept, (each) => [words.number(each.threshold), text(each.loss)]);
};

const byDay = (update, view) => {
  const days = view.days;
  if (!days.some((each) => each.labelled > 0)) {
    update(null, "Drawn once labels have come.");
    return;
  }
  const x = days.map((each) => time(each.day)), DAY = 86400e3;
  const y = days.map((each) => (each.labelled > 0 ? 1000 * each.regret / each.labelled : null));
  const young = days.some((each) => each.young), old = days.some((each) => !each.young);
  const high = y.reduce((most, each) => Math.max(most, each ?? 0), 0), low = y.reduce((least, each) => Math.min(least, each ?? 0), 0);
  const text = (each) => (each.labelled > 0 ? words.signed(words.rate(each.regret, each.labelled)) : "–");
  update({
    x, across: "day of the score (UTC)", up: "regret per 1,000 decisions",
    rangeX: [Math.min(x[0], x[x.length - 1] - 6 * DAY) - DAY / 2, x[x.length - 1] + DAY / 2], tickX: chart.times, room: DAY,
    rangeY: [1.08 * low, 1.08 * high || 1],
    bars: [
      { y, as: "bar", each: days.map((each) => (each.young ? "bar young" : "bar")), text: old ? "labels are in" : undefined },
      ...(young ? [{ y: y.map(() => null), as: "bar young", text: "labels are still to come" }] : []),
    ],
    caption: "What the answers given cost beyond the threshold that is cheapest today.",
    says: (i) => `${words.day(x[i], true)}: regret ${text(days[i])} per 1,000; ${words.count(days[i].labelled, "label")} of ${words.count(days[i].scored, "score")}${days[i].young ? ", more to come" : ""}.`,
  }, days, (each) => [words.day(time(each.day), true), text(each), words.whole(each.scored), words.whole(each.labelled), words.whole(each.answered_1), each.young ? "to come" : "in"]);
};

const late = (update, view) => {
  const found = view.delays;
  if (!found || found.curve.length < 2) {
    update(null, found || !view.tiles.labels ? "Drawn once labels have come." : "Labels come without the time at which they were determined (as_of), so how late they are is not known.");
    return;
  }
  const [name, size] = words.unit(found.curve[found.curve.length - 1].seconds);
  const x = found.curve.map((each) => each.seconds / size), y = found.curve.map((each) => each.share);
  const age = found.age / size, aged = age <= 2 * x[x.length - 1];
  const last = Math.max(x[x.length - 1], aged ? 1.05 * age : 0);
  const half = found.half === null ? "" : `Half within ${words.length(found.half)}`;
  const nine = found.nine_in_ten === null ? "" : `, nine in ten within ${words.length(found.nine_in_ten)}`;
  update({
    x, across: `${name}s from score to label`, up: "share of labels", rangeX: [0, last], rangeY: [0, 1.02],
    tickY: () => [0, 0.25, 0.5, 0.75, 1].map((value) => [value, `${100 * value} %`]),
    lines: [{ y, as: "first" }, ...(aged ? [{ x: [age, age], y: [0, 1], as: "dashed", text: `a sample counts for a proposal: ${words.length(found.age)}` }] : [])],
    caption: `${half}${nine || "."}${nine ? "." : ""} ${words.count(found.labels, "label")}.`,
    says: (i) => `${words.percent(y[i], 1)} of labels come within ${words.number(x[i])} ${name}s.`,
  }, found.curve, (each) => [words.length(each.seconds), words.percent(each.share, 1)]);
};

// The charts of a point in their places; the returned function draws them again.
export const figures = (into, view) => {
  const threshold = figure(into, "The threshold over time", ["when", "in effect", "cheapest in hindsight", "95 % from", "95 % to"]);
  let closer = false, last = [view, null];
  const cost = figure(into, "What every threshold costs", ["threshold", "cost per 1,000"], () => {
    closer = !closer;
    costs(cost, ...last, closer);
  });
  const day = figure(into, "Regret by day", ["day", "regret per 1,000", "scored", "labelled", "answered 1", "labels"]);
  const delay = figure(into, "How late labels are", [`time`, "share of labels"]);
  const draw = (next, curve) => {
    overTime(threshold, next);
    last = [next, curve];
    costs(cost, ...last, closer);
    byDay(day, next);
    late(delay, next);
  };
  draw(view, null);
  return draw;
};
