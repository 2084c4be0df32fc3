# SPDX-License-Identifier: Apache-2.0
"""The options of ``limen watch``: whether they fit together, and the model that they describe."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from limen.cli.aims import costs_of
from limen.cli.exits import USAGE, Failure
from limen.cli.option_values import period_text
from limen.memory.fading import Fading
from limen.memory.ledger import Ledger
from limen.memory.windows import LastN, LastPeriod
from limen.online import OnlineThreshold

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = [
    "PERIODS",
    "WINDOWS",
    "given",
    "model_of",
    "option_name",
    "require_consistent",
    "settings_of",
    "typed",
]

_LEDGER = ("time_to_live", "maturity", "correctable")
WINDOWS = ("last_n", "last_period", "half_life")
PERIODS = ("last_period", "half_life", *_LEDGER, "each_period", "age")


def require_consistent(options: Namespace) -> None:
    """Refuse options that do not fit together."""
    windows = given(options, WINDOWS)
    if len(windows) > 1:
        listed = " and ".join(map(option_name, windows))
        raise Failure(f"{listed} are two windows. Give one of them.", USAGE)
    if options.every is not None and options.each_period is not None:
        raise Failure("--every and --each-period are two rhythms. Give one of them.", USAGE)
    dated = {
        name: isinstance(getattr(options, name), timedelta) for name in given(options, PERIODS)
    }
    for name in dated:
        if options.time_column is None and (dated[name] or name in ("last_period", "each_period")):
            raise Failure(f"{typed(options, (name,))} needs --time-column.", USAGE)
    joined = given(options, _LEDGER)
    if joined and options.id_column is None:
        raise Failure(f"{option_name(joined[0])} needs --id-column.", USAGE)
    if options.age is not None and (options.id_column is None or options.current is None):
        raise Failure("--age needs --id-column and --current.", USAGE)
    judged = options.id_column is not None and options.current is not None
    if judged and options.age is None and options.maturity is None:
        raise Failure(
            "--current with --id-column needs --age: how old a row is when nearly all labels are "
            "known. Or give --maturity.",
            USAGE,
        )
    if len(set(dated.values())) > 1:
        raise Failure(
            f"{typed(options, PERIODS)}: write all periods as numbers, or all with a unit such "
            "as 30d.",
            USAGE,
        )


def option_name(name: str) -> str:
    """Write the name of an option as it is typed."""
    return f"--{name.replace('_', '-')}"


def given(options: Namespace, names: tuple[str, ...]) -> list[str]:
    """Return those of the options that have a value."""
    return [name for name in names if getattr(options, name) is not None]


def typed(options: Namespace, names: tuple[str, ...]) -> str:
    """Write options with their values, as they were typed."""
    return " ".join(
        f"{option_name(name)} {period_text(getattr(options, name))}"
        for name in given(options, names)
    )


def model_of(options: Namespace) -> Any:
    """Make the model that the options describe."""
    costs = costs_of(options)
    try:
        model: Any = OnlineThreshold(**costs, unit=options.unit)
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), USAGE) from None
    try:
        if options.last_n is not None:
            model = LastN(model, options.last_n)
        elif options.last_period is not None:
            model = LastPeriod(model, options.last_period)
        elif options.half_life is not None:
            by: Any = "samples" if options.time_column is None else "time"
            model = Fading(model, options.half_life, by=by)
        if options.id_column is not None:
            model = Ledger(model, **{name: getattr(options, name) for name in _LEDGER})
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(f"{typed(options, (*WINDOWS, *_LEDGER))}: {error}", USAGE) from None
    return model


def settings_of(options: Namespace) -> dict[str, str | None]:
    """Return the options that a state depends on; it is continued with the same ones only."""
    names = ("false_positive", "false_negative", "unit", *WINDOWS, *_LEDGER, "positive")
    found = {name: getattr(options, name) for name in names}
    found["id_column"] = None if options.id_column is None else "given"
    if options.half_life is not None and options.time_column is not None:
        found["time_column"] = "given"
    return {name: None if value is None else period_text(value) for name, value in found.items()}
