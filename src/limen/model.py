# SPDX-License-Identifier: Apache-2.0
"""What every model shares: it holds samples, can be copied and kept."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from limen import _core
from limen.columns import samples_with_labels
from limen.storage import Storable
from limen.units import exact_positive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike

__all__ = ["Held", "Labelled", "merge"]

_Model = TypeVar("_Model", bound="Held")


class Held(Storable):
    """What all models share: they hold samples. `_core` brings update, revert and len."""

    __slots__ = ()

    # Slots of a leaf and of an inner node: tests make them small.
    _capacities: ClassVar[tuple[int, int]] = (_core.leaf_slots, _core.node_slots)

    # The native class: what two models must share to hold samples of one kind.
    _native: ClassVar[type]

    if TYPE_CHECKING:
        _given: dict[str, Any]

        def _merge(self, others: list[Any]) -> None: ...
        def _state(self) -> bytes: ...
        def _restore(self, state: bytes) -> None: ...
        def _memory(self) -> int: ...

        _begin: Callable[..., None]  # takes costs and unit by name, as they were given

        def __len__(self) -> int: ...

    def merge(self: _Model, *others: _Model) -> None:
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
        _require_distinct((self, *others))
        for other in others:
            if not isinstance(other, self._native):
                raise TypeError(
                    f"cannot merge {type(other).__name__} into {type(self).__name__}; both must "
                    "hold samples of one kind."
                )
            for name, value in self._terms().items():
                if value != other._terms()[name]:
                    raise ValueError(
                        f"cannot merge: {name} is {self._given[name]!r} here and "
                        f"{other._given[name]!r} there. Losses add up only when they are "
                        "measured alike. Nothing was changed."
                    )
        self._merge(list(others))

    def _terms(self) -> dict[str, Any]:
        """Tell what the samples are measured by, as exact numbers."""
        return {
            name: value if value is None else exact_positive(value, name)
            for name, value in self._given.items()
        }

    def copy(self: _Model) -> _Model:
        """Return an independent object that holds the same samples. O(n)."""
        other = _rebuild(type(self), self._given, self._state())
        if hasattr(self, "__dict__"):
            vars(other).update(vars(self))
        return other

    def _emptied(self: _Model) -> _Model:
        """Return an object with the same costs and unit that holds nothing."""
        other = type(self).__new__(type(self))
        other._begin(**self._given)
        return other

    def _parts(self) -> dict[str, Any]:
        return {**self._given, "state": self._state()}

    @classmethod
    def _from_parts(cls: type[_Model], parts: dict[str, Any]) -> _Model:
        state = parts.pop("state")
        return _rebuild(cls, parts, state)

    def __copy__(self: _Model) -> _Model:
        return self.copy()

    def __deepcopy__(self: _Model, memo: dict[int, Any]) -> _Model:
        other = self.copy()
        if hasattr(self, "__dict__"):
            vars(other).update(deepcopy(vars(self), memo))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = type(self), self._given, self._state()
        return _rebuild, arguments, getattr(self, "__dict__", None) or None

    def __sizeof__(self) -> int:
        return self._memory()

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given.items())
        samples = "1 sample" if len(self) == 1 else f"{len(self):,} samples"
        return f"<{type(self).__name__}({given}): {samples}{self._shown()}>"

    def _shown(self) -> str:
        """Tell more in a repr than the samples held."""
        return ""


def _rebuild(cls: type[_Model], given: dict[str, Any], state: bytes) -> _Model:
    # Not by cls(): a subclass may want other arguments.
    model = cls.__new__(cls)
    model._begin(**given)
    model._restore(state)
    return model


def _require_distinct(models: Sequence[object]) -> None:
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
    _require_distinct(parts)
    merged = parts[0].copy()
    merged.merge(*parts[1:])
    return merged


class Labelled(Held):
    """Models of labelled samples, which come one by one or many at once."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _many(self, scores: Any, labels: Any, weights: Any, adding: bool, /) -> None: ...

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
