# SPDX-License-Identifier: Apache-2.0
"""Turns of the writer: check, fold, append, commit, publish, answer.

What is checked and folded gathers in a queue; one thread commits all that has gathered, with no
delay added, and all that wait for it are then answered. So nothing is answered before it is on
disk. Where a commit fails, memory is ahead of the log: it is dropped, and made again from the log.
"""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from limen.service.log import snapshots
from limen.service.log.clock import AT_A_START, Clock
from limen.service.log.histograms import DELAYS, Histogram
from limen.service.log.names import Names
from limen.service.log.store import Log, Reader
from limen.service.points.events import Event, Ids
from limen.service.problems import Refused
from limen.times import length_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from limen.service.points.state import State

__all__ = ["CommitQueue"]

_MOST_PENDING = 20_000
_SLOWEST_COMMIT = 2.0
_TRIAL = 65536  # bytes: more than most commits need


class _Queue:
    """Events that are folded and not on disk, and who waits for them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.names: list[Ids] = []
        self.erased: dict[int, dict[str, int]] = {}
        self.published: list[Callable[[], None]] = []
        self.labelled: list[tuple[tuple[str, int], float]] = []  # point, answer, seconds after it
        self.waiting: list[asyncio.Future[bool]] = []
        self.begun = 0.0

    def settle(self, written: bool) -> None:
        """Report to all that wait whether the events are on disk."""
        for each in self.waiting:
            if not each.done():  # who has gone does not wait any more
                each.set_result(written)


class CommitQueue:
    """The state, the log, and the turns between them. Used by one event loop."""

    def __init__(
        self, folder: Path, complain: Callable[[str], None], ahead: str = AT_A_START
    ) -> None:
        self.folder, self._complain = folder, complain
        self.log = Log(folder, create=True)
        try:
            snapshots.tidy(folder)
            self.key = self.log.meta("key") or b""
            self.era = self.log.meta("era") or b""  # another one after a restore
            self.state = snapshots.recovered(self.log, folder, complain)
            for point in self.state.points.values():
                point.definition.require_served()
        except BaseException:
            self.log.close()
            raise
        self.state.publish()
        self.on_disk = self.log.last
        accepted = int.from_bytes(self.log.meta("clock") or b"", "big")
        self.clock = Clock(self.state.at, length_of(ahead), accepted, complain)
        self.ticked = self.state.at  # up to where the passing of time is on disk
        self._reader = Reader(folder)
        self.names = Names(self._reader)
        self._queue, self._flying = _Queue(), _Queue()
        self._committing = False
        self._thread = ThreadPoolExecutor(1, "commit")
        self.broken: str | None = None
        self.epoch = 0  # another one after memory was dropped: what was folded before is lost
        self._erased = 0  # up to this event, no byte of a forgotten id is left
        self.commits = 0
        self.commit_seconds = 0.0
        self.delays = Histogram(DELAYS)
        self._tokens = {token.digest: token for token in self.state.tokens.values()}
        self._defining = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    # Commits.

    def now(self) -> int:
        """Return the time in microseconds, which never decreases."""
        return max(self.clock.now(), self.state.at)

    @property
    def pending(self) -> int:
        """How many events are folded and not on disk."""
        return len(self._queue.events) + len(self._flying.events)

    def base(self) -> int:
        """Return up to where events were deleted; the writing connection may be busy meanwhile."""
        return self._reader.base()[0]

    def left_in(self, seq: int) -> list[str]:
        """Return where bytes of ids may be that were forgotten up to some event."""
        seq = min(seq, self.state.forgot)
        if seq <= self._erased:
            return []
        found = {"log.db": self.log.clean < seq, "snapshots": snapshots.left(self.folder, seq)}
        if not any(found.values()):
            self._erased = seq
        return [name for name, left in found.items() if left]

    async def cut(self) -> None:
        """Delete from the WAL what a reader kept there."""
        if self.log.uncut and self.broken is None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self.log.cut)

    def require_open(self) -> None:
        """Refuse writes while the disk does not take them, or too slowly."""
        if self.broken is not None:
            raise Refused("busy", f"Writes are refused: {self.broken} Try again later.")
        begun = self._flying.begun  # 0 where no commit is under way
        late = begun > 0 and time.monotonic() - begun > _SLOWEST_COMMIT
        if late or self.pending > _MOST_PENDING:
            raise Refused("busy", "More events wait for the disk than it takes. Try again later.")

    def require_epoch(self, epoch: int) -> None:
        """Refuse to go on with what was folded before memory was dropped."""
        if epoch != self.epoch:
            raise Refused("busy", "The events could not be written. Send them again.")

    def _fold(
        self,
        event: Event,
        id: Ids = None,
        then: Callable[[], None] | None = None,
        stored: Ids = None,
    ) -> int:
        """Fold an event, and let it wait for the disk; return its seq.

        `then` is called when it is on disk. The log names the id as `stored`, where that is given.
        """
        state, queue = self.state, self._queue
        seq = state.seq + 1
        state.fold(seq, event, id)
        queue.events.append(event)
        queue.names.append(id if stored is None else stored)
        if then is not None:
            queue.published.append(then)
        return seq

    async def flushed(self) -> None:
        """Wait until all that was folded so far is on disk."""
        queue = self._queue if self._queue.events else self._flying
        if not queue.events:
            if self.broken is not None:
                self.require_open()
            return
        done = asyncio.get_running_loop().create_future()
        queue.waiting.append(done)
        if not self._committing:
            self._committing = True
            self._start(self._commit_all())
        if not await done:
            raise Refused(
                "busy", f"The events could not be written: {self.broken} Send them again."
            )

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue.events and self.broken is None:
            batch = self._flying = self._queue
            self._queue = _Queue()
            batch.begun = time.monotonic()
            try:
                await loop.run_in_executor(
                    self._thread, self.log.append, batch.events, batch.names, batch.erased
                )
            except Exception as error:
                self._fail(f"{type(error).__name__}: {error}.")
                break
            self._published(batch)
        self._flying, self._committing = _Queue(), False

    def commit_now(self) -> None:
        """Commit without an event loop: for commands that have the directory to themselves."""
        batch, self._queue = self._queue, _Queue()
        if batch.events:
            self.log.append(batch.events, batch.names, batch.erased)
            self._published(batch)

    def try_disk(self) -> None:
        """Find out at a start whether the disk takes writes, before `/readyz` says so.

        By a file without a name: a start is no event.
        """
        try:
            with TemporaryFile(dir=self.folder) as file:
                file.write(bytes(_TRIAL))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._fail(f"{type(error).__name__}: {error}.")

    def _published(self, batch: _Queue) -> None:
        self.on_disk = self.log.last
        self.commits += 1
        self.commit_seconds += time.monotonic() - batch.begun if batch.begun else 0.0
        self.delays.add_all(batch.labelled)
        for publish in batch.published:
            publish()
        batch.settle(True)

    def _fail(self, reason: str) -> None:
        self.broken, self.epoch = reason, self.epoch + 1
        self._complain(f"a write failed, writes are refused: {reason}")
        self._flying.settle(False)
        self._queue.settle(False)
        self._queue = _Queue()
        self._start(self._rebuild())

    async def _rebuild(self) -> None:
        """Make the state again from the log, once the disk takes writes."""
        loop, seconds = asyncio.get_running_loop(), 0.25
        while True:
            await asyncio.sleep(seconds)
            try:
                state = await loop.run_in_executor(self._thread, self._read_again)
                break
            except Exception as error:
                self.broken = f"{type(error).__name__}: {error}."
                seconds = min(2 * seconds, 5.0)
        state.publish()
        self.state, self.on_disk, self.broken = state, self.log.last, None
        self._tokens = {token.digest: token for token in state.tokens.values()}
        self.names.clear()
        self._complain("writes are taken again")

    def _read_again(self) -> State:
        self.log.reopen()
        state = snapshots.recovered(self.log, self.folder, self._complain)
        self.log.append([Event("advance", max(self.now(), state.at), time=state.at)], [None])
        for seq, event, id in self.log.events(state.seq):
            state.fold(seq, event, id)
        return state

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aside(self, work: Callable[..., Any], *given: Any) -> Any:
        """Run what only reads the log in another thread."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *given)

    async def close(self) -> None:
        """Commit what waits, checkpoint, and give the directory back."""
        while self.pending and self.broken is None:
            await self.flushed()
        self.release()

    def release(self) -> None:
        """Give the directory back without waiting for anything."""
        self._thread.shutdown()
        self._reader.close()
        self.log.close()
