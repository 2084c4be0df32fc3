# SPDX-License-Identifier: Apache-2.0
"""The errors that a caller may want to catch apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limen.metrics import BestCut

__all__ = ["Infeasible", "NotHeld"]


class NotHeld(KeyError):  # noqa: N818 - reads as what happened
    """A sample to be reverted is not held; nothing was changed."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put a sentence into quotes.
        return str(self.args[0]) if self.args else ""


class Infeasible(ValueError):  # noqa: N818 - reads as what happened
    """No cut meets all that was demanded.

    Attributes
    ----------
    problem
        What cannot be met, without the nearest cut and what to do.
    nearest
        The cut that misses least: its largest shortfall, a difference of rates, is smallest. With
        a confidence, the best cut that meets the demands on the samples held, if there is one.
    rates
        What the nearest cut has of the rates demanded; empty where only the confidence fails.
    more_samples
        Where only the confidence fails: roughly how many more samples might do.
    """

    def __init__(
        self, problem: str, nearest: BestCut, rates: str = "", more_samples: int | None = None
    ) -> None:
        super().__init__(problem, nearest, rates, more_samples)
        self.problem = problem
        self.nearest = nearest
        self.rates = rates
        self.more_samples = more_samples

    def __str__(self) -> str:
        threshold = repr(self.nearest.threshold)
        if not self.rates:
            return (
                f"{self.problem}. The samples held meet it at threshold {threshold}, the attribute "
                "nearest of this error; new rows may well not."
            )
        return (
            f"{self.problem}. The nearest, at threshold {threshold}, has {self.rates}; ask for "
            "less, or take it from the attribute nearest of this error."
        )
