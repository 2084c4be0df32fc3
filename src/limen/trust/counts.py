# SPDX-License-Identifier: Apache-2.0
"""How many samples there are of each weight: whole numbers, so that nothing drifts."""

from __future__ import annotations

from typing import TypeAlias

from limen.errors import NotHeld

__all__ = ["Counts", "add", "not_held", "take"]

Counts: TypeAlias = "dict[int | float, int]"


def add(counts: Counts, more: Counts) -> None:
    """Add to counts what others count."""
    for weight, count in more.items():
        counts[weight] = counts.get(weight, 0) + count


def take(counts: Counts, less: Counts) -> None:
    """Take from counts what others count. Raises `limen.NotHeld` where they are fewer."""
    for weight, count in less.items():
        left = counts.get(weight, 0) - count
        if left < 0:
            raise not_held(weight, count, left + count)
        if left:
            counts[weight] = left
        else:
            del counts[weight]


def not_held(weight: float, count: int, held: int) -> NotHeld:
    """Say that fewer samples of a weight are held than are to be taken back."""
    return NotHeld(
        f"{count:,} such samples of weight {weight!r} are to be taken back, and {held:,} are "
        "held. Nothing was changed."
    )
