# SPDX-License-Identifier: Apache-2.0
"""Another share of label 1 among the rows to come: the answers of a sample with that share."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen import losses
from limen.demo import load_phishing

Cells = tuple[Fraction, Fraction, Fraction, Fraction]


def drawn(seed: int) -> tuple[list[float], list[int]]:
    source = random.Random(seed)
    scores = [source.choice((0.1, 0.2, 0.3, 0.5, 0.8, 0.9)) for _ in range(14)]
    return scores, [0, 1, 1, *(source.randrange(2) for _ in range(11))]


def cells_at(scores: Any, labels: Any, prevalence: Fraction, cut: float) -> Cells:
    """Confusions of as many rows, of which this share has label 1."""
    ones, rows = sum(labels), len(labels)
    each = {1: prevalence * rows / ones, 0: (1 - prevalence) * rows / (rows - ones)}
    cells = dict.fromkeys([(a, y) for a in (True, False) for y in (0, 1)], Fraction(0))
    for score, label in zip(scores, labels, strict=True):
        cells[score >= cut, label] += each[label]
    return cells[True, 1], cells[True, 0], cells[False, 1], cells[False, 0]


@pytest.mark.parametrize("seed", range(40))
def test_the_cheapest_cut_is_that_of_rows_with_this_share(seed: int) -> None:
    scores, labels = drawn(seed)
    share = (Fraction(1, 50), Fraction(1, 3), Fraction(9, 10))[seed % 3]
    best = limen.optimal_threshold(scores, labels, false_negative=20, prevalence=share)

    cuts = [*sorted(set(scores)), math.inf]
    costs = {}
    for cut in cuts:
        _, fp, fn, _ = cells_at(scores, labels, share, cut)
        costs[cut] = fp + 20 * fn
    lowest = min(costs.values())
    assert float(lowest) == best.loss
    assert max(cut for cut in cuts if costs[cut] == lowest) == (
        math.inf if best.upper is None else best.upper
    )
    falling = limen.optimal_threshold(
        [-s for s in scores], labels, false_negative=20, prevalence=share, direction="<="
    )
    assert (best.loss, -best.threshold) == (falling.loss, falling.threshold)


@pytest.mark.parametrize("seed", range(20))
def test_precision_is_that_of_rows_with_this_share(seed: int) -> None:
    scores, labels = drawn(seed)
    share = Fraction(1, 10)
    precisions = {}
    for cut in sorted(set(scores)):
        tp, fp, _, _ = cells_at(scores, labels, share, cut)
        precisions[cut] = tp / (tp + fp)
    best: Any = limen.optimal_threshold(scores, labels, metric="precision", prevalence=0.1)

    assert float(max(precisions.values())) == pytest.approx(best.value)
    cells = cells_at(scores, labels, share, best.upper)
    assert [float(cell) for cell in cells] == pytest.approx(list(best.confusion))
    assert 14 == pytest.approx(sum(best.confusion))
    cost: Any = limen.optimal_threshold(scores, labels, min_recall=0.5, prevalence=0.1)
    assert cost.value == pytest.approx(cost.confusion.fp + cost.confusion.fn)


@pytest.mark.parametrize("seed", range(40))
def test_a_number_of_positives_is_of_rows_with_this_share(seed: int) -> None:
    scores, labels = drawn(seed)
    share = (Fraction(1, 50), Fraction(1, 3), Fraction(97, 100))[seed % 3]
    most = Fraction(random.Random(seed).randrange(140), 10)
    found: Any = limen.optimal_threshold(
        scores, labels, false_negative=20, max_positives=most, prevalence=share
    )

    costs = {}
    for cut in [*sorted(set(scores)), math.inf]:
        tp, fp, fn, _ = cells_at(scores, labels, share, cut)
        if tp + fp <= most:
            costs[cut] = fp + 20 * fn
    lowest = min(costs.values())
    assert max(cut for cut in costs if costs[cut] == lowest) == (
        math.inf if found.upper is None else found.upper
    )
    assert float(lowest) == found.value


def test_more_positives_than_rows_exclude_no_cut() -> None:
    given: Any = [-1.4, -0.5, 0.3], [0, 0, 1]
    found: Any = limen.optimal_threshold(*given, max_positives=10, prevalence=0.97)
    assert (-0.5, 0.3, 0.0) == (found.lower, found.upper, found.value)


def test_functions_are_given_numbers_of_rows_with_this_share() -> None:
    seen = []

    def three(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        seen.append((tp, fp, fn, tn))
        return -abs(tp + fp - 3)

    found: Any = limen.optimal_threshold([1, 2, 3], [0, 0, 1], metric=three, prevalence=0.97)
    assert (-math.inf, 0.0) == (found.threshold, found.value)
    assert all(cells.sum(axis=0) == pytest.approx(3) for cells in map(np.array, seen))


def test_the_nearest_cut_is_about_rows_with_this_share() -> None:
    scores, labels = [1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 0]
    with pytest.raises(limen.Infeasible, match=r"max_positives=2\.5") as caught:
        limen.optimal_threshold(
            scores, labels, min_recall=1, max_positives=2.5, prevalence=Fraction(1, 50)
        )
    nearest = caught.value.nearest
    assert nearest.upper is not None
    cells = cells_at(scores, labels, Fraction(1, 50), nearest.upper)
    assert [float(cell) for cell in cells] == list(nearest.confusion)


def test_a_recommendation_is_that_of_costs_in_the_same_ratio() -> None:
    scores, labels = load_phishing()
    zero, one = losses.at_prevalence(labels, 0.02)
    found = limen.recommend(scores, labels, false_negative=30, prevalence=0.02)
    priced = limen.recommend(scores, labels, false_positive=zero, false_negative=30 * one)

    assert (found.threshold, found.interval) == (priced.threshold, priced.interval)
    assert found.cost() == priced.cost()
    assert found.threshold > limen.recommend(scores, labels, false_negative=30).threshold


def test_what_cannot_be_weighted_is_refused() -> None:
    for share in (0, 1, 1.5, "half"):
        with pytest.raises(ValueError, match="prevalence must"):
            limen.optimal_threshold([0.1, 0.2], [0, 1], prevalence=share)
    with pytest.raises(ValueError, match="both labels"):
        limen.optimal_threshold([0.1, 0.2], [1, 1], prevalence=0.5)
    with pytest.raises(ValueError, match="one cost of each mistake"):
        limen.optimal_threshold([0.1, 0.2], [0, 1], false_negative=[1, 2], prevalence=0.5)
    zero, one = losses.at_prevalence([0, 1, 1], 0.5, weights=[0.5, 0.25, 0.25])
    assert (1.0, 1.0) == (zero, one)


def test_files_are_weighted_exactly(run: Any) -> None:
    scores, labels = drawn(3)
    rows = "".join(f"{s},{y}\n" for s, y in zip(scores, labels, strict=True))
    Path("rows.csv").write_text("score,label\n" + rows)
    given = ("rows.csv", "--prevalence", "0.07", "--false-negative", "9")
    code, out, err = run("fit", *given, "--json")
    facts = json.loads(out)
    best = limen.optimal_threshold(scores, labels, false_negative=9, prevalence=0.07)
    assert (0, best.loss, best.threshold) == (code, facts["loss"], float(facts["threshold"])), err
    assert "weighted to the prevalence asked for: each 1 counts 0." in err

    cells = cells_at(scores, labels, Fraction(7, 100), 0.3)
    _, out, _ = run("compare", *given, "-t", "0.3", "--json")
    row = json.loads(out)["thresholds"][0]
    assert [float(cell) for cell in cells] == [row[name] for name in ("tp", "fp", "fn", "tn")]
    assert float(cells[1] + 9 * cells[2]) == row["loss"]

    assert 0 == run("report", *given, "-o", "page.html")[0]
    assert 0 == run("curve", *given, "--quiet")[0]
    assert 2 == run("fit", "rows.csv", "--prevalence", "2")[0]


def test_what_is_recommended_for_files_is_what_python_recommends(run: Any) -> None:
    from limen.demo import phishing_csv

    Path("rows.csv").write_text(phishing_csv())
    given = ("rows.csv", "--prevalence", "0.02", "--false-negative", "30", "--quiet")
    _, out, _ = run("fit", *given, "--recommended")
    found = limen.recommend(*load_phishing(), false_negative=30, prevalence=0.02)

    assert found.threshold == float(out)
