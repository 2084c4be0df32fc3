# SPDX-License-Identifier: Apache-2.0
"""At most so many answers 1: by count on labelled samples, and by scores alone."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import limen
from limen import Budget

VALUES = (0.1, 0.2, 0.3, 0.5, 0.8, 0.9, -math.inf, math.inf)


def lowest_cut(scores: list[float], allowed: int) -> float | None:
    """The lowest score s such that at most `allowed` of the scores are at least s; None: none."""
    fit = [s for s in set(scores) if sum(other >= s for other in scores) <= allowed]
    return min(fit, default=None)


@pytest.mark.parametrize("seed", range(60))
def test_a_budget_is_the_lowest_threshold_at_every_moment(seed: int) -> None:
    source = random.Random(seed)
    share = (None, Fraction(1, 3), Fraction(9, 10))[seed % 3]
    count = source.randrange(5) if share is None else None
    last_n = (None, 4)[seed % 2]
    budget = Budget(max_positives=count, max_positive_rate=share, last_n=last_n)
    seen: list[float] = []
    for _ in range(14):
        seen.append(source.choice(VALUES))
        assert budget.update(seen[-1])
        held = seen if last_n is None else seen[-last_n:]
        allowed = min(count, len(held)) if count is not None else int((share or 0) * len(held))
        cut = lowest_cut(held, allowed)
        assert (allowed, len(held)) == (budget.allowed, len(budget))
        assert cut == budget.gap.upper
        assert [int(cut is not None and s >= cut) for s in held] == budget.predict(held).tolist()
        budget._check()
    whole = Budget(max_positives=count, max_positive_rate=share, last_n=last_n)
    whole.update_many(seen)
    assert whole.to_bytes() == budget.to_bytes()


@pytest.mark.parametrize("seed", range(40))
def test_answers_in_a_period_never_exceed_the_budget(seed: int) -> None:
    source = random.Random(seed)
    start, step = datetime(2026, 1, 1), timedelta(minutes=1)
    budget = Budget(max_positives=2, last_period=10 * step)
    events: list[tuple[int, float, int]] = []
    clock = 0
    for _ in range(40):
        at = clock + source.randrange(-4, 8)
        score = source.choice(VALUES)
        clock = max(clock, at) if events else at
        before = [e for e in events if clock - e[0] < 10]
        cut = lowest_cut([e[1] for e in before], min(2, len(before)))
        flags = sum(e[2] for e in before)
        counts = clock - at < 10
        passes = len(before) <= 2 or score >= threshold_at([e[1] for e in before], cut)
        answer = budget.answer(score, time=start + at * step)

        assert answer == int(counts and passes and flags < 2), (events, at, score)
        if counts:
            events.append((at, score, answer))
        held = [e for e in events if clock - e[0] < 10]
        assert (len(held), sum(e[2] for e in held)) == (len(budget), budget.flagged)
        assert budget.flagged <= 2
        budget._check()


def threshold_at(scores: list[float], cut: float | None) -> float:
    """The number published for a cut: inside the gap below it."""
    lower = max((s for s in scores if cut is None or s < cut), default=None)
    return limen.Optimum(lower, cut, 0.0).threshold


def test_edges() -> None:
    assert -math.inf == Budget(max_positives=3).threshold
    assert math.inf == Budget(max_positives=0).threshold == Budget(max_positive_rate=0.5).threshold
    full = Budget(max_positives=3)
    full.update_many([0.1, 0.2, 0.2])
    assert -math.inf == full.threshold
    full.update(0.2)  # three are equal, and the fourth makes them too many but for all three
    assert (0.1, 0.2) == (full.gap.lower, full.gap.upper)
    full.update(0.2)
    assert math.inf == full.threshold
    turned = Budget(max_positives=1, direction="<=")
    assert [1, 0, 0] == [turned.answer(distance) for distance in (5, 3, 4)]
    assert (3.5, "<=") == (turned.threshold, turned.gap.direction)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "one of them"),
        ({"max_positives": 1, "max_positive_rate": 0.5}, "one of them"),
        ({"max_positives": -1}, "max_positives must be a whole number of at least 0"),
        ({"max_positives": 1.5}, "max_positives must be a whole number"),
        ({"max_positive_rate": 2}, "max_positive_rate must be a share"),
        ({"max_positives": 1, "last_n": 0}, "last_n must be"),
        ({"max_positives": 1, "last_n": 5, "last_period": 5}, "not both"),
        ({"max_positives": 1, "last_period": -5}, "last_period must be positive|positive number"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Budget(**given)


def test_a_bad_score_or_time_changes_nothing() -> None:
    budget = Budget(max_positives=1, last_period=10)
    budget.update(0.5, time=1)
    before = budget.to_bytes()
    for call in (
        lambda: budget.update(math.nan, time=2),
        lambda: budget.update(0.5),
        lambda: budget.answer(0.5, time=datetime(2026, 1, 1)),
        lambda: budget.update_many([0.1, math.nan], times=[2, 3]),
        lambda: budget.update_many([0.1, 0.2], times=[2]),
        lambda: Budget(max_positives=1).update(0.5, time=3),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert before == budget.to_bytes()
    assert not budget.update(0.7, time=-9)


@pytest.mark.parametrize("zone", [None, UTC])
def test_times_with_a_zone_and_without_are_never_mixed(zone: Any) -> None:
    own = datetime(2026, 1, 1, 12, tzinfo=zone)
    other = own.replace(tzinfo=UTC if zone is None else None)
    budget = Budget(max_positives=1, last_period=timedelta(days=1))
    empty = budget.to_bytes()
    with pytest.raises(TypeError, match=r"times\[1\] is .* time zone.* Nothing was changed"):
        budget.update_many([0.1, 0.2], times=[own, other])
    assert empty == budget.to_bytes()

    budget.update_many([0.1, 0.2], times=[own, own])
    before = budget.to_bytes()
    for call in (
        lambda: budget.update(0.3, time=other),
        lambda: budget.answer(0.3, time=other),
        lambda: budget.update_many([0.3, 0.4], times=[own, other]),
        lambda: budget.update_many([0.3, 0.4], times=[other, other]),
    ):
        with pytest.raises(TypeError, match=r"time zone.* Nothing was changed"):
            call()
    assert before == budget.to_bytes()


# ---- on labelled samples ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_max_positives_finds_the_best_cut_that_flags_so_few(seed: int) -> None:
    source = random.Random(seed)
    scores = [source.choice(VALUES) for _ in range(12)]
    labels = [0, 1, *(source.randrange(2) for _ in range(10))]
    weights = [source.choice((1, 2, 0.5)) for _ in range(12)]
    most = source.randrange(9)
    best: Any = limen.optimal_threshold(
        scores, labels, weights=weights, false_negative=5, max_positives=most
    )

    rows = list(zip(scores, labels, weights, strict=True))
    costs = {}
    for cut in (*sorted(set(scores)), None):
        up = [cut is not None and s >= cut for s in scores]
        if sum(w for (_, _, w), flag in zip(rows, up, strict=True) if flag) <= most:
            costs[cut] = sum(
                w * ((not y) if flag else 5 * y) for (_, y, w), flag in zip(rows, up, strict=True)
            )
    lowest = min(costs.values())
    highest = max(
        (cut for cut in costs if costs[cut] == lowest),
        key=lambda cut: (cut is None, cut if cut is not None else 0),
    )
    assert (lowest, highest) == (best.value, best.upper)


def test_files_have_a_budget_too(run: Any) -> None:
    from limen.demo import phishing_csv

    Path("rows.csv").write_text(phishing_csv())
    code, out, err = run("fit", "rows.csv", "--max-positives", "100", "--json")
    facts = json.loads(out)

    assert (0, 100.0) == (code, facts["confusion"]["tp"] + facts["confusion"]["fp"]), err
    assert 100.0 == facts["max_positives"]
    code, out, err = run("compare", "rows.csv", "-t", "0.5", "--max-positives", "100", "--quiet")
    assert ["1", "0"] == [line.split(",")[3] for line in out.splitlines()[1:]]
    code, _, err = run("fit", "rows.csv", "--max-positives", "100", "--min-recall", "0.9")
    assert 5 == code
    assert "no cut meets max_positives=100.0 and min_recall=0.9 together" in err or (
        "no cut meets min_recall=0.9 and max_positives=100.0 together" in err
    )
    assert 0 == run("report", "rows.csv", "--max-positives", "100", "-o", "page.html")[0]
    assert "At most 100 rows may be answered 1." in Path("page.html").read_text()
