# SPDX-License-Identifier: Apache-2.0
"""Bytes and files that bring back the same object, or say plainly why they cannot.

docs/format.md describes the bytes. Nothing in them is ever run, unlike in a pickle. A file is
replaced at once: a reader sees all of the old one or all of the new one.
"""

from __future__ import annotations

import os
from copy import deepcopy
from importlib import import_module
from typing import Any, ClassVar, Self, TypeVar, overload

from limen.storage import format
from limen.storage.files import replace

__all__ = ["Storable", "from_bytes", "load"]

# Where the classes are: reading a file loads what the file holds, and no more.
_HOMES = {
    "Alarm": "limen.trust.alarm",
    "BoundedCalibrator": "limen.bounded",
    "BoundedCut": "limen.bounded",
    "BoundedThreshold": "limen.bounded",
    "Budget": "limen.budget",
    "Evidence": "limen.trust.evidence",
    "Fading": "limen.memory.fading",
    "Grouped": "limen.groups.grouped",
    "LastN": "limen.memory.windows",
    "LastPeriod": "limen.memory.windows",
    "Ledger": "limen.memory.ledger",
    "OnlineCalibrator": "limen.calibrator",
    "OnlineCut": "limen.online",
    "OnlineThreshold": "limen.online",
}

_kinds: dict[str, type[Storable]] = {}

_Kind = TypeVar("_Kind", bound="Storable")

_STORED = "limen_bytes"  # in a state beside the attributes of a subclass


class Storable:
    """An object that can be copied, pickled, and kept in bytes and files.

    All of it follows from two methods: `snapshot`, and `from_snapshot`, which makes an equal
    object of one. A class is stored under a name, its kind: ``class Mine(Storable, kind="Mine")``.
    A subclass without a kind of its own is stored as the class it extends.
    """

    __slots__ = ()

    _kind: ClassVar[str]
    _stored_as: ClassVar[type]  # the class that has the kind

    def __init_subclass__(cls, *, kind: str | None = None, **given: Any) -> None:
        super().__init_subclass__(**given)
        if kind is not None:
            if _HOMES.get(kind, cls.__module__) != cls.__module__:
                raise TypeError(f"kind {kind!r} is one of limen's own. Choose another name.")
            cls._kind, cls._stored_as, _kinds[kind] = kind, cls, cls

    def snapshot(self) -> dict[str, Any]:
        """Describe the object by names and values. O(n).

        Values are numbers, texts, times, bytes, arrays, tuples, or storable objects; these are
        the object's own: read them, but leave them as they are.
        """
        raise NotImplementedError

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(n).

        Raises an error when no object is like that: bytes may come from anybody.
        """
        raise NotImplementedError

    def copy(self) -> Self:
        """Return an independent object that holds the same samples. O(n)."""
        return self._copied(getattr(self, "__dict__", {}))

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copied(deepcopy(getattr(self, "__dict__", {}), memo))

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = getattr(self, "__dict__", None) or None
        return type(self).from_snapshot, (self.snapshot(),), attributes

    # Some libraries, as skops, make an object without arguments and then give it this state.

    def __getstate__(self) -> dict[str, Any]:
        return {**getattr(self, "__dict__", {}), _STORED: self.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = dict(state)
        if _STORED in attributes:  # not out of a pickle: its object is made of a snapshot already
            self._take_over(type(self).from_bytes(attributes.pop(_STORED)))
        if attributes:
            vars(self).update(attributes)

    def _take_over(self, made: Self) -> None:
        """Become an object that was just made, and that nobody else has."""
        own: Any = object.__getstate__(made)  # attributes, or a pair of these and slots
        attributes, slots = own if isinstance(own, tuple) else (own, {})
        for name, value in {**(attributes or {}), **slots}.items():
            setattr(self, name, value)

    def _copied(self, attributes: dict[str, Any]) -> Self:
        """Make a copy, with the attributes that a snapshot leaves out: those of a subclass."""
        other = self._clone()
        for name, value in attributes.items():
            vars(other).setdefault(name, value)
        return other

    def _clone(self) -> Self:
        return type(self).from_snapshot(deepcopy(self.snapshot()))

    @classmethod
    def _class_of(cls, kind: str, deep: int) -> type[Storable]:
        """Find the class of a kind; the outermost object may be of a subclass, this one."""
        if kind not in _kinds and kind in _HOMES:
            import_module(_HOMES[kind])
        if kind not in _kinds:
            raise ValueError(
                f"this limen knows no {kind!r}; a newer one may, or the module of that class must "
                "be imported first"
            )
        return cls if deep == 0 and issubclass(cls, _kinds[kind]) else _kinds[kind]

    def to_bytes(self) -> bytes:
        """Return bytes that bring back the same object; equal objects give equal bytes. O(n).

        >>> import limen
        >>> cut = limen.OnlineThreshold()
        >>> cut.update(0.3, 0)
        >>> limen.from_bytes(cut.to_bytes()).threshold
        inf
        """
        return format.write(self)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Bring back what `to_bytes` described. O(n).

        Raises ValueError when the bytes were cut short or changed, come from a newer limen, or
        hold something else.
        """
        found = format.read(stored, cls._class_of)
        if not isinstance(found, cls):
            raise ValueError(
                f"these bytes hold {type(found).__name__}, not {cls.__name__}. Use "
                f"{type(found).__name__}.from_bytes, or limen.from_bytes, which finds the class."
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, or replace it at once: after a crash it is the old or the new one. O(n).

        >>> import limen, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "fraud.limen")
        >>> limen.OnlineThreshold(false_negative=5).save(path)
        >>> limen.load(path)
        <OnlineThreshold(false_positive=1, false_negative=5, unit=None): 0 samples, \
threshold inf, loss 0.0>
        """
        replace(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote. O(n). Errors are those of `from_bytes`."""
        with open(path, "rb") as file:
            stored = file.read()
        try:
            return cls.from_bytes(stored)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None


@overload
def from_bytes(stored: bytes) -> Any: ...
@overload
def from_bytes(stored: bytes, kind: type[_Kind]) -> _Kind: ...
def from_bytes(stored: bytes, kind: type[Storable] = Storable) -> Any:
    """Restore an object of any kind from the bytes that `to_bytes` returned. O(n).

    With a `kind`, such as `limen.OnlineThreshold`, anything else is refused, and a type checker
    knows what comes back.

    >>> import limen
    >>> limen.from_bytes(limen.OnlineCut(unit=0.01).to_bytes())
    <OnlineCut(unit=0.01): 0 samples, threshold inf, loss 0.0>
    >>> limen.from_bytes(b"something else")
    Traceback (most recent call last):
        ...
    ValueError: these bytes were not written by limen: they begin with b'somethin'.
    """
    return kind.from_bytes(stored)


@overload
def load(path: str | os.PathLike[str]) -> Any: ...
@overload
def load(path: str | os.PathLike[str], kind: type[_Kind]) -> _Kind: ...
def load(path: str | os.PathLike[str], kind: type[Storable] = Storable) -> Any:
    """Read an object of any kind from a file that `save` wrote. O(n).

    Raises ValueError as `from_bytes` does, with the path. `kind` as there.

    >>> import limen, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "fraud.limen")
    >>> limen.OnlineCut().save(path)
    >>> limen.load(path, limen.OnlineCut)
    <OnlineCut(unit=None): 0 samples, threshold inf, loss 0.0>
    """
    return kind.load(path)
