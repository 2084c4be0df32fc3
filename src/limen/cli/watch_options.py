# SPDX-License-Identifier: Apache-2.0
"""The options of ``limen watch`` and its definition: the point that they describe, if they fit.

What a point is stands in the definition, as for ``limen serve point add``. What only a stream has
stands in its table ``watch``.
"""

from __future__ import annotations

import json
import tomllib
from argparse import ArgumentTypeError
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from limen.cli.aims import aim_of, option_text
from limen.cli.exits import NOT_FOUND, USAGE, Failure
from limen.cli.option_values import alert, cost, count, level, metric, period, period_text, share
from limen.names import DEMANDS, OUTCOMES, did_you_mean
from limen.service.points.definitions import Definition, Rule, rule_of

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.aim import Aim

__all__ = ["alert_value", "as_moment", "definition_in", "definition_of", "floors_of"]

_FLOORS = ("min-precision", "min-recall", "max-false-positive-rate", "max-cost")
_LENGTHS = ("time_to_live", "maturity", "correctable")
# What the table `watch` may have, and how each is read.
_EXTRA: dict[str, Any] = {
    "at_least": count,
    "metric": metric,
    "age": period,
    "confidence": level,
    **dict.fromkeys(("true_positive", "true_negative"), cost),
    **{f"{outcome}_column": str for outcome in OUTCOMES},
    **{name: count if bound.counts else share for name, bound in DEMANDS.items()},
}


def definition_in(path: str) -> dict[str, Any]:
    """Read a definition from a file: TOML where its name says so, else JSON."""
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file) if path.endswith(".toml") else json.load(file)
    except FileNotFoundError:
        raise Failure(f"{path} does not exist. Check the name.", NOT_FOUND) from None
    except ValueError as error:
        kind = "TOML" if path.endswith(".toml") else "JSON"
        raise Failure(f"{path} is not {kind}: {error}.", USAGE) from None
    if not isinstance(found, dict):
        raise Failure(f"{path} is not a table of settings.", USAGE)
    return found


def definition_of(options: Namespace) -> Definition:
    """Return the point that is described; the other settings become options."""
    given = {} if options.definition is None else definition_in(options.definition)
    _read_extra(options, given.pop("watch", {}))
    by_id, grouped = options.id_column is not None, options.group_column is not None
    if given.setdefault("by_id", by_id) is not by_id:
        raise Failure(f"by_id is {str(not by_id).lower()}: give --id-column with it.", USAGE)
    if grouped:
        given.setdefault("segments", {"at_least": options.at_least or 1, "most": 10_000})
    elif given.get("segments") is not None:
        raise Failure("segments need --group-column, which says the segment of a row.", USAGE)
    if options.definition is None:
        given["time_to_live"] = None
    for name in ("false_positive", "false_negative"):
        if getattr(options, name) is not None:
            given[name] = _plain(getattr(options, name))
        elif name in given:
            setattr(options, name, Fraction(str(given[name])))
    options.lower_is_positive = given.get("direction") == "<="
    options.unit = given.get("unit")
    aim = aim_of(options)
    if not aim.by_cost:
        given["model"] = "calibrator"
    elif aim.priced:
        given["model"] = "cut"
    _set_current(options, given)
    try:
        made = msgspec.convert(given, Definition)
    except (TypeError, ValueError, OverflowError) as error:
        where = "" if options.definition is None else f"{options.definition}: "
        raise Failure(f"{where}{error}", USAGE) from None
    if made.segments is not None:
        options.at_least = made.segments.at_least
    options.periods = _periods(options, made, given)
    _require_consistent(options, made, aim)
    return made


def _read_extra(options: Namespace, table: dict[str, Any]) -> None:
    """Let the table `watch` set what is no option."""
    for name in _EXTRA:
        setattr(options, name, None)
    options.alerts = []
    for name, value in table.items():
        if name == "alerts":
            options.alerts = [_read("alerts", alert, each) for each in value]
        elif name not in _EXTRA:
            known = ("alerts", *_EXTRA)
            raise Failure(
                f"{options.definition}: watch has no setting {name}.{did_you_mean(name, known)}",
                USAGE,
            )
        else:
            setattr(options, name, _read(name, _EXTRA[name], value))
    options.confidence = 0.95 if options.confidence is None else options.confidence
    options.late = alert_value(options, "late")


def _read(name: str, read: Any, value: Any) -> Any:
    try:
        return read(str(value))
    except ArgumentTypeError as error:
        raise Failure(f"watch.{name}: {error}.", USAGE) from None


def _plain(value: Any) -> int | float:
    return value if isinstance(value, int) else float(value)


def _set_current(options: Namespace, given: dict[str, Any]) -> None:
    """Let the threshold in use be that of the option, or that of the definition."""
    direction: Any = given.get("direction", ">=")
    options.typed_current = options.current is not None  # else the version in effect counts
    if options.current is not None:
        rule, threshold = rule_of(options.current, direction)
        given["start"] = {"rule": rule} | ({} if threshold is None else {"threshold": threshold})
    elif given.get("start", {}).get("rule", "none") != "none":
        try:
            options.current = msgspec.convert(given["start"], Rule).number(direction)
        except ValueError as error:
            raise Failure(f"{options.definition}: {error}", USAGE) from None


def as_moment(period: Any) -> Any:
    """Return a length of time as a number: microseconds, as of dates, or as it is."""
    return period // timedelta(microseconds=1) if isinstance(period, timedelta) else period


# ---- whether it fits together ---------------------------------------------------------------


def _periods(options: Namespace, made: Definition, given: dict[str, Any]) -> dict[str, Any]:
    """Return the lengths that are given, by their names."""
    texts = {"memory.length": made.memory.length}
    texts |= {name: given.get(name) for name in _LENGTHS}
    found = {name: period(text) for name, text in texts.items() if text is not None}
    if made.alerts is not None or made.change.policy != "manual":
        found["change.shadow"] = period(made.change.shadow)  # what is a length of time
    others = {"--each-period": options.each_period, "watch.age": options.age}
    others["alert late"] = options.late
    return found | {name: length for name, length in others.items() if length is not None}


def _require_consistent(options: Namespace, made: Definition, aim: Aim) -> None:
    """Refuse what does not fit together."""
    if options.every is not None and options.each_period is not None:
        raise Failure("--every and --each-period are two rhythms. Give one of them.", USAGE)
    dated = {name: isinstance(length, timedelta) for name, length in options.periods.items()}
    for name, by_date in dated.items():
        always = name == "--each-period" or (name == "memory.length" and made.memory.keep)
        if options.time_column is None and (by_date or always):
            raise Failure(f"{_typed(options, name)} needs --time-column.", USAGE)
    if len(set(dated.values())) > 1:
        listed = " ".join(_typed(options, name) for name in dated)
        raise Failure(
            f"{listed}: write all periods as numbers, or all with a unit such as 30d.", USAGE
        )
    _require_aim(options, aim, made)
    _require_age(options, made)
    _require_alerts(options, aim)


def _typed(options: Namespace, name: str) -> str:
    return f"{name} {period_text(options.periods[name])}"


def _require_aim(options: Namespace, aim: Aim, made: Definition) -> None:
    """Refuse aims that cannot be followed, and sureness where it is not known."""
    rhythm = options.every is not None or options.each_period is not None
    if not aim.by_cost and not rhythm:
        asked = f"metric {aim.name}" if options.metric is not None else "demands"
        raise Failure(
            f"{asked}: the best cut is found by a pass over all cuts, too slow after each row. "
            "Say how often it is looked for: --every 1000, or --each-period.",
            USAGE,
        )
    if options.weight_column and aim.priced and options.id_column:
        raise Failure(
            "--weight-column, --id-column and gains, or costs in columns: put the weight into the "
            "costs of each row.",
            USAGE,
        )
    if not (options.recommended or options.current is not None):
        return
    asked = "--recommended" if options.recommended else "--current"
    if not aim.by_cost:
        raise Failure(f"{asked} works only with costs, not with metrics and demands.", USAGE)
    if made.capacity is not None:
        raise Failure(
            f"{asked} needs all samples, and capacity does not keep them. Give one of them.", USAGE
        )
    if aim.by_row:
        raise Failure(
            f"{asked} works only with one pair of costs, not with costs in columns.", USAGE
        )
    if aim.priced:
        same = " ".join(option_text(name, cost) for name, cost in aim.mistakes.items())
        raise Failure(
            f"{asked} works only with costs of mistakes. The same thresholds follow from {same}, "
            "what a mistake costs more than a right answer: give these instead.",
            USAGE,
        )


def _require_age(options: Namespace, made: Definition) -> None:
    """Refuse an age that nothing has, and a threshold to be judged at no age."""
    judged = options.id_column is not None and options.current is not None
    if options.age is not None and not judged:
        raise Failure("watch.age needs --id-column and --current.", USAGE)
    options.maturity = None if made.maturity is None else period(made.maturity)
    looked = judged and (options.group_column is None or floors_of(options))
    if looked and options.age is None and options.maturity is None:
        raise Failure(
            "--current with --id-column needs watch.age: how old a row is when nearly all labels "
            "are known. Or give maturity.",
            USAGE,
        )
    if looked and None not in (options.age, options.maturity) and options.age < options.maturity:
        raise Failure(
            f"{_typed(options, 'watch.age')} maturity {made.maturity}: before its maturity a label "
            "0 may become a 1. Give a longer watch.age.",
            USAGE,
        )


def _require_alerts(options: Namespace, aim: Aim) -> None:
    """Refuse conditions that can never be found to hold."""
    names = [name for name, _ in options.alerts]
    for name in names:
        if names.count(name) > 1:
            raise Failure(f"alert {name} is given twice. Give one of them.", USAGE)
        if name in ("interval", "change", *_FLOORS) and options.current is None:
            raise Failure(f"alert {name} needs --current, the threshold in use.", USAGE)
        if name in ("change", "regret", "late") and options.id_column is None:
            raise Failure(f"alert {name} needs --id-column.", USAGE)
        if name == "change" and options.group_column is not None:
            raise Failure(
                "alert change is about one threshold, and --group-column gives several.", USAGE
            )
        if name in _FLOORS and options.weight_column is not None:
            raise Failure(
                f"alert {name} counts rows, which --weight-column does not. Leave one out.", USAGE
            )
    if "regret" in names and not aim.by_cost:
        raise Failure("alert regret works only with costs, not with metrics and demands.", USAGE)


def alert_value(options: Namespace, name: str) -> Any:
    """Return what a condition among the alerts was given; None without it."""
    return dict(options.alerts).get(name)


def floors_of(options: Namespace) -> dict[str, Any]:
    """Return the floors and ceilings among the alerts."""
    return {name: value for name, value in options.alerts if name in _FLOORS}
