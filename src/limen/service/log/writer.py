# SPDX-License-Identifier: Apache-2.0
"""The desk: what may happen. Each act is checked, folded and queued; `turns` puts it on disk."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from limen.service import SCOPES
from limen.service.bodies import LabelAnswer, ScoreAnswer
from limen.service.log.changes import Changes
from limen.service.log.names import Names, with_id
from limen.service.log.store import Reader
from limen.service.points.definitions import Definition, reaches, rule_of
from limen.service.points.events import Event, as_datetime, as_microseconds, renamed
from limen.service.points.judging import describe
from limen.service.points.point import AHEAD, OF_SAMPLES, Point
from limen.service.points.state import Token, refolded
from limen.service.problems import Refused
from limen.times import length_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limen.service.bodies import Decision, Forgetting, Label, NewToken, Score

__all__ = ["Writer"]

_EARLIEST = as_microseconds(datetime(1900, 1, 1, tzinfo=UTC))
_MOST_POINTS = 200
_LONGEST_ID = 128
_SURELY_SHORT = _LONGEST_ID // 4  # in characters, of four bytes at most
_RESERVED = ("limen", "control", "anonymous")  # the server, its socket, callers without a token


class Writer(Changes):
    """What callers may do to points and tokens."""

    # Scores and labels.

    def point(self, name: str) -> Point:
        """Return a point, or refuse."""
        point = self.state.points.get(name)
        if point is None:
            raise Refused(
                "unknown-point", f"There is no point {name!r}. GET /v1/points lists them."
            )
        return point

    def score(self, point: Point, item: Score, by: str, at: int) -> ScoreAnswer:
        """Check and fold one score; it is on disk after `flushed`."""
        id, value = item.id, float(item.score)
        if len(id) > _SURELY_SHORT:
            _require_short(id)
        if point.ledger is None:
            self._refuse_ids(point)
        known = point.ledger._known(id)
        moment = at if item.time is None else as_microseconds(item.time)
        if known is not None and known[0] is not None:
            return self._score_again(point, item, known[0])
        if moment > at + AHEAD and self.clock.would_reach(moment - AHEAD):
            moment = at  # where the clock is not followed, a caller's that agrees with it is not
        if not _EARLIEST <= moment <= at + AHEAD:
            self._refuse_time(moment, at, "time")
        newest = point.ledger.newest
        if point.horizon is not None and newest is not None and moment <= newest - point.horizon:
            raise Refused(
                "too-old",
                f"time is {as_datetime(moment).isoformat()}, and ids may be dropped by then. "
                f"Send scores later than {as_datetime(newest - point.horizon).isoformat()}.",
            )
        if point.forgotten:
            self._require_remembered(point, id)
        segment, answer, in_effect = item.segment, item.answer, point.versions[-1]
        threshold, source = in_effect.thresholds[""], ""
        if segment is not None:
            segment = self.checked_segment(point, segment)
            threshold, source = in_effect.find(segment)
        version: int | None = in_effect.number
        direction = point.definition.direction
        if answer is None:
            answer = 1 if reaches(value, threshold, direction) else 0
        else:
            version = item.version
        event = Event(
            "score", at, point.name, moment, value, item.weight, answer, segment, version, by
        )
        try:
            seq = self._fold(event, id)
        except (ValueError, OverflowError, TypeError) as error:
            raise Refused("invalid", str(error)) from None
        if known is not None:  # its label was there first
            self._queue.labelled.append(((point.name, answer), 0.0))
        rule, number = rule_of(threshold, direction)
        return ScoreAnswer(answer, rule, number, version, source, seq, False)

    def _score_again(self, point: Point, item: Score, score: float) -> ScoreAnswer:
        """Answer a score that is known as it was answered, or refuse another one."""
        seq, event = next(self._events_of(point, item.id, "score"), (0, None))
        same = score == float(item.score)
        if event is not None:
            weights = [1 if each is None else each for each in (event.weight, item.weight)]
            same = same and weights[0] == weights[1] and event.segment == item.segment
        if not same:
            raise Refused(
                "other-score",
                "The id has another score, weight or segment already. An id stands for one score.",
            )
        if event is None:
            raise Refused(
                "expired",
                "The id has this score already, and counts once. Retention has deleted the event, "
                "so that what was answered cannot be said again. Do not send it again.",
            )
        # As it was answered: by the version that was in effect, whatever version it named.
        version = next(each for each in reversed(point.versions) if each.seq < seq)
        threshold, source = version.find(event.segment)
        rule, number = rule_of(threshold, point.direction)
        assert event.answer is not None
        return ScoreAnswer(event.answer, rule, number, event.version, source, seq, True)

    def _events_of(self, point: Point, id: str, kind: str) -> Any:
        """Yield the events of an id that are of a kind, the newest first, also those in memory."""
        for seq, event in self._all_of(point, id):
            if event.kind == kind:
                yield seq, event

    def _all_of(self, point: Point, id: str) -> Iterator[tuple[int, Event]]:
        """Yield the events of an id, the newest first: that wait, are being written, on disk."""
        for queue, last in (
            (self._queue, self.state.seq),
            (self._flying, self.state.seq - len(self._queue.events)),
        ):
            if queue.events:
                for at in range(len(queue.names) - 1, -1, -1):
                    event = with_id(queue.events[at], queue.names[at], id)
                    if event is not None and event.point == point.name:
                        yield last - len(queue.events) + 1 + at, event
        yield from self.names.find(point.name, id, self.on_disk)

    def label(self, point: Point, item: Label, by: str, at: int) -> LabelAnswer:
        """Check and fold one label; it is on disk after `flushed`."""
        id, as_of = item.id, None if item.as_of is None else as_microseconds(item.as_of)
        if len(id) > _SURELY_SHORT:
            _require_short(id)
        if point.ledger is None:
            self._refuse_ids(point)
        if as_of is not None and not _EARLIEST <= as_of <= at + AHEAD:
            self._refuse_time(as_of, at, "as_of")
        known, changed = point.ledger._known(id), True
        if known is not None and known[2] is not None:
            same, held = known[2] == item.label, known[3]
            if same and as_of in (None, held):
                return LabelAnswer(known[0] is not None, False, self.state.seq)
            if as_of is None and held is not None:
                # It counts, and must not be undone by the one before, which may be sent again.
                as_of = max(at, held + 1)
            if held is not None and held == as_of:
                raise Refused(
                    "other-label",
                    "The id has another label of the same as_of. Give the later one a later as_of.",
                )
            changed = not same and (as_of is None or held is None or as_of > held)
        elif point.forgotten:
            self._require_remembered(point, id)
        event = Event("label", at, point.name, as_of, item.label, None, None, None, None, by)
        try:
            seq = self._fold(event, id)
        except (ValueError, OverflowError, TypeError) as error:
            raise Refused("invalid", str(error)) from None
        if known is not None and known[2] is None:  # the first label of a score
            answer, moment = known[1], known[4]
            assert answer is not None
            late = (at if as_of is None else as_of) - moment
            self._queue.labelled.append(((point.name, answer), late / 1e6 if late > 0 else 0.0))
        return LabelAnswer(known is not None and known[0] is not None, changed, seq)

    def _refuse_ids(self, point: Point) -> NoReturn:
        raise Refused(
            "invalid",
            f"Point {point.name!r} is defined with by_id: false. It takes complete rows without "
            "ids, by `limen watch`, and no single scores or labels.",
        )

    def _refuse_time(self, moment: int, at: int, name: str) -> NoReturn:
        if moment < _EARLIEST:
            raise Refused("invalid", f"{name} must not be before the year 1900 in UTC.")
        step = "Set the clock."
        if self.clock.trouble(self.state.at) is not None:
            step = "The server does not follow its clock: `limen serve clock show` says why."
        raise Refused(
            "from-the-future",
            f"{name} is {as_datetime(moment).isoformat()}, more than 5 minutes after the "
            f"server's {as_datetime(at).isoformat()}. {step}",
        )

    def _require_remembered(self, point: Point, id: str) -> None:
        if point.hash_of(id, self.key) in point.forgotten:
            raise Refused("forgotten", "The id was forgotten, and what comes again is refused.")

    async def forget(self, point: Point, item: Forgetting, by: str) -> tuple[int, int]:
        """Take ids back and delete their names; return the last seq and how many were known."""
        await self.flushed()
        self.require_open()
        epoch = self.epoch
        found = await self.aside(self._seqs_of, point, item.ids)
        await self.flushed()
        self.require_epoch(epoch)
        point = self.point(point.name)
        at, seq, known = self.now(), self.state.seq, 0
        for id in dict.fromkeys(item.ids):  # nothing is awaited, so no event of an id comes between
            seqs = sorted({*found[id], *(seq for seq, _ in self._all_of(point, id))})
            if not seqs and not point.knows(id):
                continue
            known += 1
            more = {"hash": point.hash_of(id, self.key), "reason": item.reason}
            event, stands = Event("forget", at, point.name, by=by, more=more), self.state.seq + 1
            seq = self._fold(event, id, self.names.clear, stored=stands)
            self._erase(id, [*seqs, seq], seq)
        await self.flushed()
        return seq, known

    def _seqs_of(self, point: Point, ids: list[str]) -> dict[str, list[int]]:
        with Reader(self.folder) as reader:
            names = Names(reader)
            last = reader.end()[0]
            return {id: [seq for seq, _ in names.find(point.name, id, last)] for id in ids}

    def _erase(self, id: str, seqs: list[int], stands: int) -> None:
        """Delete an id: where it waits at once, elsewhere with the commit of what waits."""
        queue = self._queue
        first = self.state.seq - len(queue.events) + 1
        for seq in seqs:
            if seq >= first:
                queue.names[seq - first] = renamed(queue.names[seq - first], {id: stands})
            queue.erased.setdefault(seq, {})[id] = stands

    # Definitions, versions, time and tokens.

    async def define(
        self,
        name: str,
        definition: Definition,
        by: str,
        require: Callable[[bytes | None], None] | None = None,
        reason: str = "",
    ) -> int:
        """Define a point, or replace its definition; under four eyes, propose it. Return the seq.

        What only demands more of a change than before is not proposed: one person may tighten.
        `require` may refuse by the tag of the point as it is, None where there is none: nobody
        defines it between this look and the new definition.
        """
        async with self._defining:
            self.require_open()
            point = self.state.points.get(name)
            if require is not None:
                require(None if point is None else point.tag(self.era))
            if point is None and len(self.state.points) >= _MOST_POINTS:
                raise Refused("invalid", f"There are {_MOST_POINTS} points, the most there may be.")
            try:
                definition.require_served()
            except ValueError as error:
                raise Refused("invalid", str(error)) from None
            horizon, change = definition.horizon(), definition.change
            judges = change.policy != "manual" or change.age is not None
            if judges and horizon is not None and definition.age() >= horizon:
                raise Refused(
                    "invalid",
                    "change.age must be shorter than the shortest of time_to_live, correctable and "
                    "memory.length: samples judge a proposal at that age, by their ids.",
                )
            now = Definition() if point is None else point.definition
            if point is not None and now.direction != definition.direction:
                raise Refused(
                    "invalid",
                    f"direction is {now.direction} and stays so: the thresholds of all versions "
                    "are meant by it. Make another point.",
                )
            if point is not None and now.by_id != definition.by_id:
                raise Refused(
                    "invalid",
                    f"by_id is {str(now.by_id).lower()} and stays so: what came before could not "
                    "be folded otherwise. Make another point.",
                )
            if point is not None and now.change.by_two and not now.only_tightened_by(definition):
                seq = self._propose_definition(point, definition, by, reason)
            else:
                seq = await self._define(name, definition, by)
            await self.flushed()
            return seq

    def _propose_definition(
        self, point: Point, definition: Definition, by: str, reason: str
    ) -> int:
        """Let a definition wait for another person; a later one of the same person replaces it."""
        running = point.redefinition
        if running is not None and running.by != by:
            raise Refused(
                "one-at-a-time",
                f"Proposal {running.number}, another definition, is open. Approve or reject it "
                "first.",
            )
        if running is not None and running.definition == definition:
            return running.seq
        if not point.definition.counts_alike(definition):
            self._require_history()
        at = self.now()
        more = {
            "definition": msgspec.to_builtins(definition),
            "reason": reason,
            "expires": at + length_of(point.definition.change.expires),
        }
        return self._fold(Event("propose", at, point.name, by=by, more=more))

    async def approve(self, point: Point, number: int, item: Decision, by: str) -> tuple[int, int]:
        """Deploy what is proposed; return the number of the version and the seq."""
        if self._open(point, number, item).definition is None:
            return await super().approve(point, number, item, by)
        async with self._defining:
            point = self.point(point.name)
            proposal = self._open(point, number, item)
            self._require_another(point, proposal, by)
            assert proposal.definition is not None
            shown = describe(point, proposal, self.now())
            decided = {"proposal": number, "reason": item.reason, "shown": shown}

            def still_open() -> None:
                self._open(point, number, item)

            seq = await self._define(point.name, proposal.definition, by, decided, still_open)
            return await self._flushed(self.point(point.name), seq)

    async def _define(
        self,
        name: str,
        definition: Definition,
        by: str,
        decided: dict[str, Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Fold a definition; where samples count otherwise, refold the history of the point.

        `check` may still refuse when that is done.
        """
        point, more = self.state.points.get(name), msgspec.to_builtins(definition)
        if decided is not None:
            more["decided"] = decided
        if point is not None and not point.definition.counts_alike(definition):
            made = await self._refolded(point, definition)
            check()
            self.state.prepared[name] = made
        event = Event("define", self.now(), name, by=by, more=more)
        return self._fold(event, None, lambda: self._show(name))

    def _require_history(self) -> None:
        if self.base():
            raise Refused(
                "history-deleted",
                "Events were deleted by retention, so that the history cannot be folded again. "
                "Define a new point.",
            )

    async def _refolded(self, point: Point, definition: Definition) -> Point:
        """Return the point under another definition, up to the last event."""
        self._require_history()
        await self.flushed()
        upto, epoch = self.on_disk, self.epoch

        def fold() -> Point:
            with Reader(self.folder) as reader:
                return refolded(point, definition, reader.events(0, upto))

        made: Point = await self.aside(fold)
        while self.pending:  # what came meanwhile
            await self.flushed()
        self.require_epoch(epoch)
        later = [
            (seq, event, id)
            for seq, event, id in self._reader.events(upto)
            if event.kind == "advance" or (event.point == point.name and event.kind in OF_SAMPLES)
        ]
        forgets: dict[bytes, Any] = {}
        for _, event, id in later:
            if event.kind == "forget" and event.more is not None:
                forgets.setdefault(event.more["hash"], id)
        names = made.called(forgets, self.key) if forgets else {}
        for seq, event, id in later:
            made.fold(seq, event, renamed(id, names))
        return made

    async def accept_clock(self, by: str) -> None:
        """Follow the clock as it is: an operator says that it is right."""
        self.require_open()
        self.clock.accept()
        at = self.now()
        self._fold(Event("advance", at, time=at, by=by))  # where a start finds it
        await self.flushed()
        self.ticked = at
        if at > self.clock.now():  # time stands still until then, and a start is not refused
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self.log.keep, "clock", at.to_bytes(8, "big")
            )

    def make_token(self, item: NewToken, by: str) -> tuple[str, int]:
        """Make a token and return it: it is shown once. On disk after `flushed`."""
        unknown = sorted(set(item.scopes) - set(SCOPES))
        if unknown:
            raise Refused(
                "invalid", f"scope must be one of {', '.join(SCOPES)}, got {unknown[0]!r}."
            )
        if item.name in _RESERVED:
            raise Refused(
                "invalid", f"name must not be one of {', '.join(_RESERVED)}, got {item.name!r}."
            )
        if item.name in self.state.tokens:
            raise Refused("moved-on", f"There is a token {item.name!r}. Revoke it first.")
        token = f"limen_{item.name}_{secrets.token_urlsafe(32)}"
        expires = None if item.expires is None else as_microseconds(item.expires)
        made = Token(item.name, digest_of(token), sorted(set(item.scopes)), item.points, expires)
        seq = self._fold(
            Event(
                "token", self.now(), by=by, more=msgspec.to_builtins(made, builtin_types=(bytes,))
            )
        )
        self._tokens[made.digest] = made
        return token, seq

    def revoke_token(self, name: str, by: str) -> int:
        """Let a token be worth nothing from now on."""
        token = self.state.tokens.get(name)
        if token is None:
            raise Refused("not-found", f"There is no token {name!r}.")
        self._tokens.pop(token.digest, None)
        return self._fold(Event("token", self.now(), by=by, more={"name": name, "revoked": True}))

    def token_of(self, secret: str) -> Token | None:
        """Return the token that a secret stands for, unless it has expired."""
        token = self._tokens.get(digest_of(secret))
        if token is None or (token.expires is not None and token.expires <= self.now()):
            return None
        return token


def digest_of(secret: str) -> bytes:
    """Return what is kept of a token: it is random enough for a plain SHA-256."""
    return sha256(secret.encode()).digest()


def _require_short(id: str) -> None:
    if len(id.encode()) > _LONGEST_ID:
        raise Refused("invalid", f"id must be at most {_LONGEST_ID} bytes.")
