# SPDX-License-Identifier: Apache-2.0
"""Scores of which a lower one means positive: negated on the way in, turned back on the way out.

Everything inside knows one direction: higher means positive. A sample of score s is there one of
score -s, and an answer is turned at the door, so that it reads in the scores of the user: a
threshold t becomes -t, and the highest of several best cuts becomes the lowest, which also says 1
to the fewest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from limen.columns import as_scores
from limen.errors import Infeasible
from limen.hull import Blocks, RocHull
from limen.optimum import Direction, Gap, LossCurve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Direction", "is_falling", "mirrored", "negated", "setting"]


def is_falling(direction: str) -> bool:
    """Whether lower scores mean positive; raise ValueError for what is no direction.

    >>> is_falling(">="), is_falling("<=")
    (False, True)
    """
    if direction not in (">=", "<="):
        raise ValueError(
            'direction must be ">=", where higher scores mean positive, or "<=", where lower ones '
            f"do; got {direction!r}."
        )
    return direction == "<="


def setting(direction: str) -> dict[str, str]:
    """Return the direction as one of the settings of a model: none where it is the usual one.

    >>> setting(">="), setting("<=")
    ({}, {'direction': '<='})
    """
    return {"direction": direction} if is_falling(direction) else {}


def negated(scores: ArrayLike) -> NDArray[np.float64]:
    """Turn scores round; 0 stays 0, and nan stays nan. O(n)."""
    return 0.0 - as_scores(scores)


@singledispatch
def mirrored(found: Any) -> Any:
    """Turn an answer about negated scores into one about the scores as they were, and back.

    Of a number and a pair of numbers too: thresholds, and the ends of an interval.

    >>> mirrored(-0.25), mirrored((-0.5, -0.25))
    (0.25, (0.25, 0.5))
    """
    raise TypeError(f"{type(found).__name__} has no direction.")


@mirrored.register
def _(found: float) -> float:
    return 0.0 - found


@mirrored.register
def _(found: tuple) -> tuple[float, float]:  # type: ignore[type-arg]
    low, high = found
    return 0.0 - high, 0.0 - low


@mirrored.register
def _(found: list) -> list[Any]:  # type: ignore[type-arg]
    return [mirrored(each) for each in reversed(found)]


@mirrored.register
def _(found: dict) -> dict[Any, Any]:  # type: ignore[type-arg]
    return {name: mirrored(each) for name, each in found.items()}


@mirrored.register
def _(found: Gap) -> Gap:
    lower, upper = (None if end is None else 0.0 - end for end in (found.upper, found.lower))
    direction: Direction = "<=" if found.direction == ">=" else ">="
    return replace(found, lower=lower, upper=upper, direction=direction)


@mirrored.register
def _(found: LossCurve) -> LossCurve:
    return LossCurve(0.0 - found.thresholds[::-1], found.losses[::-1].copy())


@mirrored.register
def _(found: Blocks) -> Blocks:
    first, last = 0.0 - found.last[::-1], 0.0 - found.first[::-1]
    names = ("counts", "probabilities", "_positive_units", "_weight_units")
    return replace(
        found, first=first, last=last, **{name: getattr(found, name)[::-1].copy() for name in names}
    )


@mirrored.register
def _(found: RocHull) -> RocHull:
    weights = (getattr(found, name)[::-1].copy() for name in ("tp", "fp", "fn", "tn"))
    return RocHull(0.0 - found.thresholds[::-1], *weights)


@mirrored.register
def _(found: Infeasible) -> Infeasible:
    return Infeasible(found.problem, mirrored(found.nearest), found.rates, found.more_samples)
