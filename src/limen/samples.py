# SPDX-License-Identifier: Apache-2.0
"""What is given: scores with their labels, made once at the door and handed down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from limen import _core
from limen.columns import Numbers, samples_with_labels
from limen.direction import is_falling, mirrored
from limen.score_kind import require_kind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.optimum import Direction
    from limen.score_kind import BatchScoreKind

__all__ = ["Samples"]

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Scores, labels and weights of one length, as the core takes them.

    `Samples.of` reads what a caller gave and refuses what cannot be read. The core, which looks at
    every number anyway, refuses nan and negative weights. Made directly, of arrays of these types,
    nothing is checked.

    Attributes
    ----------
    scores
        float64. Higher means positive here: negated where `direction` is ``"<="``.
    labels
        uint8, 0 and 1.
    weights
        int64 or float64; None where each sample counts 1.
    direction
        Which way round the scores were given. What is found goes back through `present`.
    kind
        What scores are; ``"auto"``: probabilities where all lie between 0 and 1, else raw numbers.

    Examples
    --------
    >>> samples = Samples.of([70, 41, 35, 18], [0, 0, 1, 1], direction="<=")
    >>> samples.scores
    array([-70., -41., -35., -18.])
    >>> samples.present(-38.0)
    38.0
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    weights: Numbers | None = None
    direction: Direction = ">="
    kind: BatchScoreKind = field(default="auto", kw_only=True)

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        direction: Direction = ">=",
        kind: BatchScoreKind = "auto",
        positive: object = None,
    ) -> Samples:
        """Read columns of any kind, or raise an error with the argument, the place and the value.

        O(n). Arrays of the right types are not copied. `positive` is the label of the positive
        class, where labels are not 0 and 1.
        """
        if kind != "auto":
            require_kind(kind, "scores_are", auto=True)
        given, ys, ws = samples_with_labels(scores, labels, weights, positive)
        falling = direction != ">=" and is_falling(direction)
        return cls(0.0 - given if falling else given, ys, ws, direction, kind=kind)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def columns(self) -> tuple[NDArray[np.float64], NDArray[np.uint8], Numbers | None]:
        """Scores, labels and weights, in the order in which models and the core take them."""
        return self.scores, self.labels, self.weights

    def of_one_kind(self) -> Samples:
        """Return the same where "auto" is decided by all of the scores, not by parts. O(n)."""
        if self.kind != "auto":
            return self
        scores = self.scores if self.weights is None else self.scores[self.weights > 0]
        lowest = 0.0 if self.direction == ">=" else -1.0
        inside = len(scores) > 0 and lowest <= scores.min() < scores.max() <= lowest + 1
        return replace(self, kind="probabilities" if inside else "raw")

    def ranked(self, positive: int, negative: int) -> _core.Ranked:
        """Put the samples in order of score, at whole costs. O(n log n)."""
        falling = self.direction == "<="
        return _core.Ranked(*self.columns, positive, negative, self.kind, falling)

    @property
    def held(self) -> int:
        """How many samples count: a weight of 0 leaves one out. O(n) with weights."""
        return len(self.scores) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def positives(self) -> int:
        """How many samples have label 1, those of weight 0 included. O(n)."""
        return int(np.count_nonzero(self.labels))

    @property
    def given(self) -> NDArray[np.float64]:
        """The scores as they were given. O(n) where lower ones mean positive."""
        return self.scores if self.direction == ">=" else 0.0 - self.scores

    @property
    def zeros(self) -> Numbers:
        """The weight of each sample of label 0, and 0 of the others. O(n)."""
        return np.where(self.labels == 0, 1 if self.weights is None else self.weights, 0)

    @property
    def ones(self) -> Numbers:
        """The weight of each sample of label 1, and 0 of the others. O(n)."""
        return np.where(self.labels == 1, 1 if self.weights is None else self.weights, 0)

    def rows(self, chosen: Any) -> Samples:
        """Return some of the samples, by their places, a slice or a mask. O(chosen)."""
        weights = None if self.weights is None else self.weights[chosen]
        columns = self.scores[chosen], self.labels[chosen], weights
        return Samples(*columns, self.direction, kind=self.kind)

    def answers(self, threshold: Any) -> NDArray[np.bool_]:
        """Return which samples are answered 1 by a threshold, or by one for each sample. O(n).

        >>> Samples.of([70, 41, 35, 18], [0, 0, 1, 1], direction="<=").answers(35)
        array([False, False,  True,  True])
        """
        least = threshold if self.direction == ">=" else 0.0 - np.asarray(threshold)
        return np.asarray(self.scores >= least)

    def present(self, found: Found) -> Found:
        """Turn what was found in `scores` into the scores as they were given.

        For everything that `limen.direction.mirrored` knows: thresholds, intervals, cuts, curves,
        recommendations, and `limen.Infeasible`.
        """
        return found if self.direction == ">=" else mirrored(found)
