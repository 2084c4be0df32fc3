// SPDX-License-Identifier: Apache-2.0
// The page of the service: who looks, at which point, and whether what they see is of this moment.
import { ask } from "./api.js";
import { copied, element, find, refuse, row, show, write } from "./dom.js";
import { openPoint } from "./point.js";

const TABS = 5;  // points beside one another; more are a list
const drafts = new Map();  // reasons being written
let session = null, points = [], shown = null, stream = null, retry = null, version = null, turn = 0;

const main = find("main"), trouble = find("trouble"), live = find("live"), news = find("news");
const wanted = () => decodeURIComponent(location.hash.replace(/^#\/?/, ""));

// ---- states of the page as a whole --------------------------------------------------------

const troubled = (text) => {
  show(trouble, text !== "");
  write(trouble, text);
};

const REFUSED = "The server takes no changes at the moment: it cannot write to its disk. What you see is still correct; this line disappears when it recovers.";

const connected = (on, rate) => {
  document.body.classList.toggle("away", !on);
  live.classList.toggle("on", on);
  const speed = rate >= 0.05 ? ` · ${words.number(Number(rate.toPrecision(3)))} events/s` : "";
  write(live, on ? `live${speed}` : "not live");
};

const leave = () => {
  shown?.stop();
  shown = null;
  stream?.close();
  stream = null;
  clearTimeout(retry);
  version = null;
  show(find("notice"), false);
};

const failed = (problem) => {
  if (problem.status === 401) return signIn(session ? "Your session has ended. Sign in again; nothing was changed by you in the meantime." : "");
  if (problem.status === 409) return tooLate(problem);
  if (problem.status === 0) return lost();
  if (problem.passing) return troubled(`${problem.title}. ${problem.detail} What you see stays as it was.`);
  noticed(`${problem.title}. ${problem.detail}`);
};

// What somebody must read: it stays until they close it.
const noticed = (text) => {
  const place = find("notice");
  write(find("notice-text"), text);
  show(place);
  place.focus();
  place.scrollIntoView({ block: "nearest" });
};
const tooLate = (problem) => noticed(`Nothing was changed by you. ${problem.detail || problem.title} This is the current state.`);

const lost = () => {
  connected(false, 0);
  troubled("The connection to the server is lost. What you see may be old; this page tries again by itself.");
};

const wentWrong = (problem) => {
  leave();
  troubled("");
  document.body.classList.remove("away");
  write(live, "");
  write(find("foot"), "");
  const [made, places] = copied("went-wrong");
  const [title, detail] = problem.name === "unknown-point"
    ? ["There is no such point", `No point is named “${wanted()}”, or the token may not see it.`]
    : [problem.title || "Something went wrong", problem.detail];
  write(places.title, title);
  write(places.detail, problem.passing && problem.status !== 0 ? `${detail} This page tries again by itself.` : detail);
  places.again.addEventListener("click", () => start());
  show(places.home, points.length > 0);
  main.replaceChildren(made);
  if (problem.passing) retry = setTimeout(() => start(), 3000);
};

// ---- who looks -----------------------------------------------------------------------------

const signIn = (why) => {
  leave();
  session = null;
  troubled("");
  write(news, "");
  write(live, "");
  document.body.classList.remove("away");
  find("who").replaceChildren();
  find("points").replaceChildren();
  find("back").close();
  write(find("foot"), "");
  const [made, places] = copied("sign-in");
  show(places.why, why !== "");
  write(places.why, why);
  main.replaceChildren(made);
  document.title = "Sign in · limen";
  const form = main.querySelector("form"), token = find("token"), wrong = find("token-wrong");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!token.value.trim()) return refuse(wrong, "Paste the token.", token);
    try {
      session = await ask("POST", "/session", { token: token.value.trim() });
      token.value = "";
      await start();
    } catch (problem) {
      const text = problem.status === 401 ? "This token is unknown, revoked or has expired." : `${problem.title}. ${problem.detail}`;
      refuse(wrong, text, token);
    }
  });
  token.focus();
};

const whoLooks = () => {
  const place = find("who");
  if (session.open) return place.replaceChildren();
  const button = element("button", { type: "button", class: "link" }, "Sign out");
  button.addEventListener("click", async () => {
    await ask("DELETE", "/session").catch(() => null);
    session = null;
    signIn("");
  });
  const looks = session.scopes.includes("approve") ? "" : " (may look, not decide)";
  place.replaceChildren(`${session.name}${looks} `, button);
};

// ---- which point ---------------------------------------------------------------------------

const MARKS = { waiting: "a proposal waits", shadow: "a proposal in shadow" };
const answersOne = (rule) => ({ all: "always", none: "never" }[rule.rule] ?? `${rule.rule === "at_most" ? "up to" : "from"} ${words.cut(rule)}`);
const address = (point) => `#/${encodeURIComponent(point)}`;

const tabs = () => {
  const place = find("points"), current = wanted() || (points.length === 1 ? points[0].point : "");
  const tab = ({ point, proposal }) => {
    const made = element("a", { href: address(point) }, point);
    if (point === current) made.setAttribute("aria-current", "page");
    if (proposal === "waiting") made.append(element("span", { class: "waits" }), element("span", { class: "unseen" }, `, ${MARKS.waiting}`));
    return made;
  };
  const all = element("a", { href: "#/" }, `All ${words.whole(points.length)} points`);
  if (!current) all.setAttribute("aria-current", "page");
  const few = points.length <= TABS ? points : points.filter((each) => each.point === current);
  const made = points.length > 1 ? [all, ...few.map(tab)] : few.map(tab);
  const text = (list) => [...list].map((each) => `${each.textContent}${each.getAttribute("aria-current")}`).join("\n");
  if (text(made) !== text(place.children)) place.replaceChildren(...made);
};

const listed = () => {
  document.title = "All points · limen";
  write(find("foot"), "");
  const [made, places] = copied("all-points");
  const waiting = points.filter((each) => each.proposal === "waiting").length;
  write(places.summary, `${words.count(points.length, "point")}; ${waiting ? words.count(waiting, "proposal waits", "proposals wait") : "no proposal waits"} for approval.`);
  const filter = made.querySelector("#filter");
  show(places.search, points.length > 10);
  const draw = () => {
    const urgent = (each) => (each.proposal === "waiting" ? 2 : 0) + (each.alerts ? 1 : 0);
    const found = points.filter((each) => each.point.toLowerCase().includes(filter.value.toLowerCase()))
      .sort((one, other) => urgent(other) - urgent(one));
    places.rows.replaceChildren(...found.map((each) => row([
      element("a", { href: address(each.point) }, each.point), answersOne(each.rule),
      words.signed(words.rate(each.regret, each.samples)), words.whole(each.version),
      each.proposal in MARKS ? element("span", { class: each.proposal }, MARKS[each.proposal]) : "–", each.alerts ? words.count(each.alerts, "alert") : "–",
    ])));
    show(places.none, !found.length);
  };
  filter.addEventListener("input", draw);
  draw();
  main.replaceChildren(made);
};

// A new version is the only thing that is announced.
const inform = (view) => {
  connected(true, view.events_per_second ?? 0);
  troubled(view.ready ? "" : REFUSED);
  const { version: number, thresholds, by } = view.version;
  if (version !== null && number > version) {
    const [before, strong, after] = words.sentence(thresholds[""], view.words);
    write(news, `Version ${number} is in effect${by ? `, by ${by}` : ""}: ${before[0].toLowerCase()}${before.slice(1)}${strong}${after}`);
  }
  version = number;
  const server = session.server?.limen ? `limen ${session.server.limen} · ` : "";
  write(find("foot"), `${server}event ${words.whole(view.seq)} · ${words.when(view.at)}. The cheapest threshold is exact for the samples held; a proposal is judged on samples that had no part in choosing it.`);
};

const listen = (point) => {
  stream = new EventSource(point ? `/v1/stream?point=${encodeURIComponent(point)}` : "/v1/stream");
  const mine = stream;
  let away = false;
  stream.addEventListener("open", () => {
    if (away) renew();
    else if (!point) connected(true, 0);
    away = false;
  });
  stream.addEventListener("error", () => {
    if (!away) lost();
    away = true;
    if (mine === stream && mine.readyState === EventSource.CLOSED) retry = setTimeout(() => reconnect(point), 1500);
  });
  for (const kind of ["tick", "version", "proposal", "alert", "reset"]) {
    stream.addEventListener(kind, (event) => {
      const given = JSON.parse(event.data || "{}");
      if (kind === "tick") {
        connected(true, given.rate ?? 0);
        troubled(given.ready ? "" : REFUSED);
        const listed = points.find((each) => each.point === given.point);
        if (listed) listed.proposal = given.redefinition ? "waiting" : given.proposal?.status ?? null;
        tabs();
      } else refreshPoints();
      shown?.hear(kind, given);
    });
  }
};

// The server answers again: what is on the page stays where it is, and only its figures change.
const renew = () => {
  troubled("");
  connected(true, 0);
  refreshPoints();
  shown?.renew();
};

// The browser has given up on the stream: ask whether the session still holds, then open another.
const reconnect = async (point) => {
  const mine = turn;
  try {
    await ask("GET", "/session");
  } catch (problem) {
    if (mine !== turn) return;
    if (problem.status === 401) failed(problem);
    else retry = setTimeout(() => reconnect(point), 1500);
    return;
  }
  if (mine !== turn) return;
  stream?.close();
  listen(point);
  renew();
};
const restart = () => start(true);

const refreshPoints = async () => {
  try {
    points = await ask("GET", "/v1/points");
    tabs();
    if (!shown && !wanted()) listed();
  } catch (problem) {
    failed(problem);
  }
};

const awaitPoints = () => {
  document.title = "limen";
  main.replaceChildren(copied("no-points")[0]);
  connected(true, 0);
  retry = setTimeout(() => start(true), 2000);
};

// Everything again: the session, the points, the one that the address names.
const start = async (quiet = false) => {
  const mine = ++turn;
  const held = version;
  leave();
  if (!quiet) {
    write(news, "");
    main.replaceChildren(element("p", { class: "loading" }, "Loading …"));
  }
  try {
    session = await ask("GET", "/session");
    points = await ask("GET", "/v1/points");
    if (mine !== turn) return;
    troubled("");
    whoLooks();
    tabs();
    if (!points.length) return awaitPoints();
    const point = wanted() || (points.length === 1 ? points[0].point : "");
    if (!point) {
      listed();
      listen(null);
      return;
    }
    document.title = `${point} · limen`;
    if (quiet) version = held;
    const opened = await openPoint(main, point, { session, drafts, inform, failed, several: points.length > 1 });
    if (mine !== turn) return opened.stop();
    shown = opened;
    listen(point);
  } catch (problem) {
    if (mine !== turn) return;
    if (problem.status === 401) return signIn(session && quiet ? "Your session has ended. Sign in again; nothing was changed by you in the meantime." : "");
    if (quiet && problem.passing) {
      version = held;
      retry = setTimeout(restart, 1500);
      return problem.status === 0 ? lost() : troubled(`${problem.title}. ${problem.detail} This page tries again by itself.`);
    }
    if (!(problem.status >= 0)) throw problem;
    wentWrong(problem);
  }
};

find("notice-close").addEventListener("click", () => {
  show(find("notice"), false);
  main.focus();
});
find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => session && start().then(() => main.focus({ preventScroll: true })));
start();
