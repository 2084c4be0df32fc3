# SPDX-License-Identifier: Apache-2.0
"""Packed files: gzip, bzip2, xz and zstd, recognised by their first bytes."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from limen.cli.exits import BAD_INPUT, Failure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Damaged", "packed_by", "packing_of", "unpacked", "without_packing"]

_BUFFER = 2**18


class Damaged(Exception):  # noqa: N818 - reads as what happened
    """Packed data ends too early, or cannot be unpacked."""


class _Packing(NamedTuple):
    mark: bytes
    suffix: str
    module: str


_PACKINGS = {
    "gzip": _Packing(b"\x1f\x8b", ".gz", "gzip"),
    "bzip2": _Packing(b"BZh", ".bz2", "bz2"),
    "xz": _Packing(b"\xfd7zXZ\x00", ".xz", "lzma"),
    "zstd": _Packing(b"\x28\xb5\x2f\xfd", ".zst", "zstandard"),
}


def packing_of(begin: bytes) -> str | None:
    """Name the packing of a file by its first bytes; None for one that is not packed."""
    return next((name for name, each in _PACKINGS.items() if begin.startswith(each.mark)), None)


def packed_by(path: str) -> str | None:
    """Name the packing of a file; None for one that is not packed."""
    with open(path, "rb") as file:
        return packing_of(file.read(8))


def without_packing(name: str) -> str:
    """Return the name of a file without the suffix of its packing.

    >>> without_packing("scores.csv.zst"), without_packing("scores.csv")
    ('scores.csv', 'scores.csv')
    """
    for each in _PACKINGS.values():
        if name.lower().endswith(each.suffix):
            return name[: -len(each.suffix)]
    return name


def unpacked(stream: IO[bytes], packing: str | None, path: str) -> IO[bytes]:
    """Read what a stream has packed; raise `Failure` where a name promises another packing."""
    for name, each in _PACKINGS.items():
        if path.endswith(each.suffix) and packing != name:
            raise Failure(
                f"{path} is named {each.suffix}, but it does not begin as a {name} file does. "
                "Rename it, or pack it again.",
                BAD_INPUT,
            )
    if packing is None:
        return stream
    reader = (
        _zstd(stream, path)
        if packing == "zstd"
        else import_module(_PACKINGS[packing].module).open(stream, "rb")
    )
    return io.BufferedReader(_Unpacked(reader, packing), _BUFFER)


class _Unpacked(io.RawIOBase):
    """What a reader unpacks; damage of any packing is one error."""

    def __init__(self, reader: Any, packing: str) -> None:
        self.reader, self.packing = reader, packing

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self.reader.read(len(buffer))
        except Exception as error:
            if getattr(error, "errno", None) is not None or isinstance(error, MemoryError):
                raise  # of the disk, and not of the data
            raise Damaged(f"the {self.packing} data ends or is damaged ({error})") from None
        buffer[: len(piece)] = piece
        return len(piece)


class _Zstd:
    """The frames of a stream, unpacked one after the other; one that is cut short is an error.

    The readers of zstandard end there as if all had been read.
    """

    def __init__(self, stream: IO[bytes], new_frame: Callable[[], Any]) -> None:
        self.stream, self.new_frame = stream, new_frame
        self.frame: Any = None
        self.packed, self.ready = b"", b""

    def read(self, size: int) -> bytes:
        while not self.ready:
            self.packed = self.packed or self.stream.read(_BUFFER)
            if not self.packed:
                if self.frame is not None:
                    raise EOFError("a frame is cut short")
                return b""
            self.frame = self.frame or self.new_frame()
            self.ready = self.frame.decompress(self.packed)
            self.packed = b""
            if self.frame.eof:
                self.packed, self.frame = self.frame.unused_data, None
        piece, self.ready = self.ready[:size], self.ready[size:]
        return piece


def _zstd(stream: IO[bytes], path: str) -> _Zstd:
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdDecompressor

            return _Zstd(stream, ZstdDecompressor)
        import zstandard

        return _Zstd(stream, lambda: zstandard.ZstdDecompressor().decompressobj())
    except ImportError:
        raise Failure(
            f"{path} is packed by zstd, which needs zstandard. Install it with: pip install "
            '"limen[cli]", or unpack it: zstd -dc FILE | limen …'
        ) from None
