# SPDX-License-Identifier: Apache-2.0
"""A point: one decision, with its costs, its memory, its segments and the version in effect."""

from __future__ import annotations

import hashlib
from math import inf, isfinite, nan
from typing import Any, Literal

import msgspec
import numpy as np

from limen.groups import Grouped
from limen.groups.models import key_of
from limen.memory import Fading, LastPeriod, Ledger
from limen.memory.base import innermost
from limen.online import OnlineThreshold
from limen.service.events import Event, Id, as_datetime, period

__all__ = ["Change", "Definition", "Keep", "Point", "Rule", "Segments", "Version", "as_rule"]

OTHERS = "*"  # the segment of scores without one, and of those beyond the limit
_DEEPEST = 3


class Rule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A threshold in JSON, which has no infinity: answer 1 to all, to none, or from a score on."""

    rule: Literal["at_least", "all", "none"]
    threshold: float | None = None

    def __post_init__(self) -> None:
        if (self.rule == "at_least") != (self.threshold is not None):
            raise ValueError("rule at_least needs a threshold, and the other rules have none")
        if self.threshold is not None and not isfinite(self.threshold):
            raise ValueError("threshold must be finite: rule all or none says the rest")

    @property
    def number(self) -> float:
        """The threshold; answer 1 where ``score >= number``, which no score is to nan."""
        if self.threshold is not None:
            return self.threshold
        return -inf if self.rule == "all" else nan


def as_rule(threshold: float) -> Rule:
    """Return the rule of a threshold.

    >>> as_rule(0.5).rule, as_rule(float("-inf")).rule, as_rule(float("nan")).rule
    ('at_least', 'all', 'none')
    """
    if isfinite(threshold):
        return Rule("at_least", threshold)
    return Rule("all" if threshold == -inf else "none")


class Keep(msgspec.Struct, forbid_unknown_fields=True):
    """Which samples count: all, those of the last period, or all of them fading by a half-life."""

    keep: Literal["all", "period", "fading"] = "all"
    length: str | None = None

    def __post_init__(self) -> None:
        if (self.keep == "all") != (self.length is None):
            raise ValueError("memory period and fading need a length, and all has none")
        if self.length is not None:
            period(self.length, "memory.length")


class Segments(msgspec.Struct, forbid_unknown_fields=True):
    """Thresholds by segment: how many samples one needs, and how many there may be."""

    at_least: int = 100
    most: int = 500

    def __post_init__(self) -> None:
        if not (self.at_least >= 1 and 1 <= self.most <= 10_000):
            raise ValueError("segments need at_least >= 1 and 1 <= most <= 10000")


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """How the version in effect changes: by people, or by itself within limits."""

    policy: Literal["manual", "automatic"] = "manual"
    at_least: int = 1000  # labelled samples that count
    least_saving: float = 0.02  # of the loss now
    at_most_every: str = "1d"

    def __post_init__(self) -> None:
        period(self.at_most_every, "change.at_most_every")
        if self.at_least < 1 or not 0 <= self.least_saving < 1:
            raise ValueError("change needs at_least >= 1 and 0 <= least_saving < 1")


class Definition(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a point is; a later one replaces it, and the history is folded anew if need be."""

    false_positive: int | float = 1
    false_negative: int | float = 1
    unit: int | float | None = None
    capacity: int | None = None  # how many scores and runs of them are held at most
    memory: Keep = msgspec.field(default_factory=Keep)
    time_to_live: str | None = "90d"
    maturity: str | None = None
    correctable: str | None = None
    segments: Segments | None = None
    start: Rule = msgspec.field(default_factory=lambda: Rule("none"))
    change: Change = msgspec.field(default_factory=Change)

    def __post_init__(self) -> None:
        automatic = self.change.policy == "automatic"
        if self.capacity is not None and (automatic or self.memory.keep == "period"):
            raise ValueError(
                "capacity needs policy manual and memory all or fading: what any threshold costs "
                "is not known, and samples that leave a period would widen the bound without end"
            )
        self.ledger()
        if automatic and self.segments is not None and self.memory.keep == "fading":
            raise ValueError(
                "policy automatic with segments needs memory all or period: sums that fade in "
                "different segments cannot be added"
            )

    def horizon(self) -> int | None:
        """Return the shortest age at which an id may be dropped; None where none ever is."""
        lengths = [self.time_to_live, self.correctable]
        if self.memory.keep != "all":
            lengths.append(self.memory.length)
        return min((period(each) for each in lengths if each is not None), default=None)

    def ledger(self) -> Ledger:
        """Make an empty ledger; ValueError where these settings do not fit together."""
        costs: Any = {"false_positive": self.false_positive, "false_negative": self.false_negative}
        model: Any = OnlineThreshold(**costs, unit=self.unit, capacity=self.capacity)
        length = 0 if self.memory.length is None else period(self.memory.length)
        if self.memory.keep == "period":
            model = LastPeriod(model, length)
        elif self.memory.keep == "fading":
            model = Fading(model, length, by="time")
        if self.segments is not None:
            model = Grouped(model, at_least=self.segments.at_least)
        names = ("time_to_live", "maturity", "correctable")
        given = {name: getattr(self, name) for name in names}
        periods = {
            name: None if text is None else period(text, name) for name, text in given.items()
        }
        return Ledger(model, **periods, horizon=self.horizon())

    def counts_alike(self, other: Definition) -> bool:
        """Whether the same samples count in the same way, so that no history is refolded."""
        same = {"start": self.start, "change": self.change}
        return msgspec.structs.replace(other, **same) == self


class Version(msgspec.Struct):
    """The thresholds in effect from some event on."""

    number: int
    seq: int
    at: int
    thresholds: dict[str, float]  # by segment; "" is for all
    by: str = ""
    reason: str = ""

    def find(self, segment: str | None) -> tuple[float, str]:
        """Return the threshold for a segment and the segment that it comes from. O(depth)."""
        while segment:
            found = self.thresholds.get(segment)
            if found is not None:
                return found, segment
            segment = segment.rpartition("/")[0]
        return self.thresholds[""], ""

    def shown(self) -> dict[str, Any]:
        """Describe it for JSON."""
        rules = {segment: as_rule(each) for segment, each in sorted(self.thresholds.items())}
        return {
            "version": self.number,
            "since": as_datetime(self.at),
            "seq": self.seq,
            "by": self.by,
            "reason": self.reason,
            "thresholds": rules,
        }


class Point:
    """The state of one point: a ledger, versions, and ids that may not come back."""

    def __init__(self, name: str, definition: Definition) -> None:
        self.name = name
        self.ledger = definition.ledger()
        self.versions: list[Version] = []
        self.forgotten: dict[bytes, int] = {}  # keyed hashes, and until when they are refused
        self.scores = self.labels = self.ones = 0  # events, and answers 1
        self.segments: set[str] = set()
        self.overflow = 0
        self.defined(definition)
        self.published: Version | None = None  # what readers see: it is on disk

    def defined(self, definition: Definition) -> None:
        """Take a definition under which the same samples count."""
        self.definition = definition
        self.horizon = definition.horizon()

    @property
    def version(self) -> Version:
        """The version in effect."""
        return self.versions[-1]

    # The fold. Nothing is checked here: what is in the log happened.

    def fold(self, seq: int, event: Event, id: Id) -> None:
        """Let one event happen again."""
        kind = event.kind
        if kind == "score":
            self.score(event, id)
        elif kind == "label":
            self.label(event, id)
        elif kind == "forget":
            assert event.more is not None
            self.ledger.forget(id)
            self.forgotten[event.more["hash"]] = event.more["until"]
        elif kind == "deploy":
            self.deploy(seq, event)
        elif kind == "advance":
            assert event.time is not None
            self.advance(event.time)

    def score(self, event: Event, id: Id) -> None:
        """Record a score with the answer that was given to it."""
        group = None
        if self.definition.segments is not None:
            group = self.group(event.segment)
        weight = 1 if event.weight is None else event.weight
        self.ledger.score(id, event.value, event.time, weight, answer=event.answer, group=group)  # type: ignore[arg-type]
        self.scores += 1
        self.ones += event.answer or 0

    def label(self, event: Event, id: Id) -> bool:
        """Record a label; return whether the id has a score."""
        self.labels += 1
        if event.time is None:
            return self.ledger.label(id, event.value)
        return self.ledger.label(id, event.value, as_of=event.time)

    def deploy(self, seq: int, event: Event) -> None:
        """Let other thresholds be in effect."""
        assert event.more is not None
        thresholds = {
            segment: msgspec.convert(rule, Rule).number
            for segment, rule in event.more["thresholds"].items()
        }
        reason = event.more.get("reason", "")
        number = self.versions[-1].number + 1 if self.versions else 1
        self.versions.append(Version(number, seq, event.at, thresholds, event.by, reason))

    def advance(self, time: int) -> None:
        """Let time go by."""
        self.ledger.advance(time)
        if self.forgotten:
            self.forgotten = {each: until for each, until in self.forgotten.items() if until > time}

    def group(self, segment: str | None) -> Any:
        """Return the group that a score belongs to; beyond the limit, that of all others."""
        if segment is None:
            segment = OTHERS
        if segment not in self.segments and segment != OTHERS:
            segment = self._admitted(segment)
        return tuple(segment.split("/")) if "/" in segment else segment

    def _admitted(self, segment: str) -> str:
        """Return a new segment, or where there are too many the next larger one that is known."""
        settings = self.definition.segments
        assert settings is not None
        parts = segment.split("/")
        around = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        new = [each for each in around if each not in self.segments]
        if len(self.segments) + len(new) <= settings.most:
            self.segments.update(new)
            return segment
        self.overflow += 1
        known = [each for each in around if each in self.segments]
        return known[-1] if known else OTHERS

    # What is asked of it.

    def hash_of(self, id: str, key: bytes) -> bytes:
        """Return a keyed hash of an id, which tells nothing without the key."""
        return hashlib.blake2b(
            id.encode(), key=key, person=self.name.encode()[:16], digest_size=16
        ).digest()

    def optima(self) -> dict[str, float]:
        """Return the cheapest thresholds by segment, of segments that hold enough."""
        if self.definition.segments is None:
            return {"": float(self.ledger.threshold)}
        grouped = self.ledger.model
        return {"/".join(path): float(grouped.threshold(path)) for path in self._answering()}

    def bounds(self) -> dict[str, float]:
        """Return by how much each of `optima` can at most cost more than the cheapest."""
        if self.definition.capacity is None:
            return dict.fromkeys(self.optima(), 0.0)
        if self.definition.segments is None:
            return {"": float(self.ledger.loss_bound)}
        grouped = self.ledger.model
        return {"/".join(path): float(grouped.model(path).loss_bound) for path in self._answering()}

    def _answering(self) -> list[tuple[str, ...]]:
        """Return the segments that hold enough to have a threshold of their own."""
        grouped = self.ledger.model
        return [
            path
            for path in grouped
            if path != (OTHERS,)  # these are answered by the threshold for all
            if not path or grouped.count(path) >= grouped.at_least
        ]

    def loss_under(self, thresholds: dict[str, float]) -> float:
        """Return what thresholds by segment cost on the samples that count. O(n) for each depth.

        Under fading in terms of the model, which suffices to compare.
        """
        find, grouped = Version(0, 0, 0, thresholds).find, self.ledger.model
        if self.definition.segments is None:
            return _loss_at(grouped, find(None)[0])
        total, paths = 0.0, list(grouped)
        held = {path: grouped._models.held[key_of(path)] for path in paths}
        for path in paths:  # its own samples are all but those of the groups inside
            threshold = find("/".join(path))[0]
            total += _loss_at(held[path], threshold)
            if path:
                outer = find("/".join(path[:-1]))[0]
                total -= _loss_at(held[path], outer)
        return total

    def samples(self) -> int:
        """Return how many samples count."""
        return len(self.ledger.model)


_ROW = np.dtype([("score", "<f8"), ("below", "<i8"), ("above", "<i8"), ("count", "<i8")])


def _loss_at(model: Any, threshold: float) -> float:
    """Return the loss of one threshold, from the rows that docs/format.md describes. O(n)."""
    state = innermost(model)._state()
    rows = np.frombuffer(state, _ROW, offset=32)
    answered = rows["score"] >= threshold
    units = rows["above"][answered].sum() + rows["below"][~answered].sum()
    return float(units) / 2.0 ** int.from_bytes(state[:8], "little")


def checked_segment(segment: str) -> str:
    """Return a segment, or raise ValueError: names divided by slashes, three deep at most."""
    parts = segment.split("/")
    if len(segment.encode()) > 64 or len(parts) > _DEEPEST or not all(parts):
        raise ValueError(
            f"segment must be at most 64 bytes and 1 to {_DEEPEST} names divided by slashes"
        )
    return segment
