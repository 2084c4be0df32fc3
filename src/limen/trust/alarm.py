# SPDX-License-Identifier: Apache-2.0
"""Whether a floor still holds for the threshold in use, for those who keep looking.

Each sample that the floor is about wins or loses a bet that the floor holds; the wealth of that bet
is the evidence against it. While the floor holds, the chance that the wealth ever reaches 20 is at
most one in 20, however often one looks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limen.columns import ordered_scores, require_same_length
from limen.metrics import Confusion
from limen.optimum import as_threshold
from limen.storage.packing import plain_list
from limen.trust.bets import (
    BETS,
    Betting,
    Counts,
    add,
    average_log,
    known_labels,
    refuse_label,
    refuse_score,
    take,
)
from limen.units import exact_bound, exact_costs, exact_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.times import Period
    from limen.units import Cost

__all__ = ["Alarm"]

_TP, _FP, _FN, _TN, _MISSING = range(5)

# What each limit is about: its trials, and which of them are losses.
_RATES = {
    "min_precision": ((_TP, _FP), _FP),
    "min_recall": ((_TP, _FN), _FN),
    "max_false_positive_rate": ((_FP, _TN), _FP),
}


class Alarm(Betting, kind="Alarm"):
    """Raise an alarm when a threshold in use breaks a floor, with stated confidence.

    Give it every sample that is scored since the threshold is in use, each at one and the same age.
    Look as often as you like. If the floor holds all the time, the chance that the alarm is ever
    raised is at most 5 %.

    Parameters
    ----------
    threshold
        The threshold in use, fixed before the samples.
    min_precision, min_recall, max_false_positive_rate, max_cost
        The limit, exactly one: `max_cost` is the cost per sample, by the two costs. For several
        limits make an alarm for each; each has its own 5 %.
    false_positive, false_negative
        Cost of answering 1 to a 0, and of answering 0 to a 1. Needed for `max_cost` only.
    age
        The one age at which samples enter, as for `limen.Evidence`: kept with the alarm and shown.
    confidence
        0.95: at most one alarm in 20 is ever raised while the limit holds.

    Attributes
    ----------
    value, log_value
        The evidence that the limit is broken, and its logarithm. 1 at the start.
    raised
        Whether it is enough: ``value >= 20`` for a confidence of 0.95.
    rate
        What was seen: precision, recall, false-positive rate or cost per sample; nan at first.
    bound
        The best that the samples allow at this confidence, at all times: precision and recall are
        at most so high, the false-positive rate and the cost at least.
    missing
        How many samples had no label at that age. They count nowhere.
    reason
        All this in one sentence, which is also what `print` shows.

    Notes
    -----
    `update` and `revert` take O(1), and the order of samples leaves no trace. A limit that held for
    long and is broken later takes longer to find, because the evidence of the good time counts too:
    begin a new alarm with each threshold, or each period, and each spends its own 5 %.
    Several threads may share one alarm.

    Examples
    --------
    >>> import limen
    >>> alarm = limen.Alarm(0.5, min_precision=0.9, age=30)
    >>> alarm.update_many([0.9] * 30, [1] * 18 + [0] * 12)
    >>> alarm.update(0.7, None)  # no label at the age of 30
    >>> alarm.raised, round(alarm.bound, 3)
    (True, 0.823)
    >>> print(alarm)
    Precision is below 0.9 with 95 % confidence: 0.6 of 30 samples, at most 0.8226; evidence \
3.85e+03.
    """

    __slots__ = ("_limit", "_losses", "threshold")

    def __init__(
        self,
        threshold: float,
        *,
        min_precision: Cost | None = None,
        min_recall: Cost | None = None,
        max_false_positive_rate: Cost | None = None,
        max_cost: Cost | None = None,
        false_positive: Cost = 1,
        false_negative: Cost = 1,
        age: Period | None = None,
        confidence: Cost = 0.95,
    ) -> None:
        limits = {
            "min_precision": min_precision,
            "min_recall": min_recall,
            "max_false_positive_rate": max_false_positive_rate,
            "max_cost": max_cost,
        }
        chosen = [name for name, value in limits.items() if value is not None]
        if len(chosen) != 1:
            got = " and ".join(chosen) if chosen else "none"
            raise ValueError(
                f"an alarm needs exactly one of {', '.join(limits)}, got {got}. Make one for each."
            )
        self.threshold = as_threshold(threshold, "threshold")
        exact_costs(false_positive, false_negative)  # refuses what is no cost
        given = {
            "threshold": self.threshold,
            **limits,
            "false_positive": false_positive,
            "false_negative": false_negative,
            "age": age,
            "confidence": confidence,
        }
        self._begin(given)
        self._losses, self._limit = self._losses_of(chosen[0], limits[chosen[0]])

    def _losses_of(self, name: str, limit: Any) -> tuple[dict[int, float], float]:
        """Return what each kind of trial loses, from 0 to 1, and how much of that is allowed."""
        if name == "max_cost":
            positive, negative, scale = exact_costs(
                self._given["false_positive"], self._given["false_negative"]
            )
            most = max(positive, negative)
            allowed = float(exact_positive(limit, name) / (scale * most))
            losses = {_TP: 0.0, _FP: positive / most, _FN: negative / most, _TN: 0.0}
        else:
            trials, loss = _RATES[name]
            bound = float(exact_bound(limit, name))
            allowed = bound if name.startswith("max_") else 1 - bound
            losses = {each: float(each == loss) for each in trials}
        if not 0 < allowed < 1:
            raise ValueError(f"{name}={limit!r} can never be broken, or always is.")
        return losses, allowed

    def update(self, score: float, label: float | None) -> None:
        """Add a sample that has reached the evaluation age; label None if none has come. O(1)."""
        self._add(self._at(score, label))

    def revert(self, score: float, label: float | None) -> None:
        """Take a sample back exactly, as to correct its label. O(1).

        Raises `limen.NotHeld`, and changes nothing, where no such sample is held.
        """
        self._take(self._at(score, label))

    def update_many(self, scores: ArrayLike, labels: ArrayLike) -> None:
        """Add many samples at once: all of them, or on an error none. O(m).

        A label that has not come is None or nan.
        """
        self._change(add, [self._counted(scores, labels)])

    def revert_many(self, scores: ArrayLike, labels: ArrayLike) -> None:
        """Take back many samples at once: all of them, or on an error none. O(m)."""
        self._change(take, [self._counted(scores, labels)])

    @property
    def confusion(self) -> Confusion:
        """How many samples the threshold answered rightly and wrongly, in each way."""
        tp, fp, fn, tn, _ = self._counts()
        return Confusion(tp=tp, fp=fp, fn=fn, tn=tn)

    @property
    def missing(self) -> int:
        """How many samples had no label at the evaluation age."""
        return self._counts()[_MISSING]

    @property
    def log_value(self) -> float:
        """The natural logarithm of `value`."""
        return self._log_value(self._limit)

    @property
    def raised(self) -> bool:
        """Whether the limit is broken, with the confidence."""
        return self.log_value >= self._enough

    @property
    def rate(self) -> float:
        """What the limit is about, as seen; nan where nothing was."""
        trials, mean = self._mean(self._counts())
        return self._as_limit(mean) if trials else math.nan

    @property
    def bound(self) -> float:
        """The best rate that the samples allow at this confidence, whenever one looks."""
        low, high = 0.0, self._mean(self._counts())[1]
        for _ in range(60):  # the evidence falls as more is allowed
            middle = (low + high) / 2
            if not low < middle < high:
                break
            if self._log_value(middle) >= self._enough:
                low = middle
            else:
                high = middle
        return self._as_limit(low)

    @property
    def reason(self) -> str:
        """What was seen, and whether the limit is broken, in one sentence."""
        name, limit = next(
            (each, self._given[each])
            for each in (*_RATES, "max_cost")
            if self._given[each] is not None
        )
        what = {"max_cost": "cost per sample"}.get(name, name[4:].replace("_", " "))
        what = what.replace("false positive rate", "false-positive rate").capitalize()
        beyond, side = ("above", "at least") if name[:4] == "max_" else ("below", "at most")
        trials, _ = self._mean(self._counts())
        sure = f"{float(self._given['confidence']) * 100:g} % confidence"
        state = (
            f"{what} is {beyond} {limit} with {sure}"
            if self.raised
            else f"{what} is not known to be {beyond} {limit}"
        )
        if not trials:
            return f"{state}: no samples yet."
        samples = "sample" if trials == 1 else "samples"
        missing = f", {self.missing:,} without a label" if self.missing and not self.raised else ""
        return (
            f"{state}: {self.rate:.4g} of {trials:,} {samples}{missing}, {side} {self.bound:.4g}; "
            f"evidence {self.value:.3g}."
        )

    def __str__(self) -> str:
        return self.reason

    def __len__(self) -> int:
        """How many samples with a label were added."""
        return sum(self._counts()[:_MISSING])

    def _counts(self) -> list[int]:
        held = self._read()[1]
        return [held.get(each, 0) for each in range(5)]

    def _mean(self, counts: list[int]) -> tuple[int, float]:
        """How many trials there were, and how much they lost on average."""
        trials = sum(counts[each] for each in self._losses)
        lost = math.fsum(counts[each] * loss for each, loss in self._losses.items())
        return trials, lost / trials if trials else 0.0

    def _as_limit(self, loss: float) -> float:
        """Return a mean loss in terms of the limit."""
        if self._given["max_cost"] is not None:
            costs = exact_costs(self._given["false_positive"], self._given["false_negative"])
            return loss * float(max(costs[:2]) * costs[2])
        return loss if self._given["max_false_positive_rate"] is not None else 1 - loss

    def _log_value(self, allowed: float) -> float:
        """Average the wealth of all bets that the mean loss is at most what is allowed."""
        if allowed <= 0:
            return math.inf
        odds = BETS * allowed / (1 - allowed)
        stakes = (odds / (1 + odds) - allowed) / (allowed * (1 - allowed))
        counts, logs = self._counts(), np.zeros(len(BETS))
        for each, loss in self._losses.items():
            logs += counts[each] * np.log1p(stakes * (loss - allowed))
        return average_log(logs)

    def _at(self, score: float, label: float | None) -> int:
        """Where a sample is counted."""
        try:
            answer = score >= self.threshold
        except TypeError:
            refuse_score(score)
        if score != score:
            refuse_score(score)
        if label is not None and label == label and label not in (0, 1):
            refuse_label(label)
        return self._held_as(answer, answer, None if label != label else label, 1)

    def _held_as(self, now: int, candidate: int, label: Any, weight: Any) -> int:
        if label is None:
            return _MISSING
        return (_TP if label else _FP) if now else (_FN if label else _TN)

    def _counted(self, scores: Any, labels: Any) -> Counts:
        xs = ordered_scores(scores)
        known, ys = known_labels(labels, xs)
        require_same_length(scores=xs, labels=ys)
        answers: NDArray[np.bool_] = xs >= self.threshold
        places = np.where(answers, np.where(ys == 1, _TP, _FP), np.where(ys == 1, _FN, _TN))
        places[~known] = _MISSING
        return {at: int(n) for at, n in enumerate(np.bincount(places)) if n}

    def snapshot(self) -> dict[str, Any]:
        """Describe the threshold, the limit, and how many samples came out how."""
        return {**self._given, "counts": np.array(self._counts(), np.int64)}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(1)."""
        made = cls.__new__(cls)  # not by cls(): a subclass may want other arguments
        given = {name: value for name, value in snapshot.items() if name != "counts"}
        Alarm.__init__(made, **given)
        counts = plain_list(snapshot["counts"])
        if len(counts) != 5:
            raise ValueError(f"counts are {counts!r}")
        made._hold({at: count for at, count in enumerate(counts) if count != 0})
        made._check()
        return made

    def _check(self) -> None:
        """Raise ValueError unless what is held could have come from samples."""
        counts = self._counts()
        if any(type(count) is not int or count < 0 for count in counts):
            raise ValueError(f"counts are {counts!r}")

    def __repr__(self) -> str:
        defaults = {"false_positive": 1, "false_negative": 1, "confidence": 0.95, "age": None}
        given = self._shown_settings(defaults | dict.fromkeys((*_RATES, "max_cost")))
        end = ", raised" if self.raised else ""
        return (
            f"<{type(self).__name__}({given}): {len(self):,} samples, {self.missing:,} missing, "
            f"rate {self.rate:.4g}, bound {self.bound:.4g}, value {self.value:.4g}{end}>"
        )
