# SPDX-License-Identifier: Apache-2.0
"""What each path does, and the table of routes; docs/service.md describes the same."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from limen import __version__
from limen.digits import difference
from limen.service.bodies import (
    Erasing,
    Forgetting,
    Label,
    LabelAnswer,
    NewToken,
    Score,
    ScoreAnswer,
)
from limen.service.http.app import Answer, Call, decoded, encode, yield_to_loop
from limen.service.http.browser import SESSIONS
from limen.service.http.deciding import DECIDING, status_of
from limen.service.http.openapi import document
from limen.service.http.overview import OVERVIEW
from limen.service.http.routes import NDJSON, POINT, Route, Text, Whole
from limen.service.http.stream import STREAM
from limen.service.log.store import Reader
from limen.service.points.definitions import Definition, as_rule, as_rules
from limen.service.points.events import Event, as_datetime
from limen.service.points.judging import shown_proposal
from limen.service.problems import Refused

if TYPE_CHECKING:
    from limen.service.points.point import Point
    from limen.service.points.versions import Version

__all__ = ["TABLE"]

_either = msgspec.json.Decoder(Score | Label).decode

_TURN = 250  # events of a batch before others have their turn
_MOST_LINES = 10_000
_CURVE = 500
_PAGE = 10_000


async def score(call: Call) -> Answer:
    """Answer a score and record it."""
    item = await call.read()
    point = call.point()  # not before: it may be another one after the wait
    writer = call.writer
    with call.app.meters.taking(point.name, "score"):
        writer.require_open()
        call.app.spend(call, 1)
        answer = writer.score(point, item, call.by, call.at)
        await writer.flushed()
    call.app.meters.score(point.name, answer)
    return Answer(encode(answer))


async def label(call: Call) -> Answer:
    """Record a label."""
    item = await call.read()
    point = call.point()
    writer = call.writer
    with call.app.meters.taking(point.name, "label"):
        writer.require_open()
        call.app.spend(call, 1)
        answer = writer.label(point, item, call.by, call.at)
        await writer.flushed()
    call.app.meters.event(point.name, "label", False)
    return Answer(encode(answer))


async def events(call: Call) -> Answer:
    """Record scores and labels, a line each.

    Each is answered by itself, and may be sent again.
    """
    may = _may(call)
    lines = (await call.body(call.app.settings.most_batch, NDJSON.encode())).splitlines()
    if len(lines) > _MOST_LINES:
        raise Refused("too-large", f"A batch has at most {_MOST_LINES:,} lines.")
    point = call.point()
    with call.app.meters.taking(point.name, "line", len(lines)):
        answers = await _answered(call, point, lines, may)
    call.app.meters.events(point.name, answers)
    out = [
        b'{"line":%d,"status":200,%b' % (number, encode(each)[1:])
        if type(each) is not dict
        else encode(each)
        for number, each in enumerate(answers, start=1)
    ]
    out.append(b"")
    return Answer(b"\n".join(out), 200, NDJSON.encode())


async def _answered(
    call: Call, point: Point, lines: list[bytes], may: tuple[bool, bool]
) -> list[dict[str, Any]]:
    writer = call.writer
    writer.require_open()
    call.app.spend(call, len(lines))
    answers: list[dict[str, Any]] = []
    epoch, at, by = writer.epoch, call.at, call.by
    for number, line in enumerate(lines):
        if number % _TURN == _TURN - 1:
            await yield_to_loop()
            writer.require_epoch(epoch)
            point, at = writer.point(point.name), writer.now()
        answer: Any
        try:
            item = decoded(_either, line)
            if type(item) is Score:
                if not may[0]:
                    raise Refused("forbidden", "The token lacks the scope 'score'.")
                answer = writer.score(point, item, by, at)
            else:
                if not may[1]:
                    raise Refused("forbidden", "The token lacks the scope 'label'.")
                answer = writer.label(point, item, by, at)
            answers.append(answer)
        except Refused as refused:
            answers.append({"line": number + 1, **refused.shown()})
        except Exception as error:  # the lines before it stand, and those after it may
            answers.append({"line": number + 1, **call.app.failed(call.route.path, error).shown()})
    await writer.flushed()
    return answers


def _may(call: Call) -> tuple[bool, bool]:
    found = []
    for scope in ("score", "label"):
        try:
            call.app.require(call, scope)
            found.append(True)
        except Refused as refused:
            if refused.name == "unauthorized":
                raise
            found.append(False)
    if not any(found):
        raise Refused("forbidden", "The token lacks the scopes 'score' and 'label'.")
    return found[0], found[1]


async def forget(call: Call) -> Answer:
    """Take ids back and delete their names."""
    item = await call.read()
    point = call.point()
    seq, known = await call.writer.forget(point, item, call.by)
    shown = _erasing(call, seq, known)
    if shown.state == "erased":
        return Answer(encode(shown))
    place = f"/v1/points/{point.name}/forget/{seq}".encode()
    return Answer(encode(shown), 202, headers=[(b"location", place)])


async def forgetting(call: Call) -> Answer:
    """Say whether what was forgotten up to an event is gone from the disk."""
    call.point()
    text = call.path["seq"]
    known = text.isascii() and text.isdecimal() and len(text) < 19
    if not known or int(text) > call.writer.on_disk:
        raise Refused(
            "not-found", f"There is no such event: the log ends at {call.writer.on_disk}."
        )
    return Answer(encode(_erasing(call, int(text))))


def _erasing(call: Call, seq: int, known: int | None = None) -> Erasing:
    left: Any = call.writer.left_in(seq)
    return Erasing(seq, "erasing" if left else "erased", left, known)


async def threshold(call: Call) -> Answer:
    """Return the threshold in effect."""
    version, headers, known = _in_effect(call)
    if known:
        return Answer(b"", 304, headers=headers)
    found, source = version.find(call.segment())
    shown = {
        "version": version.number,
        "since": as_datetime(version.at),
        "source": source,
        **msgspec.to_builtins(as_rule(found, call.point().direction)),
    }
    return Answer(encode(shown), headers=headers)


async def thresholds(call: Call) -> Answer:
    """Return the thresholds in effect, by segment."""
    version, headers, known = _in_effect(call)
    if known:
        return Answer(b"", 304, headers=headers)
    return Answer(encode(version.shown(call.point().direction)), headers=headers)


def _in_effect(call: Call) -> tuple[Version, list[tuple[bytes, bytes]], bool]:
    """Return the version that is on disk, its headers, and whether the caller has it."""
    version = call.point().published
    if version is None:
        raise Refused("unknown-point", "The point is not on disk yet. Ask again.")
    tag = version.tag(call.writer.era)
    headers = [(b"etag", tag), (b"cache-control", b"no-cache")]
    return version, headers, call.names(b"if-none-match", tag)


async def decision(call: Call) -> Answer:
    """Return what is known of one id, for people who ask why."""
    point, id = call.point(), call.path["id"]
    await call.writer.flushed()
    if point.forgotten and point.hash_of(id, call.writer.key) in point.forgotten:
        raise Refused("forgotten", "The id was forgotten.")
    found = await call.writer.aside(_found, call.writer.folder, point.name, id)
    if not found:
        raise Refused("not-found", "No event has this id in this point, or it is no longer kept.")
    return Answer(encode({"id": id, "events": found}))


def _found(folder: Any, point: str, id: str) -> list[dict[str, Any]]:
    from limen.service.log.names import Names

    with Reader(folder) as reader:
        events = list(Names(reader).find(point, id, reader.end()[0]))
    return [shown_event(seq, event) for seq, event in reversed(events)]


def shown_event(seq: int, event: Event) -> dict[str, Any]:
    """Describe an event for JSON; what is missing is left out."""
    more = dict(event.more or {})
    more.pop("digest", None)
    shown = {
        "seq": seq,
        "kind": event.kind,
        "at": as_datetime(event.at),
        "point": event.point or None,
        "time": None if event.time is None else as_datetime(event.time),
        "score": _number(event.value) if event.kind == "score" else None,
        "label": event.value if event.kind == "label" else None,
        "weight": event.weight,
        "answer": event.answer,
        "segment": event.segment,
        "version": event.version,
        "by": event.by or None,
        "more": more or None,
        "rows": None if event.rows is None else event.rows.shown(),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _number(value: float | None) -> float | str | None:
    """Write a number for JSON, which has no infinity."""
    if value is None or value - value == 0.0:
        return value
    return "inf" if value > 0 else "-inf"


async def points(call: Call) -> Answer:
    """List the points."""
    allowed = None if call.token is None else call.token.points
    names = [
        name for name in sorted(call.writer.state.points) if allowed is None or name in allowed
    ]
    found = [call.writer.state.points[name] for name in names]
    return Answer(
        encode(
            [
                {
                    "point": each.name,
                    "version": each.published.number,
                    "rule": as_rule(each.published.thresholds[""], each.direction),
                    "samples": each.samples(),
                    "regret": each.regret(),
                    "proposal": status_of(each, call.writer.now(), call.writer.on_disk),
                    "alerts": len(each.alerts),
                }
                for each in found
                if each.published is not None
            ]
        )
    )


async def point(call: Call) -> Answer:
    """Describe a point: definition, version, counts and costs."""
    return _described(call, call.point())


def _described(call: Call, found: Point, status: int = 200) -> Answer:
    """Answer with a point; its ETag is for If-Match, and stays while only counts change."""
    shown = _shown_point(found, call.writer.on_disk)
    return Answer(encode(shown), status, headers=[(b"etag", found.tag(call.writer.era))])


def _shown_point(point: Point, seq: int) -> dict[str, Any]:
    ledger, version = point.ledger, point.published or point.version
    cost, regret = point.cost(), point.regret()
    newest = getattr(point.memory, "newest", None)
    return {
        "point": point.name,
        "definition": point.definition,
        "version": version.shown(point.direction),
        "seq": seq,
        "scores": point.scores,
        "labels": point.labels,
        "answered_1": point.ones,
        "ids": 0 if ledger is None else len(ledger),
        "samples": point.samples(),
        "segments": len(point.segments),
        "segments_beyond_limit": point.overflow,
        "cost": cost,
        "cheapest": difference(cost, regret),
        "regret": regret,
        "cost_ever": None if ledger is None else ledger.cost_ever,
        "expired": 0 if ledger is None else ledger.expired,
        "optimum": as_rules(point.optima(), point.direction),
        "loss_bound": point.bounds(),
        "newest": None if newest is None else as_datetime(newest),
        "warning": point.undecided(),
    }


async def put_point(call: Call) -> Answer:
    """Define a point, or replace its definition."""
    name = call.path["point"]
    if call.token is not None and call.token.points is not None and name not in call.token.points:
        raise Refused("forbidden", "The token is not for this point.")
    if len(name) > 64 or not POINT.fullmatch(name):
        raise Refused(
            "invalid",
            "A point is named by up to 64 letters, digits, dots, hyphens, underscores, and not by "
            ". or .., which in an address are no names.",
        )
    definition = await call.read()

    def require(tag: bytes | None) -> None:
        if b"if-match" in call.headers and not call.names(b"if-match", tag):
            raise Refused(
                "precondition-failed",
                f"If-Match is not the ETag of {name!r} as it is now. GET it, look at what has "
                "changed, and send its ETag.",
            )
        if b"if-none-match" in call.headers and call.names(b"if-none-match", tag):
            raise Refused(
                "precondition-failed",
                f"There is a point {name!r}, and If-None-Match says that there must be none, or "
                "another one.",
            )

    reason = call.asked("reason") or ""
    new = name not in call.writer.state.points
    seq = await call.writer.define(name, definition, call.by, require, reason)
    point = call.writer.point(name)
    for made in reversed(point.proposals):
        if made.seq == seq:  # under four eyes: nothing has changed yet
            return Answer(encode(shown_proposal(point, made, call.writer.now())), 202)
    return _described(call, point, 201 if new else 200)


async def curve(call: Call) -> Answer:
    """Return the loss of thresholds, some hundreds of them."""
    found = call.point()
    segment = call.segment()
    model: Any = found.memory
    if found.definition.segments is not None:
        model = found.held.model(tuple(segment.split("/")) if segment else ())
    elif segment:
        raise Refused("invalid", "segment is given, but the point is defined without segments.")
    if found.definition.capacity is not None:
        raise Refused("invalid", "The point has a capacity: the loss of any threshold is unknown.")
    whole = model.curve()
    places = np.unique(np.linspace(0, len(whole.losses) - 1, _CURVE).astype(int))
    places = np.union1d(places, [int(np.argmin(whole.losses))])
    interval = None if segment else found.interval()
    if interval is not None:  # more of them around the interval, to zoom into
        low, high = interval
        wide = high - low
        around = (whole.thresholds >= low - wide) & (whole.thresholds <= high + wide)
        inside = np.flatnonzero(around)
        some = np.linspace(0, len(inside) - 1, min(len(inside), _CURVE)).astype(int)
        places = np.union1d(places, inside[some])
    rows = [
        {"threshold": _number(float(whole.thresholds[at])), "loss": float(whole.losses[at])}
        for at in places
        if whole.thresholds[at] == whole.thresholds[at]
    ]
    return Answer(encode({"samples": found.samples(), "curve": rows}))


async def history(call: Call) -> Answer:
    """List the versions there were."""
    after, found = call.asked("after"), call.point()
    last = call.writer.on_disk
    rows = [each.shown(found.direction) for each in found.versions if after < each.seq <= last]
    return Answer(encode(rows))


async def log(call: Call) -> Answer:
    """Return events after some seq, a page of lines.

    Ask again after the last of them.
    """
    if call.token is not None and call.token.points is not None:
        raise Refused("forbidden", "The log is that of all points, and the token is for some.")
    after, most = call.asked("after"), call.asked("limit")
    base = call.writer.base()
    if after < base:
        raise Refused("no-longer-kept", f"Events up to {base} were deleted.")
    rows = await call.writer.aside(
        _page, call.writer.folder, after, min(after + most, call.writer.on_disk)
    )
    return Answer(rows, 200, NDJSON.encode())


def _page(folder: Any, after: int, last: int) -> bytes:
    lines = []
    if last > after:
        with Reader(folder) as reader:
            for seq, event, id in reader.events(after, last):
                shown = shown_event(seq, event)
                lines.append(encode(shown if id is None else {**shown, "id": id}))
    return b"".join(line + b"\n" for line in lines)


async def make_token(call: Call) -> Answer:
    """Make a token; only for who owns the data directory."""
    _require_control(call, "Tokens are made with `limen serve token`.")
    item = await call.read()
    call.writer.require_open()
    token, seq = call.writer.make_token(item, call.by)
    await call.writer.flushed()
    return Answer(encode({"token": token, "seq": seq}), 201)


async def revoke_token(call: Call) -> Answer:
    """Revoke a token."""
    _require_control(call, "Tokens are revoked with `limen serve token`.")
    call.writer.require_open()
    seq = call.writer.revoke_token(call.path["name"], call.by)
    await call.writer.flushed()
    return Answer(encode({"seq": seq}))


async def tokens(call: Call) -> Answer:
    """List the tokens without their secrets."""
    _require_control(call, "Tokens are listed with `limen serve token`.")
    rows = [
        {
            "name": token.name,
            "scopes": token.scopes,
            "points": token.points,
            "expires": None if token.expires is None else as_datetime(token.expires),
        }
        for _, token in sorted(call.writer.state.tokens.items())
    ]
    return Answer(encode(rows))


async def clock(call: Call) -> Answer:
    """Say what the time is here, and what is wrong with the clock."""
    _require_control(call, "The clock is shown by `limen serve clock show`.")
    return Answer(_shown_clock(call))


async def accept_clock(call: Call) -> Answer:
    """Follow the clock as it is; only for who owns the data directory."""
    _require_control(call, "The clock is confirmed with `limen serve clock accept`.")
    await call.writer.accept_clock(call.by)
    return Answer(_shown_clock(call))


def _shown_clock(call: Call) -> bytes:
    writer = call.writer
    wrong = writer.clock.trouble(writer.state.at)
    return encode({"time": as_datetime(writer.now()), "wrong": wrong})


def _require_control(call: Call, instead: str) -> None:
    if not call.control:
        raise Refused("not-found", instead)


async def healthz(call: Call) -> Answer:
    """Say that the process runs."""
    return Answer(b'{"status":"ok"}')


async def readyz(call: Call) -> Answer:
    """Say whether writes are taken."""
    if not call.app.ready:
        raise Refused("not-ready", "The server is stopping.")
    call.writer.require_open()
    return Answer(b'{"status":"ready"}')


async def version(call: Call) -> Answer:
    """Say which limen this is."""
    return Answer(encode({"limen": __version__}))


async def metrics(call: Call) -> Answer:
    """Return the meters as Prometheus reads them."""
    if call.token is not None and call.token.points is not None:
        raise Refused(
            "forbidden", "The metrics are those of all points, and the token is for some."
        )
    body, kind = call.app.meters.scraped(call.writer)
    return Answer(body, kind=kind)


async def openapi(call: Call) -> Answer:
    """Return this document."""
    return Answer(_document())


@cache
def _document() -> bytes:
    return document(TABLE)


_POINT = "/v1/points/{point}"
_SEGMENT = {"segment": Text(64)}

# Those asked most often come first.
TABLE = (
    Route("POST", f"{_POINT}/scores", "score", score,
          body=Score, answer=ScoreAnswer, refusals=(409, 410)),
    Route("POST", f"{_POINT}/labels", "label", label,
          body=Label, answer=LabelAnswer, refusals=(409, 410)),
    Route("GET", f"{_POINT}/threshold", "read", threshold, statuses=(200, 304), query=_SEGMENT),
    Route("POST", f"{_POINT}/events", None, events, body=NDJSON, answer=NDJSON),
    Route("GET", f"{_POINT}/thresholds", "read", thresholds, statuses=(200, 304)),
    Route("POST", f"{_POINT}/forget", "forget", forget,
          body=Forgetting, answer=Erasing, statuses=(202, 200)),
    Route("GET", f"{_POINT}/forget/{{seq}}", "forget", forgetting, answer=Erasing),
    Route("GET", f"{_POINT}/decisions/{{id:path}}", "audit", decision, refusals=(410,)),
    Route("GET", "/v1/points", "read", points, answer=list),
    Route("GET", _POINT, "read", point),
    Route("PUT", _POINT, "admin", put_point, body=Definition, statuses=(200, 201, 202),
          refusals=(409, 412), query={"reason": Text(1000)}),
    Route("GET", f"{_POINT}/curve", "read", curve, query=_SEGMENT),
    Route("GET", f"{_POINT}/history", "read", history, answer=list, query={"after": Whole()}),
    *DECIDING,
    Route("GET", "/v1/log", "follow", log, answer=NDJSON, refusals=(410,),
          query={"after": Whole(), "limit": Whole(_PAGE, _PAGE)}),
    Route("GET", "/v1/tokens", "admin", tokens, listed=False),
    Route("POST", "/v1/tokens", "admin", make_token, body=NewToken, listed=False),
    Route("DELETE", "/v1/tokens/{name}", "admin", revoke_token, listed=False),
    Route("GET", "/v1/clock", "admin", clock, listed=False),
    Route("POST", "/v1/clock", "admin", accept_clock, listed=False),
    Route("GET", "/healthz", None, healthz),
    Route("GET", "/readyz", None, readyz),
    Route("GET", "/version", None, version),
    Route("GET", "/metrics", "read", metrics, answer="text/plain"),
    Route("GET", "/openapi.json", None, openapi),
    *OVERVIEW,
    *STREAM,
    *SESSIONS,
)  # fmt: skip
