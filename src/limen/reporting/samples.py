# SPDX-License-Identifier: Apache-2.0
"""The samples of one file or of many: one array for each column."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.losses import at_prevalence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limen.optimum import Direction

__all__ = ["Samples", "concatenated", "unit_of", "weighted_to"]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples in columns; a group is a number, the place of its name in `names`."""

    scores: NDArray[Any]
    labels: NDArray[np.uint8]
    weights: NDArray[Any] | None = None
    codes: NDArray[Any] | None = None
    names: tuple[str, ...] = ()
    direction: Direction = ">="
    shares: tuple[Any, Any] | None = None  # how much labels 0 and 1 count, where not the same
    costs: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # of outcomes, by row
    stands_for: tuple[int, int] | None = None  # rows and those of label 1, where samples are fewer
    skipped: int = 0  # malformed rows that were left out
    examples: tuple[str, ...] = ()  # what is wrong with the first of these

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def positives(self) -> int:
        """How many samples have label 1. O(n)."""
        return int(np.count_nonzero(self.labels))

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows there are, and how many of label 1. O(n)."""
        return self.stands_for or (len(self), self.positives)

    def rows(self, chosen: NDArray[Any]) -> Samples:
        """Return the chosen rows. O(chosen)."""
        weights = None if self.weights is None else self.weights[chosen]
        codes = None if self.codes is None else self.codes[chosen]
        columns = self.scores[chosen], self.labels[chosen], weights, codes, self.names
        costs = {outcome: each[chosen] for outcome, each in self.costs.items()}
        return Samples(*columns, self.direction, self.shares, costs)

    def answers(self, threshold: Any) -> NDArray[np.bool_]:
        """Return which rows are answered 1 by a threshold, or by one for each row. O(n)."""
        above = self.scores >= threshold if self.direction == ">=" else self.scores <= threshold
        return np.asarray(above)

    def by_group(self) -> Iterator[tuple[str, Samples]]:
        """Yield each group and its samples, in the order of their names. O(n)."""
        if self.codes is None:
            return
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.names)))
        rows = dict(zip(self.names, np.split(order, ends), strict=False))
        for name in sorted(rows):
            if len(rows[name]):
                yield name, replace(self.rows(rows[name]), codes=None, names=())


def concatenated(parts: list[Samples]) -> Samples:
    """Join the samples of several files; equal names are one group. O(n)."""
    if len(parts) == 1:
        return parts[0]
    names: dict[str, int] = {}
    codes = []
    for part in parts:
        if part.codes is not None:
            renamed = [names.setdefault(name, len(names)) for name in part.names]
            codes.append(np.asarray(renamed, np.min_scalar_type(len(names)))[part.codes])
    weights = [part.weights for part in parts if part.weights is not None]
    return Samples(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(weights) if weights else None,
        np.concatenate(codes) if codes else None,
        tuple(names),
        costs={
            outcome: np.concatenate([part.costs[outcome] for part in parts])
            for outcome in parts[0].costs
        },
        skipped=sum(part.skipped for part in parts),
        examples=tuple(example for part in parts for example in part.examples),
    )


def weighted_to(samples: Samples, prevalence: Any) -> Samples:
    """Weight rows to another share of label 1. O(n)."""
    shares = at_prevalence(samples.labels, prevalence, weights=samples.weights)
    each = np.where(samples.labels == 1, float(shares[1]), float(shares[0]))
    if samples.weights is not None:
        return replace(samples, weights=samples.weights * each)
    return replace(samples, weights=each, shares=shares)


def unit_of(samples: Samples, unit: Any) -> Any:
    """Return the unit that was asked for, or one of which weights by prevalence are multiples."""
    if unit is not None or samples.shares is None:
        return unit
    zero, one = map(Fraction, samples.shares)
    common = math.gcd(zero.numerator * one.denominator, one.numerator * zero.denominator)
    return Fraction(common, zero.denominator * one.denominator)
