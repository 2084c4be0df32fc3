# SPDX-License-Identifier: Apache-2.0
"""Proposals: judged by samples scored after them, decided once, and the same after any restart."""

from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from test_serve_log import desk_with, labelled, scored

import limen
from limen.service.bodies import Decision, Forgetting, NewProposal, Rollback
from limen.service.log import snapshots
from limen.service.log.store import Reader
from limen.service.log.writer import Writer
from limen.service.points.definitions import Change, Rule, Segments
from limen.service.points.events import as_datetime
from limen.service.points.judging import describe, judged, shown_proposal
from limen.service.points.saving import bounds
from limen.service.problems import Refused

HOUR = 3_600_000_000
QUICK = {
    "at_least": 40, "different": 5, "least_saving": 0.01, "age": "1h", "shadow": "2h",
    "expires": "10h", "at_most_every": "20h", "most_answered": 5.0, "confidence": 0.9,
}  # fmt: skip


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes only when it is set, in microseconds."""
    found = [1_800_000_000_000_000]
    monkeypatch.setattr("limen.service.log.clock.shown", lambda: found[0])
    monkeypatch.setattr("limen.service.log.clock.counted", lambda: found[0])
    return found


def stream(writer: Writer, clock: list[int], hours: int, draw: random.Random, **given: Any) -> None:
    """Let hours go by: 20 scores each, whose labels come within the hour."""
    best = given.pop("best", 0.3)
    for _ in range(hours):
        rows = []
        for _ in range(20):
            score = draw.random()
            rows.append(
                (f"id-{writer.state.seq}", int(draw.random() < (0.95 if score >= best else 0.05)))
            )
            scored(writer, rows[-1][0], score, **given)
        clock[0] += HOUR // 2
        for id, label in rows:
            labelled(writer, id, label)
        clock[0] += HOUR // 2
        writer.commit_now()
        asyncio.run(writer.tick())


def begin(folder: Path, policy: str, **more: Any) -> Writer:
    """A desk whose point answers 1 from 0.6, where 0.3 would be best."""
    change = Change(policy, **{**QUICK, **more})
    return desk_with(folder, start=Rule("at_least", 0.6), change=change)


def decision(writer: Writer, reason: str = "looked at it", **more: Any) -> Decision:
    return Decision(reason, writer.state.seq, **more)


def same_after_a_restart(writer: Writer) -> None:
    """Assert that the log alone, and a snapshot with its tail, give the same state."""
    writer.commit_now()
    folder = writer.folder
    chain = b"c" * 32
    with Reader(folder) as reader:
        again = snapshots.recovered(reader, folder)
    assert writer.state.to_bytes(chain) == again.to_bytes(chain)
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]


def test_automatic_deploys_when_all_is_met_and_then_watches_the_version_before(tmp_path, clock):
    writer, draw = begin(tmp_path / "d", "automatic"), random.Random(1)
    point = writer.point("fraud")
    stream(writer, clock, 2, draw)
    first = point.proposal
    assert first is not None
    assert ("limen", 1, None) == (first.by, first.version, first.back_to)
    assert first.thresholds[""] == pytest.approx(0.3, abs=0.15)
    assert point.version.number == 1
    assert judged(point).samples == 0
    same_after_a_restart(writer)
    stream(writer, clock, 1, draw)
    assert point.version.number == 1  # not in shadow long enough
    while point.version.number == 1:
        stream(writer, clock, 1, draw)
        same_after_a_restart(writer)
    version = point.version
    assert ("limen", 1, first.thresholds) == (version.by, version.proposal, version.thresholds)
    assert first.closed is not None
    assert ("approved", 2) == (first.closed.verdict, first.closed.version)
    shown = first.closed.shown
    assert all(each["met"] for each in shown["demands"])
    assert shown["samples"] >= 40
    assert writer.point("fraud").published == version
    watch = point.proposal
    assert watch is not None
    assert (1, {"": 0.6}) == (watch.back_to, watch.thresholds)
    # The world changes back: what was deployed is worse now, and the version before returns.
    stream(writer, clock, 12, draw, best=0.6)
    assert (3, {"": 0.6}) == (point.version.number, point.version.thresholds)
    assert "back to the version before" in point.version.reason
    same_after_a_restart(writer)
    writer.release()


def test_proposed_waits_for_a_person_and_says_what_is_missing(tmp_path, clock):
    writer, draw = begin(tmp_path / "d", "proposed"), random.Random(2)
    point = writer.point("fraud")
    while point.proposal is None:
        stream(writer, clock, 1, draw)
    with pytest.raises(Refused, match=r"labelled samples: \d+ \(at least 40\)") as early:
        asyncio.run(writer.approve(point, 1, decision(writer), "anna"))
    assert "not-yet" == early.value.name
    with pytest.raises(Refused, match="Look again"):
        asyncio.run(writer.approve(point, 1, Decision("why", point.proposal.seq - 1), "anna"))
    while (
        point.proposal is None
        or describe(point, point.proposal, writer.now())["status"] == "shadow"
    ):
        stream(writer, clock, 1, draw)  # limen may withdraw it and propose another one
    number, seen = point.proposal.number, writer.state.seq
    stream(writer, clock, 1, draw)
    assert 1 == point.version.number
    version, _ = asyncio.run(writer.approve(point, number, Decision("fine", seen), "anna"))
    assert (2, "anna", "fine") == (version, point.version.by, point.version.reason)
    with pytest.raises(Refused, match="was approved by anna already"):
        asyncio.run(writer.approve(point, number, Decision("me too", writer.state.seq), "ben"))
    # What is on watch gives way to what a person proposes.
    watch, again = point.proposal, {"": Rule("at_least", 0.45)}
    mine = asyncio.run(writer.propose(point, NewProposal(again, "mine", writer.state.seq), "ben"))
    assert watch is not None
    assert ("superseded", mine) == (watch.closed.verdict, point.proposal)
    # Whoever looked before that cannot roll back what they have not seen.
    with pytest.raises(Refused, match="Look again"):
        asyncio.run(writer.rollback(point, Rollback("no", seen), "ben"))
    back = Rollback("too many complaints", writer.state.seq)
    assert 3 == asyncio.run(writer.rollback(point, back, "ben"))[0]
    assert {"": 0.6} == point.version.thresholds
    assert point.proposal is None  # a rollback is not watched
    same_after_a_restart(writer)
    writer.release()


def test_people_propose_reject_and_withdraw_and_four_eyes_look(tmp_path, clock):
    writer, draw = begin(tmp_path / "d", "proposed", at_least=10**6), random.Random(3)
    point = writer.point("fraud")
    stream(writer, clock, 2, draw)
    mine = NewProposal({"": Rule("at_least", 0.4)}, "a guess", writer.state.seq)
    made = asyncio.run(writer.propose(point, mine, "anna"))
    with pytest.raises(Refused, match="Proposal 1 is open"):
        asyncio.run(
            writer.propose(point, NewProposal(mine.thresholds, "x", writer.state.seq), "ben")
        )
    with pytest.raises(Refused) as refused:
        asyncio.run(writer.approve(point, 1, decision(writer, despite=True), "anna"))
    assert "four-eyes" == refused.value.name
    with pytest.raises(Refused, match="Only who proposed"):
        asyncio.run(writer.close_proposal(point, 1, decision(writer), "ben", "withdrawn"))
    asyncio.run(writer.close_proposal(point, 1, decision(writer, "a slip"), "anna", "withdrawn"))
    assert ("withdrawn", "a slip") == (made.closed.verdict, made.closed.reason)
    again = NewProposal({"": Rule("all")}, "drastic", writer.state.seq)
    asyncio.run(writer.propose(point, again, "anna"))
    asyncio.run(writer.close_proposal(point, 2, decision(writer, "no"), "ben", "rejected"))
    again = NewProposal({"": Rule("at_least", 0.35)}, "milder", writer.state.seq)
    asyncio.run(writer.propose(point, again, "anna"))
    version, _ = asyncio.run(
        writer.approve(point, 3, decision(writer, "urgent", despite=True), "ben")
    )
    assert 2 == version
    closed = point.proposals[2].closed
    assert closed is not None
    assert closed.shown["despite"]
    assert "approved" == shown_proposal(point, point.proposals[2], writer.now())["status"]
    assert (4, 1) == (point.proposal.number, point.proposal.back_to)
    stream(writer, clock, 22, draw)
    expired = point.proposals[3].closed
    assert expired is not None
    assert "expired" == expired.verdict
    same_after_a_restart(writer)
    writer.release()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_evidence_is_that_of_the_library_sample_by_sample(tmp_path, clock, weighted):
    change = Change("manual", **{**QUICK, "largest_weight": 3.0})
    writer = desk_with(tmp_path / "d", start=Rule("at_least", 0.6), change=change, false_negative=5)
    point, draw, began = writer.point("fraud"), random.Random(4), clock[0]
    scored(writer, "before", 0.5)
    clock[0] += 1
    asyncio.run(
        writer.propose(
            point, NewProposal({"": Rule("at_least", 0.3)}, "try", writer.state.seq), "anna"
        )
    )
    slow = limen.Evidence(0.6, 0.3, false_negative=5, confidence=0.9, largest_loss=3.0, age=HOUR)
    rows: dict[str, tuple[float, int | None, int]] = {}
    for at in range(200):
        score, weight = draw.random(), draw.choice([1, 2, 3]) if weighted else 1
        label = draw.choice([0, 1, 1, None])
        scored(writer, f"i{at}", score, weight=weight)
        rows[f"i{at}"] = (score, label, weight)
    late = as_datetime(began - HOUR)
    scored(writer, "late", 0.5, time=late)  # its own time is before the proposal
    for id, (_, label, _) in rows.items():
        if label is not None:
            labelled(writer, id, label)
    clock[0] += HOUR - 10
    asyncio.run(writer.tick())
    assert (0, 200) == (judged(point).samples, point.shadow.judge.waiting)
    clock[0] += 20
    asyncio.run(writer.tick())
    for id in list(rows)[:60]:  # labels that come too late, and corrections
        score, label, weight = rows[id]
        labelled(writer, id, 1 if label is None else 1 - label)
        rows[id] = (score, None if label is None else 1 - label, weight)
    writer.commit_now()
    asyncio.run(writer.forget(point, Forgetting(["i100", "i101", "i102"]), "dpo"))
    for id in ("i100", "i101", "i102"):
        del rows[id]
    for score, label, weight in rows.values():
        slow.update(score, label, weight)
    found = judged(point)
    assert found is not None
    assert (slow.wins, slow.losses) == (found.better, found.worse)
    assert slow.value == pytest.approx(found.evidence.value, rel=1e-9)
    assert slow.worst_value == pytest.approx(found.evidence.worst_value, rel=1e-9)
    saved = sum(
        (5 * weight if label else -weight)
        for score, label, weight in rows.values()
        if label is not None and 0.3 <= score < 0.6
    )
    assert saved == found.saving
    same_after_a_restart(writer)
    writer.release()


def test_a_segment_that_gets_clearly_worse_blocks_and_directions_may_differ(tmp_path, clock):
    change = Change("automatic", **QUICK)
    writer = desk_with(
        tmp_path / "d", start=Rule("at_least", 0.5), change=change, segments=Segments(10)
    )
    point, draw = writer.point("fraud"), random.Random(5)
    rules = {"": Rule("at_least", 0.5), "a": Rule("at_least", 0.2), "b": Rule("at_least", 0.8)}
    asyncio.run(writer.propose(point, NewProposal(rules, "try", writer.state.seq), "anna"))
    for hour in range(4):
        for at in range(60):
            segment = draw.choice("ab")
            score = draw.random()
            label = 1 if segment == "b" else int(draw.random() < 0.9)  # 1 everywhere: b gets worse
            scored(writer, f"{hour}-{at}", score, segment=segment)
            labelled(writer, f"{hour}-{at}", label)
        clock[0] += HOUR
        writer.commit_now()
        asyncio.run(writer.tick())
    found = judged(point)
    assert found is not None
    assert found.mixed
    rows = {each["segment"]: each for each in found.segments()}
    assert (False, True) == (rows["a"]["clearly_worse"], rows["b"]["clearly_worse"])
    assert 0 == rows["b"]["better"]
    shown = describe(point, point.proposal, writer.now())
    assert [False] == [each["met"] for each in shown["demands"] if each["name"] == "segments"]
    assert 1 == point.version.number
    same_after_a_restart(writer)
    writer.release()


def test_candidates_since_a_deployment_share_the_chance_to_be_wrong(tmp_path, clock):
    """One that no sample judged has spent nothing; the version before has its own."""
    change = Change("proposed", **{**QUICK, "four_eyes": False, "least_saving": 0.99})
    writer = desk_with(tmp_path / "d", start=Rule("at_least", 0.6), change=change)
    point, draw = writer.point("fraud"), random.Random(7)

    def tried(threshold: float, hours: int) -> tuple[Any, float, str]:
        new = NewProposal({"": Rule("at_least", threshold)}, "try", writer.state.seq)
        number = asyncio.run(writer.propose(point, new, "anna")).number
        stream(writer, clock, hours, draw, best=0.6)
        same_after_a_restart(writer)
        assert (number, None) == (point.proposal.number, point.proposal.closed)
        shown = describe(point, point.proposal, writer.now())
        text = next(each for each in shown["demands"] if each["name"] == "confidence")["text"]
        return shown["evidence"]["candidate"], shown["evidence"]["enough"], text

    def withdrawn() -> None:
        asyncio.run(
            writer.close_proposal(
                point, point.proposal.number, decision(writer), "anna", "withdrawn"
            )
        )

    whole = math.pi**2 / 6 / 0.1
    assert (1, pytest.approx(whole)) == tried(0.55, 0)[:2]
    withdrawn()
    number, enough, text = tried(0.55, 3)
    assert (1, pytest.approx(whole)) == (number, enough)
    assert "evidence that it saves anything (90 % confidence; candidate 1 since" in text
    withdrawn()
    number, enough, text = tried(0.5, 3)
    assert (2, pytest.approx(4 * whole)) == (number, enough)
    assert "candidate 2 since the last change: each one needs more" in text
    assert text.endswith("(at least 65.8)")
    asyncio.run(
        writer.approve(point, point.proposal.number, decision(writer, "urgent", despite=True), "b")
    )
    assert (2, 1) == (point.version.number, point.proposal.back_to)
    shown = describe(point, point.proposal, writer.now())
    assert (None, pytest.approx(10)) == (
        shown["evidence"]["candidate"],
        shown["evidence"]["enough"],
    )
    stream(writer, clock, 2, draw, best=0.6)
    assert (1, pytest.approx(whole)) == tried(0.45, 2)[:2]  # the watch was judged and gives way
    withdrawn()
    assert 2 == tried(0.4, 0)[0]
    writer.release()


def test_a_new_definition_ends_what_was_judged_by_the_old_one(tmp_path, clock):
    writer, draw = begin(tmp_path / "d", "proposed"), random.Random(6)
    while writer.point("fraud").proposal is None:
        stream(writer, clock, 1, draw)
    before = writer.point("fraud").definition

    asyncio.run(
        writer.define("fraud", msgspec.structs.replace(before, false_negative=3), "anna", None)
    )
    point = writer.point("fraud")
    assert 1 == point.proposal.number  # what anna proposes is number 2, and nothing has changed
    asyncio.run(writer.approve(point, 2, decision(writer), "ben"))
    point = writer.point("fraud")
    assert point.proposal is None
    assert point.shadow is None
    assert "superseded" == point.proposals[0].closed.verdict
    same_after_a_restart(writer)
    wrong = Change("proposed", age="90d")
    with pytest.raises(Refused, match=r"change\.age must be shorter"):
        asyncio.run(
            writer.define("fraud", msgspec.structs.replace(before, change=wrong), "a", None)
        )
    writer.release()


def test_a_forgotten_id_leaves_a_shadow_also_where_the_ledger_has_dropped_it(tmp_path, clock):
    change = Change("manual", **{**QUICK, "expires": "90d"})
    start = Rule("at_least", 0.6)
    writer = desk_with(tmp_path / "d", start=start, change=change, correctable="2h")
    point = writer.point("fraud")
    new = NewProposal({"": Rule("at_least", 0.3)}, "try", writer.state.seq)
    asyncio.run(writer.propose(point, new, "anna"))
    for id in ("private", "other"):
        scored(writer, id, 0.5)
        labelled(writer, id, 1)
    for _ in range(3):
        clock[0] += HOUR
        asyncio.run(writer.tick())
    assert (2, 0) == (judged(point).better, len(point.ledger))
    snapshots.make(writer.folder)
    asyncio.run(writer.forget(point, Forgetting(["private"]), "dpo"))
    assert 1 == judged(point).better
    same_after_a_restart(writer)
    assert all(b"private" not in path.read_bytes() for _, path in snapshots.stored(writer.folder))
    writer.release()


def test_the_interval_of_a_saving_holds_at_all_looks_at_once():
    """Against a plain sum over the samples, one by one; and it misses in few streams of many."""
    draw, missed = random.Random(6), 0
    savings = [0.0] * 90 + [5.0] * 2 + [-1.0] * 8
    mean = sum(savings) / len(savings)
    for stream_number in range(60):
        seen: dict[float, int] = {}
        out = False
        for look in range(1, 601):
            saved = draw.choice(savings)
            seen[saved] = seen.get(saved, 0) + 1
            if look in (1, 2, 5) or look % 60 == 0:
                low, high = bounds(seen, 1, 5, 0.95)
                assert -1 <= low <= sum(key * seen[key] for key in seen) / look <= high <= 5
                out = out or not low <= mean <= high
        missed += out
        if not stream_number:  # a wealth of 40 at the lower bound, by the definition
            wealth = sum(
                math.prod((1 + share * (key - low) / (1 + low)) ** seen[key] for key in seen)
                for share in 0.9 * 0.5 ** np.arange(16)
            )
            assert 40 == pytest.approx(wealth / 16, rel=1e-6)
    assert missed <= 3


def test_a_saving_beyond_the_largest_weight_has_no_bound_on_that_side():
    low, high = bounds({-2.0: 1, 0.0: 10}, 1, 5, 0.95)
    assert (None, True) == (low, high is not None)
    low, high = bounds({6.0: 1, 0.0: 10}, 1, 5, 0.95)
    assert (True, None) == (low is not None, high)
    # many distinct ones are counted together, so that the bounds are a little wider, never narrower
    draw = random.Random(7)
    many = {draw.uniform(-1, 5): 1 for _ in range(1200)}
    few = dict(list(many.items())[:900])
    for counts in (many, few):
        low, high = bounds(counts, 1, 5, 0.95)
        mean = sum(counts) / len(counts)
        assert 0.1 < mean - low < 0.4
        assert 0.1 < high - mean < 0.4
