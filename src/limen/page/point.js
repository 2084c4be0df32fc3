// SPDX-License-Identifier: Apache-2.0
// One point: its rule in words, its figures, its proposal, its charts, its segments, its history.
import { ask, of } from "./api.js";
import { copied, element, row, rows, show, write } from "./dom.js";
import { figures } from "./figures.js";
import { back, history } from "./history.js";
import { proposals, redefinitions } from "./proposal.js";

const FEW = 20;  // segments shown at first
const REST = 2000;  // milliseconds between two readings of everything

const tiles = (view) => {
  const { scored, answered_1, labels, samples, cost, cheapest, regret } = view.tiles;
  const share = scored > 0 ? words.percent(answered_1 / scored, 1) : "–";
  const old = labels > samples ? "labelled and old enough" : "labelled";
  return [
    [words.rate(cost, samples), "cost per 1,000 decisions"],
    [words.rate(cheapest, samples), "the cheapest single threshold on the same samples"],
    [samples > 0 ? words.signed(words.rate(regret, samples)) : "–", "regret per 1,000: what that would have saved"],
    [share, `of all answered ${view.words ? `“${view.words.one}”` : "1"}`],
    [words.whole(samples), `${old}, of ${words.whole(scored)} scored`],
  ];
};

const headline = (place, view) => {
  const [before, strong, after] = words.sentence(view.version.thresholds[""], view.words);
  if (place.textContent === before + strong + after) return;
  const exact = view.version.thresholds[""].threshold;
  place.replaceChildren(before, element("strong", exact === undefined ? {} : { "data-exact": String(exact) }, strong), after);
};

// Labels that come for one answer only say little about the other.
const coverage = ({ coverage: found }) => {
  if (!found || !found[0]?.scored || !found[1]?.scored) return null;
  const [zero, one] = [0, 1].map((answer) => found[answer].labelled / found[answer].scored);
  const [low, high] = [Math.min(zero, one), Math.max(zero, one)];
  if (high - low < 0.2 || found[0].scored + found[1].scored < 100) return null;
  return `${words.percent(zero, 0)} of answers 0 have a label, and ${words.percent(one, 0)} of answers 1: the labelled samples do not represent all scores, and neither do the costs shown. Send “weight” to correct for it.`;
};

// What is still to come, where nothing can be counted yet.
const begin = (places, { point, tiles: { scored, samples } }) => {
  show(places.begin, samples === 0);
  write(places["begin-words"], scored === 0
    ? "No scores yet. Send the first one:"
    : "Scores are being answered. Their cost is known once labels come:");
  const path = `${location.origin}/v1/points/${point}/${scored === 0 ? "scores" : "labels"}`;
  const body = scored === 0 ? '{"id": "first", "score": 0.7}' : '{"id": "first", "label": 1}';
  write(places["begin-command"], `curl ${path} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`);
};

const alerts = (place, view) => {
  const found = view.alerts.map((each) => `${words.said(each.text)}. Since ${words.when(each.since)}.`);
  const uneven = coverage(view);
  if (uneven) found.push(uneven);
  if ([...place.children].map((each) => each.textContent).join("\n") === found.join("\n")) return;
  place.replaceChildren(...found.map((text) => element("p", { class: "remark" }, text)));
};

const segments = (place) => {
  let places = null, all = false;
  const update = (view) => {
    show(place, view.segments.length > 0);
    if (!view.segments.length) return;
    if (!places) {
      const [made, found] = copied("segments");
      places = found;
      place.append(made);
      places.more.addEventListener("click", () => {
        all = true;
        update(view);
      });
    }
    const [total, ...rest] = view.segments;
    rest.sort((one, other) => other.samples - one.samples || (one.segment < other.segment ? -1 : 1));
    const shown = all ? rest : rest.slice(0, FEW);
    const name = (segment) => (segment === "" ? "all" : segment === "*" ? "all others" : segment);
    rows(places.rows, [total, ...shown].map((each) => {
      const own = each.segment === "" || each.source === each.segment;
      const known = each.enough || each.segment === "";
      const made = row([
        name(each.segment), known ? words.signed(words.rate(each.regret, each.samples, 1)) : "–", words.cut(each.in_effect),
        known ? words.cut(each.optimum) : "too few", words.whole(each.samples), words.whole(each.ones),
        words.whole(each.answered_1), own ? "itself" : name(each.source),
      ], known ? {} : { class: "few" });
      made.firstChild.className = "name";
      return made;
    }));
    const few = rest.filter((each) => !each.enough).length;
    write(places.words, few ? `${words.count(few, "segment holds", "segments hold")} too few samples for ${few === 1 ? "a threshold of its own" : "thresholds of their own"}: the next larger one answers.` : "Each segment holds enough samples for a threshold of its own.");
    show(places.more, !all && rest.length > FEW);
    write(places.more, `Show all ${words.whole(rest.length)} segments`);
  };
  return update;
};

// The page of a point inside `into`. `inform` gets views and problems; the returned `hear` takes what
// the stream says, `stop` ends it.
export const openPoint = async (into, point, { session, drafts, inform, failed, several }) => {
  let view = await ask("GET", of(point, "/overview"));
  const [made, places] = copied("point");
  into.replaceChildren(made);
  const ended = new AbortController();
  let timer = null, stale = false, reading = null, curve = null, curved = null;
  const may = session.scopes.includes("approve");
  const wrong = (problem) => {
    if (problem.name !== "AbortError" && !ended.signal.aborted) failed(problem);
  };

  const goBack = (version, thresholds) => back({
    point, version, rule: thresholds[""], now: view.version.thresholds[""], seen: view.seq, done: renew, failed: decided,
  });
  // A decision that came too late: show what is there now, and say so.
  const decided = async (problem) => {
    if (problem.status !== 409) return wrong(problem);
    await renew();
    failed(problem);
  };

  write(places.name, point);
  show(places.name, several);
  const card = proposals(places.proposal, { point, session, drafts, done: () => renew(), failed: decided });
  const other = redefinitions(places.redefinition, { point, session, drafts, done: () => renew(), failed: decided });
  const draw = figures(places.charts, view);
  const list = segments(places.segments);
  const events = history(places.history, { point, may, goBack, failed: wrong });
  places["to-history"].addEventListener("click", (event) => {
    event.preventDefault();
    places.history.scrollIntoView();
    places.history.focus({ preventScroll: true });
  });
  places.back.addEventListener("click", async () => {
    try {
      const versions = await ask("GET", of(point, "/history"));
      const before = versions.filter((each) => each.version < view.version.version).at(-1);
      if (before) goBack(before.version, before.thresholds);
    } catch (problem) {
      wrong(problem);
    }
  });

  const top = () => {
    const { version } = view;
    headline(places.rule, view);
    write(places.version, `Version ${version.version}`);
    const reason = version.reason ? `: “${version.reason}”` : "";
    write(places.since, `, in effect since ${words.when(version.since)}${version.by ? `, by ${version.by}` : ""}${reason}.`);
    write(places.costs, words.costs(view.definition));
    const own = Object.keys(version.thresholds).length - 1;
    if (own > 0) write(places.costs, `${words.costs(view.definition)} ${words.count(own, "segment has a threshold of its own", "segments have thresholds of their own")}.`);
    show(places.back, may && view.version.version > 1);
    begin(places, view);
    const figures = tiles(view);
    if (places.tiles.children.length !== figures.length) {
      places.tiles.replaceChildren(...figures.map(() => element("div", {}, element("dt"), element("dd"))));
    }
    figures.forEach(([value, name], i) => {
      const [term, figure] = places.tiles.children[i].children;
      write(figure, value);
      write(term, name);
    });
  };

  const whole = async (past) => {
    top();
    alerts(places.alerts, view);
    card(view);
    other(view);
    list(view);
    inform(view);
    if (curved !== view.tiles.samples || past) {
      curved = view.tiles.samples;
      curve = await ask("GET", of(point, "/curve"), undefined, ended.signal).catch((problem) => void wrong(problem)) ?? curve;
    }
    if (ended.signal.aborted) return;
    draw(view, curve);
    if (past) await events(view.version.version);
  };

  // One reading at a time; what comes meanwhile asks for one more.
  const renew = async (past = true) => {
    if (reading) await reading;
    reading = (async () => {
      try {
        view = await ask("GET", of(point, "/overview"), undefined, ended.signal);
        if (!ended.signal.aborted) await whole(past);
      } catch (problem) {
        wrong(problem);
      }
    })();
    await reading;
    reading = null;
  };
  const later = () => {
    stale = true;
    if (timer !== null || document.hidden) return;
    timer = setTimeout(async () => {
      timer = null;
      if (ended.signal.aborted || !stale) return;
      stale = false;
      await renew(false);
    }, REST);
  };
  const seen = () => !document.hidden && stale && later();
  document.addEventListener("visibilitychange", seen);

  await whole(true);
  return {
    hear: (kind, given) => {
      if (kind === "tick") {
        const moved = Object.keys(view.tiles).filter((name) => name in given).map((name) => [name, given[name]]);
        if (given.seq > view.seq) view = { ...view, tiles: { ...view.tiles, ...Object.fromEntries(moved) } };
        top();
        later();
      } else renew();
    },
    renew,
    stop: () => {
      ended.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
};
