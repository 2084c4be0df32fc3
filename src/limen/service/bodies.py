# SPDX-License-Identifier: Apache-2.0
"""What requests and answers hold; openapi.json is made of these."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from limen.service.points.definitions import Rule

__all__ = [
    "Decision",
    "Deployment",
    "Erasing",
    "Forgetting",
    "Label",
    "LabelAnswer",
    "NewProposal",
    "NewToken",
    "Rollback",
    "Score",
    "ScoreAnswer",
    "SignIn",
]

_Id = Annotated[str, Meta(min_length=1, max_length=128, description="Opaque: no personal data.")]
_Time = Annotated[datetime, Meta(tz=True)]
_Segment = Annotated[str, Meta(min_length=1, max_length=64)]
_Reason = Annotated[str, Meta(max_length=1000)]
_Why = Annotated[str, Meta(min_length=1, max_length=1000, pattern=r"\S")]
_Seen = Annotated[int, Meta(ge=0, le=2**53, description="The seq that the person saw.")]
_Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,39}$")]


class Score(msgspec.Struct, tag_field="type", tag="score", forbid_unknown_fields=True):
    """A score to be answered and recorded."""

    id: _Id
    score: float | Literal["inf", "-inf"]
    time: _Time | None = None
    segment: _Segment | None = None
    weight: Annotated[float, Meta(ge=0)] | Annotated[int, Meta(ge=0)] | None = None
    answer: Literal[0, 1] | None = None
    version: Annotated[int, Meta(ge=1, le=2**53)] | None = None


class Label(msgspec.Struct, tag_field="type", tag="label", forbid_unknown_fields=True):
    """What turned out to be true, and when that was determined."""

    id: _Id
    label: Literal[0, 1]
    as_of: _Time | None = None


class ScoreAnswer(msgspec.Struct):
    """The answer to a score, and the rule that gave it."""

    answer: int
    rule: str
    threshold: float | None
    version: int | None
    source: str
    seq: int
    repeated: bool


class LabelAnswer(msgspec.Struct):
    """Whether the id has a score, and whether the label changed anything."""

    joined: bool
    changed: bool
    seq: int


class Forgetting(msgspec.Struct, forbid_unknown_fields=True):
    """Ids whose names are to be deleted."""

    ids: Annotated[list[_Id], Meta(min_length=1, max_length=1000)]
    reason: _Reason = ""


class Erasing(msgspec.Struct, omit_defaults=True):
    """Whether bytes of what was forgotten up to an event are left on disk, and where."""

    seq: int
    state: Literal["erasing", "erased"]
    left_in: list[Literal["log.db", "snapshots"]]
    known: int | None = None


class Deployment(msgspec.Struct, forbid_unknown_fields=True):
    """Thresholds to deploy: by segment, "" for all."""

    thresholds: dict[str, Rule]
    reason: _Reason = ""
    seen: int | None = None


class Rollback(msgspec.Struct, forbid_unknown_fields=True):
    """Which version to go back to; without one, the version before."""

    reason: _Why
    seen: _Seen
    version: Annotated[int, Meta(ge=1, le=2**53)] | None = None


class NewProposal(msgspec.Struct, forbid_unknown_fields=True):
    """Thresholds that may replace those in effect: by segment, "" for all."""

    thresholds: dict[str, Rule]
    reason: _Why
    seen: _Seen


class Decision(msgspec.Struct, forbid_unknown_fields=True):
    """Why a proposal is approved, rejected or withdrawn, and what was seen before."""

    reason: _Why
    seen: _Seen
    despite: bool = False


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """A token to be made."""

    name: _Name
    scopes: Annotated[list[str], Meta(min_length=1)]
    points: list[str] | None = None
    expires: _Time | None = None


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """A token, for which a browser gets a session."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]
