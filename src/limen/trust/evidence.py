# SPDX-License-Identifier: Apache-2.0
"""Whether to change the threshold, for those who keep looking.

Two thresholds differ only on samples whose score lies between them. Each such sample wins or loses
a bet that the candidate is no better; the wealth of that bet is the evidence. If the candidate is
no better, the chance that the wealth ever reaches 20 is at most one in 20, however often one looks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.columns import as_numbers, ordered_scores, require_same_length
from limen.direction import is_falling, negated
from limen.optimum import as_threshold, height
from limen.storage.packing import number_column, plain_list, plain_number
from limen.trust.bets import (
    BETS,
    Betting,
    Counts,
    add,
    average_log,
    exp,
    known_labels,
    refuse_label,
    refuse_score,
    take,
)
from limen.units import exact_costs, exact_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.direction import Direction
    from limen.times import Period
    from limen.units import Cost

__all__ = ["Evidence"]

_NAMES = ("wins", "losses", "missing")
_WIN, _LOSS, _MISSING = range(3)  # where each is held


class Evidence(Betting, kind="Evidence"):
    """Gather evidence that a candidate threshold is cheaper than the current one.

    Choose the candidate first, then give every sample that is scored from then on, each at one
    and the same age. When `decided` is true, change. Look as often as you like.

    **When a sample may enter.** All samples enter at one age, whatever their label: old enough
    that nearly all labels are known by then, those that come late and those that come by default.
    At that age call ``update(score, label)``, or ``update(score, None)`` where no label has come.
    Never let a sample in because its label has come: where one label comes sooner than the other,
    the sooner one would fill the evidence, and a candidate that is no better would nearly always
    be accepted. A sample that judges the candidate must not have helped to choose it.

    Parameters
    ----------
    current, candidate
        The threshold in use, and the one that may replace it, fixed before the samples.
    false_positive, false_negative
        Cost of answering 1 to a 0, and of answering 0 to a 1.
    age
        The one age at which samples enter, a number or a timedelta: kept with the evidence, shown,
        and the same in all that is merged. None where all labels are known, as in a file.
    confidence
        0.95: at most one candidate in 20 that is no better is ever accepted.
    number
        Where candidates are tried one after the other: 1 for the first since the last change of the
        threshold, 2 for the next, and so on. They share the 5 %, so that the chance to accept any
        that is no better stays at most 5 % for all of them together: number k has 6 / (π² k²) of
        it, 3 % for the first. None where there is no other candidate: it has all of the 5 %.
    largest_loss
        The most that the candidate may cost more than the current threshold on one sample, fixed
        before the samples. Needed only for weights; without weights it is the cost of the mistake
        that the candidate makes more often.
    direction
        ``">="``: a score at or above a threshold is answered 1; ``"<="``: one at or below it.

    Attributes
    ----------
    wins, losses
        How many samples between the two thresholds favour the candidate and the current one.
    missing
        How many samples between them had no label at that age. The confidence holds where both
        labels are missing as often; where they may not be, look at `worst_value`.
    beyond
        How many samples cost more than `largest_loss`. With any, there is no evidence: value 0.
    value, log_value, worst_value
        The evidence, its logarithm, and what is left of it if all missing labels were losses. 1
        at the start.
    decided
        Whether the evidence is enough: ``value >= 20`` for a confidence of 0.95 and no `number`.

    Notes
    -----
    `update` and `revert` take O(1). The order of samples leaves no trace, and `revert` is exact:
    what is kept is how many samples of each weight won and lost, in memory O(distinct weights).
    Reading `value` takes O(distinct weights) after a change. Corrections revert the old label
    and update with the new one; the confidence then refers to the labels known at that age.
    Evidence is never windowed or faded.

    Several threads may share one object, and so may signal handlers and finalisers: a call is one
    change, and an interrupt leaves all of it or nothing.

    Examples
    --------
    >>> import limen
    >>> evidence = limen.Evidence(0.5, 0.4, false_negative=5, age=30)
    >>> evidence.update(0.45, 1)     # the candidate would have caught it
    >>> evidence.update(0.42, 0)     # the candidate would have raised a false alarm
    >>> evidence.update(0.47, None)  # no label at the age of 30
    >>> evidence.update(0.7, 1)      # both answer 1: no evidence
    >>> evidence.wins, evidence.losses, evidence.missing
    (1, 1, 1)
    >>> evidence.update_many([0.45] * 20, [1] * 8 + [0] * 12)
    >>> evidence
    <Evidence(current=0.5, candidate=0.4, false_positive=1, false_negative=5, age=30): 9 wins, \
13 losses, 1 missing, value 14.6>
    """

    __slots__ = (
        "_falling",
        "_gain",
        "_heaviest",
        "_known",
        "_lower",
        "_ones",
        "_price",
        "_upper",
        "_zeros",
        "candidate",
        "current",
    )

    def __init__(
        self,
        current: float,
        candidate: float,
        *,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        age: Period | None = None,
        confidence: Cost = 0.95,
        largest_loss: Cost | None = None,
        direction: Direction = ">=",
        number: int | None = None,
    ) -> None:
        current = as_threshold(current, "current")
        candidate = as_threshold(candidate, "candidate")
        self._falling = is_falling(direction)
        given = {
            "current": current,
            "candidate": candidate,
            "false_positive": false_positive,
            "false_negative": false_negative,
            "age": age,
            "confidence": confidence,
            "largest_loss": largest_loss,
            "direction": direction,
            "number": number,
        }
        self._begin(given, number)
        self.current, self.candidate = current, candidate
        if self._falling:  # inside, all scores and thresholds are negated
            current, candidate = 0.0 - current, 0.0 - candidate
        below = height(candidate) < height(current)
        if height(candidate) == height(current):
            raise ValueError(
                f"current and candidate are both {self.current!r}: nothing to compare."
            )
        positive, negative, scale = exact_costs(false_positive, false_negative)
        self._gain, self._price = (negative, positive) if below else (positive, negative)
        self._heaviest: float | None = None
        if largest_loss is not None:
            bound = exact_positive(largest_loss, "largest_loss")
            self._heaviest = float(bound / (scale * self._price))
        # What a score between the two is counted as, by its label.
        self._lower, self._upper = (candidate, current) if below else (current, candidate)
        self._ones, self._zeros = (_WIN, _LOSS) if below else (_LOSS, _WIN)
        self._known = (0, 0.0)  # after how many changes the logarithm was computed, and it

    def update(self, score: float, label: float | None, weight: float = 1) -> None:
        """Add a sample that has reached the evaluation age; label None if none has come. O(1).

        A sample whose score does not lie between the two thresholds changes nothing.
        """
        at = self._at(score, label)
        weight = 1 if weight == 1 else self._weighed(weight)
        if at is not None and weight:
            self._add((at, weight))

    def revert(self, score: float, label: float | None, weight: float = 1) -> None:
        """Take a sample back exactly, as to correct its label. O(1).

        Raises `limen.NotHeld`, and changes nothing, where no such sample is held.
        """
        at = self._at(score, label)
        weight = 1 if weight == 1 else self._weighed(weight)
        if at is not None and weight:
            self._take((at, weight))

    def update_many(
        self, scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Add many samples at once: all of them, or on an error none. O(m).

        A label that has not come is None or nan.
        """
        self._change(add, [self._counted(scores, labels, weights)])

    def revert_many(
        self, scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Take back many samples at once: all of them, or on an error none. O(m)."""
        self._change(take, [self._counted(scores, labels, weights)])

    @property
    def wins(self) -> int:
        """How many samples favour the candidate."""
        return sum(self._sides()[1][_WIN].values())

    @property
    def losses(self) -> int:
        """How many samples favour the current threshold."""
        return sum(self._sides()[1][_LOSS].values())

    @property
    def missing(self) -> int:
        """How many samples between the two thresholds had no label at the evaluation age."""
        return sum(self._sides()[1][_MISSING].values())

    @property
    def beyond(self) -> int:
        """How many samples cost more than `largest_loss`."""
        lost = self._sides()[1][_LOSS]
        most = 1.0 if self._heaviest is None else self._heaviest
        return sum(count for weight, count in lost.items() if weight > most)

    @property
    def log_value(self) -> float:
        """The natural logarithm of `value`; ``-inf`` where a sample went beyond the bound."""
        changes, log = self._known
        if changes != self._changes:
            changes, (won, lost, _) = self._sides()
            log = self._computed(won, lost)
            self._known = (changes, log)
        return log

    @property
    def worst_value(self) -> float:
        """The evidence if all missing labels favoured the current threshold.

        It holds also where the one label is missing more often than the other, at the price of
        more samples. O(distinct weights).
        """
        _, (won, lost, missing) = self._sides()
        add(lost, missing)
        return exp(self._computed(won, lost))

    @property
    def enough(self) -> float:
        """The value at which it is decided: 20 for a confidence of 0.95, and more by the `number`.

        >>> [round(Evidence(0.5, 0.4, number=k).enough, 1) for k in (None, 1, 2, 3)]
        [20.0, 32.9, 131.6, 296.1]
        """
        return math.exp(self._enough)

    @property
    def decided(self) -> bool:
        """Whether to change to the candidate."""
        return self.log_value >= self._enough

    def __len__(self) -> int:
        """How many samples have won or lost."""
        _, (won, lost, _) = self._sides()
        return sum(won.values()) + sum(lost.values())

    def _sides(self) -> tuple[int, tuple[Counts, Counts, Counts]]:
        """Return how many changes there were, and wins, losses and missing ones by weight."""
        changes, held = self._read()
        sides: tuple[Counts, Counts, Counts] = ({}, {}, {})
        for (at, weight), count in held.items():
            sides[at][weight] = count
        return changes, sides

    def _held_as(self, now: int, candidate: int, label: Any, weight: Any) -> Any:
        if now == candidate or not weight:
            return None
        return _MISSING if label is None else _WIN if label == candidate else _LOSS, weight

    def _at(self, score: float, label: float | None) -> int | None:
        """Where a sample is counted; None where both thresholds give the same answer."""
        try:
            score = 0.0 - score if self._falling else score
            between = score >= self._lower and not score >= self._upper  # which may be nan
        except TypeError:
            refuse_score(score)
        if not between and score != score:
            refuse_score(score)
        if label == 1:
            return self._ones if between else None
        if label == 0:
            return self._zeros if between else None
        if label is None or label != label:
            return _MISSING if between else None
        refuse_label(label)

    def _counted(self, scores: Any, labels: Any, weights: Any) -> Counts:
        """Count many samples as `_at` would, without changing anything."""
        xs = ordered_scores(scores)
        xs = negated(xs) if self._falling else xs
        known, ys = known_labels(labels, xs)
        ws = None if weights is None else as_numbers(weights, "weights")
        require_same_length(scores=xs, labels=ys, weights=ws)
        if ws is not None:
            wrong: NDArray[np.bool_] = np.logical_not((ws >= 0) & (ws < math.inf))
            if self._heaviest is None:
                wrong |= (ws != 0) & (ws != 1)
            if wrong.any():
                place = int(wrong.argmax())
                self._weighed(ws[place].item(), f"weights[{place}]")
        between = (xs >= self._lower) & ~(xs >= self._upper)
        won = (ys == 1) == (self._ones == _WIN)
        found: Counts = {}
        for at, rows in enumerate((known & won, known & ~won, ~known)):
            if ws is None:
                values, counts = np.ones(1), np.count_nonzero(rows & between, keepdims=True)
            else:
                values, counts = np.unique(ws[rows & between], return_counts=True)
            pairs = zip(map(plain_number, values.tolist()), counts.tolist(), strict=True)
            found |= {(at, weight): count for weight, count in pairs if weight and count}
        return found

    def _weighed(self, weight: Any, name: str = "weight") -> int | float:
        """Read a weight other than 1."""
        try:
            number = plain_number(weight)
        except (TypeError, ValueError, OverflowError):
            number = -1
        if not 0 <= number < math.inf:
            raise ValueError(f"{name} must be a number of at least 0, got {weight!r}.")
        if self._heaviest is None and number not in (0, 1):
            raise ValueError(
                f"{name} is {weight!r}, but no bound was fixed for weights. Make the evidence with "
                "largest_loss: the most that the candidate may cost more on one sample."
            )
        return number

    def _computed(self, won: Counts, lost: Counts) -> float:
        """Average the wealth of all bets; each stakes a share of `largest_loss` per sample."""
        most = 1.0 if self._heaviest is None else self._heaviest
        if any(weight > most for weight in lost):
            return -math.inf
        shares = self._price * (BETS - 1) / (self._gain + self._price * BETS)
        logs = np.zeros(len(BETS))
        for counts, ratio in ((won, self._gain / self._price), (lost, -1.0)):
            for weight, count in sorted(counts.items()):  # the same for any order of samples
                logs += count * np.log1p(shares * (ratio * weight / most))
        return average_log(logs)

    def snapshot(self) -> dict[str, Any]:
        """Describe the two thresholds, the costs, and how many samples won and lost."""
        parts = dict(self._given)
        for name, counts in zip(_NAMES, self._sides()[1], strict=True):
            weights = sorted(counts)
            many = np.array([counts[weight] for weight in weights], np.int64)
            parts[name] = (number_column(weights), many)
        return parts

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(distinct weights)."""
        # Not by cls(): a subclass may want other arguments.
        made = cls.__new__(cls)
        given = {name: value for name, value in snapshot.items() if name not in _NAMES}
        Evidence.__init__(made, **given)
        made._hold(
            {
                (at, weight): count
                for at, name in enumerate(_NAMES)
                for weight, count in zip(*map(plain_list, snapshot[name]), strict=True)
            }
        )
        made._check()
        return made

    def _check(self) -> None:
        """Raise ValueError unless what is held could have come from samples."""
        for name, counts in zip(_NAMES, self._sides()[1], strict=True):
            for weight, count in counts.items():
                self._weighed(weight)
                if not weight or type(count) is not int or count <= 0:
                    raise ValueError(f"{name} holds {count!r} samples of weight {weight!r}")

    def __repr__(self) -> str:
        defaults = {"age": None, "largest_loss": None, "number": None}
        given = self._shown_settings(defaults | {"confidence": 0.95, "direction": ">="})
        counts = f"{self.wins:,} wins, {self.losses:,} losses, {self.missing:,} missing"
        end = ", decided" if self.decided else ""
        beyond = f", {self.beyond:,} beyond largest_loss" if self.beyond else ""
        return f"<{type(self).__name__}({given}): {counts}{beyond}, value {self.value:.4g}{end}>"
