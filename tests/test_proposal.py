# SPDX-License-Identifier: Apache-2.0
"""The case for a change: a ledger's candidate is judged by samples scored after it was chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import limen

Event = tuple[float, int]  # score and label


def drawn(random: np.random.Generator, n: int) -> list[Event]:
    scores = random.random(n)
    return [(float(s), int(random.random() < s)) for s in scores]


def begun(events: list[Event], **settings: Any) -> limen.Ledger:
    """A ledger whose samples rule 0.9 out, with a candidate on trial against it."""
    ledger = limen.Ledger(limen.OnlineThreshold(), **settings)
    for at, (score, label) in enumerate(events):
        ledger.score(f"old {at}", score, at)
        ledger.label(f"old {at}", label)
    assert ledger.proposal(0.9, age=10) is None
    assert ledger.trial is not None
    return ledger


def counts(ledger: limen.Ledger) -> tuple[int, int, int, int]:
    found = ledger.trial
    assert found is not None
    told = found.evidence
    return told.wins, told.losses, told.missing, found.waiting


def test_leaving_the_interval_opens_a_candidate_and_old_samples_do_not_judge_it() -> None:
    ledger = begun(drawn(np.random.default_rng(1), 300))
    trial = ledger.trial
    assert trial is not None
    assert trial.candidate == ledger.recommended
    assert counts(ledger) == (0, 0, 0, 0)
    assert (trial.evidence.value, trial.candidates, ledger.candidates) == (1.0, 1, 1)
    assert not ledger.keeps(0.9)


def test_a_merge_leaves_each_ledger_its_own_trial() -> None:
    west = begun(drawn(np.random.default_rng(1), 300))
    west.score("west", 0.7, 300)
    west.label("west", 1)
    east = limen.Ledger(limen.OnlineThreshold())
    for at, (score, label) in enumerate(drawn(np.random.default_rng(2), 300)):
        east.score(f"east {at}", score, at + 20)
        east.label(f"east {at}", label)
    assert east.proposal(0.95, age=10) is None
    for at in range(5):  # between both candidates and their thresholds
        east.score(f"late {at}", 0.7, 325)
    before, own = east.to_bytes(), west.trial
    assert own is not None

    west.merge(east)
    assert east.to_bytes() == before
    trial = west.trial
    assert trial is not None
    assert (trial.current, trial.candidate) == (own.current, own.candidate)
    assert (trial.candidates, west.candidates) == (1, 1)
    assert counts(west) == (1, 0, 0, 0)  # its own sample has the age by the later clock

    # What came with the merge does not judge, whatever becomes of it; what is scored now does.
    for at in range(5):
        west.label(f"late {at}", at % 2)
    west.forget("late 0")
    west.score("now", 0.7, 326)
    west.label("now", 0)
    west.advance(400)
    assert counts(west) == (1, 1, 0, 0)
    west._check()
    again = limen.from_bytes(west.to_bytes())
    assert counts(again) == counts(west)

    # A ledger without a trial takes over none.
    plain = limen.Ledger(limen.OnlineThreshold())
    plain.merge(east)
    assert plain.trial is None
    assert plain.candidates == 0


def test_samples_enter_at_one_age_whatever_their_label() -> None:
    ledger = begun(drawn(np.random.default_rng(1), 300))
    ledger.score("one", 0.7, 300)
    ledger.score("zero", 0.7, 300)
    ledger.score("none", 0.7, 300)
    ledger.score("outside", 0.95, 300)
    ledger.label("one", 1)
    assert counts(ledger) == (0, 0, 0, 3)
    ledger.advance(309)
    assert counts(ledger) == (0, 0, 0, 3)
    ledger.label("zero", 0)
    ledger.advance(310)
    assert counts(ledger) == (1, 1, 1, 0)
    ledger.label("none", 1)  # too late: it stays missing
    assert counts(ledger) == (1, 1, 1, 0)
    ledger.label("one", 0)  # a correction
    assert counts(ledger) == (0, 2, 1, 0)
    ledger.forget("one")
    ledger.forget("none")
    assert counts(ledger) == (0, 1, 0, 0)
    ledger.score("zero", 0.7)  # the same score again
    assert counts(ledger) == (0, 1, 0, 0)


@pytest.mark.parametrize("steps", [False, True])
def test_many_at_once_is_the_same_as_one_by_one(steps: bool) -> None:
    random = np.random.default_rng(2)
    old, new = drawn(random, 200), drawn(random, 150)
    one = limen.Ledger(limen.OnlineThreshold())
    for at, (score, label) in enumerate(old):
        one.score(at, score, None if steps else at)
        one.label(at, label)
    one.proposal(0.95, age=20)
    many = one.copy()
    names = [1000 + at for at in range(len(new))]
    late = random.random(len(new)) < 0.3
    for name, (score, label), is_late in zip(names, new, late, strict=True):
        if not is_late:
            one.label(name, label)  # a label that waits for its score
        one.score(name, score, None if steps else 200 + name)
    known = [i for i, is_late in enumerate(late) if not is_late]
    many.label_many([names[i] for i in known], [new[i][1] for i in known])
    scores = [score for score, _ in new]
    many.score_many(
        [*names, names[0]],
        [*scores, scores[0]],
        None if steps else [200 + n for n in [*names, names[0]]],
    )
    assert counts(one) == counts(many)
    assert counts(one)[2] > 0
    one.label_many(names, [label for _, label in new])
    many.label_many(names, [label for _, label in new])
    assert counts(one) == counts(many)
    one.advance(10_000)
    many.advance(10_000)
    assert counts(one) == counts(many)
    assert one.to_bytes() == many.to_bytes()


def test_a_trial_survives_a_restart_at_every_step() -> None:
    random = np.random.default_rng(3)
    ledger = begun(drawn(random, 200), correctable=15)
    twin = ledger.copy()
    for at, (score, label) in enumerate(drawn(random, 60), start=200):
        for each in (ledger, twin):
            each.score(("new", at), score, at)
            each.label(("new", at), label)
            if at % 7 == 0:
                each.label(("new", at - 4), 1 - label)
            if at % 11 == 0:
                each.forget(("new", at - 2))
            each.proposal(0.9)
        twin = limen.from_bytes(twin.to_bytes())
        assert twin.trial is None or counts(twin) == counts(ledger)
        assert twin.candidates == ledger.candidates
        assert twin.to_bytes() == ledger.to_bytes()


def test_counts_are_those_of_evidence_given_each_sample_at_the_age() -> None:
    random = np.random.default_rng(4)
    ledger = begun(drawn(random, 200))
    trial = ledger.trial
    assert trial is not None
    oracle = limen.Evidence(0.9, trial.candidate, age=10)
    waiting: list[tuple[int, float, int | None]] = []
    for at in range(200, 500):
        score = float(random.random())
        label = int(random.random() < score) if random.random() < 0.8 else None
        ledger.score(at, score, at)
        if label is not None:
            ledger.label(at, label)
        waiting.append((at, score, label))
        while waiting and waiting[0][0] <= at - 10:
            oracle.update(*waiting.pop(0)[1:])
        now = ledger.trial
        assert now is not None
        assert now.evidence.value == oracle.value
        assert (now.evidence.wins, now.evidence.missing) == (oracle.wins, oracle.missing)


def test_a_proposal_comes_when_the_evidence_is_enough_and_ends_with_the_threshold() -> None:
    random = np.random.default_rng(5)
    ledger = begun(drawn(random, 300))
    found = None
    for at, (score, label) in enumerate(drawn(random, 3000), start=300):
        ledger.score(at, score, at)
        ledger.label(at, label)
        found = ledger.proposal(0.9)
        if found:
            break
    assert found is not None
    assert found.decided
    assert found.evidence.value >= found.evidence.enough == pytest.approx(20 * np.pi**2 / 6)
    assert str(found).startswith(f"Change 0.9 to {found.candidate:.4g}: ")
    assert repr(ledger.proposal(0.9)) == repr(ledger.trial)
    assert ledger.proposal(found.candidate) is None  # accepted
    assert ledger.trial is None
    assert ledger.candidates == 1


def test_another_current_threshold_is_another_candidate() -> None:
    ledger = begun(drawn(np.random.default_rng(6), 300))
    assert ledger.proposal(0.95, age=10) is None
    trial = ledger.trial
    assert trial is not None
    assert (trial.current, trial.candidates) == (0.95, 2)


def test_times_and_any_costs_work_too() -> None:
    random = np.random.default_rng(7)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ledger = limen.Ledger(
        limen.OnlineCalibrator(), maturity=timedelta(days=2), false_negative=3, false_positive=1
    )
    for day, (score, label) in enumerate(drawn(random, 300)):
        ledger.score(day, score, start + timedelta(days=day))
        ledger.label(day, label)
    assert ledger.proposal(0.9) is None
    trial = ledger.trial
    assert trial is not None
    assert trial.evidence.settings["age"] == timedelta(days=2)
    assert trial.evidence.settings["false_negative"] == 3
    again = limen.from_bytes(ledger.to_bytes())
    assert repr(again.trial) == repr(trial)


def test_what_cannot_be_proposed_is_refused() -> None:
    with pytest.raises(ValueError, match="age is missing"):
        limen.Ledger(limen.OnlineThreshold()).proposal(0.5)
    with pytest.raises(ValueError, match="must not be less than maturity"):
        limen.Ledger(limen.OnlineThreshold(), maturity=5).proposal(0.5, age=3)
    with pytest.raises(TypeError, match="holds losses"):
        limen.Ledger(limen.OnlineCut()).proposal(0.5, age=3)
    with pytest.raises(TypeError, match="group is missing"):
        limen.Ledger(limen.Grouped(limen.OnlineThreshold())).proposal(0.5, age=3)
    with pytest.raises(TypeError, match="the model has no groups"):
        limen.Ledger(limen.OnlineThreshold()).proposal(0.5, age=3, group="a")
    assert limen.Ledger(limen.OnlineThreshold()).proposal(0.5, age=3) is None  # too few samples
    ledger = begun(drawn(np.random.default_rng(6), 300))
    ledger.score("heavy", 0.7, 300, 2.0)
    ledger.advance(310)
    with pytest.raises(ValueError, match="do not weigh 1"):
        ledger.proposal(0.9)
    ledger.forget("heavy")
    assert ledger.proposal(0.9) is None
    assert ledger.proposal(0.9, largest_loss=3) is None
    assert ledger.candidates == 2  # the bound is fixed before the samples: a new candidate


@pytest.mark.parametrize("fades", [False, True])
def test_weighted_samples_are_counted_as_evidence_counts_them(fades: bool) -> None:
    random = np.random.default_rng(8)
    model: Any = limen.OnlineThreshold(false_negative=2)
    ledger = limen.Ledger(limen.Fading(model, 500, by="time") if fades else model)
    for at, (score, label) in enumerate(drawn(random, 300)):
        ledger.score(f"old {at}", score, at, float(random.choice([0.5, 1, 3])))
        ledger.label(f"old {at}", label)
    assert ledger.proposal(0.9, age=10, largest_loss=4) is None
    trial = ledger.trial
    assert trial is not None
    oracle = limen.Evidence(0.9, trial.candidate, age=10, false_negative=2, largest_loss=4)
    waiting: list[tuple[int, float, int | None, float]] = []
    for at in range(300, 500):
        score, weight = float(random.random()), float(random.choice([0.0, 0.25, 1, 3]))
        label = int(random.random() < score) if random.random() < 0.8 else None
        ledger.score(at, score, at, weight)
        if label is not None:
            ledger.label(at, label)
        waiting.append((at, score, label, weight))
        while waiting and waiting[0][0] <= at - 10:
            oracle.update(*waiting.pop(0)[1:])
        now = ledger.trial
        assert now is not None
        assert now.evidence.value == oracle.value
        assert (len(now.evidence), now.evidence.missing) == (len(oracle), oracle.missing)
        if at % 20 == 0:
            again = limen.from_bytes(ledger.to_bytes())
            assert repr(again.trial) == repr(ledger.trial)
            assert again.to_bytes() == ledger.to_bytes()
            ledger = again


def test_a_sample_that_costs_more_than_was_said_ends_the_evidence() -> None:
    ledger = begun(drawn(np.random.default_rng(6), 300))
    ledger.proposal(0.9, age=10, largest_loss=2)
    ledger.score("heavy", 0.7, 300, 5)
    ledger.label("heavy", 0)
    ledger.advance(310)
    trial = ledger.trial
    assert trial is not None
    assert (trial.evidence.beyond, trial.evidence.value) == (1, 0.0)


def test_each_group_has_its_own_candidate_and_its_own_samples() -> None:
    random = np.random.default_rng(9)
    together = limen.Ledger(limen.Grouped(limen.OnlineThreshold()))
    apart = {name: limen.Ledger(limen.OnlineThreshold()) for name in ("a", "b", "all")}
    groups = {"a": "a", "b": ("b",), "all": ()}

    def event(at: int, group: str, score: float, label: int | None) -> None:
        together.score(at, score, at, group=(group, "inner") if at % 3 == 0 else group)
        for name in (group, "all"):
            apart[name].score(at, score, at)
        apart["b" if group == "a" else "a"].advance(at)  # one clock for all
        if label is not None:
            together.label(at, label)
            for name in (group, "all"):
                apart[name].label(at, label)

    def look(at: int) -> None:
        for name, group in groups.items():
            current = {"a": 0.9, "b": 0.1, "all": 0.95}[name]
            one = apart[name].proposal(current, age=10)
            other = together.proposal(current, group=group, age=10)
            assert (one is None) == (other is None), at
            mine, its = together.trials.get(tuple(group)), apart[name].trial
            assert (mine is None) == (its is None)
            if mine is not None and its is not None:
                assert repr(mine.evidence) == repr(its.evidence), at
                assert (mine.waiting, mine.candidate) == (its.waiting, its.candidate)
                assert mine.group == tuple(group)

    for at in range(600):
        score = float(random.random())
        label = int(random.random() < score) if random.random() < 0.9 else None
        event(at, "ab"[int(random.random() < 0.4)], score, label)
        if at % 5 == 0:
            look(at)
        if at % 50 == 0:
            together.forget(at - 20)
            for each in apart.values():
                each.forget(at - 20)
        if at % 150 == 0:
            again = limen.from_bytes(together.to_bytes())
            assert again.to_bytes() == together.to_bytes()
            assert repr(again.trials) == repr(together.trials)
            together = again
    assert len(together.trials) == 3
    assert together.candidates == sum(each.candidates for each in apart.values())
    assert together.proposal(0.5, group="never seen", age=10) is None
