# SPDX-License-Identifier: Apache-2.0
"""Several memories of one stream, of which the one that has done best of late answers."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Self

from limen import _core
from limen.columns import samples_with_labels
from limen.memory.fading import Fading
from limen.online import OnlineThreshold
from limen.optimum import Deciding
from limen.storage import Storable
from limen.storage.packing import whole_number
from limen.units import exact_costs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from limen.optimum import Direction, LossCurve, Optimum

__all__ = ["Bank"]


class Bank(Deciding, Storable, _core.Bank, kind="Bank"):
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
    `update` costs one update of each member. All members hold a sample or, on an error or an
    interrupt, none of them. A sample cannot be taken back. The first of several members that did
    equally well leads, which at the start is that of all samples. Where the stream does not change,
    a bank costs a little more than the memory of all samples: see docs/trust.md.
    Several threads may share one bank: calls take turns.

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

    __slots__ = ()

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
        patience = _count(patience, "patience")
        fading = [Fading(model.empty(), life, by="samples") for life in lives]
        given = model.settings
        fp, fn, scale = exact_costs(given["false_positive"], given["false_negative"])
        members = (model.empty(), *fading)
        _core.Bank.__init__(self, members, float(fp * scale), float(fn * scale), patience)
        self._given = {"half_lives": lives, "patience": patience}

    def update_many(
        self, scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Hold many samples, one after the other; on an error none. O(n) besides the updates.

        >>> from limen import Bank, OnlineThreshold
        >>> bank = Bank(OnlineThreshold(), half_lives=(25,))
        >>> bank.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> len(bank), bank.thresholds
        (4, (0.625, 0.625))
        """
        self._update_many(*samples_with_labels(scores, labels, weights))

    @property
    def direction(self) -> Direction:
        """That of the model: ``"<="`` where lower scores mean positive."""
        direction: Direction = self._members[0].direction
        return direction

    @property
    def leader(self) -> int | None:
        """The half-life of the member that answers; None for that of all samples."""
        lead = self._lead()
        return self._given["half_lives"][lead - 1] if lead else None

    @property
    def costs(self) -> dict[int | None, float]:
        """What wrong answers of each member cost of late, by its half-life."""
        return dict(zip((None, *self._given["half_lives"]), self._spent(), strict=True))

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

    def keeps(self, threshold: float, *, confidence: float = 0.95) -> bool:
        """Whether to keep a threshold: it lies in the `interval`, or answers as one inside."""
        found: bool = self._members[self._lead()].keeps(threshold, confidence=confidence)
        return found

    def curve(self) -> LossCurve:
        """Compute the loss of every cut, by the member that leads. O(n)."""
        found: LossCurve = self._members[self._lead()].curve()
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments besides the model, by name."""
        return dict(self._given)

    def merge(self, *others: Self) -> NoReturn:
        """Refuse: nothing tells which samples came before which, and what fades depends on it."""
        raise ValueError(
            "cannot merge banks: nothing tells which samples came before which, and by that they "
            "fade. Give one bank the samples of all, in their order. Nothing was changed."
        )

    def empty(self) -> Self:
        """Return a bank of the same settings that holds nothing. O(1)."""
        bank = type(self).__new__(type(self))
        Bank.__init__(bank, self._members[0].empty(), **self._given)
        return bank

    def snapshot(self) -> dict[str, Any]:
        """Describe the settings, the members, and what their answers cost. O(n)."""
        members, count, bases, spent = self._state()
        return {
            "model": self._members[0].empty(),
            **self._given,
            "members": members,
            "count": count,
            "bases": bases,
            "spent": spent,
        }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a bank of a `snapshot`. O(n)."""
        bank = cls.__new__(cls)
        bank._fill(snapshot)
        return bank

    def _fill(self, parts: dict[str, Any]) -> None:
        Bank.__init__(self, parts["model"], parts["half_lives"], patience=parts["patience"])
        count = whole_number(parts, "count", least=0)
        self._restore(parts["members"], count, parts["bases"], parts["spent"])

    def _take_over(self, made: Self) -> None:
        self._fill(made.snapshot())
        super()._take_over(made)

    def __sizeof__(self) -> int:
        return self._memory()

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
