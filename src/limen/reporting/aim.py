# SPDX-License-Identifier: Apache-2.0
"""What makes a cut the best one: costs, a metric, demands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from limen.metrics import Metric, cost
from limen.names import DEMANDS, OUTCOMES

__all__ = ["DEMANDS", "OUTCOMES", "Aim"]


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
    prices
        Where right answers have a cost too, or rows have costs of their own: what each outcome
        costs, a number or the name of a column. `costs` are then what a mistake costs more than
        a right answer, or 1 where rows have their own.
    """

    costs: dict[str, Any]
    metric: Metric | None = None
    name: str = "cost"
    demands: dict[str, Any] = field(default_factory=dict)
    prices: dict[str, Any] = field(default_factory=dict)

    @property
    def measure(self) -> Metric:
        """The function from right and wrong answers to the value of a cut."""
        if self.metric is None:
            return cost(**self.costs)
        return self.metric

    def facts(self) -> dict[str, Any]:
        """Return the aim, ready for JSON, so that an answer can be read alone."""
        facts: dict[str, Any] = {"metric": self.name}
        if self.metric is None or self.measure.scale is not None:
            facts = {
                name: value if isinstance(value, str) else float(value)
                for name, value in (self.prices or self.costs).items()
            }
        return facts | {name: float(bound) for name, bound in self.demands.items()}
