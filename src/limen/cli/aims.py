# SPDX-License-Identifier: Apache-2.0
"""What the options ask for: which columns to read, and what makes a cut the best one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from limen.aim import Aim
from limen.cli.exits import USAGE, Failure
from limen.cli.parsing import option_name
from limen.cli.rows import Columns
from limen.metrics import from_text
from limen.names import DEMANDS, OUTCOMES
from limen.units import exact_costs

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["aim_of", "columns_of", "option_text"]


def columns_of(options: Namespace) -> Columns:
    """Collect the options about columns."""
    given = vars(options)
    return Columns(
        options.score_column,
        given.get("label_column"),
        given.get("weight_column"),
        given.get("group_column"),
        given.get("positive"),
        options.delimiter,
        given.get("unit"),
        given.get("id_column"),
        given.get("time_column"),
        "<=" if given.get("lower_is_positive") else ">=",
        given.get("prevalence"),
        tuple(_cost_columns(given).items()),
        given.get("decimal_comma", False),
        "files" in given and given.get("skip_malformed", False),
    )


def _cost_columns(given: dict[str, Any]) -> dict[str, str]:
    """Return the column of each outcome whose cost stands in the rows."""
    return {
        outcome: column
        for outcome in OUTCOMES
        if (column := given.get(f"{outcome}_column")) is not None
    }


def aim_of(options: Namespace) -> Aim:
    """Read the aim out of the options of a command, which need not have metrics or demands.

    Its unit, and the costs that stand in columns, come with the rows: see `aim_on`.
    """
    given = vars(options)
    by_row, metric = _cost_columns(given), given.get("metric")
    costs = {name: cost for name in OUTCOMES if (cost := given.get(name)) is not None}
    demands = {name: bound for name in DEMANDS if (bound := given.get(name)) is not None}
    for name, column in by_row.items():
        if name in costs:
            raise Failure(
                f"{option_text(name, costs[name])} and {option_text(f'{name}_column', column)} are "
                "two costs of one thing. Give one of them.",
                USAGE,
            )
    gains = [name for name in ("true_positive", "true_negative") if costs.get(name)]
    extra = [f"{option_name(name)}-column" for name in by_row] + [
        option_name(name) for name in gains
    ]
    costs_given = bool(extra or "false_positive" in costs or "false_negative" in costs)
    if metric is not None and costs_given:
        raise Failure("--metric and costs are two aims. Give one of them.", USAGE)
    if by_row:
        costs = {name: usual.cost for name, usual in OUTCOMES.items()} | costs
        costs = {name: cost for name, cost in costs.items() if name not in by_row}
    else:
        _require_dearer_mistakes(costs)
    if demands and extra:
        raise Failure(
            "demands work only with --false-positive and --false-negative. Leave out "
            f"{' and '.join(extra)}, or the demands.",
            USAGE,
        )
    if demands and metric is None and not costs_given:
        metric = "precision" if "min_recall" in demands else "recall"
    aimed = None if metric is None else from_text(metric)
    return Aim.of(**costs, by_row=by_row or None, metric=aimed, **demands)


def _require_dearer_mistakes(costs: dict[str, Any]) -> None:
    """Refuse mistakes that cost no more than right answers, and costs too far apart."""
    more = {}
    for wrong, right in (("false_positive", "true_negative"), ("false_negative", "true_positive")):
        cost, free = costs.get(wrong, 1), costs.get(right, 0)
        more[wrong] = cost - free
        if more[wrong] <= 0:
            typed = option_text(wrong, cost)
            if not (costs.get("true_positive") or costs.get("true_negative")):
                raise Failure(f"{typed}: the cost of a mistake is not a positive number.", USAGE)
            raise Failure(
                f"{typed} must be more than {option_text(right, free)}: a mistake costs more than "
                "a right answer.",
                USAGE,
            )
    try:
        exact_costs(**more)
    except OverflowError:
        listed = " and ".join(option_text(name, value) for name, value in more.items())
        raise Failure(
            f"{listed} are too far apart. Choose costs with fewer digits.", USAGE
        ) from None


def option_text(name: str, value: Any) -> str:
    """Write an option as it was typed, or could have been."""
    if (
        isinstance(value, Fraction)
        and value.denominator > 1
        and Fraction(repr(float(value))) == value
    ):
        value = float(value)
    return f"{option_name(name)} {value}"
