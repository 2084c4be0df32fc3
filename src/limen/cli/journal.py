# SPDX-License-Identifier: Apache-2.0
"""A model in a file, and beside it what has come in since: killed at any moment, nothing is lost.

``FILE`` is the model as `save` writes it. ``FILE.journal`` begins with the checksum of the model
that it continues and holds what came in after it, each piece on disk before anything is said
about it. To `settle` is to save the model and begin a new journal: the new one is written first,
under another name, then the model is replaced, then the journal. Whichever of the three steps was
the last, one journal continues the model that is there.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

from limen.cli.outcome import BAD_INPUT, FAILED, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.storage import Storable

__all__ = ["Journal", "has_more"]

_DIGEST = 16  # bytes of checksum at the end of a stored model
_HEAD = struct.Struct("<cII")  # what it is, bytes, checksum
_BEGINNING = b"J"
_LEAST = 2**26  # bytes of a journal before the model is saved again


class Journal:
    """The journal of one model.

    Attributes
    ----------
    beginning
        What was told about the model when it was saved.
    grown
        Whether it has become so long that the model should be saved again.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.beside = f"{path}.journal"
        self.beginning: dict[str, Any] = {}
        self._file = -1
        self._size = self._saved = 0

    def is_there(self) -> bool:
        """Tell whether there is a model with a journal, or with one that was to be renamed."""
        journals = (self.beside, f"{self.beside}.new")
        return os.path.exists(self.path) and any(map(os.path.exists, journals))

    def begin(self, model: Storable, beginning: dict[str, Any]) -> None:
        """Start with a model that is in no file yet."""
        for path in (self.path, self.beside):
            if os.path.exists(path):
                raise Failure(
                    f"{path} is there, but not {self.beside}, so it is unknown how much of the "
                    "input the model has seen. Name another file."
                    if path == self.path
                    else f"{path} is there, but not {self.path}. Move it away to start anew."
                )
        self.settle(model, beginning)

    def resume(self) -> Iterator[tuple[bytes, bytes]]:
        """Lock the journal and yield what came in after the model was saved.

        What was cut off in the middle was never told to anybody; it is dropped.
        """
        base = self._base()
        self._recover(base)
        if not os.path.exists(self.beside):
            raise Failure(f"{self.beside} is not there. Name another file to start anew.")
        self._file = self._locked()
        with open(self.beside, "rb") as file:
            kind, payload, end = _piece(file)
            if kind == _BEGINNING:
                self.beginning = json.loads(payload)
            if self.beginning.get("base") != base:
                raise Failure(
                    f"{self.beside} does not continue {self.path}. Bring both back from one copy.",
                    BAD_INPUT,
                )
            self._size = end
            while True:
                kind, payload, end = _piece(file)
                if kind == b"":
                    break
                yield kind, payload
                self._size = end
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
            kind, payload, _ = _piece(file)
        if kind == _BEGINNING and json.loads(payload).get("base") == base:
            self._locked_elsewhere()
            os.replace(fresh, self.beside)
            _sync_folder(self.beside)

    def _locked_elsewhere(self) -> None:
        """Raise if another process writes the journal that is about to be replaced."""
        if os.path.exists(self.beside):
            os.close(self._locked())

    def _locked(self) -> int:
        """Open the journal for this process alone."""
        while True:
            file = os.open(self.beside, os.O_RDWR)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
                raise Failure(f"{self.path} is in use by another limen watch.", FAILED) from None
            if os.path.exists(self.beside) and os.path.samestat(
                os.fstat(file), os.stat(self.beside)
            ):
                return file
            os.close(file)  # it was replaced in between

    def append(self, kind: bytes, payload: bytes) -> None:
        """Write a piece; when this returns, it is on disk."""
        _write(self._file, _framed(kind, payload))
        os.fdatasync(self._file)
        self._size += _HEAD.size + len(payload)

    @property
    def grown(self) -> bool:
        """Whether the model should be saved again: seldom enough to cost little."""
        return self._size > max(_LEAST, 4 * self._saved)

    def settle(self, model: Storable, beginning: dict[str, Any]) -> None:
        """Save the model, and begin a journal that continues it."""
        stored = model.to_bytes()
        fresh = f"{self.beside}.new"
        self.beginning = {**beginning, "base": stored[-_DIGEST:].hex()}
        first = _framed(_BEGINNING, json.dumps(self.beginning).encode())
        file = _on_disk(fresh, first)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(_on_disk(f"{self.path}.new", stored))
        os.replace(f"{self.path}.new", self.path)
        _sync_folder(self.path)
        os.replace(fresh, self.beside)
        _sync_folder(self.beside)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size, self._saved = file, len(first), len(stored)

    def close(self) -> None:
        """Let others use it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def has_more(path: str) -> bool:
    """Tell whether the journal of a model holds what the model does not."""
    try:
        with open(f"{path}.journal", "rb") as file:
            _piece(file)
            return _piece(file)[0] != b""
    except FileNotFoundError:
        return False


def _framed(kind: bytes, payload: bytes) -> bytes:
    return _HEAD.pack(kind, len(payload), zlib.crc32(payload)) + payload


def _piece(file: Any) -> tuple[bytes, bytes, int]:
    """Read the next piece and where it ends; empty where nothing whole is left."""
    head = file.read(_HEAD.size)
    if len(head) == _HEAD.size:
        kind, size, checksum = _HEAD.unpack(head)
        payload = file.read(size)
        if len(payload) == size and zlib.crc32(payload) == checksum:
            return kind, payload, file.tell()
    return b"", b"", 0


def _on_disk(path: str, content: bytes) -> int:
    """Write a new file, and give it when it is on disk."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
    _write(file, content)
    os.fsync(file)
    return file


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
