// SPDX-License-Identifier: Apache-2.0
// Numbers, times and rules as people read them, in the report and on the page of the service.
const words = (() => {
  "use strict";
  // As limen writes numbers for people: every digit before the point, six in all after it.
  const number = (x) => (Math.abs(x) >= 1e15 || (x !== 0 && Math.abs(x) < 1e-4)
    ? x.toPrecision(4)
    : x.toLocaleString("en", Math.abs(x) >= 1e5 ? { maximumFractionDigits: 0 }
      : { maximumSignificantDigits: 6 }));
  const percent = (x, digits = 2) => `${(100 * x).toFixed(digits)} %`;
  const whole = (x) => Math.round(x).toLocaleString("en");
  const count = (x, one, many = `${one}s`) => `${whole(x)} ${x === 1 ? one : many}`;
  const signed = (text) => (text.startsWith("-") ? `−${text.slice(1)}` : /[1-9]/.test(text) ? `+${text}` : text);

  // A total per 1,000 decisions, with digits after the point that suit its size
  // unless they are given, as in columns.
  const rate = (total, samples, fixed) => {
    if (!(samples > 0)) return "–";
    const each = 1000 * total / samples;
    const digits = fixed ?? (each !== 0 && Math.abs(each) < 1 ? 2 : Math.abs(each) >= 1000 ? 0 : 1);
    return (each === 0 ? 0 : each).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };

  // Thresholds that stand below one another: four digits after the point, more where two that
  // differ would look alike.
  const cuts = (...rules) => {
    const at = rules.map((rule) => rule.threshold).filter((value) => value !== undefined);
    const write = (digits) => (value) => {
      const size = Math.abs(value);
      if (size >= 1e6 || (size !== 0 && size < 1e-4)) return value.toPrecision(digits + 1);
      return value.toFixed(digits);
    };
    let digits = 4;
    while (digits < 16 && new Set(at.map(write(digits))).size < new Set(at).size) ++digits;
    const shown = { all: "all", none: "none" };
    return rules.map((rule) => shown[rule.rule] || write(digits)(rule.threshold));
  };
  const cut = (rule) => cuts(rule)[0];

  // When to answer 1, in pieces: those at odd places are the ones that matter.
  const sentence = (rule, own) => {
    const [zero, one] = own ? [`“${own.zero}”`, `“${own.one}”`] : ["0", "1"];
    if (rule.rule === "all") return ["", "Flag everybody", `: answer ${one} to every score.`];
    if (rule.rule === "none") return ["", "Flag nobody", `: answer ${zero} to every score.`];
    return [`Answer ${one} when the score is at ${rule.rule === "at_most" ? "most" : "least"} `, number(rule.threshold), own ? `, else ${zero}.` : "."];
  };
  const costs = ({ false_positive, false_negative }) =>
    `A false positive costs\u00a0${number(false_positive)}, a false negative\u00a0${number(false_negative)}.`;

  // What the server says in half a sentence, as the beginning of a whole one.
  const said = (text) => `${text[0].toUpperCase()}${text.slice(1)}`.replace(/(\d)%/g, "$1\u00a0%");

  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (value) => String(value).padStart(2, "0");
  const day = (time, year = false) => {
    const at = new Date(time);
    return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}${year ? ` ${at.getUTCFullYear()}` : ""}`;
  };
  const clock = (time, seconds = false) => {
    const at = new Date(time);
    return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${seconds ? `:${two(at.getUTCSeconds())}` : ""}`;
  };
  const when = (time) => `${day(time, true)}, ${clock(time)} UTC`;

  // A length of time in the largest unit of which there is at least one and a half.
  const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const unit = (seconds) => UNITS.find(([, size]) => seconds >= 1.5 * size) || UNITS[3];
  const length = (seconds) => {
    const [name, size] = unit(seconds);
    return count(Math.round(seconds / size), name);
  };

  return { number, percent, whole, count, signed, rate, cut, cuts, sentence, costs, said, day, clock, when, unit, length };
})();
