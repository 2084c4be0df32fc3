# SPDX-License-Identifier: Apache-2.0
"""Snapshots: caches of the fold, made by a process of their own that runs what a start runs.

So recovery is tried all day. A snapshot that is damaged or does not fit is left aside; only where
retention has deleted events is one needed.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limen.service.log.store import Damaged, Reader, anchor, head_of, locked, renew_era
from limen.service.points.events import renamed
from limen.service.points.state import State
from limen.storage.files import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limen.service.points.events import Id

__all__ = ["age", "left", "make", "recovered", "stored", "tidy", "verified", "write"]

_KEPT = 3


def stored(folder: Path) -> list[tuple[int, Path]]:
    """Return the snapshots there are, the newest first."""
    found = [
        (int(path.stem), path)
        for path in (folder / "snapshots").glob("*.snapshot")
        if path.stem.isdecimal()
    ]
    return sorted(found, reverse=True)


def age(path: Path) -> float:
    """Return how many seconds ago a snapshot was made; 0 where it was just replaced."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except FileNotFoundError:
        return 0.0


def recovered(
    log: Reader,
    folder: Path,
    complain: Callable[[str], None] = lambda message: None,
    before: Callable[[State, int], None] = lambda state, seq: None,
) -> State:
    """Return the fold of the log, from the newest snapshot that can be used.

    `before` is called with the state and the seq of each event that is then folded.
    """
    base = log.base()[0]
    last = log.end()[0]
    for seq, path in stored(folder):
        if not base <= seq <= last:
            continue
        state = State(lambda upto: log.events(0, upto))
        try:
            chain = state.restore(path.read_bytes())
            if chain != log.chain_at(seq):
                raise ValueError("a snapshot of another log")
        except (ValueError, KeyError, TypeError, OSError) as error:
            complain(f"{path.name} is not used: {error}")
            continue
        return _folded(log, state, before)
    if base:
        raise Damaged(
            f"events up to {base} were deleted by retention, and no snapshot that replaces them "
            "can be read. Restore a backup."
        )
    return _folded(log, State(lambda upto: log.events(0, upto)), before)


def _folded(log: Reader, state: State, before: Callable[[State, int], None]) -> State:
    with log.still():  # so that the names are those of the events
        names = _names_before(log, state)
        for group in log.groups(state.seq):
            for seq, event, id in group.unpacked():
                before(state, seq)
                point = state.points.get(event.point)
                own = names.get(event.point)
                state.fold(seq, event, renamed(id, own) if own else id)
                if own and event.kind == "define" and state.points[event.point] is not point:
                    del names[event.point]  # made again from the log, it calls them as that does
    return state


def _names_before(log: Reader, state: State) -> dict[str, dict[Id, str]]:
    """Return by point what the snapshot still calls the ids that were deleted after it."""
    if not 0 < state.seq < log.forgot():
        return {}
    forgets: dict[str, dict[bytes, Any]] = {}
    for _, event, id in log.events(state.seq):
        if event.kind == "forget" and event.more is not None:
            forgets.setdefault(event.point, {}).setdefault(event.more["hash"], id)
    key = log.meta("key") or b""
    return {
        name: state.points[name].called(forgets[name], key)
        for name in forgets.keys() & state.points.keys()
    }


def make(folder: Path) -> int:
    """Write a snapshot of all that is committed; return its seq. Old ones are deleted."""
    with Reader(folder) as log:
        (folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
        # One after the other from the first read on: one that began before an id was forgotten
        # ends before the one that is made since, which deletes it.
        with _writing(folder):
            return _made(log, folder)


def _made(log: Reader, folder: Path) -> int:
    return write(folder, recovered(log, folder), log)


def write(folder: Path, state: State, log: Reader) -> int:
    """Write a snapshot of a state, which is the fold of all that is committed; return its seq."""
    (folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
    chain = log.chain_at(state.seq)
    assert chain is not None
    path = folder / "snapshots" / f"{state.seq:020d}.snapshot"
    _delete_drafts(folder)
    replace(path, state.to_bytes(chain))
    os.chmod(path, 0o600)
    for at, (seq, old) in enumerate(stored(folder)):
        if at >= _KEPT or seq < state.forgot:  # what was forgotten is in none of them
            with suppress(FileNotFoundError):
                old.unlink()
    return state.seq


def left(folder: Path, seq: int) -> bool:
    """Whether a snapshot of before an event is there, or may still come to be."""
    try:
        with _writing(folder, wait=False):
            return any(each < seq for each, _ in stored(folder)) or bool(_drafts(folder))
    except BlockingIOError:  # one is being made
        return True
    except FileNotFoundError:  # none ever was
        return False


def tidy(folder: Path) -> None:
    """Delete what a killed process has left behind, unless a snapshot is being written."""
    with suppress(FileNotFoundError, BlockingIOError), _writing(folder, wait=False):
        _delete_drafts(folder)


@contextmanager
def _writing(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Be the only one that writes a snapshot; the end of a process ends this too."""
    place = os.open(folder / "snapshots", os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(place)


def _drafts(folder: Path) -> list[Path]:
    return list((folder / "snapshots").glob(".*.snapshot.*"))


def _delete_drafts(folder: Path) -> None:
    for draft in _drafts(folder):
        with suppress(FileNotFoundError):
            draft.unlink()


def verified(folder: Path, *, accept: bool = False) -> dict[str, object]:
    """Check every digest, fold the log from its beginning, and compare with the snapshots.

    `accept` writes a new head, so that a log that lost its end can be used as it is. What comes
    next has seqs that were given before, so a new era begins.
    """
    lock = locked(folder) if accept else None
    try:
        head = None if accept else head_of(folder)
        with Reader(folder) as log, log.still():
            found, end = _compared(log, folder), log.end()
            if head is not None:
                log.require_reached(*head[1:])
        if head is None:
            renew_era(folder)
            anchor(folder, 0, *end)
    finally:
        if lock is not None:
            os.close(lock)
    return found


def _compared(log: Reader, folder: Path) -> dict[str, object]:
    base = log.base()[0]
    snapshots = dict(stored(folder))
    usable = sorted(seq for seq in snapshots if seq >= max(base, log.forgot()))
    state = State(lambda upto: log.events(0, upto))
    if base:
        if not usable:  # none since the last forget; or it says what is missing
            state = recovered(log, folder)
        else:
            state.restore(snapshots[usable[0]].read_bytes())
    last, events, compared = base, 0, []
    for group in log.groups(base):
        for seq, event, id in group.unpacked():
            if seq > state.seq:
                state.fold(seq, event, id)
            events, last = events + 1, seq
        if last in usable and last == state.seq:
            stored_state = snapshots[last].read_bytes()
            if state.to_bytes(group.chain) != stored_state:
                raise Damaged(
                    f"{snapshots[last].name} is not the fold of the events before it. Delete it: "
                    "it is a cache."
                )
            compared.append(last)
    return {"events": events, "first": base + 1, "last": last, "snapshots": compared}
