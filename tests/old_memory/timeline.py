# SPDX-License-Identifier: Apache-2.0
"""Things that come up in the order of their times."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Timeline"]

_Thing = TypeVar("_Thing")


class Timeline(Generic[_Thing]):
    """Things that come up in the order of their times, whatever order they came in.

    `add` takes O(1) for a thing that is not older than all before, else O(log n). Things of
    one time come up in the order in which they were added.

    >>> line = Timeline()
    >>> for time, thing in [(1, "a"), (4, "b"), (2, "late")]:
    ...     line.add(time, thing)
    >>> list(line.until(3)), len(line)
    (['a', 'late'], 1)
    """

    __slots__ = ("_added", "_late", "_line")

    def __init__(self) -> None:
        self._line: deque[tuple[Any, int, _Thing]] = deque()
        self._late: list[tuple[Any, int, _Thing]] = []  # a heap
        self._added = 0

    def add(self, time: Any, thing: _Thing) -> None:
        """Put a thing in at its time."""
        line = self._line
        self._added = number = self._added + 1
        if not line or time >= line[-1][0]:
            line.append((time, number, thing))
        else:
            heappush(self._late, (time, number, thing))

    def first(self) -> tuple[Any, _Thing] | None:
        """Look at the earliest thing and its time; None when there is none. O(1)."""
        line, late = self._line, self._late
        if late and (not line or late[0] < line[0]):
            return late[0][0], late[0][2]
        return (line[0][0], line[0][2]) if line else None

    def pop(self) -> _Thing:
        """Take out the earliest thing."""
        line, late = self._line, self._late
        if late and (not line or late[0] < line[0]):
            return heappop(late)[2]
        return line.popleft()[2]

    def until(self, edge: Any) -> Iterator[_Thing]:
        """Take out, in order, the things whose time is not after the edge."""
        while (found := self.first()) is not None and found[0] <= edge:
            yield self.pop()

    def in_order(self) -> list[tuple[Any, _Thing]]:
        """List everything with its time, in order; nothing is taken out. O(n log n)."""
        return [(time, thing) for time, _, thing in sorted([*self._line, *self._late])]

    def __len__(self) -> int:
        return len(self._line) + len(self._late)
