# SPDX-License-Identifier: Apache-2.0
"""The judge as Python sees it, and the 5 % that candidates share which are tried in a row."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import limen
from limen._core import Judge
from limen.trust.bets import BETS

AGE = 20


def entered(judge: Judge) -> dict[tuple[Any, ...], int]:
    """What was counted; of samples on which the rules agree without their weight."""
    found: Counter[tuple[Any, ...]] = Counter()
    for segment, now, candidate, label, weight, many in judge.counts():
        found[segment, now, candidate, label, weight if now != candidate else None] += many
    return dict(found)


@pytest.mark.parametrize("seed", range(5))
def test_each_sample_counts_once_at_one_age_with_the_label_that_it_has_then(seed: int) -> None:
    chance, judge = random.Random(seed), Judge(AGE)
    rows: dict[Any, list[Any]] = {}  # of each id: time, label, whether it has entered, the rest
    names: list[Any] = []
    for now in range(400):
        judge.advance(now)
        for row in rows.values():
            row[2] = row[2] or row[0] <= now - AGE
        id = chance.choice([now, f"n{now}", (now, "a"), b"%d" % now])
        label = chance.choice([None, 0, 1, "hidden"])
        sample = (chance.random() < 0.5, chance.random() < 0.5, chance.choice([0.25, 1, 3]), "s")
        time = now - chance.choice([0, 0, 5, 30])
        judge.score(id, sample[0], sample[1], time, sample[2], sample[3], label)
        rows[id] = [time, label, False, sample]
        names.append(id)
        other = chance.choice(names[-40:])
        if chance.random() < 0.2:
            row = rows.pop(other, None)
            judge.forget(other)
            if row is not None and row[2] and row[3][0] == row[3][1]:
                rows[other, "entered"] = row  # it was only counted
        elif other in rows:
            label, row = chance.choice([0, 1]), rows[other]
            judge.label(other, label)
            if not row[2] or (row[1] in (0, 1) and row[3][0] != row[3][1]):
                row[1] = label
        if now % 50 == 49:
            again = Judge.restored(judge.state())
            assert judge.state() == again.state()
            judge = again
    judge.advance(1000)
    expected: Counter[tuple[Any, ...]] = Counter()
    for _, label, _, (now_is, candidate, weight, segment) in rows.values():
        differ = now_is != candidate
        expected[segment, now_is, candidate, label, weight if differ else None] += 1
    assert dict(expected) == entered(judge)
    assert 0 == judge.waiting
    assert not judge.lost
    differing = {id for id, row in rows.items() if row[3][0] != row[3][1]}
    assert differing == set(judge.ids())
    assert len(differing) == judge.differing
    assert all(id in judge for id in differing)


def test_the_weight_of_samples_on_which_rules_agree_is_their_mean() -> None:
    judge = Judge(timedelta(hours=1), datetime(2026, 1, 1, tzinfo=UTC))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    judge.score("before", True, True, start - timedelta(seconds=1))
    for at, weight in enumerate([1, 2.5, 4]):
        judge.score(at, True, True, start + timedelta(minutes=at), weight, label=1)
    judge.score("other", False, True, start, 2, "here")
    assert (4, [], True) == (judge.waiting, judge.counts(), "other" in judge)
    judge.advance(start + timedelta(hours=2))
    assert [("", 1, 1, 1, 2.5, 3), ("here", 0, 1, None, 2, 1)] == judge.counts()
    assert ["other"] == judge.ids()


def test_what_is_no_sample_is_refused() -> None:
    judge = Judge(1)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="weight must be a number of at least 0"):
            judge.score("a", True, False, 1, wrong)
    with pytest.raises(ValueError, match="label"):
        judge.score("a", True, False, 1, label=2)
    with pytest.raises(TypeError):
        judge.score(1.5, True, False, 1)
    with pytest.raises(ValueError, match="no samples could have left"):
        Judge.restored(b"nothing of the kind")
    assert 0 == judge.waiting


def test_evidence_and_alarm_are_folds_over_what_was_counted() -> None:
    chance, judge = random.Random(1), Judge(AGE)
    terms = {"current": 0.6, "candidate": 0.4, "false_negative": 3, "largest_loss": 4}
    evidence, alarm = limen.Evidence(**terms), limen.Alarm(0.6, min_recall=0.8)
    for at in range(500):
        score, label = chance.random(), chance.choice([0, 1, None])
        weight = chance.choice([0, 0.5, 1, 3])
        judge.score(at, score >= 0.6, score >= 0.4, at, weight, label=label)
        evidence.update(score, label, weight)
        alarm.update(score, label)
    judge.advance(1000)
    rows = judge.counts()
    made = limen.Evidence.from_counts(rows, **terms)
    assert made.to_bytes() == evidence.to_bytes()
    assert made.value == evidence.value
    found = limen.Alarm.from_counts(rows, threshold=0.6, min_recall=0.8)
    assert found.to_bytes() == alarm.to_bytes()


def test_a_label_that_is_hidden_by_design_is_missing() -> None:
    rows = [("", 0, 1, "hidden", 1, 3), ("", 0, 1, None, 1, 2), ("", 0, 1, 1, 1, 4)]
    evidence = limen.Evidence.from_counts(rows, current=0.5, candidate=0.4)
    assert (4, 0, 5) == (evidence.wins, evidence.losses, evidence.missing)
    assert 5 == limen.Alarm.from_counts(rows, threshold=0.5, min_recall=0.5).missing


# ---- candidates that are tried in a row -----------------------------------------------------


def test_the_shares_of_all_candidates_together_are_no_more_than_the_whole() -> None:
    whole = 1 / limen.Evidence(0.5, 0.4).enough
    shares = [1 / limen.Evidence(0.5, 0.4, number=k).enough for k in range(1, 3000)]
    assert 0.999 * whole < sum(shares) < whole == pytest.approx(0.05)
    assert all(one > other for one, other in pairwise(shares))


def test_a_number_is_a_setting() -> None:
    evidence = limen.Evidence(0.5, 0.4, number=2, confidence=0.9)
    evidence.update_many([0.45] * 8, [1] * 8)
    assert "number=2" in repr(evidence)
    assert "number" not in repr(limen.Evidence(0.5, 0.4))
    again = limen.from_bytes(evidence.to_bytes())
    assert (2, evidence.enough) == (again.settings["number"], again.enough)
    assert 40 * math.pi**2 / 6 == pytest.approx(evidence.enough)
    assert evidence.decided == (evidence.value >= evidence.enough)
    with pytest.raises(ValueError, match="cannot merge: number"):
        evidence.merge(limen.Evidence(0.5, 0.4, number=3, confidence=0.9))
    for wrong in (0, -1, 1.5, "1", True):
        with pytest.raises(ValueError, match="number must be a whole number of at least 1"):
            limen.Evidence(0.5, 0.4, number=wrong)


def wealth(most: int) -> Any:
    """The evidence of so many wins and losses at equal costs, up to the most of each."""
    shares, count = (BETS - 1) / (BETS + 1), np.arange(most + 1)[:, None]
    logs = (count * np.log1p(shares))[:, None] + (count * np.log1p(-shares))[None]
    return np.exp(logs).mean(axis=-1)


def test_many_equally_good_candidates_in_a_row_are_seldom_accepted() -> None:
    """A wrong change in fewer than 5 % of streams of 40 candidates, with a look at each sample."""
    streams, candidates, samples = 4000, 40, 150
    evidence, one = wealth(samples), limen.Evidence(0.5, 0.4)
    one.update_many([0.45] * 17, [1] * 11 + [0] * 6)
    assert one.value == pytest.approx(evidence[11, 6])

    chance, seen = np.random.default_rng(7), np.arange(1, samples + 1)
    alone, shared = np.zeros(streams, bool), np.zeros(streams, bool)
    for k in range(1, candidates + 1):
        wins = np.cumsum(chance.random((streams, samples), np.float32) < 0.5, axis=1)
        most = evidence[wins, seen - wins].max(axis=1)
        alone |= most >= limen.Evidence(0.5, 0.4).enough
        shared |= most >= limen.Evidence(0.5, 0.4, number=k).enough
    assert 0.02 < shared.mean() < 0.05
    assert alone.mean() > 0.5  # where each has 5 % of its own


def test_a_ledger_counts_candidates_that_were_judged_until_the_threshold_changes() -> None:
    """A candidate that is ruled out before any sample judged it has spent nothing."""
    chance = np.random.default_rng(3)
    ledger = limen.Ledger(limen.OnlineThreshold())
    clock = 0

    def numbers() -> tuple[int, int]:
        trial = ledger.trial
        assert trial is not None
        return trial.evidence.settings["number"], trial.candidates

    def go_on(rows: int) -> None:
        nonlocal clock
        for score in chance.random(rows):
            ledger.score(clock, score, clock)
            ledger.label(clock, int(chance.random() < score))
            clock += 1

    go_on(300)
    assert ledger.proposal(0.9, age=10) is None
    assert (1, 1) == numbers()
    assert ledger.proposal(0.9, age=10, largest_loss=2) is None  # the first was never judged
    assert (1, 2) == numbers()
    go_on(20)
    assert ledger.proposal(0.9, age=10, largest_loss=3) is None
    assert (2, 3) == numbers()
    go_on(20)
    again = limen.from_bytes(ledger.to_bytes())
    for each in (ledger, again):
        assert each.proposal(0.9, age=10, largest_loss=4) is None
        assert 3 == each.trial.evidence.settings["number"]
    assert again.to_bytes() == ledger.to_bytes()
    assert "candidate 3 since the last change" in str(ledger.trial)
    assert 180 * math.pi**2 / 6 == pytest.approx(ledger.trial.evidence.enough)
    assert ledger.proposal(0.95, age=10) is None  # a deployment
    assert (1, 5) == numbers()
    go_on(20)
    assert ledger.proposal(0.5, age=10) is None  # another one, which the samples keep
    assert ledger.trial is None
    assert ledger.proposal(0.95, age=10) is None
    assert (1, 6) == numbers()
