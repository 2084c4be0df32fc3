# SPDX-License-Identifier: Apache-2.0
"""A file is replaced at once: a reader finds all of the old one or all of the new one.

Everything that limen writes goes through here.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["begun", "replace", "replacing", "sync_folder", "write_all"]

_BINARY = getattr(os, "O_BINARY", 0)


def replace(path: str | os.PathLike[str], content: bytes, draft: str | None = None) -> None:
    """Write a file, or replace it at once; when this returns, it is on disk.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "new")
    >>> replace(path, b"content")
    >>> os.path.getsize(path)
    7
    """
    with replacing(path, draft) as file:
        write_all(file, content)


@contextmanager
def replacing(path: str | os.PathLike[str], draft: str | None = None) -> Iterator[int]:
    """Give a draft to write to, which takes the place of the file when it is on disk.

    A link is followed, and the file keeps its owner and its permissions. Where something fails,
    the old file stays and the draft goes. What is no file, as /dev/stdout, is written to.

    Only who keeps others away may name the draft: so one that a kill left behind is found again.
    """
    old = _status(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        file = os.open(path, os.O_WRONLY | _BINARY)
        try:
            yield file
        finally:
            os.close(file)
        return
    target = os.path.realpath(path)  # the file that a link leads to, not the link
    if draft is None:
        folder, name = os.path.split(target)
        draft = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
    file = begun(draft, like=target)
    try:
        try:
            yield file
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise
    sync_folder(target)


def begun(draft: str, like: str) -> int:
    """Open a new file with the permissions, and if we may the owner, of one that may be there."""
    with suppress(FileNotFoundError):
        os.unlink(draft)
    old = _status(like)
    mode = 0o666 if old is None else 0o600
    file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    if old is not None:
        try:
            if hasattr(os, "chown"):
                with suppress(PermissionError):
                    os.chown(draft, old.st_uid, old.st_gid)
            os.chmod(draft, stat.S_IMODE(old.st_mode))
        except BaseException:
            os.close(file)
            os.unlink(draft)
            raise
    return file


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def write_all(file: int, content: bytes) -> None:
    """Write every byte, in as many pieces as it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def sync_folder(path: str) -> None:
    """Wait until the name of a file is on disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
