# SPDX-License-Identifier: Apache-2.0
"""Real scores and labels with exact answers, computed in rational arithmetic by other code.

An expected loss belongs to costs (1, alpha). Here alpha = p / q is passed as the whole numbers
false_negative=p and false_positive=q, which makes every loss q times the expected one.
"""

from __future__ import annotations

import csv
import json
import pickle
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from fits import SmallLeafCalibrator, whole_arrays
from streams import SmallNodeThreshold, sorted_best, whole_losses

from limen import OnlineCalibrator, OnlineThreshold, isotonic, loss_curve, optimal_threshold

SHARED = Path(__file__).parents[2] / "shared" / "data"
NAMES = sorted(path.stem for path in (SHARED / "expected").glob("*.json"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the shared data sets are not here")

# Amounts in cents: read exactly, these doubles have up to 45 binary places.
MONEY = "creditscoring1_cost_rf"


class Rows(NamedTuple):
    """A data set; `weights` is None where they are not to be used."""

    scores: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None
    whole: np.ndarray | None  # the weights in the largest unit that makes all of them whole
    unit: Fraction
    settings: dict[str, Any]

    def first(self, n: int) -> tuple[np.ndarray, ...]:
        columns = (self.scores, self.labels, self.weights)
        return tuple(column[:n] for column in columns if column is not None)


@cache
def read(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    [path] = SHARED.glob(f"*/{name}.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = np.array([float(row["score"]) for row in rows])
    labels = np.array([int(row["label"]) for row in rows])
    if "weight" in rows[0]:
        weights = np.array([float(row["weight"]) for row in rows])
    else:
        weights = (1 + (7919 * np.arange(len(rows)) + 104729 * labels) % 16) / 4
    return scores, labels, weights


def rows_of(name: str, kind: str) -> Rows:
    scores, labels, weights = read(name)
    if kind == "unweighted":
        return Rows(scores, labels, None, None, Fraction(1), {})
    unit, settings = (Fraction(1, 100), {"unit": 0.01}) if name == MONEY else (Fraction(1, 4), {})
    whole = np.rint(weights * float(1 / unit)).astype(np.int64)
    return Rows(scores, labels, weights, whole, unit, settings)


@cache
def expected(name: str, folder: str = "") -> dict[str, Any]:
    return json.loads((SHARED / "expected" / folder / f"{name}.json").read_text())


def costs_of(alpha: str) -> dict[str, int]:
    ratio = Fraction(alpha)
    return {"false_negative": ratio.numerator, "false_positive": ratio.denominator}


def exact_loss(rows: Rows, loss: Fraction, alpha: str) -> Fraction:
    """The expected loss for whole costs; of money, the expected loss rounded to the cent."""
    times = loss * Fraction(alpha).denominator
    return round(times / rows.unit) * rows.unit if rows.settings else times


def assert_loss(rows: Rows, loss: Fraction, alpha: str, found: float) -> None:
    """The loss is the exact one.

    No 62-bit sum can hold the binary doubles nearest to amounts of money, so these are held in
    cents (unit=0.01). The expected loss is then exact after rounding to the cent, and what is
    rounded away is smaller than a double can show.
    """
    assert (alpha, float(exact_loss(rows, loss, alpha))) == (alpha, found)
    if not rows.settings:
        assert (alpha, loss * Fraction(alpha).denominator) == (alpha, Fraction(found))
    else:
        exact = loss * Fraction(alpha).denominator
        assert abs(Fraction(found) - exact) <= exact * Fraction(1, 10**15)


def highest_gap(rows: Rows, alpha: str, n: int | None = None) -> tuple[Any, Any, int]:
    """The highest of the optimal gaps by sorting, and how many there are."""
    weights = np.ones(len(rows.scores), np.int64) if rows.whole is None else rows.whole
    held = np.flatnonzero(weights[:n])
    losses = whole_losses(rows.labels[held], weights=weights[held], **costs_of(alpha))
    best = sorted_best(rows.scores[held], *losses)
    return best.lower, best.upper, best.ties


def assert_gap(name: str, kind: str, alpha: str, found: Any) -> None:
    """The gap is an optimal one, and of these the highest."""
    answer = expected(name)[kind][alpha]
    gaps = [(gap["x0"], gap["x1"]) for gap in answer["gaps"]]
    lower, upper, ties = highest_gap(rows_of(name, kind), alpha)

    assert (alpha, lower, upper) == (alpha, found.lower, found.upper)
    if not answer.get("gaps_truncated"):
        assert (alpha, gaps[-1], answer["n_opt"]) == (alpha, (found.lower, found.upper), ties)


every_set = pytest.mark.parametrize("name", NAMES)
both_kinds = pytest.mark.parametrize("kind", ["unweighted", "weighted"])


def test_all_36_sets_are_here():
    assert 36 == len(NAMES)
    assert set(NAMES) == {path.stem for path in SHARED.glob("[oe][pv]*/*.csv")}


@both_kinds
@every_set
def test_whole_arrays_give_the_exact_loss_and_the_highest_gap(name, kind):
    rows = rows_of(name, kind)
    for alpha, answer in expected(name)[kind].items():
        found = optimal_threshold(
            rows.scores, rows.labels, weights=rows.weights, **costs_of(alpha), **rows.settings
        )

        assert_loss(rows, Fraction(answer["loss"]), alpha, found.loss)
        assert_gap(name, kind, alpha, found)


@both_kinds
@every_set
def test_the_last_of_all_updates_gives_the_exact_loss_and_the_highest_gap(name, kind):
    rows = rows_of(name, kind)
    for alpha, answer in expected(name)[kind].items():
        cut = OnlineThreshold(**costs_of(alpha), **rows.settings)
        cut.update_many(*rows.first(len(rows.scores)))
        cut._check()

        assert_loss(rows, Fraction(answer["loss"]), alpha, cut.loss)
        assert_gap(name, kind, alpha, cut.optimum)
        assert cut.optimum.threshold == cut.threshold


@both_kinds
@every_set
def test_the_curve_has_as_many_cheapest_cuts_as_there_are_optimal_gaps(name, kind):
    """The number of ties is exact, so no tie is broken or made by rounding.

    The expected answers count scores of weight 0 as distinct ones; here they are left out.
    """
    rows = rows_of(name, kind)
    counts = np.ones(len(rows.scores)) if rows.weights is None else rows.weights
    left_out = set(rows.scores[counts == 0]) - set(rows.scores[counts > 0])
    for alpha, answer in expected(name)[kind].items():
        curve = loss_curve(
            rows.scores, rows.labels, weights=rows.weights, **costs_of(alpha), **rows.settings
        )

        assert expected(name)["G"] + 1 - len(left_out) == len(curve)
        assert (alpha, answer["n_opt"]) == (alpha, len(curve.cheapest))
        assert_loss(rows, Fraction(answer["loss"]), alpha, curve.losses.min())


@both_kinds
@every_set
def test_updates_one_by_one_give_the_bytes_of_one_batch(name, kind):
    rows = rows_of(name, kind)
    batch, single, shuffled, parts = (
        OnlineThreshold(false_negative=3, false_positive=2, **rows.settings) for _ in range(4)
    )
    columns = rows.first(len(rows.scores))
    order = np.random.default_rng(2).permutation(len(rows.scores))
    batch.update_many(*columns)
    for sample in zip(*(column.tolist() for column in columns), strict=True):
        single.update(*sample)
    for sample in zip(*(column[order].tolist() for column in columns), strict=True):
        shuffled.update(*sample)
    for part in np.array_split(order, 7):
        parts.update_many(*(column[part] for column in columns))
    single._check()
    parts._check()

    assert batch._state() == single._state() == shuffled._state() == parts._state()
    assert pickle.dumps(batch) == pickle.dumps(single) == pickle.dumps(shuffled)
    assert batch.optimum == single.optimum == shuffled.optimum == parts.optimum


@both_kinds
@every_set
def test_each_of_the_first_updates_gives_the_exact_loss_and_the_highest_gap(name, kind):
    rows = rows_of(name, kind)
    for alpha, answer in expected(name, "prefix")[kind].items():
        losses = [Fraction(num, answer["den"]) for num in answer["num"]]
        cut = OnlineThreshold(**costs_of(alpha), **rows.settings)
        best = Prefixes(rows, alpha, len(losses))
        samples = zip(*(column.tolist() for column in rows.first(len(losses))), strict=True)
        for n, sample in enumerate(samples):
            cut.update(*sample)
            found = cut._optimum()

            assert (alpha, n, *best.after(n)) == (alpha, n, found[0], found[1])
            assert (alpha, n, float(exact_loss(rows, losses[n], alpha))) == (alpha, n, found[2])
            if "n0_max" in answer:
                zeros = np.count_nonzero(~(rows.scores[: n + 1] >= cut.threshold))
                assert (alpha, n, answer["n0_max"][n]) == (alpha, n, zeros)
        cut._check()


class Prefixes:
    """The highest optimal gap after each sample, from sums over all scores each time."""

    def __init__(self, rows: Rows, alpha: str, n: int) -> None:
        weights = np.ones(n, np.int64) if rows.whole is None else rows.whole[:n]
        below, above = whole_losses(rows.labels[:n], weights=weights, **costs_of(alpha))
        self.saved = above - below
        self.held = weights > 0
        self.scores, self.places = np.unique(rows.scores[:n], return_inverse=True)
        self.z = np.zeros(len(self.scores) + 1, np.int64)
        self.counts = np.zeros(len(self.scores), np.int64)

    def after(self, n: int) -> tuple[float | None, float | None]:
        place = self.places[n]
        self.z[place + 1] += self.saved[n]
        self.counts[place] += self.held[n]
        # Of a score not held yet, the sum repeats that of the score below it.
        values = np.cumsum(self.z)
        at = len(values) - 1 - int(np.argmax(values[::-1]))
        seen = np.flatnonzero(self.counts)
        upper = int(np.searchsorted(seen, at))
        return (
            float(self.scores[seen[upper - 1]]) if upper else None,
            float(self.scores[seen[upper]]) if upper < len(seen) else None,
        )


@both_kinds
@every_set
def test_reverting_everything_leaves_the_empty_state(name, kind):
    rows = rows_of(name, kind)
    columns = rows.first(len(rows.scores))
    order = np.random.default_rng(3).permutation(len(rows.scores))
    half = len(order) // 2
    for model in (OnlineThreshold, SmallNodeThreshold):
        cut = model(false_negative=5, **rows.settings)
        empty = cut._state()
        cut.update_many(*columns)
        cut.revert_many(*(column[order[:half]] for column in columns))
        cut._check()
        for sample in zip(*(column[order[half:]].tolist() for column in columns), strict=True):
            cut.revert(*sample)
        cut._check()

        assert empty == cut._state()
        assert (0, float("inf"), 0.0) == (len(cut), cut.threshold, cut.loss)


@both_kinds
@every_set
def test_reverting_half_leaves_what_the_other_half_alone_makes(name, kind):
    rows = rows_of(name, kind)
    columns = rows.first(len(rows.scores))
    gone = np.random.default_rng(4).random(len(rows.scores)) < 0.5
    cut = OnlineThreshold(false_negative=5, **rows.settings)
    cut.update_many(*columns)
    cut.revert_many(*(column[gone] for column in columns))
    other = OnlineThreshold(false_negative=5, **rows.settings)
    other.update_many(*(column[~gone] for column in columns))

    assert other._state() == cut._state()
    assert other.optimum == cut.optimum


# The isotonic fit.


def expected_blocks(name: str, kind: str) -> list[tuple[float, float, int, Fraction, Fraction]]:
    """First and last score, count, weight of label 1 and weight of each expected block.

    The expected answers know samples of weight 0, which are left out here; weights are in the
    unit that makes all of them whole.
    """
    rows = rows_of(name, kind)
    heavy = np.ones(len(rows.scores), bool) if rows.whole is None else rows.whole > 0
    found = []
    for first, last, count, weight, value in expected(name)["isotonic"][kind]["blocks"]:
        inside = (rows.scores >= first) & (rows.scores <= last)
        scores = rows.scores[inside & heavy]
        assert count == np.count_nonzero(inside)
        if len(scores):
            heavier = Fraction(weight) / rows.unit
            positive = heavier * Fraction(value)
            if name == MONEY and kind == "weighted":
                positive, heavier = Fraction(round(positive)), Fraction(round(heavier))
            found.append((float(scores.min()), float(scores.max()), len(scores), positive, heavier))
    return found


def assert_blocks(name: str, kind: str, blocks: Any) -> None:
    unit = rows_of(name, kind).unit
    fit = expected_blocks(name, kind)

    assert [block[:3] for block in fit] == list(
        zip(blocks.first.tolist(), blocks.last.tolist(), blocks.counts.tolist(), strict=True)
    )
    assert [positive / weight for *_, positive, weight in fit] == blocks.fractions()
    assert [float(positive / weight) for *_, positive, weight in fit] == (
        blocks.probabilities.tolist()
    )
    assert [float(positive * unit) for *_, positive, _ in fit] == blocks.positive.tolist()
    assert [float(weight * unit) for *_, weight in fit] == blocks.weight.tolist()


@both_kinds
@every_set
def test_the_isotonic_fit_is_exact(name, kind):
    rows = rows_of(name, kind)
    columns = rows.first(len(rows.scores))
    calibrator = OnlineCalibrator(**rows.settings)
    calibrator.update_many(*columns)
    calibrator._check()

    assert_blocks(name, kind, calibrator.blocks())
    assert_blocks(name, kind, whole_arrays(*columns, **rows.settings))
    for alpha, answer in expected(name)[kind].items():
        found = calibrator.optimum(**costs_of(alpha))

        assert_loss(rows, Fraction(answer["loss"]), alpha, found.loss)
        assert_gap(name, kind, alpha, found)


@both_kinds
@every_set
def test_the_isotonic_fit_is_exact_one_by_one_and_in_any_order(name, kind):
    rows = rows_of(name, kind)
    columns = rows.first(len(rows.scores))
    order = np.random.default_rng(6).permutation(len(rows.scores))
    batch, single, shuffled = (OnlineCalibrator(**rows.settings) for _ in range(3))
    batch.update_many(*columns)
    for sample in zip(*(column.tolist() for column in columns), strict=True):
        single.update(*sample)
    for sample in zip(*(column[order].tolist() for column in columns), strict=True):
        shuffled.update(*sample)
    single._check()
    shuffled._check()

    assert_blocks(name, kind, single.blocks())
    assert_blocks(name, kind, shuffled.blocks())
    assert pickle.dumps(batch) == pickle.dumps(single) == pickle.dumps(shuffled)
    for sample in zip(*(column[order].tolist() for column in columns), strict=True):
        single.revert(*sample)
    single._check()
    assert pickle.dumps(OnlineCalibrator(**rows.settings)) == pickle.dumps(single)


@both_kinds
@every_set
def test_one_calibrator_has_the_exact_loss_of_every_cost_after_each_of_the_first_updates(
    name, kind
):
    rows = rows_of(name, kind)
    answers = expected(name, "prefix")[kind]
    losses = {
        alpha: [Fraction(num, answer["den"]) for num in answer["num"][:400]]
        for alpha, answer in answers.items()
    }
    n = min(map(len, losses.values()))
    best = {alpha: Prefixes(rows, alpha, n) for alpha in losses}
    calibrator = SmallLeafCalibrator(**rows.settings)
    for at, sample in enumerate(zip(*(c.tolist() for c in rows.first(n)), strict=True)):
        calibrator.update(*sample)
        for alpha in losses:
            found = calibrator.optimum(**costs_of(alpha))
            exact = float(exact_loss(rows, losses[alpha][at], alpha))

            assert (alpha, at, *best[alpha].after(at)) == (alpha, at, found.lower, found.upper)
            assert (alpha, at, exact) == (alpha, at, found.loss)
    calibrator._check()


def test_scikit_learn_merges_scores_of_a_real_classifier_that_differ():
    """Two naive Bayes classifiers, so sure of themselves that their scores crowd at 0 and 1.

    Scores closer than 1e-15 are one score to scikit-learn, however small they are.
    """
    regression = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    for name, costs, losses in [
        ("wdbc_gnb", {"false_positive": 19, "false_negative": 1}, (69, 70)),
        ("segment_nb", {"false_positive": 1, "false_negative": 50}, (663, 664)),
    ]:
        scores, labels, _ = read(name)
        other = regression(out_of_bounds="clip").fit(scores, labels).predict(scores)
        ours = isotonic(scores, labels)
        share = costs["false_positive"] / sum(costs.values())
        prices = np.where(labels == 1, costs["false_negative"], costs["false_positive"])
        theirs = prices[(other > share) != labels].sum()
        calibrator = OnlineCalibrator()
        calibrator.update_many(scores, labels)
        errors = [np.sum((p - labels) ** 2) for p in (ours.probability(scores), other)]

        assert (name, *losses) == (name, calibrator.optimum(**costs).loss, theirs)
        assert errors[0] < errors[1]
