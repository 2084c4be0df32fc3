# SPDX-License-Identifier: Apache-2.0
"""What the options ask for: which columns to read, and what makes a cut the best one."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from limen import metrics
from limen.cli.exits import USAGE, Failure
from limen.cli.rows import Columns
from limen.metrics import Metric, cost, fbeta
from limen.units import exact_costs

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["DEMANDS", "Aim", "aim_of", "columns_of", "costs_of", "option_text"]

DEMANDS = ("min_precision", "min_recall", "max_false_positive_rate", "max_positive_rate")


@dataclass(frozen=True, slots=True)
class Aim:
    """What makes a cut the best one.

    Attributes
    ----------
    costs
        Of a false positive and of a false negative.
    metric
        What is made best under the demands; None where the lowest cost alone is the aim.
    name
        What the metric is called.
    demands
        The bounds that a cut must meet, by name.
    """

    costs: dict[str, Any]
    metric: Metric | str | None = None
    name: str = "cost"
    demands: dict[str, Any] = field(default_factory=dict)

    @property
    def measure(self) -> Metric:
        """The function from right and wrong answers to the value of a cut."""
        if self.metric is None:
            return cost(**self.costs)
        found: Metric = (
            getattr(metrics, self.metric) if isinstance(self.metric, str) else self.metric
        )
        return found

    def facts(self) -> dict[str, Any]:
        """Return the aim, ready for JSON, so that an answer can be read alone."""
        facts: dict[str, Any] = {"metric": self.name}
        if self.measure.lowest:
            facts = {name: float(value) for name, value in self.costs.items()}
        return facts | {name: float(bound) for name, bound in self.demands.items()}


def columns_of(options: Namespace) -> Columns:
    """Collect the options about columns."""
    return Columns(
        options.score_column,
        options.label_column,
        options.weight_column,
        getattr(options, "group_column", None),
        options.positive,
        options.delimiter,
        options.unit,
        getattr(options, "id_column", None),
        getattr(options, "time_column", None),
        "<=" if getattr(options, "lower_is_positive", False) else ">=",
    )


def costs_of(options: Namespace) -> dict[str, Any]:
    """Collect the costs; 1 where none is given."""
    given = {"false_positive": options.false_positive, "false_negative": options.false_negative}
    costs = {name: 1 if value is None else value for name, value in given.items()}
    try:
        exact_costs(**costs)
    except OverflowError:
        listed = " and ".join(option_text(name, value) for name, value in costs.items())
        raise Failure(
            f"{listed} are too far apart. Choose costs with fewer digits.", USAGE
        ) from None
    return costs


def option_text(name: str, value: Any) -> str:
    """Write an option as it was typed, or could have been."""
    if isinstance(value, Fraction) and Fraction(repr(float(value))) == value:
        value = float(value)
    return f"--{name.replace('_', '-')} {value}"


def aim_of(options: Namespace) -> Aim:
    """Read the aim out of the options of a command, which need not have metrics or demands."""
    demands = {
        name: bound for name in DEMANDS if (bound := getattr(options, name, None)) is not None
    }
    name = getattr(options, "metric", None)
    costs_given = options.false_positive is not None or options.false_negative is not None
    if name is not None and costs_given:
        raise Failure("--metric and costs are two aims. Give one of them.", USAGE)
    costs = costs_of(options)
    if name is not None:
        plain = name == "f1" or not name[1].isdigit()
        return Aim(costs, name if plain else fbeta(Fraction(name[1:])), name, demands)
    if not demands:
        return Aim(costs)
    if costs_given:
        return Aim(costs, cost(**costs), "cost", demands)
    name = "precision" if "min_recall" in demands else "recall"
    return Aim(costs, name, name, demands)
