# SPDX-License-Identifier: Apache-2.0
"""What the options ask for: which columns to read, and what makes a cut the best one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from limen import metrics
from limen.cli.exits import USAGE, Failure
from limen.cli.rows import Columns
from limen.metrics import Metric, cost, fbeta, net_benefit
from limen.reporting.aim import DEMANDS, OUTCOMES, Aim
from limen.units import exact_costs

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["DEMANDS", "Aim", "aim_of", "columns_of", "costs_of", "metric_of", "option_text"]


def columns_of(options: Namespace) -> Columns:
    """Collect the options about columns."""
    return Columns(
        options.score_column,
        getattr(options, "label_column", None),
        getattr(options, "weight_column", None),
        getattr(options, "group_column", None),
        getattr(options, "positive", None),
        options.delimiter,
        getattr(options, "unit", None),
        getattr(options, "id_column", None),
        getattr(options, "time_column", None),
        "<=" if getattr(options, "lower_is_positive", False) else ">=",
        getattr(options, "prevalence", None),
        tuple(
            (outcome, name)
            for outcome in OUTCOMES
            if (name := getattr(options, f"{outcome}_column", None)) is not None
        ),
        getattr(options, "decimal_comma", False),
        "files" in options and getattr(options, "skip_malformed", False),
    )


def prices_of(options: Namespace) -> dict[str, Any]:
    """Collect what each outcome costs; empty where right answers cost nothing in every row."""
    prices: dict[str, Any] = {"false_positive": 1, "false_negative": 1}
    prices |= {"true_positive": 0, "true_negative": 0}
    for outcome in OUTCOMES:
        cost, column = (getattr(options, name, None) for name in (outcome, f"{outcome}_column"))
        if cost is not None and column is not None:
            raise Failure(
                f"{option_text(outcome, cost)} and {option_text(f'{outcome}_column', column)} are "
                "two costs of one thing. Give one of them.",
                USAGE,
            )
        if cost is not None or column is not None:
            prices[outcome] = cost if column is None else column
    by_column = any(isinstance(price, str) for price in prices.values())
    return prices if by_column or prices["true_positive"] or prices["true_negative"] else {}


def costs_of(options: Namespace) -> dict[str, Any]:
    """Collect what a mistake costs more than a right answer; 1 where rows have their own costs."""
    prices = prices_of(options)
    if any(isinstance(price, str) for price in prices.values()):
        return {"false_positive": 1, "false_negative": 1}
    given = {"false_positive": options.false_positive, "false_negative": options.false_negative}
    costs = {name: 1 if value is None else value for name, value in given.items()}
    for wrong, right in (("false_positive", "true_negative"), ("false_negative", "true_positive")):
        costs[wrong] -= prices.get(right, 0)
        if costs[wrong] <= 0:
            typed = option_text(wrong, 1 if given[wrong] is None else given[wrong])
            if not prices:
                raise Failure(f"{typed}: the cost of a mistake is not a positive number.", USAGE)
            raise Failure(
                f"{typed} must be more than {option_text(right, prices[right])}: a mistake costs "
                "more than a right answer.",
                USAGE,
            )
    try:
        exact_costs(**costs)
    except OverflowError:
        listed = " and ".join(option_text(name, value) for name, value in costs.items())
        raise Failure(
            f"{listed} are too far apart. Choose costs with fewer digits.", USAGE
        ) from None
    return costs


def _extra(prices: dict[str, Any]) -> list[str]:
    """Name the options that go beyond a cost of either mistake."""
    dashed = {name: name.replace("_", "-") for name in prices}
    return [
        f"--{dashed[name]}-column" if isinstance(price, str) else f"--{dashed[name]}"
        for name, price in prices.items()
        if isinstance(price, str) or name.startswith("true_")
        if price
    ]


def option_text(name: str, value: Any) -> str:
    """Write an option as it was typed, or could have been."""
    if (
        isinstance(value, Fraction)
        and value.denominator > 1
        and Fraction(repr(float(value))) == value
    ):
        value = float(value)
    return f"--{name.replace('_', '-')} {value}"


def metric_of(name: str) -> Metric:
    """Return the metric of a name, as the options have it."""
    if name.startswith("net_benefit="):
        return net_benefit(Fraction(name.partition("=")[2]))
    if name[0] == "f" and name[1].isdigit() and name != "f1":
        return fbeta(Fraction(name[1:]))
    found: Metric = getattr(metrics, name)
    return found


def aim_of(options: Namespace) -> Aim:
    """Read the aim out of the options of a command, which need not have metrics or demands."""
    demands = {
        name: bound for name in DEMANDS if (bound := getattr(options, name, None)) is not None
    }
    name = getattr(options, "metric", None)
    prices = prices_of(options)
    costs_given = bool(prices) or (
        options.false_positive is not None or options.false_negative is not None
    )
    if name is not None and costs_given:
        raise Failure("--metric and costs are two aims. Give one of them.", USAGE)
    costs = costs_of(options)
    if name is not None:
        return Aim(costs, metric_of(name), name, demands)
    if not demands:
        return Aim(costs, prices=prices)
    if prices:
        raise Failure(
            "demands are known with --false-positive and --false-negative alone. Leave out "
            f"{' and '.join(_extra(prices))}, or the demands.",
            USAGE,
        )
    if costs_given:
        return Aim(costs, cost(**costs), "cost", demands)
    name = "precision" if "min_recall" in demands else "recall"
    return Aim(costs, metric_of(name), name, demands)
