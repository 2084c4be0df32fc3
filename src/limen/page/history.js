// SPDX-License-Identifier: Apache-2.0
// What happened to a point, newest first, and the way back to an earlier version.
import { ask, of } from "./api.js";
import { copied, element, find, pardon, refuse, rows, show, write } from "./dom.js";
import { changed, same } from "./proposal.js";

const PAGE = 50;

// Ask for a reason, then go back to a version. `done` and `failed` as for proposals.
export const back = (() => {
  let going = null, listening = false;
  const listen = () => {
    const box = find("back"), reason = find("back-reason"), wrong = find("back-wrong");
    find("back-leave").addEventListener("click", () => box.close());
    reason.addEventListener("input", () => reason.value.trim() && pardon(wrong, reason));
    box.addEventListener("close", () => { going = null; });
    box.querySelector("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!reason.value.trim()) {
        refuse(wrong, "Write a reason first: readers of the history will look for it.", reason);
        return;
      }
      const { point, version, seen, done, failed } = going;
      try {
        await ask("POST", of(point, "/rollback"), { version, reason: reason.value.trim(), seen });
        box.close();
        await done();
      } catch (problem) {
        if (problem.status === 403 || problem.status === 422) refuse(wrong, `${problem.title}. ${problem.detail}`);
        else {
          box.close();
          failed(problem);
        }
      }
    });
    listening = true;
  };
  return (given) => {
    if (!listening) listen();
    going = given;
    const { version, rule, now } = given;
    const [from, to] = words.cuts(now, rule);
    write(find("back-title"), `Roll back to version ${version}`);
    write(find("back-words"), `The threshold goes from ${from} to ${to} at once. The version in effect now stays in the history.`);
    find("back-reason").value = "";
    pardon(find("back-wrong"), find("back-reason"));
    find("back").showModal();
    find("back-reason").focus();
  };
})();

const entry = (change, button) => {
  const before = change.before?.[""], after = change.thresholds?.[""];
  const more = before && after ? changed({ now: change.before, thresholds: change.thresholds }).length : 0;
  const cut = !after ? "" : more && same(before, after) ? `: ${words.count(more, "segment")}` : `: ${before ? words.cuts(before, after).join(" → ") : after.threshold !== undefined ? words.cut(after) : `answers 1 to ${after.rule}`}${more ? `, and ${words.count(more, "segment")}` : ""}`;
  const what = element("span", { class: "what" }, `${words.said(change.text)}${cut}`);
  if (change.reason && !change.text.includes("on watch")) what.append(element("span", { class: "reason" }, `“${change.reason}”`));
  const at = element("time", { datetime: change.at }, `${words.day(change.at, true)}, ${words.clock(change.at)} UTC`);
  return element("li", {}, at, what, element("span", { class: "by" }, change.by || ""), button);
};

// The list in its place. The returned function reads it again.
export const history = (into, { point, may, goBack, failed }) => {
  const [made, places] = copied("history-part");
  into.append(made);
  let known = [], before = null, current = null;

  const draw = () => {
    const list = known.map((change) => {
      const old = change.kind === "version" && change.number !== current && change.thresholds;
      const button = old && may ? element("button", { type: "button", class: "small", "aria-label": `Roll back to version ${change.number}` }, "Roll back …") : "";
      if (button) button.addEventListener("click", () => goBack(change.number, change.thresholds));
      return entry(change, button);
    });
    rows(places.rows, list);
    show(places.nothing, !known.length);
    show(places.more, before !== null);
  };
  const read = async (rest) => {
    try {
      return await ask("GET", of(point, `/changes?limit=${PAGE}${rest}`));
    } catch (problem) {
      failed(problem);
      return null;
    }
  };
  places.more.addEventListener("click", async () => {
    const found = await read(`&before=${before}`);
    if (!found) return;
    known = [...known, ...found.changes];
    before = found.before;
    draw();
  });
  return async (version) => {
    current = version;
    const found = await read("");
    if (!found) return;
    const oldest = found.changes.at(-1)?.seq ?? 0;
    const kept = known.filter((each) => each.seq < oldest);
    if (!kept.length) before = found.before;
    known = [...found.changes, ...kept];
    draw();
  };
};
