# SPDX-License-Identifier: Apache-2.0
"""The samples of one file or of many: one array for each column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Samples", "concatenated"]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples in columns; a group is a number, the place of its name in `names`."""

    scores: NDArray[Any]
    labels: NDArray[np.uint8]
    weights: NDArray[Any] | None = None
    codes: NDArray[Any] | None = None
    names: tuple[str, ...] = ()
    stands_for: tuple[int, int] | None = None  # rows and those of label 1, where samples are fewer

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
        return Samples(self.scores[chosen], self.labels[chosen], weights, codes, self.names)

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
    )
