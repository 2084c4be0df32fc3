# SPDX-License-Identifier: Apache-2.0
"""The log: events in groups, one group for each commit, in one SQLite file that only grows.

A group holds its events as one blob, chained by SHA-256 to the group before; the ids lie in a blob
of their own outside the chain, so that one can be deleted without rewriting what happened. `head`
holds the end of the chain in two checksummed slots and is synced after each commit, before any
answer: a damaged WAL would otherwise lose acknowledged commits without a word from SQLite.

One connection writes; all others only read. See docs/service.md.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
import struct
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from zlib import crc32

from limen.service.points.events import (
    Damaged,
    Event,
    Ids,
    decode_events,
    decode_names,
    encode,
    renamed,
)
from limen.storage.files import replace, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "Damaged",
    "Group",
    "InUse",
    "Log",
    "Reader",
    "anchor",
    "head_of",
    "locked",
    "read_head",
    "renew_era",
]

FORMAT = 1
_SLOT = struct.Struct("<QQ32sI")  # number of the commit, last seq, chain, check
_ORIGIN = bytes(32)
_PATIENCE = 10_000  # milliseconds to wait for other connections

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE groups (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    events BLOB NOT NULL,
    chain BLOB NOT NULL,
    names BLOB NOT NULL,
    names_check INTEGER NOT NULL
) STRICT;
"""
_COLUMNS = "first, last, events, chain, names, names_check"


class InUse(Exception):  # noqa: N818
    """Another process has the data directory."""


class Group(NamedTuple):
    """The events of one commit, as they are stored."""

    first: int
    last: int
    events: bytes
    chain: bytes
    names: bytes
    names_check: int

    def ids(self) -> list[Ids]:
        """Return the ids of its events; those that were changed on disk are refused."""
        if crc32(self.names) != self.names_check:
            raise Damaged(
                f"the ids of events {self.first} to {self.last} were changed on disk. "
                "Restore a backup."
            )
        return decode_names(self.names)

    def unpacked(self) -> Iterator[tuple[int, Event, Ids]]:
        """Yield seq, event and id of each; what was changed on disk is refused."""
        try:
            events, names = decode_events(self.events), self.ids()
        except ValueError as error:
            raise Damaged(f"events {self.first} to {self.last} cannot be read: {error}") from None
        numbers = range(self.first, self.last + 1)
        try:
            yield from zip(numbers, events, names, strict=True)
        except ValueError:
            raise Damaged(f"group {self.first} does not hold its events.") from None


def link(chain: bytes, first: int, last: int, events: bytes) -> bytes:
    """Return the end of the chain after one more group."""
    digest = hashlib.sha256(chain)
    digest.update(struct.pack("<QQ", first, last))
    digest.update(events)
    return digest.digest()


class Reader:
    """A connection that only reads: it sees what is committed."""

    def __init__(self, folder: Path) -> None:
        path = folder / "log.db"
        if not path.exists():
            raise FileNotFoundError(2, "there is no log", str(path))
        self._db = _opened(path, "ro")

    def close(self) -> None:
        """End the connection."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Let all that is read inside be of one moment, whatever is committed meanwhile."""
        if self._db.in_transaction:
            yield
            return
        _sound(self._db, "BEGIN", ())
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def meta(self, name: str) -> bytes | None:
        """Return a value of the log as a whole."""
        asked = "SELECT value FROM meta WHERE name = ?"
        row = _first(self._db, asked, (name,), (bytes,))
        return None if row is None else row[0]

    def base(self) -> tuple[int, bytes]:
        """Return up to where events were deleted by retention, and the chain there."""
        return _based(self.meta("base") or b"")

    def groups(self, after: int = 0, last: int | None = None) -> Iterator[Group]:
        """Yield the groups with events after some seq, up to another; stored order.

        Whatever is read is checked: each is linked to the group before it, and that after it to it,
        or it is refused. What stands in the row alone could be changed together.
        """
        most = 2**62 if last is None else last
        # One group more on either side. In one statement, so that all of it is of one moment.
        asked = (
            f"SELECT {_COLUMNS}, coalesce((SELECT value FROM meta WHERE name = 'base'), x'') "
            "FROM groups WHERE first >= coalesce((SELECT first FROM groups WHERE first <= ? "
            "ORDER BY first DESC LIMIT 1 OFFSET 1), 0) AND first <= coalesce((SELECT first FROM "
            "groups WHERE first > ? ORDER BY first LIMIT 1), ?) ORDER BY first"
        )
        types = (int, int, bytes, bytes, bytes, int, bytes)
        before: tuple[int, bytes] | None = None  # the end of the group before, and the chain there
        held: Group | None = None
        for *row, base in _rows(_sound(self._db, asked, (after + 1, most, most)), types):
            group = Group(*row)
            if before is None:
                before = _based(base)
                if group.last <= after and group.first > before[0] + 1:
                    before = group.last, group.chain
                    continue
            if group.first != before[0] + 1 or group.last < group.first:
                raise Damaged(f"the log goes from event {before[0]} to {group.first}.")
            before = group.last, link(before[1], group.first, group.last, group.events)
            if before[1] != group.chain:
                raise Damaged(
                    f"events {group.first} to {group.last} are not those that were written: the "
                    "chain of digests breaks there. Restore a backup."
                )
            if held is not None:
                yield held
            held = group if group.last > after and group.first <= most else None
        if held is not None:
            yield held

    def events(self, after: int = 0, last: int | None = None) -> Iterator[tuple[int, Event, Ids]]:
        """Yield seq, event and id of the events after some seq, up to another."""
        for group in self.groups(after, last):
            for seq, event, id in group.unpacked():
                if seq > after and (last is None or seq <= last):
                    yield seq, event, id

    def end(self) -> tuple[int, bytes]:
        """Return the last seq and the end of the chain as it is stored."""
        found = self._last_until(2**62)
        return self.base() if found is None else found

    def _last_until(self, seq: int) -> tuple[int, bytes] | None:
        asked = "SELECT last, chain FROM groups WHERE first <= ? ORDER BY first DESC LIMIT 1"
        row = _first(self._db, asked, (seq,), (int, bytes))
        return None if row is None else (row[0], row[1])

    def chain_at(self, seq: int) -> bytes | None:
        """Return the chain after the group that ends at some seq; None where none does."""
        if seq == self.base()[0]:
            return self.base()[1]
        found = self._last_until(seq)
        return found[1] if found is not None and found[0] == seq else None

    def require_reached(self, seq: int, chain: bytes) -> None:
        """Refuse a log that ends before what was answered for, or is another one."""
        last = self.end()[0]
        if last < seq:
            raise Damaged(
                f"acknowledged events are missing: the log ends at {last}, and {seq} was answered "
                "for. Restore a backup, or the missing log.db-wal; `limen serve verify --accept` "
                "goes on without them."
            )
        if seq >= self.base()[0] and self.chain_at(seq) != chain:
            raise Damaged(f"event {seq} is not the one that was answered for. Restore a backup.")

    def forgot(self) -> int:
        """Return the seq of the last event that deleted an id."""
        return int.from_bytes(self.meta("forgot") or b"", "big")


class Log(Reader):
    """The one connection that writes, with the lock of the directory."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.folder = folder
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not (folder / "log.db").exists():
            raise FileNotFoundError(2, "there is no log", str(folder / "log.db"))
        self._lock = locked(folder)
        self._db: sqlite3.Connection | None = None  # type: ignore[assignment]
        self._head: int | None = None
        self.uncut = False  # whether the WAL or a page behind it may hold what was deleted
        self.clean = 0  # up to this event, nothing that was deleted is left in either
        try:
            self._begin()
            if self.forgot():  # what was deleted before a kill may still be there
                self.cut()
            else:
                self.clean = self.last
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        path = self.folder / "log.db"
        new = not path.exists()
        self._db = db = _opened(path, "rwc")
        os.chmod(path, 0o600)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            _sound(db, f"PRAGMA {pragma}", ()).fetchall()
        if new or not _sound(db, "SELECT 1 FROM sqlite_master", ()).fetchall():
            made = "".join(
                f"INSERT INTO meta VALUES ('{name}', x'{value.hex()}');"
                for name, value in (
                    ("format", bytes([FORMAT])),
                    ("key", os.urandom(32)),
                    ("era", os.urandom(16)),
                )
            )
            db.executescript(f"BEGIN; {_TABLES} {made} COMMIT;")
            sync_folder(str(path))
        stored = self.meta("format")
        if stored is None or stored[0] > FORMAT:
            raise Damaged("the log was written by a newer limen. Install that one.")
        self.last, self.chain = self.end()
        head = self.folder / "head"
        if not head.exists() and self.last == 0:
            anchor(self.folder, 0, self.last, self.chain)
        try:
            self._head = os.open(head, os.O_RDWR)
        except FileNotFoundError:
            raise _headless("missing") from None
        self._commits, seq, chain = self._anchored()
        self.require_reached(seq, chain)

    def _anchored(self) -> tuple[int, int, bytes]:
        assert self._head is not None
        return read_head(os.pread(self._head, 2 * _SLOT.size, 0))

    def append(
        self,
        events: Sequence[Event],
        names: Sequence[Ids],
        erased: Mapping[int, Mapping[str, int]] | None = None,
    ) -> None:
        """Commit events, all or none; when this returns, they are on disk and in the head.

        `erased` are seqs of events with ids that are deleted, and what stands for each from now on.
        """
        assert self._db is not None
        first, last = self.last + 1, self.last + len(events)
        blob, named = encode(events), encode(names)
        chain = link(self.chain, first, last, blob)
        row = (first, last, blob, chain, named, crc32(named))
        with self._committed() as db:
            db.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)", row)
            for group, held in self._renamed(erased or {}):
                db.execute(
                    "UPDATE groups SET names = ?, names_check = ? WHERE first = ?",
                    (held, crc32(held), group),
                )
            if erased:
                forgot = last.to_bytes(8, "big")
                db.execute("INSERT OR REPLACE INTO meta VALUES ('forgot', ?)", (forgot,))
        self.uncut = self.uncut or bool(erased)
        self._sync_head(last, chain)
        self.last, self.chain = last, chain
        if self.uncut:
            self.cut()

    def keep(self, name: str, value: bytes) -> None:
        """Commit a value of the log as a whole, in the place of the one before."""
        with self._committed() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @contextmanager
    def _committed(self) -> Iterator[sqlite3.Connection]:
        """Let all that is done inside be one commit; where any of it fails, nothing was done."""
        assert self._db is not None
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def _sync_head(self, last: int, chain: bytes) -> None:
        assert self._head is not None
        self._commits += 1
        slot = _slot(self._commits, last, chain)
        if os.pwrite(self._head, slot, self._commits % 2 * _SLOT.size) != len(slot):
            raise OSError("the head could not be written")
        os.fdatasync(self._head)

    def _renamed(self, erased: Mapping[int, Mapping[str, int]]) -> Iterator[tuple[int, bytes]]:
        base = self.base()[0]  # retention may have deleted some meanwhile
        wanted = {seq: new for seq, new in erased.items() if seq > base}
        while wanted:
            seq = min(wanted)
            group = next(self.groups(seq - 1, seq))
            names = group.ids()
            for at in [at for at in wanted if at <= group.last]:
                names[at - group.first] = renamed(names[at - group.first], wanted.pop(at))
            yield group.first, encode(names)

    def delete_until(self, seq: int, before: int) -> int:
        """Delete groups of before some time and not after a seq; return up to where."""
        assert self._db is not None
        base = self.base()[0]
        chain = b""
        for group in self.groups(base, seq):
            if group.last > seq or decode_events(group.events)[-1].at >= before:
                break
            base, chain = group.last, group.chain
        if chain:
            stored = base.to_bytes(8, "big") + chain
            with self._committed() as db:
                db.execute("INSERT OR REPLACE INTO meta VALUES ('base', ?)", (stored,))
                db.execute("DELETE FROM groups WHERE last <= ?", (base,))
            self.cut()
        return base

    def cut(self) -> None:
        """Write what the WAL holds to its place and empty it: no byte of what was deleted stays.

        A reader may be in the way. It is not waited for, as commits would wait too: `uncut` says
        that this is to be tried again.
        """
        assert self._db is not None
        self.uncut = True
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            with suppress(sqlite3.OperationalError):  # what is committed stands, whatever fails
                asked = _sound(self._db, "PRAGMA wal_checkpoint(TRUNCATE)", ())
                self.uncut = asked.fetchone()[0] != 0
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
        if not self.uncut:
            self.clean = self.last

    def reopen(self) -> None:
        """Start over after a failed commit: what counts is what is on disk."""
        self._release()
        self._begin()

    def _release(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        if self._head is not None:
            os.close(self._head)
            self._head = None

    def close(self) -> None:
        """Checkpoint, close and give the lock back."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._release()
        os.close(self._lock)


def locked(folder: Path) -> int:
    """Take the lock of a data directory until the file is closed, or refuse."""
    lock = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InUse(f"{folder} is in use by another process.") from None
    return lock


def anchor(folder: Path, commits: int, last: int, chain: bytes) -> None:
    """Write a new head: a log that ends there counts as complete."""
    slot = _slot(commits, last, chain)
    replace(folder / "head", slot + slot)
    os.chmod(folder / "head", 0o600)


def _based(stored: bytes) -> tuple[int, bytes]:
    return (int.from_bytes(stored[:8], "big"), stored[8:]) if stored else (0, _ORIGIN)


def renew_era(folder: Path) -> None:
    """Begin another era: seqs that were given before may now stand for other events."""
    db = _opened(folder / "log.db", "rw")
    try:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('era', ?)", (os.urandom(16),))
    except sqlite3.DatabaseError as error:
        raise _damaged(error) from error
    finally:
        db.close()


def read_head(stored: bytes) -> tuple[int, int, bytes]:
    """Return the number of the commit, the last seq and the chain of a head."""
    slots = []
    for at in (0, _SLOT.size):
        slot = stored[at : at + _SLOT.size]
        if len(slot) == _SLOT.size and crc32(slot[:-4]) == _SLOT.unpack(slot)[3]:
            slots.append(_SLOT.unpack(slot)[:3])
    if not slots:
        raise _headless("damaged")
    return max(slots)


def head_of(folder: Path) -> tuple[int, int, bytes]:
    """Read the head of a data directory."""
    try:
        return read_head((folder / "head").read_bytes())
    except FileNotFoundError:
        if not (folder / "log.db").exists():
            raise
        raise _headless("missing") from None


def _headless(how: str) -> Damaged:
    return Damaged(
        f"the file head is {how}. Restore a backup, or write it again from the log as it is with "
        "`limen serve verify --accept`."
    )


def _slot(commits: int, last: int, chain: bytes) -> bytes:
    filled = _SLOT.pack(commits, last, chain, 0)
    return filled[:-4] + struct.pack("<I", crc32(filled[:-4]))


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=32,
        timeout=_PATIENCE / 1000,
    )


def _sound(db: sqlite3.Connection, asked: str, values: tuple[object, ...]) -> sqlite3.Cursor:
    try:
        return db.execute(asked, values)
    except sqlite3.DatabaseError as error:
        raise _damaged(error) from error


def _rows(cursor: sqlite3.Cursor, types: tuple[type, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield rows; a file that was cut gives NULL where there never was one."""
    while True:
        try:
            row = cursor.fetchone()
        except sqlite3.DatabaseError as error:
            raise _damaged(error) from error
        if row is None:
            return
        if tuple(map(type, row)) != types:
            raise Damaged("log.db is damaged: a row is incomplete. Restore a backup.")
        yield row


def _first(
    db: sqlite3.Connection, asked: str, values: tuple[object, ...], types: tuple[type, ...]
) -> tuple[Any, ...] | None:
    return next(_rows(_sound(db, asked, values), types), None)


def _damaged(error: sqlite3.DatabaseError) -> Exception:
    if isinstance(error, sqlite3.OperationalError):  # busy, full, no permission, I/O
        return error
    return Damaged(f"log.db cannot be read: {error}. Restore a backup.")
