# SPDX-License-Identifier: Apache-2.0
"""Bytes and files that bring back the same object, or say plainly why they cannot.

docs/format.md describes the bytes. Nothing in them is ever run, unlike in a pickle. A file is
replaced at once: whoever reads it sees all of the old one or all of the new one.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from uuid import UUID

import numpy as np

from limen.storage.files import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Storable",
    "from_bytes",
    "id_column",
    "ids_of",
    "load",
    "number_column",
    "plain_list",
    "plain_number",
    "whole_number",
]

_Object = TypeVar("_Object", bound="Storable")

_MAGIC = b"\x89limen\r\n"
_VERSION = 1
_HEADER = struct.Struct("<8sH6xQ")  # what it is, version, bytes of the body
_DIGEST = 16
_DEEPEST = 16
_LONGEST = 8192  # bytes of a part of a fraction, whose terms are reduced in quadratic time
_LARGEST = 2**900  # of a count or a sum of units: what is made of it is a double
_MOST_ALIKE = 100  # ids of one hash; a dictionary takes quadratic time for them

_SIZE = struct.Struct("<Q")
_INT = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")
_ARRAYS: dict[bytes, np.dtype[Any]] = {
    b"1": np.dtype("u1"),
    b"8": np.dtype("<i8"),
    b"d": np.dtype("<f8"),
}
_CODES = {dtype: code for code, dtype in _ARRAYS.items()}

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

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

    def to_bytes(self) -> bytes:
        """Return bytes that bring back the same object; equal objects give equal bytes. O(n).

        >>> import limen
        >>> cut = limen.OnlineThreshold()
        >>> cut.update(0.3, 0)
        >>> limen.from_bytes(cut.to_bytes()).threshold
        inf
        """
        from hashlib import blake2b  # it loads slowly, and most programs never come here

        pieces = [b""]
        _put(pieces, self)
        pieces[0] = _HEADER.pack(_MAGIC, _VERSION, sum(map(len, pieces)))
        digest = blake2b(digest_size=_DIGEST)
        for piece in pieces:
            digest.update(piece)
        return b"".join([*pieces, digest.digest()])

    @classmethod
    def from_bytes(cls: type[_Object], stored: bytes) -> _Object:
        """Bring back what `to_bytes` described. O(n).

        Raises ValueError when the bytes were cut short or changed, come from a newer limen, or
        hold something else.
        """
        found = _read(stored, cls)
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
        return _from_file(path, cls)


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


def number_column(values: Iterable[Any]) -> Any:
    """Make an array of int64 or of float64, whichever holds all numbers, else a tuple.

    Equal numbers give equal columns, however they were written. O(n).

    >>> number_column([1, 2.0]), number_column([1, 0.5]), number_column([2**53 + 1, 0.5])
    (array([1, 2]), array([1. , 0.5]), (9007199254740993, 0.5))
    """
    numbers = values if isinstance(values, list) else list(values)
    if set(map(type, numbers)) <= {float}:
        reals = np.array(numbers, np.float64)
    else:
        plain = [plain_number(number) for number in numbers]
        nearest = [_nearest(number) for number in plain]
        if plain != nearest:
            whole = all(type(n) is int and -(2**63) <= n < 2**63 for n in plain)
            return np.array(plain, np.int64) if whole else tuple(plain)
        reals = np.array(nearest, np.float64)
    if np.all((np.abs(reals) < 2.0**53) & (reals == np.trunc(reals))):
        return reals.astype(np.int64)
    return reals + 0.0  # one zero


def plain_list(column: Any) -> list[Any]:
    """Make a list of plain numbers of what `number_column` made. O(n)."""
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def plain_number(number: Any) -> int | float:
    """Turn a whole number into an int, another into a float.

    >>> plain_number(2.0), plain_number(True), plain_number(0.5)
    (2, 1, 0.5)
    """
    if type(number) is int:  # without a look at the class of all whole numbers, which is slow
        return number
    if isinstance(number, Integral):
        return int(number)
    real = float(number)
    return int(real) if real.is_integer() else real


def whole_number(parts: dict[str, Any], name: str, least: int | None = 0) -> int:
    """Read a whole number that is not below the least; raise ValueError if it is none."""
    number = parts[name]
    if type(number) is not int or abs(number) > _LARGEST:
        raise ValueError(f"{name} is no whole number, or beyond all bounds")
    if least is not None and number < least:
        raise ValueError(f"{name} is {number!r}")
    return number


def id_column(ids: list[Any]) -> tuple[Any, list[int]]:
    """Pack ids in an order that depends on nothing but them; return also the order. O(n log n).

    >>> id_column([30, 10, 20])
    (array([10, 20, 30]), [1, 2, 0])
    """
    if all(type(id) is str for id in ids):
        texts = [id.encode("utf-8", "surrogatepass") for id in ids]
        order = sorted(range(len(ids)), key=texts.__getitem__)
        sizes = np.fromiter((len(texts[at]) for at in order), np.int64, len(ids))
        return ("text", sizes, b"".join([texts[at] for at in order])), order
    if all(type(id) is int and -(2**63) <= id < 2**63 for id in ids):
        numbers = np.array(ids, np.int64)
        order = np.argsort(numbers).tolist()
        return numbers[order], order
    keys = [_id_bytes(id) for id in ids]
    order = sorted(range(len(ids)), key=keys.__getitem__)
    return ("any", *(ids[at] for at in order)), order


def _id_bytes(id: Any) -> bytes:
    pieces: list[bytes] = []
    _put(pieces, id)
    return b"".join(pieces)


def ids_of(column: Any) -> list[Any]:
    """Bring back the ids that `id_column` packed. O(n)."""
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if column[0] == "any":
        ids = list(column[1:])
        if max(Counter(map(hash, ids)).values(), default=0) > _MOST_ALIKE:
            raise ValueError(f"more than {_MOST_ALIKE} ids of one hash")
        return ids
    _, sizes, texts = column
    ends = [0, *np.cumsum(sizes).tolist()]
    if (sizes < 0).any() or ends[-1] != len(texts):
        raise ValueError("ids that do not fill their place")
    return [texts[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends)]


def _nearest(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


# ---- values ---------------------------------------------------------------------------------


def _put(pieces: list[Any], value: Any, deep: int = 0) -> None:
    """Append the bytes of a value."""
    if deep > _DEEPEST:
        raise ValueError("values are nested too deep to be stored.")
    if value is None:
        pieces.append(b"N")
    elif isinstance(value, Storable):
        parts = value._parts()
        pieces.append(b"O" + _text(value._kind) + _SIZE.pack(len(parts)))
        for name, part in parts.items():
            pieces.append(_text(name))
            _put(pieces, part, deep + 1)
    elif isinstance(value, tuple):
        pieces.append(b"(" + _SIZE.pack(len(value)))
        for item in value:
            _put(pieces, item, deep + 1)
    elif isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        pieces.append(b"a" + _CODES[array.dtype.newbyteorder("<")] + _SIZE.pack(len(array)))
        pieces.append(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    elif isinstance(value, bytes):
        pieces.append(b"b" + _SIZE.pack(len(value)))
        pieces.append(bytes(value))
    else:
        pieces.append(_scalar(value))


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return _SIZE.pack(len(encoded)) + encoded


def _whole(number: int) -> bytes:
    if -(2**63) <= number < 2**63:
        return b"i" + _INT.pack(number)
    size = number.bit_length() // 8 + 1
    return b"I" + _SIZE.pack(size) + number.to_bytes(size, "little", signed=True)


def _scalar(value: Any) -> bytes:
    if isinstance(value, str):
        return b"s" + _text(value)
    if isinstance(value, Integral):
        return _whole(int(value))
    if isinstance(value, Fraction):
        return b"q" + _whole(value.numerator) + _whole(value.denominator)
    if isinstance(value, Decimal):
        return b"D" + _text(str(value))
    if isinstance(value, Real):
        return b"d" + _DOUBLE.pack(float(value))
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return b"t" + _INT.pack((value - _EPOCH) // _MICROSECOND)
        return b"u" + _INT.pack((value - _EPOCH_UTC) // _MICROSECOND)
    if isinstance(value, timedelta):
        return b"p" + _whole(value // _MICROSECOND)
    if isinstance(value, UUID):
        return b"U" + value.bytes
    raise TypeError(
        f"{value!r} is a {type(value).__name__}, which cannot be stored. An id may be a str, an "
        "int, bytes, a uuid.UUID or a tuple of these; a model must be one of limen."
    )


class _Reader:
    """The values in some bytes, one after the other. Raises ValueError where there is none."""

    def __init__(self, stored: memoryview, cls: type[Storable]) -> None:
        self.stored = stored
        self.at = 0
        self.outermost: type[Storable] = cls

    def take(self, size: int) -> memoryview:
        if size > len(self.stored) - self.at:
            raise ValueError("a value reaches beyond the end")
        self.at += size
        return self.stored[self.at - size : self.at]

    def size(self) -> int:
        size: int = _SIZE.unpack(self.take(8))[0]
        return size

    def text(self) -> str:
        return str(self.take(self.size()), "utf-8", "surrogatepass")

    def integer(self) -> int:
        begin, number = self.at, self.value(_DEEPEST)
        if type(number) is not int or self.at - begin > _LONGEST:
            raise ValueError("not a whole number, or one without end")
        return number

    def value(self, deep: int = 0) -> Any:
        if deep > _DEEPEST:
            raise ValueError("values are nested too deep")
        tag = bytes(self.take(1))
        if tag == b"O":
            return self.storable(deep)
        if tag == b"(":
            return tuple(self.value(deep + 1) for _ in range(self.size()))
        if tag == b"a":
            dtype = _ARRAYS[bytes(self.take(1))]
            return np.frombuffer(self.take(self.size() * dtype.itemsize), dtype)
        return self.scalar(tag)

    def scalar(self, tag: bytes) -> Any:
        match tag:
            case b"N":
                return None
            case b"b":
                return bytes(self.take(self.size()))
            case b"s":
                return self.text()
            case b"i":
                return _INT.unpack(self.take(8))[0]
            case b"I":
                return int.from_bytes(self.take(self.size()), "little", signed=True)
            case b"q":
                return Fraction(self.integer(), self.integer())
            case b"D":
                return Decimal(self.text())
            case b"d":
                return _DOUBLE.unpack(self.take(8))[0]
            case b"t":
                return _EPOCH + timedelta(microseconds=_INT.unpack(self.take(8))[0])
            case b"u":
                return _EPOCH_UTC + timedelta(microseconds=_INT.unpack(self.take(8))[0])
            case b"p":
                return self.integer() * _MICROSECOND
            case b"U":
                return UUID(bytes=bytes(self.take(16)))
        raise ValueError(f"no value begins with {tag!r}")

    def storable(self, deep: int) -> Any:
        kind = self.text()
        if kind not in _kinds:
            import_module("limen").load  # noqa: B018 - loads every module, and so every kind
        if kind not in _kinds:
            raise ValueError(f"this limen knows no {kind!r}; a newer one may")
        cls = _kinds[kind]
        if deep == 0 and issubclass(self.outermost, cls):
            cls = self.outermost  # a subclass brings back itself
        parts = {}
        for _ in range(self.size()):
            name = self.text()
            parts[name] = self.value(deep + 1)
        return cls._from_parts(parts)


def _read(stored: Any, cls: type[Storable]) -> Any:
    if not isinstance(stored, bytes | bytearray | memoryview):
        raise TypeError(f"from_bytes() needs bytes, got {stored!r}. For a file use limen.load().")
    view = memoryview(stored).cast("B")
    _verify(view)
    reader = _Reader(view[_HEADER.size : -_DIGEST], cls)
    try:
        found = reader.value()
        if not isinstance(found, Storable) or reader.at != len(reader.stored):
            raise ValueError("not one whole object")
    except MemoryError:
        raise
    except Exception as error:
        # Only bytes that were made to pass the checksum come here.
        raise ValueError(f"these bytes do not describe an object of limen: {error}.") from error
    return found


def _verify(view: memoryview) -> None:
    """Raise ValueError unless all of the bytes are there, unchanged, and not from the future."""
    from hashlib import blake2b

    begin = bytes(view[: len(_MAGIC)])
    if begin != _MAGIC[: len(begin)]:
        raise ValueError(f"these bytes were not written by limen: they begin with {begin!r}.")
    if len(view) >= _HEADER.size:
        _, version, size = _HEADER.unpack(view[: _HEADER.size])
        size += _HEADER.size + _DIGEST
    if len(view) < _HEADER.size or len(view) < size:
        expected = f" of {size:,}" if len(view) >= _HEADER.size else ""
        raise ValueError(
            f"these bytes were cut short or changed: only {len(view):,}{expected} are there. "
            "Take another copy."
        )
    digest = blake2b(view[:-_DIGEST], digest_size=_DIGEST).digest()
    if len(view) != size or digest != view[-_DIGEST:]:
        raise ValueError("these bytes were changed: the checksum differs. Take another copy.")
    if version > _VERSION:
        raise ValueError(
            f"these bytes are in version {version} of the format, and this limen reads up to "
            f"{_VERSION}. Install a newer limen."
        )


# ---- files ----------------------------------------------------------------------------------


def _from_file(path: str | os.PathLike[str], cls: type[_Object]) -> _Object:
    with open(path, "rb") as file:
        stored = file.read()
    try:
        return cls.from_bytes(stored)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None
