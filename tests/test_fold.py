# SPDX-License-Identifier: Apache-2.0
"""The fold of events is the only way by which a point changes: many at once, one by one, again."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from serving import Server, folder

from limen import from_bytes
from limen.service.bodies import Forgetting, Score
from limen.service.http.overview import tiles
from limen.service.log import snapshots
from limen.service.log.snapshots import verified
from limen.service.log.store import Log
from limen.service.log.writer import Writer
from limen.service.points.definitions import Definition
from limen.service.points.events import Event, decode_events, decode_names, encode
from limen.service.points.rows import UNLABELLED, Rows
from limen.service.points.state import State
from limen.service.points.ticks import once_per_tick
from limen.service.problems import Refused

HOUR = 3_600_000_000
START = 500_000 * HOUR

SETTINGS: list[dict[str, Any]] = [
    {"false_negative": 5},
    {"direction": "<=", "false_positive": 2},
    {"memory": {"keep": "period", "length": "30h"}, "time_to_live": "40h"},
    {"memory": {"keep": "fading", "length": "20h"}},
    {"memory": {"keep": "last", "samples": 25}},
    {"segments": {"at_least": 3, "most": 4}},
    {"segments": {"at_least": 3, "most": 4}, "memory": {"keep": "period", "length": "30h"}},
    {"maturity": "5h", "correctable": "50h"},
    {"capacity": 40},
]


def empty() -> State:
    return State(lambda upto: ())


def begun(**settings: Any) -> tuple[State, list[tuple[Event, Any]]]:
    """A state with one point, and the events that made it."""
    state = empty()
    events: list[tuple[Event, Any]] = []
    definition = msgspec.convert(settings, Definition)
    rule = "at_most" if definition.direction == "<=" else "at_least"
    define = Event("define", START, "p", more=msgspec.to_builtins(definition))
    thresholds = {"": {"rule": rule, "threshold": 0.5}}
    deploy = Event("deploy", START, "p", more={"thresholds": thresholds})
    for event in (define, deploy):
        fold(state, events, event)
    return state, events


def fold(state: State, events: list[tuple[Event, Any]], event: Event, id: Any = None) -> None:
    state.fold(state.seq + 1, event, id)
    events.append((event, id))


def replayed(events: list[tuple[Event, Any]]) -> State:
    """Fold events again that were written and read."""
    state = empty()
    read = decode_events(encode([event for event, _ in events]))
    names = decode_names(encode([id for _, id in events]))
    for seq, (event, id) in enumerate(zip(read, names, strict=True), 1):
        state.fold(seq, event, id)
    return state


def propose(at: int, threshold: float, rule: str) -> Event:
    more = {
        "thresholds": {"": {"rule": rule, "threshold": threshold}},
        "age": 2 * HOUR,
        "expires": at + 900 * HOUR,
        "confidence": 0.95,
    }
    return Event("propose", at, "p", by="limen", more=more)


def drawn(seed: int, settings: dict[str, Any], many: int) -> list[dict[str, Any]]:
    """Rows of ids that come in any order, some late, with weights and segments."""
    draw = random.Random(seed)
    names = [None, "a", "b", "a/x", "c/y/z", "d"] if "segments" in settings else [None]
    return [
        {
            "id": f"id-{seed}-{at}",
            "score": draw.choice([draw.random(), 0.5, float("inf")]),
            "time": START + seed * 3 * HOUR + at * HOUR // 20 - draw.choice([0, 0, HOUR]),
            "weight": draw.choice([1.0, 2.0, 0.5]),
            "segment": draw.choice(names),
            "label": draw.randrange(2),
        }
        for at in range(many)
    ]


def columns(rows: list[dict[str, Any]], *names: str) -> dict[str, list[Any]]:
    return {f"{name}s": [row[name] for row in rows] for name in names}


@pytest.mark.parametrize("watched", [False, True], ids=["", "proposal"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_rows_of_ids_are_the_scores_and_labels_one_by_one(settings, watched):
    if watched and settings.get("memory", {}).get("keep") == "last":
        pytest.skip("a judged sample that left the window by number is looked up after the batch")
    many, events = begun(**settings)
    single, _ = begun(**settings)
    point = many.points["p"]
    if watched:
        event = propose(START, 0.25, "at_most" if point.direction == "<=" else "at_least")
        single.fold(3, event, None)
        fold(many, events, event)
    seq, before = single.seq, None
    for batch in range(1, 12):
        rows = drawn(batch, settings, 30)
        at = START + (batch + 1) * 3 * HOUR
        answers = point.answers(np.array([row["score"] for row in rows]), None)
        given = columns(rows, "score", "time", "weight", "segment")
        fold(many, events, Event("rows", at, "p", rows=Rows.of(**given, answers=answers)),
             [row["id"] for row in rows])  # fmt: skip
        for row, answer in zip(rows, answers.tolist(), strict=True):
            seq += 1
            event = Event("score", at, "p", row["time"], row["score"], row["weight"], answer,
                          row["segment"])  # fmt: skip
            single.fold(seq, event, row["id"])
        labelled = [*(before or [])[::2], *rows[::3]]
        draw = random.Random(batch)
        for row in labelled:
            row["label"] = draw.randrange(2)
        as_of = None if batch % 2 else [at + place for place in range(len(labelled))]
        labels = Rows.of(labels=[row["label"] for row in labelled], times=as_of)
        fold(many, events, Event("rows", at, "p", rows=labels), [row["id"] for row in labelled])
        for place, row in enumerate(labelled):
            seq += 1
            time = None if as_of is None else as_of[place]
            single.fold(seq, Event("label", at, "p", time, row["label"]), row["id"])
        advance = Event("advance", at, time=at)
        fold(many, events, advance)
        seq += 1
        single.fold(seq, advance, None)
        before = rows
    single.seq = many.seq

    assert many.points["p"].samples() > 20
    assert single.to_bytes(b"") == many.to_bytes(b"") == replayed(events).to_bytes(b"")


@pytest.mark.parametrize("settings", [*SETTINGS[:7], SETTINGS[8]], ids=str)
def test_complete_rows_are_what_the_model_is_given(settings):
    settings = {**settings, "by_id": False}
    state, events = begun(**settings)
    point = state.points["p"]
    expected = point.definition.empty()
    scored = labels = 0
    for batch in range(1, 12):
        rows = drawn(batch, settings, 30)
        rows[3]["label"] = UNLABELLED
        at = START + (batch + 1) * 3 * HOUR
        given = columns(rows, "score", "label", "time", "weight", "segment")
        answers = point.answers(np.array(given["scores"]), given["segments"])
        fold(state, events, Event("rows", at, "p", rows=Rows.of(**given, answers=answers)))
        scored, labels = scored + len(rows), labels + 29
        for row in rows:
            if row["label"] == UNLABELLED:
                continue
            named = {"time": row["time"]} if "length" in settings.get("memory", {}) else {}
            group = []
            if "segments" in settings:  # four at most: those that come first
                group = [_group(row["segment"], point.segments)]
            expected.update(*group, row["score"], row["label"], row["weight"], **named)

    assert (scored, labels) == (point.scores, point.labels)
    assert expected.to_bytes() == point.memory.to_bytes()
    assert state.to_bytes(b"") == replayed(events).to_bytes(b"")
    back = empty()
    assert b"chain" == back.restore(state.to_bytes(b"chain"))
    assert state.to_bytes(b"") == back.to_bytes(b"")
    assert point.cost() == pytest.approx(back.points["p"].cost(), nan_ok=True)
    assert point.regret() >= 0 or "capacity" in settings
    assert tiles(point)["samples"] == point.samples() > 20


def _group(segment: str | None, known: set[str]) -> Any:
    """The group of a row where all segments that fit are known by now."""
    parts = [] if segment is None else segment.split("/")
    while parts and "/".join(parts) not in known:
        parts.pop()
    return "*" if not parts else tuple(parts) if len(parts) > 1 else parts[0]


def test_an_event_of_rows_has_the_time_of_the_event_where_none_is_given():
    state, _ = begun()
    rows = Rows.of(scores=[0.25, 0.75], answers=[0, 1])
    state.fold(3, Event("rows", START + 7, "p", rows=rows), ["a", 5])

    assert START + 7 == state.points["p"].ledger.newest
    assert (0.75, 1, None, None, START + 7) == state.points["p"].ledger._known(5)


REFUSED: list[tuple[dict[str, Any], str, Any, Any]] = [
    ({}, "score", Event("score", START, "p", START, float("nan"), 1, 0), "new"),
    ({}, "score", Event("score", START, "p", START, 0.5, -1.0, 0), "new"),
    ({}, "other", Event("score", START, "p", START, 0.25, 1, 0), "known"),
    ({}, "label", Event("label", START, "p", None, 2.0), "known"),
    ({}, "huge", Event("score", START, "p", START, 0.5, 1e300, 0), "waits"),
    ({}, "rows", Rows.of(scores=[0.5, float("nan")], answers=[0, 0]), ["new", "newer"]),
    ({}, "rows", Rows.of(scores=[0.5, 0.125], answers=[0, 0]), ["new", "known"]),
    ({}, "rows", Rows.of(scores=[0.5, 0.125], answers=[0, 0]), ["new"]),
    ({}, "rows", Rows.of(scores=[0.5, 0.125], answers=[0]), ["new", "newer"]),
    ({}, "rows", Rows.of(labels=[1, 2]), ["known", "new"]),
    ({"by_id": False}, "rows", Rows.of(scores=[0.5, np.nan], labels=[1, 0], answers=[1, 0]), None),
    ({"by_id": False}, "rows", Rows.of(scores=[0.5, 0.5], labels=[1, 9], answers=[1, 0]), None),
    ({"by_id": False}, "rows", Rows.of(scores=[0.5], answers=[1]), None),
    (
        {"by_id": False},
        "rows",
        Rows.of(scores=[0.5, 0.5], labels=[1, 1], answers=[1, 0], weights=[1, -1]),
        None,
    ),
]


@pytest.mark.parametrize("segments", [False, True], ids=["", "segments"])
@pytest.mark.parametrize(("settings", "what", "given", "id"), REFUSED)
def test_what_the_memory_refuses_leaves_all_as_it_was(settings, what, given, id, segments):
    settings = settings | ({"segments": {"most": 3}} if segments else {})
    state, events = begun(**settings)
    if settings.get("by_id", True):
        score = Event("score", START, "p", START, 0.5, 1, 1, "a" if segments else None)
        fold(state, events, score, "known")
        fold(state, events, Event("label", START, "p", None, 1.0), "waits")
        fold(state, events, propose(START, 0.25, "at_least"))
    else:
        names = ["a", None] if segments else None
        rows = Rows.of(scores=[0.25, 0.5], labels=[0, 1], answers=[0, 1], segments=names)
        fold(state, events, Event("rows", START, "p", rows=rows))
    event = given
    if isinstance(given, Rows):
        if segments and given.scores:
            given = msgspec.structs.replace(
                given, segments=["b/new", "b/c"], places=np.array([1, 2], "<u4").tobytes()
            )
        event = Event("rows", START + 9, "p", rows=given)
    elif segments and event.kind == "score":
        event = msgspec.structs.replace(event, segment="b/new", at=START + 9)
    before = state.to_bytes(b"")

    with pytest.raises((ValueError, OverflowError, TypeError)):
        state.fold(state.seq + 1, event, id)

    assert before == state.to_bytes(b"")
    assert (len(events), START) == (state.seq, state.at)
    again = Event("advance", START + 10, time=START + 10)
    fold(state, events, again)
    assert state.to_bytes(b"") == replayed(events).to_bytes(b"")


def test_a_definition_that_counts_otherwise_folds_rows_again():
    state, events = begun(false_negative=5)
    rows = drawn(1, {}, 50)
    ids = [row["id"] for row in rows]
    answers = [int(row["score"] >= 0.5) for row in rows]
    scores = Rows.of(**columns(rows, "score", "time"), answers=answers)
    labels = Rows.of(**columns(rows, "label"))
    define = Event("define", START, "p", more=msgspec.to_builtins(Definition(false_negative=2)))
    other, later = begun(false_negative=2)
    for each, event in ((state, scores), (state, labels), (other, scores), (other, labels)):
        log = events if each is state else later
        fold(each, log, Event("rows", START, "p", rows=event), ids)
    history = [(seq, *each) for seq, each in enumerate(events, 1)]
    state._history = lambda upto: history[:upto]
    fold(state, events, define)

    assert state.shown() == other.shown()
    assert state.points["p"].ones == sum(answers)


def test_a_log_of_rows_is_recovered_with_and_without_a_snapshot(tmp_path: Path):
    state, events = begun(by_id=False)
    rows = Rows.of(scores=[0.25, 0.75, 0.5], labels=[0, 1, 1], answers=[0, 1, 1])
    fold(state, events, Event("rows", START, "p", rows=rows))
    fold(state, events, Event("define", START, "q", more=msgspec.to_builtins(Definition())))
    scores = Rows.of(scores=[0.25, 0.75], answers=[0, 1])
    fold(state, events, Event("rows", START, "q", rows=scores), ["a", "b"])
    log = Log(tmp_path, create=True)
    try:
        log.append([event for event, _ in events], [id for _, id in events])
        snapshots.make(tmp_path)
        labels = Rows.of(labels=[1, 0])
        fold(state, events, Event("rows", START, "q", rows=labels), ["b", "a"])
        log.append([events[-1][0]], [events[-1][1]])
        found = [snapshots.recovered(log, tmp_path)]
        for _, path in snapshots.stored(tmp_path):
            path.unlink()
        found.append(snapshots.recovered(log, tmp_path))
    finally:
        log.close()

    assert [state.to_bytes(b"")] * 2 == [each.to_bytes(b"") for each in found]
    assert 2 == from_bytes(state.points["q"].memory.to_bytes()).model.loss + 2


def test_an_id_of_rows_is_found_repeated_and_forgotten(tmp_path: Path):
    writer = Writer(tmp_path, print)
    define = Event("define", writer.now(), "p", more=msgspec.to_builtins(Definition()))
    writer._fold(define)
    at = writer.now()
    rows = Rows.of(scores=[0.25, 0.75, 0.5], answers=[0, 1, 1], times=[at, at + 1, at + 2])
    writer._fold(Event("rows", at, "p", rows=rows), ["a", "b", "c"])
    labels = Event("rows", at, "p", rows=Rows.of(labels=[1, 0]))
    point = writer.point("p")
    for committed in (False, True):
        if committed:
            writer.commit_now()
        again = writer.score(point, Score("b", 0.75), "test", at)
        assert (1, True, 2) == (again.answer, again.repeated, again.seq)
        with pytest.raises(Refused, match="another score"):
            writer.score(point, Score("b", 0.25), "test", at)
    writer._fold(labels, ["b", "a"])
    asyncio.run(writer.forget(point, Forgetting(["b", "c"]), "test"))

    assert ["a"] == list(point.ledger)
    with pytest.raises(Refused, match="forgotten"):
        writer.score(point, Score("c", 0.5), "test", at)
    assert [3, 2] == [seq for seq, _ in writer._all_of(point, "a")]
    names = [id for _, _, id in writer._reader.events()]
    assert [None, ["a", 4, 5], [4, "a"], 4, 5] == names
    shown = writer.state.shown()
    writer.release()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"\xa1b\xa1c" not in path.read_bytes()
    reopened = Writer(tmp_path, print)
    assert shown == reopened.state.shown()
    reopened.release()


def test_a_proposal_is_evaluated_once_until_something_changes_it():
    state, events = begun(change={"age": "2h"})
    fold(state, events, propose(START, 0.25, "at_least"))
    calls: list[int] = []

    @once_per_tick
    def find(point: Any, proposal: Any, now: int) -> int:
        calls.append(now)
        return now

    def found() -> int:
        point = state.points["p"]
        return find(point, point.proposal, len(events))

    late = START + 3 * HOUR
    score = Event("score", START, "p", START + 1, 0.3, None, 0)
    other = msgspec.convert({"change": {"age": "1h"}}, Definition)
    define = Event("define", late, "p", more=msgspec.to_builtins(other))
    forget = Event("forget", late, "p", more={"hash": b"h", "reason": ""})
    happened = [
        (score, "a", False),
        (Event("label", START, "p", None, 1.0), "a", False),  # it does not judge yet
        (Event("advance", late, time=late), None, True),
        (Event("score", late, "p", late, 0.3, None, 0), "b", False),
        (Event("label", late, "p", None, 0.0), "a", True),  # a correction
        (Event("rows", late, "p", rows=Rows.of(labels=[1, 1])), ["a", "b"], True),
        (forget, "a", True),
        (define, None, True),
        (propose(late, 0.2, "at_least"), None, True),
    ]
    found()
    for event, id, changes in happened:
        before = found()
        fold(state, events, event, id)
        assert found() == found() == (len(events) if changes else before), event.kind
    assert 1 + sum(changes for _, _, changes in happened) == len(calls)


def test_a_point_without_ids_is_folded_again_under_other_costs():
    settings = {"by_id": False, "alerts": {"regret": 1.0}}
    state, events = begun(**settings)
    rows = Rows.of(scores=[0.25, 0.75, 0.5], labels=[0, 1, 1], answers=[0, 1, 1])
    fold(state, events, Event("rows", START, "p", rows=rows))
    fold(state, events, Event("advance", START, time=START))
    history = [(seq, *each) for seq, each in enumerate(events, 1)]
    state._history = lambda upto: history[:upto]
    other = msgspec.convert({**settings, "false_negative": 7}, Definition)
    fold(state, events, Event("define", START, "p", more=msgspec.to_builtins(other)))
    point = state.points["p"]

    assert (3, 3, 2, 3) == (point.samples(), point.scores, point.ones, point.labels)
    assert 7 == point.held.settings["false_negative"]


def test_a_server_adopts_a_folder_of_complete_rows():
    with folder() as made:
        log = Log(made / "d", create=True)
        now = time.time_ns() // 1000
        definition = msgspec.convert({"by_id": False, "segments": {"at_least": 2}}, Definition)
        define = Event("define", now, "p", more=msgspec.to_builtins(definition))
        rows = Rows.of(
            scores=[0.25, 0.75, float("inf")], labels=[0, 1, 1], answers=[0, 0, 0],
            segments=["a", "a", None],
        )  # fmt: skip
        log.append([define, Event("rows", now, "p", rows=rows)], [None, None])
        log.close()
        server = Server(made / "d")
        try:
            status, shown, _ = server.ask("GET", "/v1/points/p")
            assert (200, 3, 3, 0, 2.0) == (
                status, shown["scores"], shown["samples"], shown["ids"], shown["cost"],
            )  # fmt: skip
            for path in ("overview", "curve", "thresholds", "proposals", "changes"):
                assert 200 == server.ask("GET", f"/v1/points/p/{path}")[0], path
            assert 200 == server.ask("GET", "/metrics")[0]
            assert ["define", "rows"] == [each["kind"] for each in server.log()]
            assert [0.25, 0.75, "inf"] == server.log()[1]["rows"]["scores"]
            item = {"id": "a", "score": 0.5}
            status, refused, _ = server.ask("POST", "/v1/points/p/scores", item)
            assert (422, True) == (status, "by_id" in refused["detail"])
            item = {"thresholds": {"": {"rule": "at_least", "threshold": 0.5}}, "reason": "r"}
            assert 422 == server.ask("POST", "/v1/points/p/proposals", item)[0]
            assert 200 == server.ask("POST", "/v1/points/p/deploy", item)[0]
            assert 0.0 == server.ask("GET", "/v1/points/p")[1]["cost"]
            assert 422 == server.ask("PUT", "/v1/points/p", {"false_negative": 5})[0]
            again = {"by_id": False, "segments": {"at_least": 2}, "false_negative": 5}
            assert 200 == server.ask("PUT", "/v1/points/p", again)[0]
        finally:
            server.stop()
        assert verified(made / "d")
