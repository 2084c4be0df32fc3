# SPDX-License-Identifier: Apache-2.0
"""Bytes and files that bring back the same object, or say plainly why they cannot.

docs/format.md describes the bytes. Nothing in them is ever run, unlike in a pickle. A file is
replaced at once: whoever reads it sees all of the old one or all of the new one.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from limen.storage import format
from limen.storage.files import replace

__all__ = ["Storable", "from_bytes", "load"]

_Object = TypeVar("_Object", bound="Storable")

# Where the classes are: reading a file loads what the file holds, and no more.
_HOMES = {
    "Evidence": "limen.trust.evidence",
    "Fading": "limen.memory.fading",
    "Grouped": "limen.groups",
    "LastN": "limen.memory.windows",
    "LastPeriod": "limen.memory.windows",
    "Ledger": "limen.memory.ledger",
    "OnlineCalibrator": "limen.calibrator",
    "OnlineCut": "limen.online",
    "OnlineThreshold": "limen.online",
}

_kinds: dict[str, type[Storable]] = {}


class Storable:
    """What can be kept in bytes and files.

    A class names itself in `_kind`, tells all it is in `_parts` (names with values that are
    numbers, texts, times, arrays, tuples or storable objects) and comes back by `_from_parts`.
    A subclass without a `_kind` of its own is kept as the class it extends.
    """

    __slots__ = ()

    _kind: ClassVar[str]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "_kind" in vars(cls):
            _kinds[cls._kind] = cls

    def _parts(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def _from_parts(cls: type[_Object], parts: dict[str, Any]) -> _Object:
        raise NotImplementedError

    @classmethod
    def _class_of(cls, kind: str, deep: int) -> type[Storable]:
        """Find the class of a kind; the outermost object may be of a subclass, this one."""
        if kind not in _kinds and kind in _HOMES:
            import_module(_HOMES[kind])
        if kind not in _kinds:
            raise ValueError(f"this limen knows no {kind!r}; a newer one may")
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
    def from_bytes(cls: type[_Object], stored: bytes) -> _Object:
        """Bring back what `to_bytes` described. O(n).

        Raises ValueError when the bytes were cut short or changed, come from a newer limen, or
        hold something else.
        """
        found = format.read(stored, cls._class_of)
        if not isinstance(found, cls):
            raise ValueError(
                f"these bytes hold {type(found).__name__}, not {cls.__name__}. Use "
                f"{type(found).__name__}.from_bytes, or limen.from_bytes, which tells by itself."
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
    def load(cls: type[_Object], path: str | os.PathLike[str]) -> _Object:
        """Read a file that `save` wrote. O(n). Errors are those of `from_bytes`."""
        with open(path, "rb") as file:
            stored = file.read()
        try:
            return cls.from_bytes(stored)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None


def from_bytes(stored: bytes) -> Any:
    """Bring back whatever `to_bytes` described: the bytes tell what it is. O(n).

    >>> import limen
    >>> limen.from_bytes(limen.OnlineCut(unit=0.01).to_bytes())
    <OnlineCut(unit=0.01): 0 samples, threshold inf, loss 0.0>
    >>> limen.from_bytes(b"something else")
    Traceback (most recent call last):
        ...
    ValueError: these bytes were not written by limen: they begin with b'somethin'.
    """
    return Storable.from_bytes(stored)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a file that `save` wrote: it tells what it holds. O(n).

    Raises ValueError as `from_bytes` does, with the path.
    """
    return Storable.load(path)
