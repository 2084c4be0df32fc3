# SPDX-License-Identifier: Apache-2.0
"""The options of ``limen watch``: whether they fit together, and the model that they describe."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limen.cli.aims import aim_of, option_text
from limen.cli.exits import USAGE, Failure
from limen.cli.option_values import period_text
from limen.cli.parsing import option_name
from limen.memory.fading import Fading
from limen.memory.ledger import Ledger
from limen.memory.windows import LastN, LastPeriod
from limen.names import DEMANDS, OUTCOMES
from limen.online import OnlineCut, OnlineThreshold

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.aim import Aim

__all__ = [
    "PERIODS",
    "WINDOWS",
    "alert_value",
    "as_moment",
    "floors_of",
    "given",
    "model_of",
    "require_consistent",
    "settings_of",
    "typed",
]

_LEDGER = ("time_to_live", "maturity", "correctable")
WINDOWS = ("last_n", "last_period", "half_life")
PERIODS = ("last_period", "half_life", *_LEDGER, "each_period", "age", "late")
_COSTS = (*OUTCOMES, *(f"{outcome}_column" for outcome in OUTCOMES))
_FLOORS = ("min-precision", "min-recall", "max-false-positive-rate", "max-cost")


def require_consistent(options: Namespace) -> None:
    """Refuse options that do not fit together."""
    options.alerts = options.alerts or []
    options.late = alert_value(options, "late")
    windows = given(options, WINDOWS)
    if len(windows) > 1:
        listed = " and ".join(map(option_name, windows))
        raise Failure(f"{listed} are two windows. Give one of them.", USAGE)
    if options.capacity is not None and windows and windows[0] != "half_life":
        raise Failure(
            f"--capacity keeps runs of scores, so that no single sample can leave "
            f"{option_name(windows[0])}. Use --half-life, or leave --capacity out.",
            USAGE,
        )
    if options.every is not None and options.each_period is not None:
        raise Failure("--every and --each-period are two rhythms. Give one of them.", USAGE)
    _require_periods(options)
    joined = given(options, _LEDGER)
    if joined and options.id_column is None:
        raise Failure(f"{option_name(joined[0])} needs --id-column.", USAGE)
    _require_aim(options, aim_of(options))
    _require_age(options)
    _require_alerts(options)


def _require_periods(options: Namespace) -> None:
    """Refuse periods that nothing measures, or that are of two kinds."""
    dated = {
        name: isinstance(getattr(options, name), timedelta) for name in given(options, PERIODS)
    }
    for name in dated:
        if options.time_column is None and (dated[name] or name in ("last_period", "each_period")):
            raise Failure(f"{typed(options, (name,))} needs --time-column.", USAGE)
    if len(set(dated.values())) > 1:
        raise Failure(
            f"{typed(options, PERIODS)}: write all periods as numbers, or all with a unit such "
            "as 30d.",
            USAGE,
        )


def _require_aim(options: Namespace, aim: Aim) -> None:
    """Refuse aims that cannot be followed, and sureness where it is not known."""
    rhythm = options.every is not None or options.each_period is not None
    if not aim.by_cost and not rhythm:
        asked = f"--metric {aim.name}" if options.metric is not None else "demands"
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
    if options.capacity is not None:
        raise Failure(
            f"{asked} needs all samples, and --capacity does not keep them. Give one of them.",
            USAGE,
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


def _require_age(options: Namespace) -> None:
    """Refuse an age that nothing has, and a threshold to be judged at no age."""
    judged = options.id_column is not None and options.current is not None
    if options.age is not None and not judged:
        raise Failure("--age needs --id-column and --current.", USAGE)
    looked = judged and (options.group_column is None or floors_of(options))
    if looked and options.age is None and options.maturity is None:
        raise Failure(
            "--current with --id-column needs --age: how old a row is when nearly all labels are "
            "known. Or give --maturity.",
            USAGE,
        )
    if looked and None not in (options.age, options.maturity) and options.age < options.maturity:
        raise Failure(
            f"{typed(options, ('age', 'maturity'))}: before its maturity a label 0 may become a 1. "
            "Give a longer --age.",
            USAGE,
        )


def _require_alerts(options: Namespace) -> None:
    """Refuse conditions that can never be found to hold."""
    names = [name for name, _ in options.alerts]
    for name in names:
        if names.count(name) > 1:
            raise Failure(f"--alert {name} is given twice. Give one of them.", USAGE)
        if name in ("interval", "change", *_FLOORS) and options.current is None:
            raise Failure(f"--alert {name} needs --current, the threshold in use.", USAGE)
        if name in ("change", "regret", "late") and options.id_column is None:
            raise Failure(f"--alert {name} needs --id-column.", USAGE)
        if name == "change" and options.group_column is not None:
            raise Failure(
                "--alert change is about one threshold, and --group-column gives several.", USAGE
            )
        if name in _FLOORS and options.weight_column is not None:
            raise Failure(
                f"--alert {name} counts rows, which --weight-column does not. Leave one out.", USAGE
            )
    if "regret" in names and not aim_of(options).by_cost:
        raise Failure("--alert regret works only with costs, not with metrics and demands.", USAGE)


def alert_value(options: Namespace, name: str) -> Any:
    """Return what a condition of --alert was given; None without it."""
    return dict(options.alerts).get(name)


def floors_of(options: Namespace) -> dict[str, Any]:
    """Return the floors and ceilings among the conditions of --alert."""
    return {name: value for name, value in options.alerts if name in _FLOORS}


def given(options: Namespace, names: tuple[str, ...]) -> list[str]:
    """Return those of the options that have a value."""
    return [name for name in names if getattr(options, name) is not None]


def as_moment(period: Any) -> Any:
    """Return a length of time as a number: microseconds, as of dates, or as it is."""
    return period // timedelta(microseconds=1) if isinstance(period, timedelta) else period


def typed(options: Namespace, names: tuple[str, ...]) -> str:
    """Write options with their values, as they were typed."""
    return " ".join(
        f"{'--alert late=' if name == 'late' else option_name(name) + ' '}"
        f"{period_text(getattr(options, name))}"
        for name in given(options, names)
    )


def model_of(options: Namespace) -> Any:
    """Make the model that the options describe."""
    try:
        model = _plain_model(options, aim_of(options))
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(str(error), USAGE) from None
    try:
        if options.last_n is not None:
            model = LastN(model, options.last_n)
        elif options.last_period is not None:
            model = LastPeriod(model, as_moment(options.last_period))
        elif options.half_life is not None:
            by: Any = "samples" if options.time_column is None else "time"
            model = Fading(model, as_moment(options.half_life), by=by)
        if options.group_column is not None:
            from limen.groups.grouped import Grouped  # loads much that others do not need

            model = Grouped(model, at_least=options.at_least or 1)
        if options.id_column is not None:
            model = Ledger(model, **{name: as_moment(getattr(options, name)) for name in _LEDGER})
    except (TypeError, ValueError, OverflowError) as error:
        joined = () if options.capacity is None else ("id_column",)
        asked = typed(options, ("capacity", *WINDOWS, *_LEDGER, *joined, "group_column"))
        raise Failure(f"{asked}: {error}", USAGE) from None
    return model


def _plain_model(options: Namespace, aim: Aim) -> Any:
    """Make the model that holds the samples."""
    bounded = {} if options.capacity is None else {"capacity": options.capacity}
    given: Any = {"unit": options.unit, "direction": "<=" if options.lower_is_positive else ">="}
    if not aim.by_cost:
        if bounded:
            raise TypeError("--capacity works only with costs, not with metrics and demands.")
        from limen.calibrator import OnlineCalibrator

        return OnlineCalibrator(**given)
    if aim.priced:
        return OnlineCut(**given, **bounded)
    return OnlineThreshold(**aim.mistakes, **given, **bounded)


def settings_of(options: Namespace) -> dict[str, str | None]:
    """Return the options that a state depends on; it is continued with the same ones only."""
    names = (*_COSTS, "unit", *WINDOWS, *_LEDGER, "capacity", "positive")
    found = {name: getattr(options, name) for name in names}
    flags = {name: getattr(options, name) is not None for name in ("id_column", "group_column")}
    flags["lower_is_positive"] = options.lower_is_positive
    flags["metric"] = bool(given(options, ("metric", *DEMANDS)))
    flags["time_column"] = options.half_life is not None and options.time_column is not None
    if options.group_column is not None:
        found["at_least"] = options.at_least
    found |= {name: "given" for name, flag in flags.items() if flag}
    return {name: None if value is None else period_text(value) for name, value in found.items()}
