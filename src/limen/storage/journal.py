# SPDX-License-Identifier: Apache-2.0
"""A model in a file, and beside it what has come in since: killed at any moment, nothing is lost.

``FILE`` is the model as `save` writes it. ``FILE.journal`` begins with the checksum of the model
that it continues and holds what came in after it, each piece on disk before anything is said
about it. To `settle` is to save the model and begin a new journal: the new one is written first,
under another name, then the model is replaced, then the journal. Whichever of the three steps was
the last, one journal continues the model that is there.

``FILE.lock`` exists while a process uses them. It is locked, so that one left by a kill is free.

Errors are `Damaged` for what the files hold, and `OSError` for the rest.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from typing import IO, TYPE_CHECKING, Any

from limen.storage.files import begun, replace, sync_folder, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.storage import Storable

__all__ = ["Damaged", "Journal", "has_more"]

_DIGEST = 16  # bytes of checksum at the end of a stored model
_MARK = b"\xff"  # begins a piece, and is in no UTF-8
_HEAD = struct.Struct("<ccII")  # the mark, what it is, bytes, checksum of them
_CHECK = struct.Struct("<I")  # checksum of the head
_BEGINNING = b"J"
_LEAST = 2**26  # bytes of a journal before the model is saved again


class Damaged(ValueError):  # noqa: N818 - reads as what happened
    """A journal was changed, or does not continue the model beside it."""


class Journal:
    """The journal of one model.

    Attributes
    ----------
    beginning
        What was written about the model when it was saved.
    dropped
        Bytes at the end that were cut off when the process was killed, and were dropped.
    grown
        Whether it has become so long that the model should be saved again.
    """

    def __init__(self, path: str) -> None:
        self.path = _real(path)
        self.beside = _beside(path)
        self.beginning: dict[str, Any] = {}
        self.dropped = 0
        self._file = self._lock = -1
        self._size = self._saved = self._seed = 0

    def lock(self) -> None:
        """Keep other processes away, before anything else is done."""
        if os.path.isdir(self.path):
            raise IsADirectoryError(f"{self.path} is a folder. Name a file in it.")
        name = f"{self.path}.lock"
        while True:
            file = -1
            try:
                file = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise BlockingIOError(
                    f"{self.path} is in use by another limen watch. Wait until it ends, or name "
                    "another file."
                ) from None
            except OSError as error:
                if file >= 0:
                    os.close(file)
                raise OSError(f"{name} cannot be locked: {error.strerror}.") from None
            if _is_still(file, name):
                self._lock = file
                return
            os.close(file)  # its owner ended and removed it in between

    def is_there(self) -> bool:
        """Return whether there is a model with a journal, or with one that was to be renamed."""
        journals = (self.beside, f"{self.beside}.new")
        return os.path.exists(self.path) and any(map(os.path.exists, journals))

    def begin(self, model: Storable, beginning: dict[str, Any]) -> None:
        """Start with a model that is in no file yet."""
        for path in (self.path, self.beside):
            if os.path.exists(path):
                raise FileExistsError(
                    f"{path} is there, but not {self.beside}, so it is unknown how much of the "
                    "input the model has seen. Name another file."
                    if path == self.path
                    else f"{path} exists, but {self.path} does not. Move it away to start over."
                )
        self.settle(model, beginning)

    def resume(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what came in after the model was saved.

        A piece at the end that was cut off was never acknowledged; it is dropped. Damage
        before it raises `Damaged`, and the file stays as it is.
        """
        base = self._base()
        self._recover(base)
        if not os.path.exists(self.beside):
            raise FileNotFoundError(f"{self.beside} is missing. Name another file to start over.")
        with open(self.beside, "rb") as file:
            pieces = _pieces(file, self.beside)
            self.beginning, self._seed, self._size = _first(pieces)
            if self.beginning.get("base") != base:
                raise Damaged(
                    f"{self.beside} does not continue {self.path}. Bring both back from one copy."
                )
            for kind, payload, end in pieces:
                yield kind, payload
                self._size = end
            self.dropped = file.seek(0, os.SEEK_END) - self._size
        self._file = os.open(self.beside, os.O_RDWR)
        os.ftruncate(self._file, self._size)
        os.lseek(self._file, self._size, os.SEEK_SET)

    def _base(self) -> str:
        with open(self.path, "rb") as file:
            self._saved = file.seek(0, os.SEEK_END)
            file.seek(max(0, self._saved - _DIGEST))
            return file.read().hex()

    def _recover(self, base: str) -> None:
        """Finish a settling that was interrupted after the model was replaced."""
        fresh = f"{self.beside}.new"
        if not os.path.exists(fresh):
            return
        with open(fresh, "rb") as file:
            try:
                beginning, _, _ = _first(_pieces(file, fresh))
            except Damaged:  # it was interrupted while this was written
                return
        if beginning.get("base") == base:
            os.replace(fresh, self.beside)
            sync_folder(self.beside)

    def append(self, kind: bytes, payload: bytes) -> None:
        """Write a piece; when this returns, it is on disk."""
        piece = _framed(kind, payload, self._seed)
        write_all(self._file, piece)
        os.fdatasync(self._file)
        self._size += len(piece)

    @property
    def grown(self) -> bool:
        """Whether the model should be saved again: seldom enough to cost little."""
        return self._size > max(_LEAST, 4 * self._saved)

    def settle(self, model: Storable, beginning: dict[str, Any]) -> None:
        """Save the model, and begin a journal that continues it, as readable as the model is."""
        stored = model.to_bytes()
        fresh = f"{self.beside}.new"
        self.beginning = {**beginning, "base": stored[-_DIGEST:].hex()}
        payload = json.dumps(self.beginning).encode()
        first = _framed(_BEGINNING, payload)
        file = begun(fresh, like=self.path)
        try:
            write_all(file, first)
            os.fsync(file)
            replace(self.path, stored, draft=f"{self.path}.new")
            os.replace(fresh, self.beside)
        except BaseException:
            os.close(file)
            raise
        sync_folder(self.beside)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size, self._saved = file, len(first), len(stored)
        self._seed = zlib.crc32(payload)

    def close(self) -> None:
        """Let others use it."""
        if self._file >= 0:
            os.close(self._file)
        if self._lock >= 0:
            name = f"{self.path}.lock"
            if _is_still(self._lock, name):
                os.unlink(name)
            os.close(self._lock)
        self._file = self._lock = -1


def has_more(path: str) -> bool:
    """Return whether the journal of a model holds what the model does not."""
    beside = _beside(path)
    try:
        with open(beside, "rb") as file:
            pieces = _pieces(file, beside)
            _first(pieces)
            return next(pieces, None) is not None
    except FileNotFoundError:
        return False


def _real(path: str) -> str:
    """Name the file that a link leads to, so that all who use it meet."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _beside(path: str) -> str:
    return _real(f"{_real(path)}.journal")


def _is_still(file: int, name: str) -> bool:
    """Return whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(name))
    except FileNotFoundError:
        return False


# ---- pieces ---------------------------------------------------------------------------------


def _framed(kind: bytes, payload: bytes, seed: int = 0) -> bytes:
    head = _HEAD.pack(_MARK, kind, len(payload), zlib.crc32(payload))
    return head + _CHECK.pack(zlib.crc32(head, seed)) + payload


def _head(content: bytes, seed: int) -> tuple[bytes, int, int] | None:
    """Read what a piece is, its bytes and their checksum; None if this is no head."""
    head, check = content[: _HEAD.size], content[_HEAD.size :]
    if head[:1] != _MARK or check != _CHECK.pack(zlib.crc32(head, seed)):
        return None
    _, kind, size, checksum = _HEAD.unpack(head)
    return kind, size, checksum


def _first(pieces: Iterator[tuple[bytes, bytes, int]]) -> tuple[dict[str, Any], int, int]:
    """Read how a journal begins, the seed of its checksums, and where it goes on."""
    _, payload, end = next(pieces)
    return json.loads(payload), zlib.crc32(payload), end


def _pieces(file: IO[bytes], name: str) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield what each piece is, what it holds and where it ends.

    A piece that is not whole was cut off if it is the last one and not the first, which was on
    disk before it got its name. With another one after it, it was whole once.
    """
    at, seed, size = 0, 0, os.fstat(file.fileno()).st_size
    while at < size or at == 0:
        head = _head(file.read(_HEAD.size + _CHECK.size), seed)
        if head is not None:
            kind, length, checksum = head
            payload = file.read(length)
            if len(payload) == length and zlib.crc32(payload) == checksum:
                seed = zlib.crc32(payload) if at == 0 else seed
                at = file.tell()
                yield kind, payload, at
                continue
        if at == 0 or (head is not None and file.tell() < size) or _goes_on(file, at, seed):
            raise Damaged(
                f"{name}: the piece at byte {at:,} is damaged. Nothing was changed. Bring the "
                "file and the model beside it back from one copy, or move both away and send all "
                "rows again."
            )
        return


def _goes_on(file: IO[bytes], at: int, seed: int) -> bool:
    """Return whether another piece begins after the one at this byte."""
    file.seek(at)
    rest = file.read()
    place = rest.find(_MARK, 1)
    while place >= 0:
        if _head(rest[place : place + _HEAD.size + _CHECK.size], seed) is not None:
            return True
        place = rest.find(_MARK, place + 1)
    return False
