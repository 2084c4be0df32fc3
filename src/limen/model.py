# SPDX-License-Identifier: Apache-2.0
"""What a model must offer, and what the models of limen share: they hold samples."""

from __future__ import annotations

import math
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NoReturn,
    Protocol,
    Self,
    TypeVar,
    cast,
    runtime_checkable,
)

from limen import _core
from limen.columns import samples_with_labels
from limen.confidence import ENOUGH, critical_value, too_few
from limen.direction import mirrored
from limen.picture import picture_of_model
from limen.storage import Storable
from limen.units import exact_positive

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from limen.optimum import Direction

__all__ = ["Labelled", "Model", "ModelBase", "asked", "merge", "refuse_costs", "require_distinct"]

_Model = TypeVar("_Model", bound="Storable")

# Of what is made around a model: a type checker knows its answers by those of the model. Without a
# model in brackets, as in `def of(ledger: Ledger)`, they may be anything.
if TYPE_CHECKING:
    from typing_extensions import TypeVar as Defaulted

    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
    M_co = Defaulted("M_co", covariant=True, default=Any)
    Held_co = Defaulted("Held_co", bound="ModelBase", covariant=True, default=Any)

    class HasThreshold(Protocol[T_co]):
        @property
        def threshold(self) -> T_co: ...

    class HasOptimum(Protocol[T_co]):
        @property
        def optimum(self) -> T_co: ...

    class HasRecommended(Protocol[T_co]):
        @property
        def recommended(self) -> T_co: ...

    class HasLossBound(Protocol[T_co]):
        @property
        def loss_bound(self) -> T_co: ...

    class HasPredict(Protocol[T_co]):
        @property
        def predict(self) -> T_co: ...

else:  # a default needs Python 3.13
    M_co = TypeVar("M_co", covariant=True)
    Held_co = TypeVar("Held_co", bound="ModelBase", covariant=True)


@runtime_checkable
class Model(Protocol):
    """What groups, adapters and storage ask of a model; see docs/model_contract.md.

    A class need not extend this one. To be copied and stored it extends `limen.storage.Storable`.
    """

    @property
    def settings(self) -> dict[str, Any]:
        """The costs, the unit and so on, by name, as they were given."""

    @property
    def takes_costs(self) -> bool:
        """Whether `threshold` and `optimum` are methods that take costs; else they are numbers."""

    @property
    def threshold(self) -> Any:
        """The cheapest threshold of the samples held."""

    @property
    def optimum(self) -> Any:
        """The cheapest cut, a `limen.Optimum`."""

    def update(self, *sample: Any, **named: Any) -> None:
        """Add one sample; an error changes nothing."""

    def revert(self, *sample: Any, **named: Any) -> None:
        """Take back one sample; an error changes nothing."""

    def update_many(self, *columns: Any, **named: Any) -> None:
        """Add many samples: all of them, or on an error none."""

    def revert_many(self, *columns: Any, **named: Any) -> None:
        """Take back many samples: all of them, or on an error none."""

    def __len__(self) -> int:
        """Return how many samples are held."""

    def empty(self) -> Self:
        """Return a model with the same settings that holds nothing."""

    def copy(self) -> Self:
        """Return an independent model that holds the same samples."""


def asked(model: Any, question: str, costs: dict[str, Any]) -> Any:
    """Read `threshold` or `optimum` of a model, at these costs where it takes any.

    >>> from limen import OnlineCalibrator, OnlineThreshold
    >>> asked(OnlineThreshold(), "threshold", {})
    inf
    >>> asked(OnlineCalibrator(), "threshold", {"false_negative": 5})
    inf
    """
    if model.takes_costs:
        return getattr(model, question)(**costs)
    if costs:
        refuse_costs()
    return getattr(model, question)


def refuse_costs() -> NoReturn:
    """Say that costs are given too late."""
    raise TypeError("this model has its costs already; pass them when you make it.")


class ModelBase(Storable):
    """What all models share: they hold samples. `_core` brings update, revert and len."""

    __slots__ = ()

    # Slots of a leaf and of an inner node: tests make them small.
    _capacities: ClassVar[tuple[int, int]] = (_core.leaf_slots, _core.node_slots)

    takes_costs: ClassVar[bool] = False

    # The native class: what two models must share to hold samples of one kind.
    _native: ClassVar[Any]
    # The class that names it, which has the native methods as its own.
    _plain: ClassVar[type]
    # Whether a subclass has snapshots of its own.
    _custom_snapshot: ClassVar[bool] = False

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "_native" in vars(cls):
            cls._native._give_slots(cls)
            cls._plain = cls
        if {"snapshot", "from_snapshot"} & vars(cls).keys():
            cls._custom_snapshot = True

    if TYPE_CHECKING:

        @property
        def _given(self) -> dict[str, Any]: ...
        @_given.setter
        def _given(self, given: dict[str, Any], /) -> None: ...
        @property
        def direction(self) -> Direction: ...  # noqa: D102
        def _copy_to(self, other: Any) -> bool: ...
        def _merge(self, others: list[Any]) -> None: ...
        def _state(self) -> bytes: ...
        def _restore(self, state: bytes) -> None: ...
        def _memory(self) -> int: ...

        def __len__(self) -> int: ...

    def merge(self, *others: Self) -> None:
        """Hold what others hold, besides what is held: all of it, or on an error nothing.

        The samples must be disjoint. The result is, bit for bit, that of one object which was
        given all of them. O(n + m) for m scores in the others, which stay as they are.

        >>> from limen import OnlineThreshold
        >>> monday, tuesday = OnlineThreshold(), OnlineThreshold()
        >>> monday.update_many([0.1, 0.5], [0, 0])
        >>> tuesday.update_many([0.25, 0.75], [1, 1])
        >>> monday.merge(tuesday)
        >>> len(monday), monday.threshold
        (4, 0.625)
        """
        require_distinct((self, *others))
        for other in others:
            if not isinstance(other, self._native):
                raise TypeError(
                    f"cannot merge {type(other).__name__} into {type(self).__name__}; both must "
                    "hold samples of one kind."
                )
            for name, value in self._terms().items():
                if value != other._terms()[name]:
                    here, there = ({**each._terms(), **each._given}[name] for each in (self, other))
                    raise ValueError(
                        f"cannot merge: {name} is {here!r} here and {there!r} there. Losses add up "
                        "only when they are measured alike. Nothing was changed."
                    )
        self._merge(list(others))

    def _terms(self) -> dict[str, Any]:
        """Return what two models must have in common to be merged, numbers as exact ones."""
        exact = {
            name: value if value is None else exact_positive(value, name)
            for name, value in self._given.items()
            if name not in ("direction", "scores")
        }
        return {**exact, "direction": self.direction, "scores": self._given.get("scores", "ranks")}

    def _turned(self, found: Any) -> Any:
        """Return an answer of the core in the scores as they are, and these as the core has them.

        Scores and thresholds that go to a native method are turned there.
        """
        return mirrored(found) if self.direction == "<=" else found

    def _repr_html_(self) -> str | None:
        """Show a small picture in a notebook. O(n)."""
        return picture_of_model(self)

    @property
    def settings(self) -> dict[str, Any]:
        """The costs and the unit, by name, as they were given.

        The direction and what scores are, where they are not those that a model has without.

        >>> from limen import OnlineThreshold
        >>> OnlineThreshold(false_negative=5).settings
        {'false_positive': 1, 'false_negative': 5, 'unit': None}
        """
        return dict(self._given)

    def empty(self) -> Self:
        """Return an object of the same settings that holds nothing. O(1).

        >>> from limen import OnlineThreshold
        >>> OnlineThreshold(false_negative=5).empty()
        <OnlineThreshold(false_positive=1, false_negative=5, unit=None): 0 samples, \
threshold inf, loss 0.0>
        """
        return self._made_with(self._given)

    @classmethod
    def _made_with(cls, settings: dict[str, Any]) -> Self:
        # Not by cls(): a subclass may want other arguments.
        model = cls.__new__(cls)
        cls._stored_as.__init__(model, **settings)  # type: ignore[misc]
        return model

    def snapshot(self) -> dict[str, Any]:
        """Describe the settings, and what is held as bytes. O(n)."""
        return {**self._given, "state": self._state()}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make a model of a `snapshot`. O(n)."""
        settings = dict(snapshot)
        state = settings.pop("state")
        model = cls._made_with(settings)
        model._restore(state)
        return model

    def _clone(self) -> Self:
        # The short way, unless a snapshot has more than what is held, or a memory owns it.
        if not self._custom_snapshot:
            other = self._made_with(self._given)
            if self._copy_to(other):
                return other
        return super()._clone()

    def _take_over(self, made: Self) -> None:
        type(self)._stored_as.__init__(self, **made._given)  # type: ignore[misc]
        made._copy_to(self)
        super()._take_over(made)

    def __sizeof__(self) -> int:
        return self._memory()

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given.items())
        samples = "1 sample" if len(self) == 1 else f"{len(self):,} samples"
        return f"<{type(self).__name__}({given}): {samples}{self._shown()}>"

    def _shown(self) -> str:
        """Return what a repr says besides the samples held."""
        return ""


def require_distinct(models: Sequence[object]) -> None:
    """Raise ValueError when an object occurs twice."""
    if len({id(model) for model in models}) < len(models):
        raise ValueError(
            "merge was given the same object twice, and its samples would count twice. Merge a "
            "copy if that is meant."
        )


def merge(models: Iterable[_Model]) -> _Model:
    """Make one model of the samples of many, which stay as they are. O(total).

    >>> from limen import OnlineThreshold, merge
    >>> days = [OnlineThreshold() for _ in range(7)]
    >>> for place, day in enumerate(days):
    ...     day.update(place / 8, place > 3)
    >>> merge(days).threshold
    0.4375
    """
    parts = list(models)
    if not parts:
        raise ValueError("merge needs at least one model.")
    require_distinct(parts)
    merged: Any = parts[0].copy()
    merged.merge(*parts[1:])
    return merged  # type: ignore[no-any-return]


class Labelled(ModelBase):
    """Models of labelled samples, which come one by one or many at once."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _many(self, scores: Any, labels: Any, weights: Any, adding: bool, /) -> None: ...

    # With too few samples of a label nothing is known: no recommendation, an interval of all
    # thresholds, and the one in use is kept. The core then returns what the samples are worth.

    def _recommended(self, positive: int, negative: int) -> float | None:
        """Return the recommended threshold at whole costs."""
        model = cast("_core.Threshold", self)
        found: Any = _core.recommended(model, positive, negative, ENOUGH)
        return None if isinstance(found, tuple) else self._turned(found)

    def _require_enough(self, positive: int, negative: int) -> None:
        """Raise ValueError where the samples are too few for a recommendation."""
        model = cast("_core.Threshold", self)
        found: Any = _core.interval(model, positive, negative, ENOUGH, 1.0)
        for label in (1, 0) if len(found) > 2 else ():
            worth: float = found[label]
            if worth < ENOUGH:
                even = worth == round(worth)  # as it is where all weigh the same
                raise too_few(f"{worth:.0f} " if even else "", label, None if even else worth)

    def _known_interval(self, confidence: float, positive: int, negative: int) -> Any:
        """Return the interval of the best threshold at whole costs; None of too few samples."""
        reach, model = critical_value(confidence), cast("_core.Threshold", self)
        found = _core.interval(model, positive, negative, ENOUGH, reach)
        return None if len(found) > 2 else self._turned(found)

    def _sure(self, confidence: float, positive: int, negative: int) -> tuple[float, float]:
        """Return the same; of too few samples the interval of all thresholds."""
        found: tuple[float, float] | None = self._known_interval(confidence, positive, negative)
        return (-math.inf, math.inf) if found is None else found

    def _keeps(self, threshold: Any, confidence: float, positive: int, negative: int) -> bool:
        """Whether a threshold lies in the interval at whole costs."""
        reach, model = critical_value(confidence), cast("_core.Threshold", self)
        inside = self._turned(float(threshold))
        found: Any = _core.keeps(model, positive, negative, ENOUGH, reach, inside)
        return True if isinstance(found, tuple) else found

    def update_many(
        self, scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Add many samples at once: all of them, or on an error none.

        O(m) to sort them, then m times the cost of `update`, or O(n + m) when m is large.

        >>> from limen import OnlineThreshold
        >>> cut = OnlineThreshold()
        >>> cut.update_many([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> len(cut), cut.threshold
        (4, 0.625)
        """
        self._many(*samples_with_labels(scores, labels, weights), True)

    def revert_many(
        self, scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Take back many samples at once: all of them, or on an error none.

        Costs what `update_many` costs.

        >>> from limen import OnlineThreshold
        >>> cut = OnlineThreshold()
        >>> cut.update_many([0.1, 0.9], [0, 1])
        >>> cut.revert_many([0.9, 0.1], [1, 0])
        >>> len(cut), cut.threshold
        (0, inf)
        """
        self._many(*samples_with_labels(scores, labels, weights), False)
