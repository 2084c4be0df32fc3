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
        The cut that misses least: its largest shortfall, a difference of rates, is smallest. With
        a confidence, the best cut that meets the demands on the samples held, if there is one.
    more_samples
        Where only the confidence fails: roughly how many more samples might do.
    """

    def __init__(self, message: str, nearest: BestCut, more_samples: int | None = None) -> None:
        super().__init__(message, nearest, more_samples)
        self.nearest = nearest
        self.more_samples = more_samples

    def __str__(self) -> str:
        return str(self.args[0])
