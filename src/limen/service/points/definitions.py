# SPDX-License-Identifier: Apache-2.0
"""What a point is: its costs, memory, segments and words, and how its threshold changes."""

from __future__ import annotations

import re
from math import inf, isfinite, nan
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from limen.calibrator import OnlineCalibrator
from limen.groups import Grouped
from limen.memory import Fading, LastN, LastPeriod, Ledger
from limen.online import OnlineCut, OnlineThreshold
from limen.optimum import Direction
from limen.score_kind import ScoreKind
from limen.times import LENGTH, length_of

__all__ = [
    "Alerts",
    "Change",
    "Definition",
    "Keep",
    "Rule",
    "Segments",
    "Words",
    "as_rule",
    "as_rules",
    "checked_segment",
    "reaches",
    "rule_of",
]

_DEEPEST = 3
_NUMBER = re.compile(r"(?=.*[1-9])[0-9]{1,18}([.][0-9]{1,9})?")
# In the description only: `length_of` refuses in plain words what does not match.
_Length = Annotated[
    str, Meta(description="A length of time.", extra_json_schema={"pattern": LENGTH})
]
_WEEK = 7 * 86_400_000_000
_MORE_IS_STRICTER = (
    "at_least", "different", "confidence", "least_saving", "shadow", "at_most_every",
)  # fmt: skip


# Whether a length and a number of samples are given.
_KEPT_BY: dict[str, tuple[tuple[bool, bool], ...]] = {
    "all": ((False, False),),
    "last": ((False, True),),
    "period": ((True, False),),
    "fading": ((True, False), (False, True)),
}
_BY_SCORE: Any = {">=": "at_least", "<=": "at_most"}  # the rule that has a threshold
_ALL = {">=": -inf, "<=": inf}  # the threshold of "always positive"


class Rule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A threshold in JSON, which has no infinity: positive for all, none, or by a score.

    That is `at_least` where higher scores mean positive, and `at_most` where lower ones do.
    """

    rule: Literal["at_least", "at_most", "all", "none"]
    threshold: float | None = None

    def __post_init__(self) -> None:
        if (self.rule in _BY_SCORE.values()) != (self.threshold is not None):
            raise ValueError(
                "rules at_least and at_most need a threshold, and the other rules have none"
            )
        if self.threshold is not None and not isfinite(self.threshold):
            raise ValueError(
                "threshold must be finite: use rule all or none instead of an infinity"
            )

    def number(self, direction: Direction) -> float:
        """Return the threshold; ValueError where the rule is one of the other direction.

        >>> Rule("at_most", 0.5).number("<="), Rule("all").number("<="), Rule("none").number("<=")
        (0.5, inf, nan)
        """
        if self.rule in _BY_SCORE.values() and self.rule != _BY_SCORE[direction]:
            raise ValueError(
                f"rule {self.rule} is given, but the direction is {direction!r}: rules are "
                f"{_BY_SCORE[direction]}, all and none"
            )
        if self.threshold is not None:
            return self.threshold
        return _ALL[direction] if self.rule == "all" else nan


def rule_of(threshold: float, direction: Direction) -> tuple[Any, float | None]:
    """Return the name of the rule of a threshold, and the threshold where that has one."""
    if isfinite(threshold):
        return _BY_SCORE[direction], threshold
    return ("all" if threshold == _ALL[direction] else "none"), None


def as_rule(threshold: float, direction: Direction) -> Rule:
    """Return the rule of a threshold.

    >>> [as_rule(each, ">=").rule for each in (0.5, -inf, inf, nan)]
    ['at_least', 'all', 'none', 'none']
    >>> [as_rule(each, "<=").rule for each in (0.5, -inf, inf, nan)]
    ['at_most', 'none', 'all', 'none']
    """
    return Rule(*rule_of(threshold, direction))


def as_rules(thresholds: dict[str, float], direction: Direction) -> dict[str, Rule]:
    """Return the rules of thresholds by segment, in order."""
    return {segment: as_rule(each, direction) for segment, each in sorted(thresholds.items())}


def reaches(score: Any, threshold: Any, direction: Direction) -> Any:
    """Whether a score, or each of many, is answered 1. None is where the threshold is nan.

    >>> reaches(0.5, 0.25, ">="), reaches(0.5, 0.25, "<="), reaches(0.5, nan, "<=")
    (True, False, False)
    """
    return score >= threshold if direction == ">=" else score <= threshold


def _length(text: str, name: str = "period") -> Any:
    """Read a length of time in microseconds, or a number where the times of rows are numbers."""
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return length_of(text, name)


class Keep(msgspec.Struct, forbid_unknown_fields=True):
    """Which samples count: all, the last ones, those of the last period, or all of them fading.

    `last` has a number of `samples`, `period` a `length` of time, and the half-life of `fading`
    is one or the other.
    """

    keep: Literal["all", "last", "period", "fading"] = "all"
    length: _Length | None = None
    samples: Annotated[int, Meta(ge=1, le=2**53)] | None = None

    def __post_init__(self) -> None:
        given = (self.length is not None, self.samples is not None)
        if given not in _KEPT_BY[self.keep]:
            raise ValueError(
                "memory period needs a length and last a number of samples, fading needs one of "
                "both, and all has none"
            )
        if self.length is not None:
            _length(self.length, "memory.length")

    def around(self, model: Any) -> Any:
        """Return a model that lets only these samples count."""
        length = None if self.length is None else _length(self.length)
        if self.keep == "last":
            return LastN(model, self.samples)  # type: ignore[arg-type]
        if self.keep == "period":
            return LastPeriod(model, length)  # type: ignore[arg-type]
        if self.keep == "fading" and length is not None:
            return Fading(model, length, by="time")
        return Fading(model, self.samples) if self.keep == "fading" else model  # type: ignore[arg-type]


class Segments(msgspec.Struct, forbid_unknown_fields=True):
    """Thresholds by segment: how many samples one needs, and how many there may be."""

    at_least: int = 100
    most: int = 500

    def __post_init__(self) -> None:
        if not (self.at_least >= 1 and 1 <= self.most <= 10_000):
            raise ValueError("segments need at_least >= 1 and 1 <= most <= 10000")


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """How the version in effect changes: by people, or by itself; and what is demanded before.

    `manual`: people deploy and propose. `proposed`: limen proposes too, and people approve.
    `automatic`: limen proposes, and changes the version when all demands are met.
    """

    policy: Literal["manual", "proposed", "automatic"] = "manual"
    at_least: Annotated[int, Meta(ge=1, le=2**53)] = 5000  # labelled samples scored after it
    different: Annotated[int, Meta(ge=1, le=2**53)] = 200  # of these, answered differently
    confidence: Annotated[float, Meta(ge=0.5, lt=1)] = 0.95
    least_saving: Annotated[float, Meta(ge=0, lt=1)] = 0.02  # of the cost now
    age: _Length | None = None  # at which samples judge, when nearly all labels are known
    shadow: _Length = "48h"  # how long at least
    expires: _Length = "14d"  # after the first sample could judge
    at_most_every: _Length = "7d"
    most_answered: Annotated[float, Meta(gt=0)] = 0.25  # relative change of the share answered 1
    four_eyes: bool = True  # who proposed does not approve; with policy proposed, in all things
    largest_weight: Annotated[float, Meta(gt=0)] = 1.0  # a heavier sample voids the evidence

    def __post_init__(self) -> None:
        for name in ("age", "shadow", "expires", "at_most_every"):
            if getattr(self, name) is not None:
                length_of(getattr(self, name), f"change.{name}")

    @property
    def by_two(self) -> bool:
        """Whether nobody changes thresholds or the definition alone."""
        return self.four_eyes and self.policy == "proposed"


class Words(msgspec.Struct, forbid_unknown_fields=True):
    """What the answers 0 and 1 are called where the point is used."""

    zero: Annotated[str, Meta(min_length=1, max_length=60)]
    one: Annotated[str, Meta(min_length=1, max_length=60)]


class Alerts(msgspec.Struct, forbid_unknown_fields=True):
    """When people are alerted: each condition that is given is checked once a minute."""

    regret: Annotated[float, Meta(ge=0)] | None = None  # per 1,000 decisions
    regret_for: _Length = "24h"
    answered: Annotated[float, Meta(gt=0)] | None = None  # relative change of the share answered 1
    labels_late: _Length | None = None  # no label for so long, while scores come
    recall: Annotated[float, Meta(ge=0, le=1)] | None = None  # floors, of the answers given
    precision: Annotated[float, Meta(ge=0, le=1)] | None = None

    def __post_init__(self) -> None:
        for name in ("regret_for", "labels_late"):
            if getattr(self, name) is not None:
                length_of(getattr(self, name), f"alerts.{name}")


class Definition(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a point is; a later one replaces it, and the history is folded again if need be."""

    false_positive: int | float = 1
    false_negative: int | float = 1
    unit: int | float | None = None
    direction: Direction = ">="  # "<=": lower scores mean positive; it stays for good
    scores: ScoreKind = "ranks"  # what they are, for the recommended threshold
    capacity: int | None = None  # how many scores and runs of them are held at most
    # What holds the samples, and what they cost: by label, by row, or any costs asked for later.
    # All but "threshold" is for `limen watch` only.
    model: Literal["threshold", "cut", "calibrator"] = "threshold"
    by_id: bool = True  # scores and labels are joined by id; false: rows have both, and no id
    memory: Keep = msgspec.field(default_factory=Keep)
    time_to_live: _Length | None = "90d"
    maturity: _Length | None = None
    correctable: _Length | None = None
    segments: Segments | None = None
    start: Rule = msgspec.field(default_factory=lambda: Rule("none"))
    change: Change = msgspec.field(default_factory=Change)
    words: Words | None = None
    alerts: Alerts | None = None

    def __post_init__(self) -> None:
        by_itself = self.change.policy != "manual"
        if not self.by_id and (self.maturity or self.correctable or self.change.age or by_itself):
            raise ValueError(
                "maturity, correctable, change.age and policies need by_id: without ids a label "
                "comes with its score, and no sample is known that would judge a proposal"
            )
        if self.capacity is not None and (by_itself or self.memory.keep in ("last", "period")):
            raise ValueError(
                "capacity needs policy manual and memory all or fading: what any threshold costs "
                "is not known, and samples that leave would widen the bound without end"
            )
        try:
            self.empty()
        except OverflowError as error:  # costs too far apart for exact sums
            raise ValueError(str(error)) from None
        self.start.number(self.direction)
        if by_itself and self.segments is not None and self.memory.keep == "fading":
            raise ValueError(
                f"policy {self.change.policy} with segments needs memory all or period: sums that "
                "fade in different segments cannot be added"
            )

    def horizon(self) -> int | None:
        """Return the shortest age at which an id may be dropped; None where none ever is."""
        if not self.by_id:
            return None
        lengths = [self.time_to_live, self.correctable, self.memory.length]
        return min((_length(each) for each in lengths if each is not None), default=None)

    def age(self) -> int:
        """Return the age at which nearly all labels are known, in microseconds."""
        if not self.by_id:
            return 0
        young = 0 if self.maturity is None else _length(self.maturity)
        if self.change.age is not None:
            return max(young, length_of(self.change.age))
        horizon = self.horizon()
        return young or (_WEEK if horizon is None else min(_WEEK, horizon // 2))

    def empty(self) -> Any:
        """Make the memory of a point: a ledger, or without ids what it would be around.

        ValueError where these settings do not fit together.
        """
        model: Any = self.memory.around(self._model())
        if self.segments is not None:
            model = Grouped(model, at_least=self.segments.at_least)
        if not self.by_id:
            return model
        names = ("time_to_live", "maturity", "correctable")
        lengths = {name: getattr(self, name) for name in names}
        periods = {
            name: None if text is None else _length(text, name) for name, text in lengths.items()
        }
        return Ledger(model, **periods, horizon=self.horizon())

    def _model(self) -> Any:
        given: Any = {"unit": self.unit, "direction": self.direction}
        if self.model == "calibrator":
            if self.capacity is not None:
                raise ValueError("capacity works only with costs, not with metrics and demands")
            return OnlineCalibrator(scores=self.scores, **given)
        if self.capacity is not None:
            given["capacity"] = self.capacity
        if self.model == "cut":
            return OnlineCut(**given)
        if self.capacity is None:  # else nothing is recommended
            given["scores"] = self.scores
        costs: Any = {"false_positive": self.false_positive, "false_negative": self.false_negative}
        return OnlineThreshold(**costs, **given)

    def require_served(self) -> None:
        """Raise ValueError where only `limen watch` can follow it, and no server."""
        if self.model != "threshold":
            raise ValueError(f"model {self.model} works in limen watch only")
        lengths = {"memory.length": self.memory.length, "time_to_live": self.time_to_live,
                   "maturity": self.maturity, "correctable": self.correctable}  # fmt: skip
        for name, text in lengths.items():
            if text is not None:
                length_of(text, name)

    def counts_alike(self, other: Definition) -> bool:
        """Whether the same samples count in the same way, so that no history is refolded."""
        names = ("start", "change", "words", "alerts")
        same = {name: getattr(self, name) for name in names}
        return msgspec.structs.replace(other, **same) == self

    def only_tightened_by(self, other: Definition) -> bool:
        """Whether another one demands as much of a change, or more, and is otherwise the same."""
        now, then = self.change, other.change
        for name in _MORE_IS_STRICTER:
            old, new = getattr(now, name), getattr(then, name)
            if (length_of(new) < length_of(old)) if isinstance(old, str) else (new < old):
                return False
        same = {name: getattr(now, name) for name in (*_MORE_IS_STRICTER, "most_answered")}
        alike = msgspec.structs.replace(then, **same)
        return (
            then.most_answered <= now.most_answered
            and msgspec.structs.replace(other, change=alike) == self
        )

    def differences(self, other: Definition) -> list[dict[str, Any]]:
        """Return the fields in which another one differs: what is, and what would be."""
        now, then = (_flat(msgspec.to_builtins(each)) for each in (self, other))
        return [
            {"field": field, "now": now.get(field), "then": then.get(field)}
            for field in sorted({*now, *then})
            if now.get(field) != then.get(field)
        ]


def _flat(fields: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def checked_segment(segment: str) -> str:
    """Return a segment, or raise ValueError: names divided by slashes, three deep at most."""
    parts = segment.split("/")
    if len(segment.encode()) > 64 or len(parts) > _DEEPEST or not all(parts):
        raise ValueError(
            f"segment must be at most 64 bytes and 1 to {_DEEPEST} names divided by slashes"
        )
    return segment
