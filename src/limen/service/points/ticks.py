# SPDX-License-Identifier: Apache-2.0
"""What is found once for each tick of a point, and shared by all who ask until it changes."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from limen.service.points.point import Point
    from limen.service.points.proposals import Proposal

__all__ = ["once_per_tick"]

T = TypeVar("T")


def once_per_tick(
    find: Callable[[Point, Proposal, int], T],
) -> Callable[[Point, Proposal, int], T]:
    """Keep what a function finds of a proposal, until an event may have changed it.

    That is the passing of time, a version, a proposal, a decision or a definition, a forget, and a
    label of a sample that has judged. So all who ask between two ticks see the same; the time that
    they ask at counts only for the first.
    """

    @wraps(find)
    def found(point: Point, proposal: Proposal, now: int) -> T:
        key = (proposal.number, point.revised)
        kept: tuple[Any, T] | None = point.kept.get(find.__name__)
        if kept is None or kept[0] != key:
            kept = point.kept[find.__name__] = key, find(point, proposal, now)
        return kept[1]

    return found
