// SPDX-License-Identifier: Apache-2.0
// The proposal: what it would save, on which samples, what it must meet, and who decides.
import { ask, of } from "./api.js";
import { copied, element, pardon, refuse, row, rows, show, write } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const sign = (met) => {
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", met ? "M2.5 8.5l3.6 3.7 7.4-8.4" : "M3.5 3.5l9 9m0-9l-9 9");
  svg.append(path);
  return svg;
};

const STATUS = { shadow: "in shadow: evidence is gathering", waiting: "waits for approval" };
const CLOSED = { approved: "was approved", rejected: "was rejected", withdrawn: "was withdrawn", expired: "has expired", superseded: "was superseded by another version" };

// After a change the version before runs on in shadow; unless it turns out cheaper, that is no
// question to anybody.
export const watching = (proposal) => proposal.kind === "return" && proposal.status === "shadow";

export const same = (from, to) => from.rule === to.rule && from.threshold === to.threshold;

// The segments whose threshold changes, with the rules that answer for them before and after.
const answering = (rules, segment) => {
  let name = segment;
  while (name && !rules[name]) name = name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "";
  return rules[name];
};
export const changed = ({ now, thresholds }) => [...new Set([...Object.keys(now), ...Object.keys(thresholds)])].sort()
  .map((name) => [name, answering(now, name), answering(thresholds, name)])
  .filter(([name, from, to]) => name && !same(from, to));

const title = (proposal) => {
  const [now, next] = words.cuts(proposal.now[""], proposal.thresholds[""]);
  const more = changed(proposal).length;
  if (watching(proposal)) return `Version ${proposal.back_to} is on watch`;
  if (proposal.kind === "return") return `Proposal ${proposal.number}: back to version ${proposal.back_to}, ${now} → ${next}`;
  if (more > 0 && same(proposal.now[""], proposal.thresholds[""])) return `Proposal ${proposal.number}: ${words.count(more, "segment")}`;
  return `Proposal ${proposal.number}: ${now} → ${next}${more > 0 ? `, and ${words.count(more, "segment")}` : ""}`;
};

const saving = (proposal) => {
  const { saving: found, samples } = proposal;
  if (!found || !samples) return [`What ${proposal.kind === "return" ? "going back" : "it"} would save is not known yet.`];
  const rate = (total) => words.rate(total, samples);
  const [word, sure] = found.total < 0 ? ["cost", -1] : ["save", 1];
  const ends = (sure < 0 ? [found.high, found.low] : [found.low, found.high]).map((total) => (total === null ? "no bound" : rate(sure * total).replace("-", "−")));
  return [`${proposal.kind === "return" ? "Going back would" : "Would"} ${word} `, element("b", {}, `${rate(sure * found.total)} per 1,000 decisions${sure < 0 ? " more" : ""}`), ` (${words.percent(found.confidence, 0)}: ${ends.join(" to ")}).`];
};

const basis = (proposal) => {
  const counted = words.count(proposal.samples, "sample");
  const since = proposal.kind === "return" ? `${counted} scored after the change on ${words.when(proposal.at)}.`
    : `${counted} scored after it was proposed on ${words.when(proposal.at)}: they had no part in choosing it.`;
  const young = proposal.young ? ` ${words.count(proposal.young, "later one")} ${proposal.young === 1 ? "is" : "are"} not old enough to count.` : "";
  const missing = proposal.missing ? ` ${words.whole(proposal.missing)} had no label at that age.` : "";
  return `Measured on ${since}${young}${missing}`;
};

const compared = (proposal) => {
  const { now, candidate } = proposal.table, cuts = words.cuts(proposal.now[""], proposal.thresholds[""]);
  const rate = (name) => [now, candidate].map((each) => words.rate(each[name], proposal.samples));
  return [
    ["threshold", ...cuts], ...changed(proposal).map(([name, from, to]) => [`threshold of ${name}`, ...words.cuts(from, to)]), ["cost", ...rate("cost")], ["false positives", ...rate("false_positives")],
    ["false negatives", ...rate("false_negatives")], ["answered 1", ...rate("answered_1")],
  ].map((cells) => row(cells));
};

// Short, so that the columns stay narrow; a number and its unit stay together.
const SIGNS = [["at least ", "≥ "], ["at most ", "≤ "], ["more than ", "> "]];
const tied = (text) => SIGNS.reduce((short, [word, mark]) => short.replace(word, mark), text).replaceAll(" ", "\u00a0");
const demand = ({ met, what, have, need }) => {
  const made = row([element("span", {}, sign(met), element("span", { class: "unseen" }, met ? "Met: " : "Not met: "), element("span", {}, what.replace(/(\d) /g, "$1\u00a0"))), tied(have), tied(need)]);
  if (!met) made.className = "open";
  return made;
};

// Why this person may not decide; empty if they may.
const onlyLook = (proposal, view, session) => {
  if (!session.scopes.includes("approve")) return `You can look but not decide: the token “${session.name}” lacks the scope “approve”.`;
  const own = proposal.by === session.name && view.definition.change?.four_eyes;
  return own ? "You proposed this, so somebody else must approve it. You may reject or withdraw it." : "";
};

// The form of a card: a reason, which outlives a session that ends while somebody writes, and one
// request at a time. `given` returns what is sent besides, or nothing where it has asked back.
const deciding = (places, number, { point, drafts, done, failed }, given) => {
  const { form } = places, reason = form.elements.reason, draft = `${point}/${number}`;
  let busy = false;
  reason.value = drafts.get(draft) ?? "";
  reason.addEventListener("input", () => {
    drafts.set(draft, reason.value);
    if (reason.value.trim()) pardon(places.wrong, reason);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    if (!reason.value.trim()) {
      refuse(places.wrong, "Write a reason first: readers of the history will look for it.", reason);
      return;
    }
    const verb = event.submitter?.value ?? "approve", more = given(verb);
    if (!more) return;
    try {
      busy = true;
      form.setAttribute("aria-busy", "true");
      await ask("POST", of(point, `/proposals/${number}/${verb}`), { reason: reason.value.trim(), ...more });
      drafts.delete(draft);
      await done();
    } catch (problem) {
      if (problem.status === 403 || problem.status === 422) refuse(places.wrong, `${problem.title}. ${problem.detail}`);
      else failed(problem);
    } finally {
      busy = false;
      form.removeAttribute("aria-busy");
    }
  });
};

// What this person may do with a card: `why` says why not approve it.
const allow = (places, proposal, session, why, may = true) => {
  show(places.form, may && session.scopes.includes("approve"));
  show(places["only-look"], why !== "");
  write(places["only-look"], why);
  show(places.approve, why === "");
  show(places.withdraw, session.scopes.includes("propose") && proposal.by === session.name);
};

// The card in its place. `done` is called after a decision, with what to say; `failed` with problems
// that are not about the reason.
export const proposals = (into, { session, ...given }) => {
  let shown = null, places = null, view = null, despite = false;

  const build = () => {
    const [made, found] = copied("proposal");
    places = found;
    into.replaceChildren(made);
    despite = false;
    deciding(places, shown.number, given, (verb) => {
      const open = shown.demands.filter((each) => !each.met).length;
      if (verb === "approve" && open && !despite) {
        despite = true;
        write(places.ask, `${words.count(open, "demand is", "demands are")} not met. To approve it anyway, press the button again; the history records this.`);
        show(places.ask);
        write(places.approve, "Approve anyway");
        places.approve.blur();  // and back, so that a screen reader reads it again
        places.approve.focus();
        return null;
      }
      return { seen: view.seq, ...(verb === "approve" && despite ? { despite } : {}) };
    });
  };

  const closed = (proposal) => {
    const { at, by, reason } = proposal.closed ?? {};
    const words_ = [element("b", {}, `Proposal ${proposal.number}`), ` ${CLOSED[proposal.status] ?? proposal.status}`];
    if (by) words_.push(` by ${by}`);
    if (at) words_.push(`, ${words.when(at)}`);
    if (reason) words_.push(`: “${reason}”`);
    into.replaceChildren(element("section", { class: "card done" }, element("p", {}, ...words_, ".")));
    places = null;
  };

  const update = (next) => {
    view = next;
    const { proposal } = next, before = shown;
    shown = proposal;
    if (proposal === null) {
      if (before !== null && places) into.replaceChildren();
      places = null;
      return;
    }
    if (!(proposal.status in STATUS)) return closed(proposal);
    if (!places || before?.number !== proposal.number) build();
    write(places.title, title(proposal));
    write(places.badge, STATUS[proposal.status]);
    show(places.badge, !watching(proposal));
    places.badge.className = `badge ${proposal.status}`;
    into.firstElementChild.classList.toggle("quiet", watching(proposal));
    const sentence = element("p", {}, ...saving(proposal));
    if (places.saving.textContent !== sentence.textContent) places.saving.replaceChildren(...sentence.childNodes);
    write(places.basis, basis(proposal));
    rows(places.table, compared(proposal));
    rows(places.demands, proposal.demands.map(demand));
    const worse = (proposal.segments ?? []).filter((each) => each.clearly_worse);
    show(places.worse, worse.length > 0);
    write(places.worse, worse.map((each) => `Segment ${each.segment} gets worse: ${words.count(each.worse, "answer")} worse, ${words.whole(each.better)} better.`).join(" "));
    const why = watching(proposal) ? "After a change the version before runs on in shadow. Should it turn out cheaper, going back is proposed here; to go back at once, roll back." : onlyLook(proposal, next, session);
    const open = proposal.demands.some((each) => !each.met);
    allow(places, proposal, session, why, !watching(proposal));
    if (!despite) write(places.approve, open ? "Approve before the demands are met …" : "Approve, in effect at once");
    places.approve.classList.toggle("first-choice", !open);
  };
  return update;
};

// Another definition, which under four eyes somebody else approves. No samples judge it.
export const redefinitions = (into, { session, ...given }) => {
  let shown = null, places = null, seen = 0;

  return (view) => {
    const before = shown?.number;
    shown = view.redefinition;
    seen = view.seq;
    if (!shown) {
      into.replaceChildren();
      places = null;
      return;
    }
    if (!places || before !== shown.number) {
      const [made, found] = copied("redefinition");
      places = found;
      into.replaceChildren(made);
      deciding(places, shown.number, given, () => ({ seen }));
    }
    const said = (value) => (value === null ? "none" : typeof value === "string" ? value : JSON.stringify(value));
    write(places.title, `Proposal ${shown.number}: another definition`);
    write(places.basis, `Proposed by ${shown.by}, ${words.when(shown.at)}${shown.reason ? `: “${shown.reason}”` : ""}. No samples judge it.`);
    rows(places.table, shown.changes.map(({ field, now, then }) => row([field, said(now), said(then)])));
    allow(places, shown, session, onlyLook(shown, view, session));
  };
};
