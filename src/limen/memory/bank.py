# SPDX-License-Identifier: Apache-2.0
"""Several memories of one stream, of which the one that has done best of late answers."""

from __future__ import annotations

import math
from operator import index
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from limen.columns import samples_with_labels
from limen.memory.fading import Fading
from limen.online import OnlineThreshold
from limen.optimum import Deciding
from limen.storage import Storable
from limen.units import exact_costs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from limen.optimum import LossCurve, Optimum

__all__ = ["Bank"]

_HEAVIEST = 2**32  # a weight that every member can hold beside others


class Bank(Deciding, Storable, kind="Bank"):
    """Follow a stream that may change: several memories, and the one that did best of late answers.

    One member holds all samples, the others let them fade by a half-life each. Each sample is first
    answered by every member, at its threshold of that moment, and then held by all of them. What
    the wrong answers cost fades too; the member with the least of it leads, and its threshold is
    that of the bank.

    Parameters
    ----------
    model
        An empty `OnlineThreshold`.
    half_lives
        Of the members that fade, in samples.
    patience
        The half-life of what wrong answers cost, in samples: how soon another member may lead.

    Attributes
    ----------
    leader
        The half-life of the member that answers; None for that of all samples.
    costs
        What wrong answers of each member cost of late, that of all samples first.

    Notes
    -----
    `update` costs one update of each member. A sample cannot be taken back. The first of several
    members that did equally well leads, which at the start is that of all samples. Where the stream
    does not change, a bank costs a little more than the memory of all samples: see docs/trust.md.
    Several threads may share one bank: calls take turns.
    An interrupt in the middle of an update can leave members that hold different samples: go on
    with a bank that was stored before.

    Examples
    --------
    >>> from limen import Bank, OnlineThreshold
    >>> bank = Bank(OnlineThreshold(), half_lives=(25,), patience=50)
    >>> for i in range(400):
    ...     score = i * 7 % 16 / 16
    ...     bank.update(score, int(score > (0.25 if i < 200 else 0.75)))
    >>> bank.leader, bank.threshold
    (25, 0.78125)
    """

    __slots__ = ("_costs", "_given", "_lock", "_members", "_spent")

    takes_costs = False

    def __init__(
        self,
        model: OnlineThreshold,
        half_lives: Iterable[int] = (250, 1_000, 4_000, 16_000),
        *,
        patience: int = 1_000,
    ) -> None:
        if type(model) is not OnlineThreshold or len(model):
            raise TypeError(f"model must be an empty OnlineThreshold, got {model!r}.")
        lives = tuple(_count(each, "half_lives") for each in half_lives)
        if not lives or len(set(lives)) < len(lives):
            raise ValueError(f"half_lives must be one or more different numbers, got {lives!r}.")
        fading = [Fading(model.empty(), life, by="samples") for life in lives]
        self._members: list[Any] = [model.empty(), *fading]
        self._given: dict[str, Any] = {
            "half_lives": lives,
            "patience": _count(patience, "patience"),
        }
        self._spent = [0.0] * len(self._members)
        given = model.settings
        costs = exact_costs(given["false_positive"], given["false_negative"])
        self._costs = tuple(float(cost * costs[2]) for cost in costs[:2])
        self._lock = RLock()

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of all members now, that of all samples first. O(log n) for each."""
        return tuple(float(member.threshold) for member in self._members)

    def update(
        self,
        score: float,
        label: float,
        weight: float = 1,
        *,
        thresholds: tuple[float, ...] | None = None,
    ) -> None:
        """Let every member answer a sample, then hold it. O(log n) for each.

        Where labels come late, keep the `thresholds` of the moment of scoring, and give them here:
        members are then judged by what they would have answered. Judged by what they know when the
        label comes, short memories would look better than they are.
        """
        if thresholds is not None and len(thresholds) != len(self._members):
            raise ValueError(
                f"thresholds must be those of {len(self._members)} members, got "
                f"{len(thresholds)}. Nothing was changed."
            )
        if not weight < _HEAVIEST:
            raise ValueError(f"weight must be below 2**32, got {weight!r}. Nothing was changed.")
        with self._lock:
            members = self._members
            judged = self.thresholds if thresholds is None else thresholds
            members[0].update(score, label, weight)  # what is refused is refused here
            price = self._costs[1 if label else 0] * weight
            fades = 2.0 ** (-1 / self._given["patience"])
            for member in members[1:]:
                member.update(score, label, weight)
            self._spent = [
                fades * spent + (price if (score >= threshold) != label else 0.0)
                for spent, threshold in zip(self._spent, judged, strict=True)
            ]

    def update_many(
        self, scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Hold many samples, one after the other; on an error none."""
        self._members[0].empty().update_many(scores, labels, weights)  # which looks at all of them
        xs, ys, ws = samples_with_labels(scores, labels, weights)
        columns = xs.tolist(), ys.tolist(), [1] * len(xs) if ws is None else ws.tolist()
        if max(columns[2], default=0) >= _HEAVIEST:
            raise ValueError("weights must be less than 2**32. Nothing was changed.")
        with self._lock:
            for sample in zip(*columns, strict=True):
                self.update(*sample)

    @property
    def leader(self) -> int | None:
        """The half-life of the member that answers; None for that of all samples."""
        lead = self._lead()
        return self._given["half_lives"][lead - 1] if lead else None

    @property
    def costs(self) -> dict[int | None, float]:
        """What wrong answers of each member cost of late, by its half-life."""
        return dict(zip((None, *self._given["half_lives"]), self._spent, strict=True))

    @property
    def threshold(self) -> float:
        """The threshold of the member that leads."""
        return float(self._members[self._lead()].threshold)

    @property
    def optimum(self) -> Optimum:
        """The cheapest cut of the member that leads, with its own loss."""
        found: Optimum = self._members[self._lead()].optimum
        return found

    @property
    def loss(self) -> float:
        """The loss of `optimum`, in the weights of that member."""
        return float(self._members[self._lead()].loss)

    @property
    def recommended(self) -> float | None:
        """The threshold for new rows, by the samples of the member that leads."""
        found: float | None = self._members[self._lead()].recommended
        return found

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return between which thresholds the best one lies, by the member that leads."""
        found: tuple[float, float] = self._members[self._lead()].interval(confidence)
        return found

    def curve(self) -> LossCurve:
        """Compute the loss of every cut, by the member that leads. O(n)."""
        found: LossCurve = self._members[self._lead()].curve()
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments besides the model, by name."""
        return dict(self._given)

    def __len__(self) -> int:
        return len(self._members[0])

    def empty(self) -> Self:
        """Return a bank of the same settings that holds nothing. O(1)."""
        bank = type(self).__new__(type(self))
        Bank.__init__(bank, self._members[0].empty(), **self._given)
        return bank

    def _lead(self) -> int:
        spent = self._spent
        return spent.index(min(spent))

    def snapshot(self) -> dict[str, Any]:
        """Describe the settings, the members, and what their answers cost. O(n)."""
        with self._lock:
            return {
                **self._given,
                "members": tuple(member.copy() for member in self._members),
                "spent": tuple(self._spent),
            }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a bank of a `snapshot`. O(n)."""
        members, spent = list(snapshot["members"]), [float(each) for each in snapshot["spent"]]
        if not members or type(members[0]) is not OnlineThreshold:
            raise ValueError("a bank without the member of all samples")
        bank = cls.__new__(cls)
        Bank.__init__(
            bank, members[0].empty(), snapshot["half_lives"], patience=snapshot["patience"]
        )
        same = [type(each) for each in members] == [type(each) for each in bank._members]
        if not same or len(spent) != len(members):
            raise ValueError("members that no such bank has")
        for mine, given in zip(bank._members[1:], members[1:], strict=True):
            if mine.settings != given.settings or mine.model.settings != given.model.settings:
                raise ValueError("members of other settings")
        bank._members, bank._spent = members, spent
        bank._check()
        return bank

    def _check(self) -> None:
        """Raise ValueError unless the members could have led."""
        for member in self._members:
            member._check()
        if not all(0 <= each < math.inf for each in self._spent):
            raise ValueError(f"answers that cost {self._spent!r}")

    def __repr__(self) -> str:
        lives = self._given["half_lives"]
        return (
            f"<{type(self).__name__}(half_lives={lives}, patience={self._given['patience']}), led "
            f"by {self.leader}, of {self._members[0]!r}>"
        )


def _count(value: Any, name: str) -> int:
    number = None if isinstance(value, bool) or not hasattr(value, "__index__") else index(value)
    if number is None or not 1 <= number < 2**53:
        shown = repr(value) if number is None or abs(number) < 2**99 else "one of many digits"
        raise ValueError(f"{name} must be whole numbers from 1 to 2**53, got {shown}.")
    return number
