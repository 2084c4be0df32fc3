# SPDX-License-Identifier: Apache-2.0
"""What evidence and alarms share: bets whose wealth nobody can raise by looking often."""

from __future__ import annotations

import math
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np

from limen.arrays import as_array_with_gaps
from limen.columns import as_labels
from limen.errors import NotHeld
from limen.optimum import height
from limen.storage import Storable
from limen.times import Period, as_period
from limen.units import exact_bound, exact_positive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

__all__ = [
    "BETS",
    "Betting",
    "Counts",
    "JudgedRow",
    "add",
    "average_log",
    "exp",
    "known_labels",
    "refuse_label",
    "refuse_score",
    "take",
]

Counts: TypeAlias = dict[Any, int]  # by kind: whole numbers, so that nothing drifts

# As limen._core.Judge counts: segment, the current rule's answer and the candidate's, label (None
# without one, "hidden" where the answer hides it), weight, how many.
JudgedRow: TypeAlias = tuple[str, int, int, Any, Any, int]

BETS = 2.0 ** (np.arange(1, 17) / 4)  # how much higher than at no difference the odds may be


class Betting(Storable):
    """Holds how many samples of each kind came at one age; evidence is the average wealth of bets.

    The lock keeps other threads out. A signal handler or a finaliser of the same thread comes in,
    so what must be one change has no call and no loop in it: Python runs handlers at these places
    only. `_changes` counts those that came between two such changes.
    """

    __slots__ = ("_changes", "_enough", "_given", "_held", "_lock")

    if TYPE_CHECKING:

        @property
        def log_value(self) -> float:
            """The natural logarithm of `value`."""

        def _held_as(self, now: int, candidate: int, label: Any, weight: Any) -> Any:
            """Return what a counted sample is held as; None where it says nothing."""

    def _begin(self, given: dict[str, Any], number: int | None = None) -> None:
        self._given = given | {"age": age_of(given["age"])}
        self._enough = enough_of(given["confidence"]) + share_of(number)
        self._held: Counts = {}
        self._changes = 0
        self._lock = RLock()

    @classmethod
    def from_counts(cls, rows: Iterable[JudgedRow], **terms: Any) -> Self:
        """Make one of samples that were counted at the age. O(rows)."""
        made = cls(**terms)
        held: Counts = {}
        for _, now, candidate, label, weight, many in rows:
            as_one = made._held_as(now, candidate, label if label in (0, 1) else None, weight)
            if as_one is not None:
                add(held, {as_one: many})
        made._hold(held)
        return made

    def _hold(self, held: Counts) -> None:
        """Hold this and nothing else."""
        self._changes, self._held = 1, held

    def merge(self, *others: Self) -> None:
        """Hold what others hold, besides what is held: all of it, or on an error nothing.

        The samples must be disjoint, and thresholds, costs, limits and the age the same.
        """
        self._require_alike(others)
        self._change(add, [other._read()[1] for other in others])

    def _add(self, kind: Any) -> None:
        with self._lock:
            held = self._held
            self._changes += 1
            if kind in held:
                held[kind] += 1
            else:
                held[kind] = 1

    def _take(self, kind: Any) -> None:
        with self._lock:
            held = self._held
            found = kind in held
            if found:
                self._changes += 1
                if held[kind] > 1:
                    held[kind] -= 1
                else:
                    del held[kind]
        if not found:
            raise _not_held(1, 0)

    def _read(self) -> tuple[int, Counts]:
        """Copy what is held at one moment; return it after the number of changes so far."""
        with self._lock:
            while True:
                changes = self._changes
                copied = dict(self._held)
                if changes == self._changes:
                    return changes, copied

    def _change(self, by: Callable[[Counts, Counts], None], parts: list[Counts]) -> None:
        """Add or take counts: build what will be held aside, then put it in place at once."""
        while True:
            changes, held = self._read()
            for part in parts:
                by(held, part)
            with self._lock:
                if changes == self._changes:
                    self._changes += 1
                    self._held = held
                    return

    @property
    def settings(self) -> dict[str, Any]:
        """The thresholds, the costs or the limit, and the rest, by name, as they were given."""
        return dict(self._given)

    @property
    def value(self) -> float:
        """The evidence: 1 says nothing, 20 is enough for a confidence of 0.95."""
        return exp(self.log_value)

    def _require_alike(self, others: tuple[Self, ...]) -> None:
        """Raise unless others are judged by the same terms and are different objects."""
        if len({id(each) for each in (self, *others)}) <= len(others):
            raise ValueError(
                "merge was given the same object twice, and its samples would count twice. Merge "
                "a copy if that is meant."
            )
        kind, mine = type(self)._stored_as, self._terms()
        for other in others:
            if not isinstance(other, kind):
                raise TypeError(f"cannot merge {type(other).__name__} into {kind.__name__}.")
            theirs = other._terms()
            for name, value in mine.items():
                if value != theirs[name]:
                    raise ValueError(
                        f"cannot merge: {name} is {self._given[name]!r} here and "
                        f"{other._given[name]!r} there. Nothing was changed."
                    )

    def _terms(self) -> dict[str, Any]:
        """Return what the samples are judged by, in a form that can be compared."""
        return {name: _comparable(name, value) for name, value in self._given.items()}

    def _shown_settings(self, defaults: dict[str, Any]) -> str:
        """Write the settings that are not the default."""
        return ", ".join(
            f"{name}={value!r}"
            for name, value in self._given.items()
            if name not in defaults or value != defaults[name]
        )


def _comparable(name: str, value: Any) -> Any:
    """Return a setting as what equals it however it was written: 30 and 30.0, nan and nan."""
    if value is None or name in ("age", "direction", "number"):
        return value
    if name in ("current", "candidate", "threshold"):
        return height(value)
    return exact_bound(value, name) if name == "confidence" else exact_positive(value, name)


def add(counts: Counts, more: Counts) -> None:
    """Add to counts what others count."""
    for kind, count in more.items():
        counts[kind] = counts.get(kind, 0) + count


def take(counts: Counts, less: Counts) -> None:
    """Take from counts what others count. Raises `limen.NotHeld` where they are fewer."""
    for kind, count in less.items():
        left = counts.get(kind, 0) - count
        if left < 0:
            raise _not_held(count, left + count)
        if left:
            counts[kind] = left
        else:
            del counts[kind]


def _not_held(count: int, held: int) -> NotHeld:
    return NotHeld(
        f"{count:,} such samples are to be taken back, and {held:,} are held. Nothing was changed."
    )


def enough_of(confidence: Any) -> float:
    """Return the logarithm of the evidence that is enough.

    >>> round(enough_of(0.95), 4)
    2.9957
    """
    share = exact_bound(confidence, "confidence")
    if share == 1:
        raise ValueError("confidence must be below 1: no number of samples makes us certain.")
    return math.log(1 / (1 - share))


def share_of(number: int | None) -> float:
    """Return how much more evidence, in logarithms, the k-th of many candidates needs.

    The shares 6 / (π² k²) of the chance to be wrong make up 1 over all k.

    >>> share_of(None), round(math.exp(-share_of(1)), 3), round(math.exp(-share_of(2)), 3)
    (0.0, 0.608, 0.152)
    """
    if number is None:
        return 0.0
    if type(number) is not int or number < 1:
        raise ValueError(f"number must be a whole number of at least 1, or None, got {number!r}.")
    return math.log(math.pi**2 / 6) + 2 * math.log(number)


def age_of(age: Period | None) -> Any:
    """Read the one age at which samples enter; None where all labels are known."""
    period = None if age is None else as_period(age, "age")
    if isinstance(period, int) and period >= 2**63:
        raise ValueError("age must be less than 2**63.")
    return period


def average_log(logs: NDArray[np.float64]) -> float:
    """Return the logarithm of the average wealth of all bets, of which logarithms are given.

    >>> round(average_log(np.log([1.0, 3.0])), 6) == round(math.log(2), 6)
    True
    """
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


def exp(log: float) -> float:
    """Return what has this logarithm, inf where it is too large."""
    return math.exp(log) if log < 709 else math.inf


def refuse_score(score: Any) -> NoReturn:
    """Say that a score is none."""
    if score != score:
        raise ValueError("score is nan, which has no order; nothing was changed.") from None
    raise TypeError(f"score must be a number, got {score!r}.") from None


def refuse_label(label: Any) -> NoReturn:
    """Say that a label is none."""
    raise ValueError(
        f"label must be 0, 1 or None (none at the evaluation age), got {label!r}. Nothing was "
        "changed."
    )


def known_labels(
    labels: Any, scores: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Whether each label is known, and the labels, with 0 for those that are not."""
    array, unknown = as_array_with_gaps(labels, "labels")
    if array.ndim == 2 and array.shape[1] == 1:
        array, unknown = array[:, 0], unknown[:, 0]
    ys = as_labels(np.where(unknown, 0, array) if unknown.any() else array, scores)
    return ~unknown, ys
