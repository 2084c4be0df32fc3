# SPDX-License-Identifier: Apache-2.0
"""A point: one decision, with its costs, its memory, its segments and the version in effect."""

from __future__ import annotations

import hashlib
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from limen.digits import difference
from limen.groups.models import key_of
from limen.memory import Fading
from limen.memory.base import innermost
from limen.service.points.alert_timers import AlertTimers
from limen.service.points.definitions import Definition, Rule, reaches
from limen.service.points.events import Event, Id, Ids, single_events
from limen.service.points.proposals import Closed, Proposal, Shadow
from limen.service.points.rows import UNLABELLED, Rows
from limen.service.points.stream import Observer, fold_stream
from limen.service.points.versions import Version, tag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from limen.optimum import Direction

__all__ = ["AHEAD", "OF_SAMPLES", "Note", "Point"]

AHEAD = 5 * 60 * 1_000_000  # how far a time may lie after the server's, in microseconds

_COURSE = 720  # how many times the best threshold is kept for a chart
_NOTES = 1000
OTHERS = "*"  # the segment of scores without one, and of those beyond the limit


class Note(msgspec.Struct):
    """What happened besides versions and proposals: a definition, an alert that began or ended."""

    seq: int
    at: int
    kind: str
    by: str
    name: str = ""
    text: str = ""
    ended: bool = False
    reason: str = ""


class Point:
    """The state of one point: a ledger, versions, and ids that may not come back."""

    def __init__(self, name: str, definition: Definition) -> None:
        self.name = name
        self.hold(definition, definition.empty())
        self.versions: list[Version] = []
        self.forgotten: dict[bytes, int] = {}  # keyed hashes, and until when they are refused
        self.scores = self.labels = self.ones = 0  # events, and answers 1
        self.segments: set[str] = set()
        self.overflow = 0
        self.course: list[tuple[int, float, float, float]] = []  # time, best threshold, interval
        self.proposals: list[Proposal] = []
        self.shadow: Shadow | None = None  # of the proposal that is open
        self.notes: list[Note] = []
        self.alerts: dict[str, Note] = {}  # those that go on, by name
        self.lasting = AlertTimers()
        self.defined_by = 0  # the event that gave the definition
        self.revised = 0  # the last event that may change how a proposal stands
        self.kept: dict[str, Any] = {}  # what was found since
        self.defined(definition)
        self.published: Version | None = None  # what readers see: it is on disk
        self.taken = self.skipped = 0  # rows of a stream, and those of them that were bad
        self.observer: Observer | None = None  # reads the state between the rows of a stream

    def hold(self, definition: Definition, memory: Any) -> None:
        """Hold samples in a memory that a definition describes."""
        self.memory = memory
        self.ledger: Any = memory if definition.by_id else None  # what joins by id
        self.held: Any = memory.model if definition.by_id else memory  # the samples that count

    def defined(self, definition: Definition) -> None:
        """Take a definition under which the same samples count."""
        self.definition = definition
        self.horizon = definition.horizon()

    def take_over_history(self, other: Point) -> None:
        """Take over what a point decided that counted its samples otherwise."""
        self.versions, self.published, self.course = other.versions, other.published, other.course
        self.proposals, self.notes, self.alerts = other.proposals, other.notes, other.alerts

    @property
    def proposal(self) -> Proposal | None:
        """The proposal of thresholds that is open."""
        found = self.newest()
        return found if found is not None and found.closed is None else None

    @property
    def redefinition(self) -> Proposal | None:
        """The proposal of a definition that is open."""
        found = self.newest(definition=True)
        return found if found is not None and found.closed is None else None

    def newest(self, *, definition: bool = False) -> Proposal | None:
        """Return the newest proposal of thresholds, or of a definition."""
        for each in reversed(self.proposals):
            if (each.definition is not None) == definition:
                return each
        return None

    @property
    def changed(self) -> int:
        """The last event after which a person should look again before deciding."""
        newest = (self.newest(), self.newest(definition=True))
        ends = [(each.closed or each).seq for each in newest if each is not None]
        return max(self.version.seq, self.defined_by, *ends)

    @property
    def version(self) -> Version:
        """The version in effect."""
        return self.versions[-1]

    def tag(self, era: bytes) -> bytes:
        """Return an ETag that changes with every definition and every version."""
        version = self.published or self.version
        return tag_of(era, version.tag(era), self.defined_by, self.definition)

    # The fold: the only way by which this changes, live and replayed. Nothing is checked here, as
    # what is in the log happened; what the memory refuses has changed nothing.

    def fold(self, seq: int, event: Event, id: Ids) -> None:
        """Let one event happen."""
        _FOLDS[event.kind](self, seq, event, id)
        self.revised = seq

    def _score(self, seq: int, event: Event, id: Any) -> None:
        """Record a score with the answer that was given to it."""
        group, new = None, None
        if self.definition.segments is not None:
            group, new = self._place(event.segment)
        weight = 1 if event.weight is None else event.weight
        self.ledger.score(id, event.value, event.time, weight, answer=event.answer, group=group)
        self.scores += 1
        self.ones += event.answer or 0
        if new is not None:
            self._admit(new)
        if self.shadow is not None:
            self.shadow.score(event, id, self.label_of(id))

    def _label(self, seq: int, event: Event, id: Any) -> None:
        """Record a label."""
        if event.time is None:
            self.ledger.label(id, event.value)
        else:
            self.ledger.label(id, event.value, as_of=event.time)
        self.labels += 1
        if self.shadow is not None and self.shadow.judge.label(id, self.label_of(id)):
            self.revised = seq

    def label_of(self, id: Any) -> int | None:
        """Return the label that the ledger holds, which may not be the last that came."""
        known = self.ledger._known(id)
        return None if known is None else known[2]

    def _rows(self, seq: int, event: Event, id: Ids) -> None:
        """Record the scores or the labels of ids, or rows that have both and no id."""
        rows = event.rows
        assert rows is not None
        if event.more is not None:
            fold_stream(self, event, id)
        elif self.definition.by_id:
            assert isinstance(id, list)
            (self._score_rows if rows.scores else self._label_rows)(seq, rows, event, id)
        else:
            self._complete_rows(rows, event)

    def _score_rows(self, seq: int, rows: Rows, event: Event, ids: list[str | int]) -> None:
        scores, answers, weights = map(rows.column, ("scores", "answers", "weights"))
        if scores is None or answers is None:
            raise ValueError("scores need answers")
        times, segments = self._times(rows, event), rows.named_segments()
        groups: list[Any] | None = None
        new: list[str] = []
        beyond = 0
        if self.definition.segments is not None:
            groups, new, beyond = self._places(segments, len(rows))
        self.ledger.score_many(ids, scores, times, weights, answers=answers, groups=groups)
        self._scored(answers, new, beyond)
        if self.shadow is not None:
            for each, id in zip(single_events(event), ids, strict=True):
                self.shadow.score(each, id, self.label_of(id))

    def _label_rows(self, seq: int, rows: Rows, event: Event, ids: list[str | int]) -> None:
        self.ledger.label_many(ids, rows.column("labels"), as_of=rows.column("times"))
        self.labels += len(rows)
        if self.shadow is not None:
            for id in ids:
                if self.shadow.judge.label(id, self.label_of(id)):
                    self.revised = seq

    def _complete_rows(self, rows: Rows, event: Event) -> None:
        names = ("scores", "labels", "answers", "weights")
        scores, labels, answers, weights = map(rows.column, names)
        if scores is None or labels is None or answers is None:
            raise ValueError("rows without ids need scores, labels and answers")
        segments, known = rows.named_segments(), labels != UNLABELLED
        kept = slice(None) if known.all() else known
        given: list[Any] = [scores[kept], labels[kept]]
        named: dict[str, Any] = {}
        new: list[str] = []
        beyond = 0
        if weights is not None:
            named["weights"] = weights[kept]
        if self.timed:
            named["times"] = self._times(rows, event)[kept]
        if self.definition.segments is not None:
            groups, new, beyond = self._places(segments, len(rows))
            given.insert(0, [group for group, has in zip(groups, known, strict=True) if has])
        if known.any():
            self.held.update_many(*given, **named)
        self._scored(answers, new, beyond)
        self.labels += int(np.count_nonzero(known))

    def _scored(self, answers: NDArray[Any], new: list[str], beyond: int) -> None:
        self.scores += len(answers)
        self.ones += int(np.count_nonzero(answers))
        self.segments.update(new)
        self.overflow += beyond

    def _times(self, rows: Rows, event: Event) -> NDArray[np.int64]:
        times = rows.column("times")
        return np.full(len(rows), event.at, np.int64) if times is None else times

    @property
    def timed(self) -> bool:
        """Whether samples leave or fade by their time."""
        return self.definition.memory.length is not None

    def _forget(self, seq: int, event: Event, id: Any) -> None:
        assert event.more is not None
        self.ledger.forget(id)
        if self.shadow is not None:
            self.shadow.judge.forget(id)
        # By the horizon that counts now: another one folds the history again.
        until = 2**62 if self.horizon is None else event.at + AHEAD + self.horizon
        self.forgotten[event.more["hash"]] = until
        self.revised = seq

    def _decide(self, seq: int, event: Event, id: Ids) -> None:
        assert event.more is not None
        number = event.more.get("proposal")
        decided = self.proposal if number is None else self.proposals[number - 1]
        self._close(decided, event.more["verdict"], seq, event)

    def _advance(self, seq: int, event: Event, id: Ids) -> None:
        """Advance the time; samples judge a proposal before the ledger may drop their ids."""
        time = event.time
        assert time is not None
        if self.shadow is not None:
            self.shadow.advance(time)
        if self.definition.by_id or self.timed:
            self.memory.advance(time)
        self.lasting.advance(self, time)
        if self.forgotten:
            self.forgotten = {each: until for each, until in self.forgotten.items() if until > time}
        if event.more is not None and self.name in event.more:
            self.append_course(time, event.more[self.name])

    def _deploy(self, seq: int, event: Event, id: Ids) -> None:
        """Deploy other thresholds, which ends a proposal that is open."""
        assert event.more is not None
        thresholds, reason = _thresholds(event, self.direction), event.more.get("reason", "")
        number = self.versions[-1].number + 1 if self.versions else 1
        proposal = event.more.get("proposal")
        back_to = event.more.get("back_to")
        made = Version(number, seq, event.at, thresholds, event.by, reason, proposal, back_to)
        verdict = "superseded" if proposal is None else "approved"
        self._close(self.proposal, verdict, seq, event, number)
        self.versions.append(made)

    def _propose(self, seq: int, event: Event, id: Ids) -> None:
        assert event.more is not None
        more, number, reason = event.more, len(self.proposals) + 1, event.more.get("reason", "")
        begun = (number, seq, event.at, event.by, reason, self.version.number)
        if "definition" in more:
            self._close(self.redefinition, "superseded", seq, event)
            definition = msgspec.convert(more["definition"], Definition)
            self.proposals.append(Proposal(*begun, {}, 0, more["expires"], definition=definition))
            return
        self._close(self.proposal, "superseded", seq, event)
        made = Proposal(
            *begun,
            _thresholds(event, self.direction),
            more["age"],
            more["expires"],
            more["confidence"],
            more.get("back_to"),
        )
        if made.back_to is None:
            made.candidate = 1 + sum(
                each.judged
                for each in self.proposals
                if each.version == made.version and each.back_to is None
            )
        self.proposals.append(made)
        self.shadow = Shadow(made, self.version, self.direction)

    def _close(
        self,
        proposal: Proposal | None,
        verdict: str,
        seq: int,
        event: Event,
        version: int | None = None,
    ) -> None:
        if proposal is not None and event.more is not None:
            reason, shown = event.more.get("reason", ""), event.more.get("shown")
            proposal.closed = Closed(verdict, seq, event.at, event.by, reason, version, shown)
        if self.proposal is None:
            self.shadow = None

    def redefined(self, seq: int, event: Event) -> None:
        """Keep for the history that it was defined; a proposal of a definition has then ended."""
        decided = (event.more or {}).get("decided")
        text = reason = ""
        if decided is not None:
            reason = decided["reason"]
            text = f"the point was defined, which was proposal {decided['proposal']}"
        more = decided or {"reason": "the definition of the point was replaced"}
        end = Event("define", event.at, by=event.by, more=more)
        self._close(self.redefinition, "superseded" if decided is None else "approved", seq, end)
        self.defined_by = self.revised = seq
        self.note(Note(seq, event.at, "definition", event.by, text=text, reason=reason))

    def _alert(self, seq: int, event: Event, id: Ids) -> None:
        assert event.more is not None
        name, text = event.more["name"], event.more["text"]
        note = Note(seq, event.at, "alert", event.by, name, text, event.more["ended"])
        if note.ended:
            self.alerts.pop(name, None)
        else:
            self.alerts[name] = note
        self.note(note)

    def note(self, note: Note) -> None:
        """Keep what happened for the history; the oldest of very many is dropped."""
        self.notes.append(note)
        del self.notes[:-_NOTES]

    def append_course(self, time: int, seen: list[float]) -> None:
        """Keep what the samples said of the best threshold; half of it where it is too much."""
        if len(self.course) >= _COURSE:
            del self.course[1:-1:2]
        self.course.append((time, *seen))  # type: ignore[arg-type]

    def sample_course(self, time: int) -> list[float] | None:
        """Return the best threshold and its interval, if it is time to keep them once more."""
        if self.course:
            first, last = self.course[0][0], self.course[-1][0]
            if time - last <= (last - first) // (_COURSE // 2):
                return None
        if not self.samples():
            return None
        best, interval = float(self.of_all().threshold), self.interval()
        return [best, *(interval or (nan, nan))]

    def of_all(self) -> Any:
        """Return what answers for all samples, whatever their segment."""
        return self.memory if self.definition.segments is None else self.held.model(())

    def model(self, segment: str) -> Any:
        """Return what answers for a segment, "" for all; None where it holds too few samples."""
        grouped = self.held
        if self.definition.segments is None or not segment:
            return self.of_all() if self.samples() else None
        path = tuple(segment.split("/"))
        known = path in grouped and grouped.count(path) >= grouped.at_least
        return grouped.model(path) if known else None

    def answers(
        self, scores: NDArray[Any], segments: list[str | None] | None = None
    ) -> NDArray[np.uint8]:
        """Return what the version in effect answers to scores, for an event of many rows."""
        version = self.version
        found: Any = version.thresholds[""]
        if segments is not None and len(version.thresholds) > 1:
            by_name = {each: version.find(each)[0] for each in set(segments)}
            found = np.array([by_name[each] for each in segments])
        return np.asarray(reaches(scores, found, self.direction)).view(np.uint8)

    def candidate(self) -> dict[str, float] | None:
        """Return thresholds that differ from those in effect where the samples rule these out."""
        found = dict(self.version.thresholds)
        for segment in self.optima():
            model, now = self.model(segment), self.version.find(segment)[0]
            if model is not None and not model.keeps(now) and model.recommended is not None:
                found[segment] = float(model.recommended)
        return None if found == self.version.thresholds else found

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Return between which thresholds the best one lies, as far as the samples say.

        None without samples, and where a capacity bounds what is held of them.
        """
        if not self.samples() or self.definition.capacity is not None:
            return None
        low, high = self.of_all().interval(confidence=confidence)
        return low, high

    def _place(self, segment: str | None) -> tuple[Any, list[str] | None]:
        """Return the group that a score belongs to, and what `_admit` is given once it is in."""
        if segment is None:
            return OTHERS, None
        new = None
        if segment not in self.segments and segment != OTHERS:
            segment, new = self._admitted(segment)
        return tuple(segment.split("/")) if "/" in segment else segment, new

    def _places(
        self, segments: list[str | None] | None, rows: int
    ) -> tuple[list[Any], list[str], int]:
        """Return the groups of rows, the segments that are new, and how many are beyond the limit.

        The same as one by one.
        """
        if segments is None:
            return [OTHERS] * rows, [], 0
        before, many = self.segments, self.overflow
        self.segments = set(before)
        try:
            groups = []
            for segment in segments:
                group, new = self._place(segment)
                groups.append(group)
                if new is not None:
                    self._admit(new)
            return groups, sorted(self.segments - before), self.overflow - many
        finally:
            self.segments, self.overflow = before, many

    def _admitted(self, segment: str) -> tuple[str, list[str]]:
        """Return where a new segment counts: it, or where there are too many one around it."""
        settings = self.definition.segments
        assert settings is not None
        parts = segment.split("/")
        around = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        new = [each for each in around if each not in self.segments]
        if len(self.segments) + len(new) <= settings.most:
            return segment, new
        known = [each for each in around if each in self.segments]
        return known[-1] if known else OTHERS, []

    def _admit(self, new: list[str]) -> None:
        self.segments.update(new)
        self.overflow += not new

    # What is asked of it.

    def ids(self) -> Iterator[Any]:
        """Yield the ids that are known by name, some of them twice."""
        if self.ledger is not None:
            yield from self.ledger
        if self.shadow is not None:
            yield from self.shadow.judge.ids()

    def knows(self, id: str) -> bool:
        """Whether an id is known by name."""
        if self.ledger is None:
            return False
        if self.ledger._known(id) is not None or id in self.ledger:
            return True
        return self.shadow is not None and id in self.shadow.judge

    def called(self, forgets: dict[bytes, Id], key: bytes) -> dict[Id, str]:
        """Return the names of ids that are forgotten later, by what the log calls them since."""
        return {
            forgets[digest]: id
            for id in self.ids()
            if type(id) is str and (digest := self.hash_of(id, key)) in forgets
        }

    def hash_of(self, id: str, key: bytes) -> bytes:
        """Return a keyed hash of an id, which reveals nothing without the key."""
        return hashlib.blake2b(
            id.encode(), key=key, person=self.name.encode()[:16], digest_size=16
        ).digest()

    def optima(self) -> dict[str, float]:
        """Return the cheapest thresholds by segment, of segments that hold enough."""
        if self.definition.segments is None:
            return {"": float(self.memory.threshold)}
        grouped = self.held
        return {"/".join(path): float(grouped.threshold(path)) for path in self._answering()}

    def bounds(self) -> dict[str, float]:
        """Return by how much each of `optima` can at most cost more than the cheapest."""
        if self.definition.capacity is None:
            return dict.fromkeys(self.optima(), 0.0)
        if self.definition.segments is None:
            return {"": float(self.memory.loss_bound)}
        grouped = self.held
        return {"/".join(path): float(grouped.model(path).loss_bound) for path in self._answering()}

    def _answering(self) -> list[tuple[str, ...]]:
        """Return the segments that hold enough to have a threshold of their own."""
        grouped = self.held
        return [
            path
            for path in grouped
            if path != (OTHERS,)  # these are answered by the threshold for all
            if not path or grouped.count(path) >= grouped.at_least
        ]

    def loss_under(self, thresholds: dict[str, float]) -> float:
        """Return what thresholds by segment cost on the samples that count. O(n) for each depth."""
        find, grouped = Version(0, 0, 0, thresholds).find, self.held
        if self.definition.segments is None:
            return _loss_at(grouped, find(None)[0])
        total, paths = 0.0, list(grouped)
        held = {path: grouped._models.seen(key_of(path)) for path in paths}
        for path in paths:  # its own samples are all but those of the groups inside
            threshold = find("/".join(path))[0]
            total += _loss_at(held[path], threshold)
            if path:
                outer = find("/".join(path[:-1]))[0]
                total -= _loss_at(held[path], outer)
        return total

    @property
    def direction(self) -> Direction:
        """Which scores mean positive."""
        return self.definition.direction

    def samples(self) -> int:
        """Return how many samples count."""
        return len(self.held)

    def undecided(self) -> str | None:
        """Say so where every answer is 0 because nobody has deployed a threshold."""
        version = self.version
        if version.number > 1 or any(each == each for each in version.thresholds.values()):
            return None
        return "no threshold was ever deployed: every score is answered 0. Deploy or propose one."

    def cost(self) -> float:
        """Return what the answers cost; without ids, what the thresholds in effect would. O(n).

        That is unknown, and nan, where a capacity bounds what is held.
        """
        if self.ledger is not None:
            return float(self.ledger.cost)
        if not self.samples() or not self.versions:
            return 0.0
        known = self.definition.capacity is None
        return self.loss_under(self.version.thresholds) if known else nan

    def regret(self) -> float:
        """Return how much more that is than the cheapest single threshold costs."""
        if self.ledger is not None:
            return float(self.ledger.regret)
        cost = self.cost()
        return difference(cost, float(self.of_all().loss)) if cost else 0.0

    def regret_rate(self) -> float:
        """Return the regret per 1,000 decisions."""
        samples = self.samples()
        return 1000 * self.regret() / samples if samples else 0.0


Fold: TypeAlias = "Callable[[Point, int, Event, Ids], None]"

OF_SAMPLES: dict[str, Fold] = {  # what another definition may count otherwise
    "score": Point._score,
    "label": Point._label,
    "rows": Point._rows,
    "forget": Point._forget,
}
_FOLDS: dict[str, Fold] = {
    **OF_SAMPLES,
    "deploy": Point._deploy,
    "propose": Point._propose,
    "decide": Point._decide,
    "alert": Point._alert,
    "advance": Point._advance,
}


def _thresholds(event: Event, direction: Direction) -> dict[str, float]:
    assert event.more is not None
    return {
        segment: msgspec.convert(rule, Rule).number(direction)
        for segment, rule in event.more["thresholds"].items()
    }


_ROW = np.dtype([("score", "<f8"), ("below", "<i8"), ("above", "<i8"), ("count", "<i8")])


def _loss_at(model: Any, threshold: float) -> float:
    """Return the loss of one threshold, from the rows that docs/format.md describes. O(n)."""
    held = innermost(model)
    state = held._state()
    bits, _, _, many = np.frombuffer(state, "<i8", 4).tolist()
    rows = np.frombuffer(state, _ROW, many, offset=32)  # more may follow
    answered = rows["score"] >= held._turned(threshold)
    units = rows["above"][answered].sum() + rows["below"][~answered].sum()
    scale = model._scale() if isinstance(model, Fading) else 1.0
    return float(units / 2.0**bits / scale)
