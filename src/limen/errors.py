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
    nearest
        The cut that misses least: its largest shortfall, a difference of rates, is smallest.
    """

    def __init__(self, message: str, nearest: BestCut) -> None:
        super().__init__(message, nearest)
        self.nearest = nearest

    def __str__(self) -> str:
        return str(self.args[0])
