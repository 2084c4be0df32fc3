# SPDX-License-Identifier: Apache-2.0
"""The log and its fold: what is on disk is what was acknowledged, or the start is refused."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import struct
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import serving  # noqa: F401  skips where the libraries of the service are missing

import limen
from limen.service.bodies import Forgetting, Label, Score
from limen.service.http.control import _alone
from limen.service.log import snapshots
from limen.service.log.backup import backup, restore
from limen.service.log.names import Names
from limen.service.log.store import Damaged, InUse, Log, Reader, link
from limen.service.log.writer import Writer
from limen.service.points.definitions import Change, Definition, Keep, Rule, Segments
from limen.service.points.events import Event, as_datetime
from limen.service.problems import Refused

NOW = datetime.now(UTC)


def desk_with(folder: Path, **definition: Any) -> Writer:
    """A desk with one point."""
    writer = Writer(folder, lambda message: None)
    if "fraud" not in writer.state.points:
        more = msgspec.to_builtins(Definition(**definition))
        writer._fold(Event("define", writer.now(), "fraud", more=more))
        writer.commit_now()
    return writer


def test_a_time_that_no_calendar_has_is_shown_as_the_nearest_one():
    """As a log may hold one that was taken before such times were refused."""
    assert datetime.min.replace(tzinfo=UTC) == as_datetime(-(2**62))
    assert datetime.max.replace(tzinfo=UTC) == as_datetime(2**62)


def scored(writer: Writer, id: str, score: float = 0.5, **given: Any) -> Any:
    """Score an id, as a request does."""
    return writer.score(writer.point("fraud"), Score(id, score, **given), "test", writer.now())


def labelled(writer: Writer, id: str, label: int, **given: Any) -> Any:
    """Label an id, as a request does."""
    return writer.label(writer.point("fraud"), Label(id, label, **given), "test", writer.now())


def filled(folder: Path, rows: int = 40) -> Writer:
    """A desk with some events, a commit for each, still open: the WAL holds the last of them."""
    writer, draw = desk_with(folder), random.Random(3)
    for at in range(rows):
        scored(writer, f"id-{at}", draw.random())
        writer.commit_now()
        if at == rows // 2:
            snapshots.make(folder)
            writer.log._db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        labelled(writer, f"id-{at}", at % 2)
        writer.commit_now()
    return writer


def state_of(folder: Path) -> tuple[int, Any]:
    """What a start finds: the last event, and the ledgers."""
    log = Log(folder)
    try:
        state = snapshots.recovered(log, folder)
        return state.seq, state.shown()
    finally:
        log.close()


@pytest.mark.parametrize("name", ["log.db", "log.db-wal", "head", "snapshots"])
@pytest.mark.parametrize("how", ["flipped", "cut"])
def test_a_changed_byte_or_a_cut_file_is_refused_or_changes_nothing(tmp_path, name, how):
    writer = filled(tmp_path / "whole")
    whole = tmp_path / "copy"
    if name == "log.db":  # all of it counts
        writer.log._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        shutil.rmtree(tmp_path / "whole" / "snapshots")
    shutil.copytree(tmp_path / "whole", whole)  # as after a crash: nothing was closed
    writer.release()
    good = state_of(tmp_path / "whole")
    draw = random.Random(f"{name} {how}")
    refused = 0
    for turn in range(20):
        trial = tmp_path / f"trial{turn}"
        shutil.copytree(whole, trial)
        path = next((trial / name).iterdir()) if name == "snapshots" else trial / name
        stored = bytearray(path.read_bytes())
        at = draw.randrange(len(stored))
        if how == "cut":
            del stored[at:]
        else:
            stored[at] ^= 1 << draw.randrange(8)
        path.write_bytes(stored)
        try:
            found = state_of(trial)
        except (Damaged, sqlite3.Error):
            refused += 1
        else:
            assert good == found  # never less than was acknowledged
        shutil.rmtree(trial)
    assert refused > 0 or name in ("snapshots", "head")


def test_a_lost_wal_is_noticed_and_can_be_accepted(tmp_path):
    writer = filled(tmp_path / "d")
    shutil.copytree(tmp_path / "d", tmp_path / "copy")
    writer.release()
    (tmp_path / "copy" / "log.db-wal").unlink()

    with pytest.raises(Damaged, match="acknowledged events are missing"):
        state_of(tmp_path / "copy")
    with pytest.raises(Damaged, match="acknowledged events are missing"):
        snapshots.verified(tmp_path / "copy")
    assert 81 > snapshots.verified(tmp_path / "copy", accept=True)["last"]
    state_of(tmp_path / "copy")


def changed(folder: Path, column: str, old: bytes, new: bytes) -> None:
    """Change what is stored of event 20, which scores id-9."""
    db = sqlite3.connect(folder / "log.db")
    (blob,) = db.execute(f"SELECT {column} FROM groups WHERE first = 20").fetchone()
    assert old in blob
    with db:
        blob = blob.replace(old, new)
        db.execute(f"UPDATE groups SET {column} = ? WHERE first = 20", (blob,))
    db.close()


@pytest.mark.parametrize("linked", [False, True])
def test_a_score_that_was_rewritten_before_the_newest_snapshot_is_never_told(tmp_path, linked):
    """Not to who asks again, not to who asks why, and no definition folds it anew."""
    folder = tmp_path / "d"
    filled(folder).release()
    draw = random.Random(3)
    score = [draw.random() for _ in range(10)][9]
    changed(folder, "events", struct.pack(">d", score), struct.pack(">d", 0.75))
    if linked:  # so that the row fits to the one before it
        db = sqlite3.connect(folder / "log.db")
        asked = "SELECT chain, events FROM groups WHERE first IN (19, 20) ORDER BY first"
        (before, _), (_, events) = db.execute(asked).fetchall()
        with db:
            chain = link(before, 20, 20, events)
            db.execute("UPDATE groups SET chain = ? WHERE first = 20", (chain,))
        db.close()
    for path in ("/v1/points/fraud/decisions/id-9", "/v1/log"):
        status, found = asyncio.run(_alone(folder, "GET", path, b""))
        assert 500 == status
        assert b"/problems/damaged" in found
        assert b"chain of digests breaks" in found
    writer = desk_with(folder)
    for id, value in (("id-9", score), ("id-9", 0.75)):
        with pytest.raises(Damaged, match="chain of digests breaks"):
            scored(writer, id, value)
    before = writer.point("fraud").definition
    with pytest.raises(Damaged, match="chain of digests breaks"):
        asyncio.run(writer.define("fraud", Definition(false_negative=9), "anna", None))
    assert before == writer.point("fraud").definition
    assert 81 == writer.state.seq
    writer.release()


def test_an_event_that_was_rewritten_is_noticed(tmp_path):
    filled(tmp_path / "d").release()
    changed(tmp_path / "d", "events", b"score", b"store")

    with pytest.raises(Damaged, match="chain of digests breaks"):
        snapshots.verified(tmp_path / "d")


def test_an_id_that_was_rewritten_is_noticed(tmp_path):
    filled(tmp_path / "d").release()
    changed(tmp_path / "d", "names", b"id-9", b"id-8")

    with pytest.raises(Damaged, match="ids of events 20 to 20 were changed"):
        snapshots.verified(tmp_path / "d")


def test_a_snapshot_of_another_version_is_left_aside_with_a_sentence(tmp_path):
    """It is a cache: the log alone gives the same state."""
    filled(tmp_path / "d").release()
    ((_, path),) = snapshots.stored(tmp_path / "d")
    snapshot = path.read_bytes()
    path.write_bytes(b"limen snapshot 3" + snapshot[16:])
    said: list[str] = []
    with Reader(tmp_path / "d") as log:
        state = snapshots.recovered(log, tmp_path / "d", said.append)
    assert [f"{path.name} is not used: it was not written by this version of limen"] == said
    path.write_bytes(snapshot)
    with Reader(tmp_path / "d") as log:
        assert state.shown() == snapshots.recovered(log, tmp_path / "d").shown()


def test_a_snapshot_that_is_not_the_fold_is_noticed(tmp_path):
    writer = filled(tmp_path / "d")
    ((_, path),) = snapshots.stored(tmp_path / "d")
    snapshot = path.read_bytes()
    writer.state.seq = int(path.stem)
    chain = writer.log.chain_at(writer.state.seq)
    path.write_bytes(writer.state.to_bytes(chain))
    writer.release()

    with pytest.raises(Damaged, match="is not the fold of the events before it"):
        snapshots.verified(tmp_path / "d")
    path.write_bytes(snapshot)
    assert [int(path.stem)] == snapshots.verified(tmp_path / "d")["snapshots"]


def test_a_directory_has_one_writer_and_a_newer_kind_is_refused(tmp_path):
    writer = filled(tmp_path / "d", 2)
    with pytest.raises(InUse):
        Log(tmp_path / "d")
    writer.log.append([Event("levitate", writer.now())], [None])
    writer.release()

    with pytest.raises(Damaged, match="'levitate', which this limen does not know"):
        state_of(tmp_path / "d")


# Exactly once.


def test_the_same_again_is_answered_the_same_and_counts_once(tmp_path):
    writer = desk_with(tmp_path / "d", start=Rule("all"))
    first = scored(writer, "a", 0.25, weight=2)
    again = scored(writer, "a", 0.25, weight=2)  # before it is on disk
    writer.commit_now()
    later = scored(writer, "a", 0.25, weight=2.0)

    assert (False, True, True) == (first.repeated, again.repeated, later.repeated)
    assert (first.seq, first.answer) == (again.seq, again.answer) == (later.seq, later.answer)
    assert 1 == writer.point("fraud").scores
    for other in ({"score": 0.5, "weight": 2}, {"score": 0.25}):
        with pytest.raises(Refused) as caught:
            scored(writer, "a", **other)
        assert "other-score" == caught.value.name
    writer.release()


def test_a_repeat_names_the_rule_that_was_in_effect_whatever_version_it_names(tmp_path):
    writer = desk_with(tmp_path / "d", start=Rule("at_least", 0.3))
    given = [{"answer": 0}, {"answer": 1, "version": 7}, {}]
    first = [scored(writer, f"{at}", 0.5, **each) for at, each in enumerate(given)]
    more = {"thresholds": {"": {"rule": "all"}}}
    writer._fold(Event("deploy", writer.now(), "fraud", more=more))
    for _ in range(2):  # from memory, and from disk
        again = [scored(writer, f"{at}", 0.5, **each) for at, each in enumerate(given)]
        assert [msgspec.structs.replace(each, repeated=True) for each in first] == again
        writer.commit_now()
    writer.release()


def test_a_repeat_is_never_answered_otherwise_than_before_also_after_retention(tmp_path):
    folder = tmp_path / "d"
    writer = desk_with(folder, start=Rule("all"), segments=Segments())
    scored(writer, "a", 0.25, weight=2, segment="north")
    writer.commit_now()
    snapshots.make(folder)
    writer.log.delete_until(writer.on_disk, writer.now() + 1)
    for given in ({"weight": 2, "segment": "north"}, {"weight": 3}, {"segment": "south"}):
        with pytest.raises(Refused, match="Do not send it again") as caught:
            scored(writer, "a", 0.25, **given)
        assert ("expired", 410) == (caught.value.name, caught.value.status)
    with pytest.raises(Refused) as caught:
        scored(writer, "a", 0.5, weight=2, segment="north")
    assert "other-score" == caught.value.name
    assert 1 == writer.point("fraud").scores
    writer.release()


def test_labels_by_the_time_at_which_they_were_determined(tmp_path):
    writer = desk_with(tmp_path / "d")
    scored(writer, "a")
    early, late = NOW - timedelta(days=2), NOW - timedelta(days=1)

    assert labelled(writer, "a", 1, as_of=early).changed
    assert labelled(writer, "a", 0, as_of=late).changed
    assert not labelled(writer, "a", 1, as_of=early).changed  # delivered again
    assert not labelled(writer, "a", 0, as_of=late).changed
    with pytest.raises(Refused) as caught:
        labelled(writer, "a", 1, as_of=late)
    assert "other-label" == caught.value.name
    with pytest.raises(Refused) as caught:
        labelled(writer, "a", 1, as_of=NOW + timedelta(hours=1))
    assert "from-the-future" == caught.value.name
    assert 0.0 == writer.point("fraud").ledger.cost
    writer.release()


@pytest.mark.parametrize("ahead", [False, True])
def test_a_label_that_is_sent_again_does_not_undo_a_correction_without_a_time(tmp_path, ahead):
    writer = desk_with(tmp_path / "d")
    scored(writer, "a", answer=0)
    as_of = as_datetime(writer.now()) + timedelta(minutes=4 if ahead else -4)

    assert labelled(writer, "a", 1, as_of=as_of).changed
    assert labelled(writer, "a", 0).changed
    for _ in range(2):  # both again
        assert not labelled(writer, "a", 1, as_of=as_of).changed
        assert not labelled(writer, "a", 0).changed
    assert 0.0 == writer.point("fraud").ledger.cost
    assert labelled(writer, "a", 1).changed  # the last one counts
    assert not labelled(writer, "a", 0, as_of=as_of - timedelta(days=1)).changed
    assert 1.0 == writer.point("fraud").ledger.cost
    writer.commit_now()
    shown = writer.state.shown()
    writer.release()
    assert shown == state_of(tmp_path / "d")[1]


def test_what_could_have_been_dropped_is_refused_as_too_old(tmp_path):
    writer = desk_with(tmp_path / "d", memory=Keep("period", "2d"))
    scored(writer, "a", time=NOW - timedelta(days=3))  # the first has nothing to be compared with
    labelled(writer, "a", 1)
    scored(writer, "b", time=NOW)
    assert "a" not in writer.point("fraud").ledger
    for id in ("a", "c"):
        with pytest.raises(Refused) as caught:
            scored(writer, id, time=NOW - timedelta(days=2))
        assert "too-old" == caught.value.name
    scored(writer, "c", time=NOW - timedelta(days=2, microseconds=-1))
    with pytest.raises(Refused) as caught:
        scored(writer, "d", time=NOW + timedelta(hours=1))
    assert "from-the-future" == caught.value.name
    assert 0 == writer.point("fraud").ledger.refused
    writer.release()


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_any_repetition_give_the_same_samples_and_optimum(tmp_path, seed):
    draw = random.Random(seed)
    moments = [NOW - timedelta(hours=draw.randrange(10, 200)) for _ in range(60)]
    scores = [
        Score(f"i{at}", draw.random(), moments[at], f"s{at % 3}", answer=draw.randrange(2))
        for at in range(60)
    ]
    labels = [
        Label(f"i{at}", draw.randrange(2), moments[at] + timedelta(hours=late))
        for at in range(60)
        for late in draw.sample(range(10), 2)
    ]
    found = []
    for turn in range(3):
        folder = tmp_path / f"{turn}"
        writer = desk_with(
            folder, false_negative=3, segments=Segments(5), memory=Keep("period", "20d")
        )
        events: list[Any] = scores + labels
        if turn:
            events = draw.choices(events, k=200) + draw.sample(events, len(events))
        for event in events:
            act = writer.score if type(event) is Score else writer.label
            act(writer.point("fraud"), event, "test", writer.now())
            if draw.random() < 0.2:
                writer.commit_now()
            if draw.random() < 0.02:
                writer.commit_now()
                writer.release()
                writer = desk_with(folder)
        point = writer.point("fraud")
        writer.commit_now()
        found.append((sorted(point.ledger), point.optima(), point.ledger.cost, point.ledger.regret))
        writer.release()
        snapshots.make(folder)
        assert snapshots.verified(folder)["snapshots"]
    assert found[0] == found[1] == found[2]
    slow = limen.OnlineThreshold(false_negative=3)
    for at, score in enumerate(scores):
        last = max(
            (each for each in labels if each.id == f"i{at}"), key=lambda each: each.as_of or NOW
        )
        slow.update(score.score, last.label)
    assert slow.threshold == found[0][1][""]


# Forgetting, versions, retention, backup.


def forgotten(writer: Writer, *ids: str) -> None:
    asyncio.run(writer.forget(writer.point("fraud"), Forgetting(list(ids)), "test"))


def test_a_forgotten_id_is_nowhere_on_disk_and_is_refused(tmp_path):
    folder = tmp_path / "d"
    writer = filled(folder)
    forgotten(writer, "id-7", "id-8", "nobody")
    with pytest.raises(Refused) as caught:
        scored(writer, "id-7", 0.5)
    assert "forgotten" == caught.value.name
    cost = writer.point("fraud").ledger.cost
    bytes_then = writer.point("fraud").ledger.to_bytes()
    writer.release()

    again = desk_with(folder)  # from a snapshot in which the ids still are
    assert (cost, bytes_then) == (
        again.point("fraud").ledger.cost,
        again.point("fraud").ledger.to_bytes(),
    )
    with pytest.raises(Refused):
        labelled(again, "id-8", 1)
    again.release()
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"id-7" not in content, path
            assert b"nobody" not in content, path
            assert path.suffix != ".db" or b"id-9" in content


def test_an_id_that_is_written_while_it_is_forgotten_is_forgotten(tmp_path, monkeypatch):
    folder = tmp_path / "d"
    writer = desk_with(folder)
    scored(writer, "secret")
    scored(writer, "other")
    writer.commit_now()
    append = writer.log.append

    def slow(*given: Any) -> None:
        time.sleep(0.003)
        append(*given)

    monkeypatch.setattr(writer.log, "append", slow)

    async def race() -> tuple[int, int]:
        forgetting = asyncio.create_task(
            writer.forget(writer.point("fraud"), Forgetting(["secret", "new"]), "test")
        )
        waiting, at = [], 0
        while not forgetting.done():
            at += 1
            with suppress(Refused):  # from the forget on
                labelled(writer, "secret", at % 2, as_of=NOW - timedelta(seconds=60 - at / 1000))
            with suppress(Refused):
                scored(writer, "new")
            waiting.append(asyncio.create_task(writer.flushed()))
            await asyncio.sleep(0.0005)
        await asyncio.gather(*waiting)
        return await forgetting

    seq, known = asyncio.run(race())
    assert (2, ["other"]) == (known, list(writer.point("fraud").ledger))
    named = [id for _, _, id in writer.log.events(0, seq) if type(id) is str]
    assert ["other"] == named
    shown = writer.state.shown()
    writer.release()
    assert shown == state_of(folder)[1]
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]
    assert [] == [path for path in folder.rglob("*.*") if b"secret" in path.read_bytes()]


@pytest.mark.parametrize("early", [True, False])
def test_a_forgotten_id_is_refused_as_long_as_the_definition_would_take_it(
    tmp_path, monkeypatch, early
):
    folder, day, clock = tmp_path / "d", 86_400_000_000, [1_800_000_000_000_000]
    monkeypatch.setattr("limen.service.log.clock.shown", lambda: clock[0])
    monkeypatch.setattr("limen.service.log.clock.counted", lambda: clock[0])
    writer = desk_with(folder, time_to_live="1d")
    when = as_datetime(clock[0])
    scored(writer, "secret", time=when)
    writer.commit_now()
    forgotten(writer, "secret")
    for days, definition in ((0.1, "90d" if early else "1d"), (2, "90d"), (80, "90d")):
        clock[0] = 1_800_000_000_000_000 + int(days * day)
        asyncio.run(writer.tick())
        asyncio.run(writer.define("fraud", Definition(time_to_live=definition), "test", None))
        with pytest.raises(Refused) as caught:
            scored(writer, "secret", time=when)
        assert "forgotten" == caught.value.name
    clock[0] += 11 * day
    asyncio.run(writer.tick())
    assert {} == writer.point("fraud").forgotten
    writer.release()
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]


def test_new_costs_refold_the_history_and_give_what_they_would_have_given(tmp_path):
    draw = random.Random(5)
    desks = [desk_with(tmp_path / "a"), desk_with(tmp_path / "b", false_negative=7)]
    for at in range(50):
        score, label = draw.random(), draw.randrange(2)
        for writer in desks:
            scored(writer, f"i{at}", score, time=NOW, answer=1)
            labelled(writer, f"i{at}", label, as_of=NOW)
    for writer in desks:
        writer.commit_now()
    asyncio.run(desks[0].define("fraud", Definition(false_negative=7), "test", None))

    ledgers = [writer.point("fraud").ledger for writer in desks]
    assert ledgers[0].to_bytes() == ledgers[1].to_bytes()
    desks[0].release()
    assert ledgers[1].to_bytes() == state_of(tmp_path / "a")[1]["fraud"]
    snapshots.make(tmp_path / "a")
    assert snapshots.verified(tmp_path / "a")["snapshots"]
    desks[1].release()


def test_an_id_that_is_forgotten_after_new_costs_is_in_no_snapshot(tmp_path):
    folder = tmp_path / "d"
    writer = filled(folder)
    snapshots.make(folder)  # in which the id is, before the history is folded anew
    labelled(writer, "id-7", 0, as_of=NOW)
    writer.commit_now()
    asyncio.run(writer.define("fraud", Definition(false_negative=7), "test", None))
    forgotten(writer, "id-7")
    shown = writer.state.shown()
    writer.release()

    assert shown == state_of(folder)[1]
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]


def test_an_id_that_is_forgotten_while_the_history_is_folded_is_forgotten(tmp_path, monkeypatch):
    folder = tmp_path / "d"
    writer = filled(folder)
    aside = writer.aside

    async def slow(work: Any, *given: Any) -> Any:
        monkeypatch.setattr(writer, "aside", aside)
        made = await aside(work, *given)
        labelled(writer, "id-7", 0, as_of=NOW)
        await writer.forget(writer.point("fraud"), Forgetting(["id-7"]), "test")
        return made

    monkeypatch.setattr(writer, "aside", slow)
    asyncio.run(writer.define("fraud", Definition(false_negative=7), "test", None))
    assert "id-7" not in writer.point("fraud").ledger
    shown = writer.state.shown()
    writer.release()
    assert shown == state_of(folder)[1]


def test_an_id_that_is_forgotten_while_a_snapshot_is_made_is_not_in_it(tmp_path, monkeypatch):
    folder = tmp_path / "d"
    writer = filled(folder)
    writer.log._db.execute("PRAGMA busy_timeout = 0")  # the snapshot keeps the WAL from being cut
    names_before = snapshots._names_before

    def slow(*given: Any) -> Any:
        found = names_before(*given)
        monkeypatch.setattr(snapshots, "_names_before", names_before)
        forgotten(writer, "id-8")
        return found

    forgotten(writer, "id-7")
    monkeypatch.setattr(snapshots, "_names_before", slow)
    snapshots.make(folder)
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]
    writer.release()


def test_the_loss_under_thresholds_by_segment_is_that_of_the_samples_one_by_one(tmp_path):
    writer, draw = (
        desk_with(tmp_path / "d", false_negative=3, segments=Segments(2)),
        random.Random(9),
    )
    rows = []
    for at in range(80):
        segment = draw.choice(["a", "a/x", "a/y", "b", None])
        row = (segment, round(draw.random(), 1), draw.randrange(2))
        scored(writer, f"i{at}", row[1], segment=segment)
        labelled(writer, f"i{at}", row[2])
        rows.append(row)
    thresholds = {"": 0.5, "a": 0.3, "a/x": 0.8}
    slow = 0
    for segment, score, label in rows:
        name = segment or "*"
        while name not in thresholds:
            name = name.rpartition("/")[0]
        answer = score >= thresholds[name]
        slow += 3 * (label and not answer) + (answer and not label)

    assert float(slow) == writer.point("fraud").loss_under(thresholds)
    writer.release()


def test_retention_deletes_what_snapshots_replace_and_a_backup_brings_it_back(tmp_path):
    folder = tmp_path / "d"
    writer = filled(folder)
    snapshots.make(folder)
    before = writer.state.shown()
    oldest = min(seq for seq, _ in snapshots.stored(folder))
    assert oldest == writer.log.delete_until(oldest, writer.now())
    writer.release()

    assert (81, before) == state_of(folder)
    assert oldest + 1 == snapshots.verified(folder)["first"]
    assert 81 == backup(folder, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    assert (81, before) == state_of(tmp_path / "restored")
    with pytest.raises(ValueError, match="holds data"):
        restore(tmp_path / "backup", tmp_path / "restored")
    for _, path in snapshots.stored(folder):
        path.write_bytes(b"damaged")
    with pytest.raises(Damaged, match="no snapshot that replaces them"):
        state_of(folder)


def test_an_id_of_which_retention_deleted_the_events_can_be_forgotten(tmp_path):
    folder = tmp_path / "d"
    writer = desk_with(folder)
    scored(writer, "early")
    labelled(writer, "early", 1)
    writer.commit_now()
    scored(writer, "late")
    writer.commit_now()
    snapshots.make(folder)
    oldest = min(seq for seq, _ in snapshots.stored(folder))
    assert oldest == writer.log.delete_until(oldest, writer.now() + 1)
    for path in folder.glob("log.db*"):  # also while the server runs
        assert b"early" not in path.read_bytes(), path

    asked = Forgetting(["early", "nobody"])
    assert 1 == asyncio.run(writer.forget(writer.point("fraud"), asked, "test"))[1]
    assert ["late"] == list(writer.point("fraud").ledger)
    with pytest.raises(Refused):
        scored(writer, "early")
    shown = writer.state.shown()
    writer.release()
    assert shown == state_of(folder)[1]  # from a snapshot in which it is
    assert [] == snapshots.verified(folder)["snapshots"]
    snapshots.make(folder)
    assert snapshots.verified(folder)["snapshots"]
    assert [] == [path for path in folder.rglob("*.*") if b"early" in path.read_bytes()]


def test_retention_may_delete_what_is_being_forgotten(tmp_path, monkeypatch):
    folder = tmp_path / "d"
    writer = filled(folder)
    snapshots.make(folder)
    append = writer.log.append

    def late(*given: Any) -> None:
        writer.log.delete_until(40, writer.now() + 1)
        append(*given)

    monkeypatch.setattr(writer.log, "append", late)
    forgotten(writer, "id-7", "id-30")
    shown = writer.state.shown()
    writer.release()
    assert shown == state_of(folder)[1]


def test_what_a_killed_snapshot_left_is_deleted_by_the_next_one_and_by_a_start(tmp_path):
    folder = tmp_path / "d"
    writer = filled(folder)
    writer.release()
    left = folder / "snapshots" / ".00000000000000000009.snapshot.4711.0a1b2c3d"
    kept = snapshots.stored(folder)

    left.write_bytes(b"id-7")
    desk_with(folder).release()
    assert not left.exists()
    assert kept == snapshots.stored(folder)
    left.write_bytes(b"id-7")
    with snapshots._writing(folder):  # by a process that lives
        desk_with(folder).release()
        assert left.exists()
    snapshots.make(folder)
    assert not left.exists()


def test_a_forgotten_id_leaves_the_wal_once_no_reader_is_in_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr("limen.service.log.store._PATIENCE", 50)
    writer = desk_with(tmp_path / "d")
    scored(writer, "secret")
    writer.commit_now()
    wal = tmp_path / "d" / "log.db-wal"
    with Reader(tmp_path / "d") as reader, reader.still():
        reader.end()
        forgotten(writer, "secret")
        assert b"secret" in wal.read_bytes()
        scored(writer, "b")
        writer.commit_now()
    scored(writer, "c")
    writer.commit_now()
    for path in (tmp_path / "d").glob("log.db*"):
        assert b"secret" not in path.read_bytes(), path
    writer.release()


def test_ids_are_found_in_spans_and_in_the_tail(tmp_path, monkeypatch):
    monkeypatch.setattr("limen.service.log.names._SPAN", 16)
    filled(tmp_path / "d", 30).release()
    with Reader(tmp_path / "d") as reader:
        names, last = Names(reader), reader.end()[0]
        for at in (29, 0, 15, 29):
            found = [(seq, event.kind) for seq, event in names.find("fraud", f"id-{at}", last)]
            assert [(2 * at + 3, "label"), (2 * at + 2, "score")] == found
        assert [] == list(names.find("fraud", "id-30", last))
        assert [] == list(names.find("other", "id-3", last))


def test_the_clock_never_goes_back(tmp_path, monkeypatch):
    writer = desk_with(tmp_path / "d")
    scored(writer, "a")
    then = writer.state.at
    monkeypatch.setattr("limen.service.log.clock.shown", lambda: then - 10**8)
    scored(writer, "b")

    assert then == writer.state.at
    assert as_datetime(then) <= datetime.now(UTC)
    writer.release()


def test_a_point_with_a_capacity_shows_by_how_much_its_optimum_can_be_missed(tmp_path):
    for place, given in enumerate(
        ({}, {"memory": Keep("fading", "30d")}, {"segments": Segments(1)})
    ):
        writer = desk_with(tmp_path / str(place), capacity=8, **given)
        for id in range(60):
            scored(writer, str(id), id * 37 % 60 / 60)
            labelled(writer, str(id), id % 3 == 0)
        point = writer.state.points["fraud"]
        assert point.bounds().keys() == point.optima().keys()
        assert 0 <= point.bounds()[""] <= 20
    for given in ({"memory": Keep("period", "30d")}, {"change": Change("automatic")}):
        with pytest.raises(ValueError, match="capacity needs policy manual"):
            Definition(capacity=8, **given)
