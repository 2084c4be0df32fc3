# SPDX-License-Identifier: Apache-2.0
"""The answer: the cheapest cut, and the loss of every cut."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from limen import _core
from limen.arrays import frame_of, is_single
from limen.columns import ordered_scores
from limen.digits import plain
from limen.picture import Mark, exact_mark, picture_of_curve, picture_of_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Deciding",
    "Direction",
    "Gap",
    "LossCurve",
    "Optimum",
    "answer",
    "as_threshold",
    "height",
]

_SHOWN = 3  # of several cheapest cuts

Direction: TypeAlias = Literal[">=", "<="]


def answer(
    scores: ArrayLike, threshold: float, direction: Direction = ">="
) -> int | NDArray[np.int64]:
    """Return 1 where ``score >= threshold``, else 0: an array for an array, an int for a number.

    With the direction ``"<="``, 1 where ``score <= threshold``.
    """
    single = is_single(scores)
    given = ordered_scores(np.asarray(scores).reshape(1) if single else scores)
    answers = (given >= threshold if direction == ">=" else given <= threshold).astype(np.int64)
    return int(answers[0]) if single else answers


def as_threshold(value: Any, name: str) -> float:
    """Read a threshold; ``-inf``, ``inf`` and nan are thresholds too.

    >>> as_threshold(1, "current")
    1.0
    """
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a threshold, which is a number, got {value!r}.")
    return float(value) + 0.0  # -0.0 is the same threshold as 0.0


def height(threshold: float) -> tuple[bool, float]:
    """Where a threshold stands among others; nan, which answers 1 to no score, above all."""
    return (True, 0.0) if threshold != threshold else (False, threshold)


class Deciding:
    """Base of all that answer by one threshold."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def direction(self) -> Direction: ...  # noqa: D102
        @property
        def threshold(self) -> float: ...  # noqa: D102

    @overload
    def predict(self, scores: float) -> int: ...
    @overload
    def predict(self, scores: ArrayLike) -> NDArray[np.int64]: ...
    def predict(self, scores: ArrayLike) -> int | NDArray[np.int64]:
        """Answer 1 or 0 to each score by the threshold. O(m) for m scores.

        >>> from limen import OnlineThreshold
        >>> cut = OnlineThreshold()
        >>> cut.update_many([0.3, 0.7], [0, 1])
        >>> cut.predict([0.2, 0.9]), cut.predict(0.6)
        (array([0, 1]), 1)
        """
        return answer(scores, self.threshold, self.direction)


@dataclass(frozen=True, slots=True, repr=False)
class Gap(Deciding):
    """Two neighbouring scores with a cut between them."""

    lower: float | None
    upper: float | None
    direction: Direction = field(default=">=", kw_only=True)

    @property
    def threshold(self) -> float:
        """The number to publish: answer 1 when ``score >= threshold``. O(1).

        The midpoint of the gap where a double lies strictly inside it, else `upper`. ``-inf``
        when every score is answered 1, ``inf`` when every score is answered 0, and ``nan``,
        which no score reaches, when even a score of ``inf`` is answered 0.

        With the direction ``"<="`` all this is mirrored: answer 1 when ``score <= threshold``;
        `lower` where no double lies inside the gap, ``inf`` for all and ``-inf`` for none.
        """
        if self.direction == ">=":
            return _core.threshold_of(self.lower, self.upper)
        lower, upper = (None if end is None else -end for end in (self.upper, self.lower))
        return 0.0 - _core.threshold_of(lower, upper)

    def answers_as(self, threshold: float) -> bool:
        """Whether a threshold lies in the gap, and so gives the samples the same answers. O(1).

        >>> gap = Gap(0.25, 0.75)
        >>> gap.answers_as(0.3), gap.answers_as(0.75), gap.answers_as(0.25)
        (True, True, False)
        """
        low, high = self.lower, self.upper
        if self.direction == ">=":
            return (low is None or not low >= threshold) and (high is None or high >= threshold)
        return (high is None or not high <= threshold) and (low is None or low <= threshold)

    def _repr_html_(self) -> str:
        """Show a small picture in a notebook: the threshold in its gap."""
        text = f"answer 1 when score {self.direction} threshold"
        marks = [exact_mark(self, "threshold")]
        for end, name in ((self.lower, "highest score below"), (self.upper, "lowest above")):
            if end is not None:
                marks.append(Mark(end, name, "current"))
        return picture_of_range(f"{type(self).__name__}: {text}", marks, None, 0.95)

    def __repr__(self) -> str:
        names = [each.name for each in fields(self) if each.name != "direction"]
        listed = ", ".join(f"{name} {getattr(self, name)!r}" for name in names)
        rule = "" if self.direction == ">=" else f", direction {self.direction!r}"
        return f"<{type(self).__name__}: threshold {self.threshold!r}, {listed}{rule}>"


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Optimum(Gap):
    """The cheapest cut of some samples.

    Attributes
    ----------
    lower
        The highest score below the cut, which is answered 0; None when there is none.
    upper
        The lowest score above the cut, which is answered 1; None when there is none.
    loss
        The total loss of this cut: what the mistakes on these samples cost.
    direction
        ``">="``: 1 is the answer when ``score >= threshold``. ``"<="``: when ``score <=
        threshold``; then `lower` is answered 1 and `upper` 0.

    threshold
        The number to publish, inside the gap between `lower` and `upper`.

    Notes
    -----
    Of several cuts that are equally cheap this is the highest, and the lowest where lower scores
    are answered 1: say 1 only when it pays.

    Examples
    --------
    >>> from limen import optimal_threshold
    >>> best = optimal_threshold([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> best
    <Optimum: threshold 0.625, lower 0.5, upper 0.75, loss 1.0>
    >>> best.threshold
    0.625
    >>> best.predict([0.6, 0.7])
    array([0, 1])
    """

    loss: float

    # By hand, because the core gives the direction after the loss, and only where it is "<=".
    def __init__(
        self,
        lower: float | None,
        upper: float | None,
        loss: float,
        direction: Direction = ">=",
    ) -> None:
        put = object.__setattr__
        put(self, "lower", lower)
        put(self, "upper", upper)
        put(self, "loss", loss)
        put(self, "direction", direction)

    def as_sigmoid(self) -> tuple[float, float]:
        """Return a and b such that ``1 / (1 + exp(-(a * score + b)))`` decides alike.

        The sigmoid is at least 1/2 exactly for the scores that are answered 1, and it is 0 on
        one side of the gap and 1 on the other unless the gap is too narrow for that in
        doubles. Needs a gap with two finite ends.

        >>> Optimum(lower=0.5, upper=0.75, loss=0.0).as_sigmoid()
        (8192.0, -5120.0)
        """
        if self.lower is None or self.upper is None:
            raise ValueError("a sigmoid needs a score on either side of the cut.")
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise ValueError("a sigmoid needs finite scores on either side of the cut.")
        # exp(-800) is below the smallest double, so the sigmoid saturates on both sides. A
        # power of two multiplies without rounding, so the sign is right next to the threshold;
        # it stays small enough for the largest score.
        half = self.upper / 2 - self.lower / 2 or self.upper - self.lower
        largest = math.frexp(max(abs(self.lower), abs(self.upper)))[1]
        exponent = min(math.frexp(800)[1] - math.frexp(half)[1] + 1, 1023 - largest, 1023)
        slope = math.ldexp(1.0, exponent)
        if self.direction == "<=":
            return -slope, slope * self.threshold
        return slope, -slope * self.threshold

    def as_bins(self) -> tuple[tuple[float, float, float], tuple[float, float]]:
        """Return edges and probabilities of the two histogram bins that decide alike.

        >>> Optimum(lower=0.5, upper=0.75, loss=0.0).as_bins()
        ((-inf, 0.625, inf), (0.0, 1.0))

        A bin holds its lower edge: where a low score is answered 1, the edge is the next double
        after the threshold.
        """
        if self.direction == "<=":
            return (-math.inf, math.nextafter(self.threshold, math.inf), math.inf), (1.0, 0.0)
        return (-math.inf, self.threshold, math.inf), (0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class LossCurve:
    """The loss of every cut, in ascending order: one more than there are distinct scores.

    Attributes
    ----------
    thresholds
        The threshold of each cut, from ``-inf`` (all positive) to ``inf`` (none). Where a
        low score is answered 1, from ``-inf`` (to none) to ``inf`` (to all).
    losses
        The total loss of each cut.

    Examples
    --------
    >>> from limen import loss_curve
    >>> curve = loss_curve([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> curve.losses
    array([2., 1., 2., 1., 2.])
    >>> curve.cheapest
    array([0.175, 0.625])
    """

    thresholds: NDArray[np.float64]
    losses: NDArray[np.float64]

    @property
    def cheapest(self) -> NDArray[np.float64]:
        """The thresholds of all cuts that share the lowest loss; the last is the optimum's.

        Where a low score is answered 1, the first is the optimum's.
        """
        cheapest: NDArray[np.float64] = self.thresholds[self.losses == self.losses.min()]
        return cheapest

    def to_frame(self) -> Any:
        """Return a frame with columns `threshold` and `loss`, of pandas or else of polars. O(n).

        >>> from limen import loss_curve
        >>> loss_curve([0.25, 0.75], [0, 1]).to_frame()["loss"].to_list()
        [1.0, 0.0, 1.0]
        """
        return frame_of({"threshold": self.thresholds, "loss": self.losses})

    def __len__(self) -> int:
        return len(self.thresholds)

    def _repr_html_(self) -> str:
        """Show the curve in a notebook, the cheapest thresholds marked. O(n)."""
        cheapest, lowest = self.cheapest, float(self.losses.min())
        cost = f"loss {plain(lowest)}"
        marks = [Mark(float(at), "cheapest", "exact", cost) for at in cheapest[-_SHOWN:]]
        title = f"LossCurve: {len(self):,} cuts, {len(cheapest):,} cheapest"
        return picture_of_curve(title, (self.thresholds, self.losses), marks)
