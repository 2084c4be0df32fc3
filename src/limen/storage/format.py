# SPDX-License-Identifier: Apache-2.0
"""Values to bytes and back, in the format that docs/format.md describes.

Nothing in the bytes is ever run, unlike in a pickle. An object is stored as the name of its kind
and its snapshot; which class that kind is, the caller says.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Outdated", "read", "value_bytes", "write"]

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_MAGIC = b"\x89limen\r\n"
_VERSION = 3
_HEADER = struct.Struct("<8sH6xQ")  # what it is, version, bytes of the body
_DIGEST = 16
_DEEPEST = 16
_LONGEST = 8192  # bytes of a part of a fraction, whose terms are reduced in quadratic time

_SIZE = struct.Struct("<Q")
_INT = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")
_ARRAYS: dict[bytes, np.dtype[Any]] = {
    b"1": np.dtype("u1"),
    b"8": np.dtype("<i8"),
    b"d": np.dtype("<f8"),
}
_CODES = {dtype: code for code, dtype in _ARRAYS.items()}


class Outdated(ValueError):  # noqa: N818 - reads as what happened
    """An object as it was stored before limen 0.1.0."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"these bytes hold a {kind} in a format from before limen 0.1.0, which is no longer "
            "read. Make it again from its samples, and store that."
        )


def write(stored: Any) -> bytes:
    """Return the bytes of an object: header, body and digest. O(n)."""
    from hashlib import blake2b  # it loads slowly, and most programs never come here

    pieces = [b""]
    _put(pieces, stored)
    pieces[0] = _HEADER.pack(_MAGIC, _VERSION, sum(map(len, pieces)))
    digest = blake2b(digest_size=_DIGEST)
    for piece in pieces:
        digest.update(piece)
    return b"".join([*pieces, digest.digest()])


def value_bytes(value: Any) -> bytes:
    """Return the bytes of a value alone, as they stand in a body.

    >>> value_bytes(1) == b"i" + (1).to_bytes(8, "little")
    True
    """
    pieces: list[bytes] = []
    _put(pieces, value)
    return b"".join(pieces)


def read(stored: Any, class_of: Callable[[str, int], Any]) -> Any:
    """Bring back the object in some bytes; `class_of` finds the class of a kind at some depth.

    Raises ValueError unless the bytes are complete, unchanged, of a known version and sound.
    """
    if not isinstance(stored, bytes | bytearray | memoryview):
        raise TypeError(f"from_bytes() needs bytes, got {stored!r}. For a file use limen.load().")
    view = memoryview(stored).cast("B")
    _verify(view)
    reader = _Reader(view[_HEADER.size : -_DIGEST], class_of)
    try:
        found = reader.value()
        if bytes(reader.stored[:1]) != b"O" or reader.at != len(reader.stored):
            raise ValueError("not one whole object")
    except (MemoryError, Outdated):
        raise
    except Exception as error:
        # Only bytes that were made to pass the checksum come here.
        raise ValueError(f"these bytes do not describe an object of limen: {error}.") from error
    return found


def _put(pieces: list[Any], value: Any, deep: int = 0) -> None:
    """Append the bytes of a value."""
    if deep > _DEEPEST:
        raise ValueError("values are nested too deep to be stored.")
    if value is None:
        pieces.append(b"N")
    elif hasattr(type(value), "from_snapshot"):
        parts = value.snapshot()
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

    def __init__(self, stored: memoryview, class_of: Callable[[str, int], Any]) -> None:
        self.stored = stored
        self.at = 0
        self.class_of = class_of

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
        cls = self.class_of(self.text(), deep)
        parts = {}
        for _ in range(self.size()):
            name = self.text()
            parts[name] = self.value(deep + 1)
        return cls.from_snapshot(parts)


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
