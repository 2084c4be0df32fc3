# SPDX-License-Identifier: Apache-2.0
"""Histograms as Prometheus has them: of how long requests took, and of how late labels came."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["DELAYS", "Histogram"]

# From a second to a year, in seconds.
_HOUR, _DAY = 3600.0, 86400.0
DELAYS = (
    *(1.0, 10.0, 60.0, 600.0, _HOUR, 6 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY),
    *(14 * _DAY, 30 * _DAY, 60 * _DAY, 90 * _DAY, 180 * _DAY, 365 * _DAY),
)


class Histogram:
    """Counts by a key and by size, with the sum of each key, as Prometheus has them."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._rows: dict[tuple[str, int], list[float]] = {}

    def add(self, key: tuple[str, int], value: float) -> None:
        """Count a value. O(log of the bounds)."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = [0.0] * (len(self._bounds) + 2)
        row[bisect_left(self._bounds, value)] += 1
        row[-1] += value

    def add_all(self, found: Iterable[tuple[tuple[str, int], float]]) -> None:
        """Count many."""
        for key, value in found:
            self.add(key, value)

    def shown(self) -> Iterator[tuple[tuple[str, int], list[tuple[str, float]], float]]:
        """Yield each key with how many are at most each bound, and their sum."""
        for key, row in self._rows.items():
            buckets, total = [], 0.0
            for bound, found in zip((*map(str, self._bounds), "+Inf"), row[:-1], strict=True):
                total += found
                buckets.append((bound, total))
            yield key, buckets, row[-1]
