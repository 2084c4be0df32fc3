# SPDX-License-Identifier: Apache-2.0
"""The rows of one file or of many: samples, with what files say about them besides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.losses import at_prevalence
from limen.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limen.aim import Aim
    from limen.optimum import Direction

__all__ = ["FileRows", "aim_on", "concatenated", "weighted_to"]


@dataclass(frozen=True, slots=True, eq=False)
class FileRows(Samples):
    """Samples with their groups and costs; a group is a number, the place of its name in `names`.

    Readers give scores as they stand in a file; `with_direction` makes samples of them.
    """

    codes: NDArray[Any] | None = None
    names: tuple[str, ...] = ()
    shares: tuple[Any, Any] | None = None  # how much labels 0 and 1 count, where not the same
    costs: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # of outcomes, by row
    stands_for: tuple[int, int] | None = None  # rows and those of label 1, where samples are fewer
    skipped: int = 0  # malformed rows that were left out
    examples: tuple[str, ...] = ()  # what is wrong with the first of these

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows there are, and how many of label 1. O(n)."""
        return self.stands_for or (len(self), self.positives)

    def with_direction(self, direction: Direction) -> FileRows:
        """Return rows whose scores run this way. O(n) where lower ones mean positive."""
        if direction == ">=":
            return self
        return replace(self, scores=0.0 - self.scores, direction=direction)

    def rows(self, chosen: Any) -> FileRows:
        """Return the chosen rows. O(chosen)."""
        return replace(
            self,
            scores=self.scores[chosen],
            labels=self.labels[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            codes=None if self.codes is None else self.codes[chosen],
            costs={outcome: each[chosen] for outcome, each in self.costs.items()},
        )

    def groups(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield each group and the places of its rows, in the order of their names. O(n)."""
        if self.codes is None:
            return
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.names)))
        places = dict(zip(self.names, np.split(order, ends), strict=False))
        for name in sorted(places):
            if len(places[name]):
                yield name, places[name]


def concatenated(parts: list[FileRows]) -> FileRows:
    """Join the rows of several files; equal names are one group. O(n)."""
    if len(parts) == 1:
        return parts[0]
    names: dict[str, int] = {}
    codes = []
    for part in parts:
        if part.codes is not None:
            renamed = [names.setdefault(name, len(names)) for name in part.names]
            codes.append(np.asarray(renamed, np.min_scalar_type(len(names)))[part.codes])
    weights: list[Any] = [part.weights for part in parts if part.weights is not None]
    return FileRows(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(weights) if weights else None,
        codes=np.concatenate(codes) if codes else None,
        names=tuple(names),
        costs={
            outcome: np.concatenate([part.costs[outcome] for part in parts])
            for outcome in parts[0].costs
        },
        skipped=sum(part.skipped for part in parts),
        examples=tuple(example for part in parts for example in part.examples),
    )


def weighted_to(rows: FileRows, prevalence: Any) -> FileRows:
    """Weight rows to another share of label 1. O(n)."""
    shares = at_prevalence(rows.labels, prevalence, weights=rows.weights)
    each = np.where(rows.labels == 1, float(shares[1]), float(shares[0]))
    if rows.weights is not None:
        return replace(rows, weights=rows.weights * each)
    return replace(rows, weights=each, shares=shares)


def aim_on(rows: FileRows, aim: Aim, unit: Any = None) -> Aim:
    """Return an aim for these rows: with their costs, in a unit that their weights are made of.

    That is the unit asked for, or one of which weights by prevalence are multiples.
    """
    if aim.by_row:
        aim = aim.with_rows(rows.costs)
    if unit is None and rows.shares is not None:
        zero, one = map(Fraction, rows.shares)
        common = math.gcd(zero.numerator * one.denominator, one.numerator * zero.denominator)
        unit = Fraction(common, zero.denominator * one.denominator)
    return aim if unit is None else replace(aim, unit=unit)
