# SPDX-License-Identifier: Apache-2.0
"""What every model shares: it holds samples, can be copied and kept."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from limen import _core
from limen.columns import samples_with_labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Held", "Labelled"]

_Model = TypeVar("_Model", bound="Held")


class Held:
    """What all models share: they hold samples. `_core` brings update, revert and len."""

    __slots__ = ()

    # Slots of a leaf and of an inner node: tests make them small.
    _capacities: ClassVar[tuple[int, int]] = (_core.leaf_slots, _core.node_slots)

    if TYPE_CHECKING:
        _given: dict[str, Any]

        def _state(self) -> bytes: ...
        def _restore(self, state: bytes) -> None: ...
        def _memory(self) -> int: ...
        def _begin(self, **given: Any) -> None: ...
        def __len__(self) -> int: ...

    def copy(self: _Model) -> _Model:
        """Return an independent object that holds the same samples. O(n)."""
        other = _rebuild(type(self), self._given, self._state())
        if hasattr(self, "__dict__"):
            vars(other).update(vars(self))
        return other

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
