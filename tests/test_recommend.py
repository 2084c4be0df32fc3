# SPDX-License-Identifier: Apache-2.0
"""The recommended threshold, its interval and its cost on new rows."""

from __future__ import annotations

import csv
import math
import pickle
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recommended_oracle import (
    Costs,
    Maps,
    Ranked,
    best_place,
    cuts_near,
    distance,
    ends_near,
    recommended_place,
    regret,
    total_losses,
    whole_weights,
)
from streams import EFFORT

import limen
from limen import _core
from limen.confidence import NAMED, SAFE, SMOOTH
from limen.samples import Samples

OPEN = Path(__file__).parents[2] / "shared" / "data" / "open"
needs_data = pytest.mark.skipif(not OPEN.exists(), reason="the shared data sets are not here")

# File, rows, costs; exact loss, distinct scores below, threshold, its loss, and the interval at the
# reach of a smooth minimum.
VECTORS = """
adult_lr 1000 1 5 318 562 0.16381956544046447 334 0.0803968 0.2605005
adult_lr 16281 1 20 7616 6018 0.0478024173032026 7637 0.0343594 0.0860967
pima_glucose 768 1 5 399 38 99.5 399 94.5 108.5
german_credit_cv_hgb 750 1 5 417 210 0.030104223400523378 435 0.0200603 0.0700222
sms_spam_mnb 1000 5 1 26 874 -1.0781628743098803 29 -1.7102536 -0.5610597
spambase_tree 4597 20 1 1779 64 inf 1812 0.9589591 inf
fte_nba_games 1000 1 1 307 315 0.535845239537656 312 0.3716602 0.6456710
cifar10_wrn_conf 1000 20 1 272 305 0.9992309237896572 287 0.9977507 0.9999635
wdbc_gnb 100 1 100 5 0 -inf 35 -inf 2.2656e-06
two_class_example 500 5 1 109 322 0.9092914668266902 110 0.8522697 0.9754424
"""

# File, rows, costs; cost per row by five folds, its standard error, rows with a cost.
FOLDS = """
adult_lr 1000 1 5 0.338 0.0265284 242
adult_lr 16281 1 20 0.4698114 0.01146382 6110
pima_glucose 768 1 5 0.5169271 0.02945645 333
german_credit_cv_hgb 750 1 5 0.596 0.03374645 355
fte_nba_games 1000 1 1 0.313 0.01466394 313
two_class_example 500 5 1 0.24 0.03041052 92
"""


def each(table: str) -> Any:
    rows = [line.split() for line in table.split("\n") if line]
    return [pytest.param(row, id=" ".join(row[:4])) for row in rows]


@cache
def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    with (OPEN / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return np.array([float(r["score"]) for r in rows]), np.array([int(r["label"]) for r in rows])


def first(name: str, n: str, fp: str, fn: str) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
    scores, labels = rows_of(name)
    return (
        scores[: int(n)],
        labels[: int(n)],
        {"false_positive": int(fp), "false_negative": int(fn)},
    )


def ranked_of(scores: Any, labels: Any, weights: Any = None) -> Ranked:
    return Ranked(*Samples.of(scores, labels, weights).columns)


def native_of(
    costs: Costs, scores: Any, labels: Any, weights: Any = None, kind: Any = "ranks"
) -> _core.Ranked:
    return Samples.of(scores, labels, weights, kind=kind).ranked(*costs)


def drawn(n: int, seed: int = 0, levels: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random(n) if levels is None else rng.integers(0, levels, n) / levels
    return scores, (rng.random(n) < 0.1 + 0.8 * scores).astype(int)


@needs_data
@pytest.mark.parametrize("row", each(VECTORS))
def test_the_rule_gives_the_known_answers(row: list[str]) -> None:
    scores, labels, given = first(*row[:4])
    exact, below, threshold, loss, low, high = map(float, row[4:])
    found = limen.recommend(scores, labels, **given)
    ranked, costs = ranked_of(scores, labels), Costs(**given)
    near = cuts_near(ranked, best_place(ranked, costs), costs, SMOOTH[0.95]).places

    assert exact == found.optimum.loss
    assert threshold == pytest.approx(found.threshold, rel=1e-12)
    assert below == len(np.unique(scores[scores < found.threshold]))
    assert [loss] == total_losses(ranked.below([ranked.place(threshold)]), ranked.all(), costs)
    assert (low, high) == pytest.approx(
        (ranked.threshold(near[0]), ranked.threshold(near[-1])), abs=6e-8
    )


@needs_data
@pytest.mark.parametrize("row", each(FOLDS))
def test_five_folds_give_the_known_cost(row: list[str]) -> None:
    scores, labels, given = first(*row[:4])
    mean, error, errors = map(float, row[4:])
    cost = limen.recommend(scores, labels, **given).cost()

    assert (mean, error) == pytest.approx((cost.mean, cost.standard_error), abs=6e-8)
    assert errors == cost.errors
    assert cost.interval == pytest.approx(
        (cost.mean - 1.959964 * cost.standard_error, cost.mean + 1.959964 * cost.standard_error)
    )


@pytest.mark.parametrize("levels", [None, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_five_folds_are_what_one_would_do_by_hand(levels: Any, weighted: bool) -> None:
    """Every fifth row of a label by score, then weight, judged by the rule on the other rows."""
    scores, labels = drawn(120, levels=levels)
    weights = np.random.default_rng(5).integers(1, 6, 120) / 4 if weighted else np.ones(120)
    fold = np.empty(120, int)
    for label in (0, 1):
        rows = sorted(np.flatnonzero(labels == label), key=lambda row: (scores[row], weights[row]))
        fold[rows] = np.arange(len(rows)) % 5
    cost = np.empty(120)
    for each in range(5):
        others, tested = fold != each, fold == each
        given = {"false_negative": 3, "weights": weights[others] if weighted else None}
        answers = limen.recommend(scores[others], labels[others], **given).predict(scores[tested])
        cost[tested] = np.where(labels[tested] == 1, 3 * (answers == 0), answers)
    mean = (weights * cost).sum() / weights.sum()
    error = math.sqrt(((weights * (cost - mean)) ** 2).sum()) / weights.sum()

    found = limen.recommend(
        scores, labels, false_negative=3, weights=weights if weighted else None
    ).cost()

    assert np.count_nonzero(cost) == found.errors
    assert (mean, error) == pytest.approx((found.mean, found.standard_error), rel=1e-12)


@needs_data
def test_a_named_threshold_is_as_far_as_known() -> None:
    scores, labels, given = first("adult_lr", "1000", "1", "5")
    found = limen.recommend(scores, labels, **given)

    assert 5.499493 == pytest.approx(found.distance(0.5), abs=5e-7)
    assert found.rules_out(0.5)
    assert not found.rules_out(found.threshold)
    assert 0 == found.distance(found.optimum.threshold)


def brute_force(ranked: Ranked, costs: Costs, reach: float) -> list[int]:
    """The cuts within reach, from sums over the samples between each and the best."""
    scores, labels = ranked.scores.tolist(), ranked.labels.tolist()
    weights = ranked.weights.tolist()
    cuts = [
        c for c in range(len(scores) + 1) if c in (0, len(scores)) or scores[c] != scores[c - 1]
    ]

    def loss(cut: int) -> int:
        missed = sum(w for w, y in zip(weights[:cut], labels[:cut], strict=True) if y)
        alarms = sum(w for w, y in zip(weights[cut:], labels[cut:], strict=True) if not y)
        return costs.false_negative * missed + costs.false_positive * alarms

    best = max(c for c in cuts if loss(c) == min(map(loss, cuts)))

    def error(cut: int) -> float:
        low, high = sorted((cut, best))
        ones = sum(w * w for w, y in zip(weights[low:high], labels[low:high], strict=True) if y)
        zeros = sum(w * w for w in weights[low:high]) - ones
        p, n = costs
        return math.sqrt(max(n * n * ones + p * p * zeros, p * n * (ones + zeros)))

    assert best == best_place(ranked, costs)
    return [c for c in cuts if loss(c) - loss(best) <= reach * error(c)]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=30
    ),
    st.sampled_from([Costs(1, 1), Costs(1, 5), Costs(20, 1), Costs(3, 7)]),
    st.booleans(),
    st.sampled_from([0.5, 1.0, 2.31]),
)
def test_the_cuts_near_the_best_are_those_of_plain_sums(
    rows: list[tuple[int, int, int]], costs: Costs, weighted: bool, reach: float
) -> None:
    scores, labels, weights = map(list, zip(*rows, strict=True))
    ranked = ranked_of(scores, labels, weights if weighted else None)
    near = cuts_near(ranked, best_place(ranked, costs), costs, reach)

    within = brute_force(ranked, costs, reach)
    assert within == near.places.tolist()
    assert (within[0], within[-1]) == ends_near(ranked, best_place(ranked, costs), costs, reach)


WEIGHTS = {
    "none": lambda rng, n: None,
    "ones": lambda rng, n: np.ones(n),
    "whole": lambda rng, n: rng.integers(0, 9, n),
    "quarters": lambda rng, n: rng.integers(1, 9, n) / 4,
    "tenths": lambda rng, n: rng.integers(1, 30, n) / 10,
    "any": lambda rng, n: rng.pareto(2, n) + 0.5,
    "heavy": lambda rng, n: rng.integers(1, 10**9, n),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("levels", [None, 5, 60, 1500])
@pytest.mark.parametrize("n", [12, 60, 300, 5_000])
def test_the_core_finds_bit_for_bit_what_the_definition_says(
    n: int, levels: Any, weights: str
) -> None:
    for seed, costs in enumerate([Costs(1, 1), Costs(1, 5), Costs(20, 1), Costs(3, 7)]):
        scores, labels = drawn(n, seed=seed, levels=levels)
        sizes = WEIGHTS[weights](np.random.default_rng(seed), n)
        ranked, native = (
            ranked_of(scores, labels, sizes),
            native_of(costs, scores, labels, sizes),
        )
        best = best_place(ranked, costs)
        chosen = recommended_place(ranked, best, costs, Maps(ranked, "ranks"))
        for reach in (0.5, 2.31):
            low, high = ends_near(ranked, best, costs, reach)
            expected = [*map(ranked.threshold, (chosen, low, high)), regret(ranked, best, costs)]

            assert expected == list(native.recommend(reach))
            for threshold in (-math.inf, 0.2, 0.5, 0.8, math.inf, math.nan, *expected[:3]):
                place = ranked.place(threshold)
                assert (low <= place <= high) == native.keeps(threshold, reach)
                assert distance(ranked, best, place, costs) == native.distance(threshold)
        total = ranked.all()
        assert (total.weight[0], total.squared[0]) == pytest.approx(native.weight(), rel=1e-15)
        rows = [(int(np.count_nonzero(ranked.labels == label))) for label in (0, 1)]
        assert rows == [count for count, _ in native.worth()]


def odd_case(rng: np.random.Generator, kind: str, falling: bool) -> tuple[Any, Any, Any]:
    """Scores, labels and weights: with ties, saturation, counts, infinities and margins."""
    n = int(rng.choice([12, 30, 60, 150, 400, 1500]))
    logits = rng.normal(size=n) * rng.choice([0.5, 1, 2, 6]) + rng.normal()
    share = 1 / (1 + np.exp(-(rng.choice([0.4, 1, 2]) * logits + rng.normal() * 0.5)))
    labels = rng.random(n) < share
    labels[:10] = np.arange(10) % 2
    scores = logits
    if kind == "probabilities" or rng.random() < 0.5:
        scores = 1 / (1 + np.exp(-logits))
    shape = rng.choice(["rounded", "saturated", "counts", "margins", "infinite", "plain"])
    if shape == "rounded":
        scores = np.round(scores, int(rng.integers(1, 3)))
    elif shape == "saturated":
        low, high = np.quantile(scores, [0.2, 0.7])
        scores = np.where(scores < low, 0.0, np.where(scores > high, 1.0, scores))
    elif shape == "margins" and kind != "probabilities":
        scores = np.exp(3 * scores)
    elif shape == "counts" and kind != "probabilities":
        scores = rng.poisson(np.exp(np.clip(scores, -5, 5))).astype(float)
    elif shape == "infinite" and kind != "probabilities":
        scores[rng.integers(0, n, n // 4)] = rng.choice([-np.inf, np.inf])
    if falling and kind == "probabilities":
        scores = scores - 1  # as the core has probabilities of label 0
    weights = rng.choice(["none", "whole", "any"])
    whole = np.maximum(rng.integers(0, 9, n), np.arange(n) < 10)
    return (
        scores,
        labels.astype(np.uint8),
        {"none": None, "whole": whole, "any": rng.pareto(2, n) + 0.5}[weights],
    )


@pytest.mark.parametrize("kind", ["probabilities", "raw", "ranks"])
@pytest.mark.parametrize("falling", [False, True])
def test_the_rule_is_that_of_dense_gaussian_processes(kind: str, falling: bool) -> None:
    rng = np.random.default_rng([falling, len(kind)])
    every = [Costs(1, 1), Costs(1, 5), Costs(20, 1), Costs(3, 7), Costs(1, 100)]
    for case in range(34 * EFFORT):
        scores, labels, weights = odd_case(rng, kind, falling)
        costs = every[int(rng.integers(5))]
        ranked = Ranked(scores, labels, weights)
        maps, best = Maps(ranked, kind, falling), best_place(ranked, costs)
        native = _core.Ranked(scores, labels, weights, *costs, kind, falling)
        place = recommended_place(ranked, best, costs, maps)
        found = native.recommend(2.31)[0]

        assert place == ranked.place(found), case
        assert maps.inside(place, costs) == pytest.approx(found, abs=1e-6, nan_ok=True), case


@pytest.mark.parametrize("levels", [None, 7])
def test_counts_of_scores_are_as_many_rows(levels: Any) -> None:
    scores, labels = drawn(900, levels=levels)
    costs = Costs(1, 4)
    known, at = np.unique(scores, return_inverse=True)
    ones = np.bincount(at, labels).astype(np.int64)
    zeros = np.bincount(at, 1 - labels).astype(np.int64)
    rows, counted = (
        native_of(costs, scores, labels),
        _core.Ranked.counted(known, ones, zeros, *costs, "ranks", False),
    )

    assert rows.recommend(2.31) == counted.recommend(2.31)
    assert rows.cross_fit(5) == counted.cross_fit(5)
    assert rows.worth() == counted.worth()


def test_a_ranked_column_without_samples_is_allowed() -> None:
    native = native_of(Costs(1, 1), [], [])

    assert ((0, 0), (0, 0)) == native.worth()


@pytest.mark.parametrize(
    "levels",
    [
        1 + np.arange(50) * 2.0**-52,  # which differ in their last bits only
        np.array([-math.inf, -1e300, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf]),
        np.linspace(-1, 1, 5_000),
    ],
)
def test_weighted_samples_are_in_order_of_score_then_label_then_weight(levels: Any) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.choice(levels, 400), rng.integers(0, 2, 400)
    weights = rng.integers(0, 4, 400)
    native = native_of(Costs(1, 1), scores, labels, weights)

    rows = zip(scores.tolist(), labels.tolist(), weights.tolist(), strict=True)
    columns = (column.tolist() for column in native.__getstate__()[:3])
    assert sorted(row for row in rows if row[2]) == list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("weights", "whole"),
    [([1.0, 2.0], [1, 2]), ([0.5, 2.0], [1, 4]), ([0.75, 0.0], [3, 0]), ([0.0, 0.0], [0, 0])],
)
def test_weights_are_whole_numbers_of_their_largest_common_unit(
    weights: list[float], whole: list[int]
) -> None:
    assert whole == whole_weights(np.array(weights)).tolist()


@pytest.mark.parametrize("weights", [None, "whole", "tenths"])
@pytest.mark.parametrize("costs", [(1, 5), (0.1, 0.3), (Fraction(1, 3), 2)])
def test_the_optimum_is_that_of_optimal_threshold(weights: Any, costs: Any) -> None:
    scores, labels = drawn(300, levels=40)
    ws = np.random.default_rng(2).integers(0, 9, 300)
    given: dict[str, Any] = {"false_positive": costs[0], "false_negative": costs[1]}
    given["weights"] = {None: None, "whole": ws, "tenths": ws / 10}[weights]

    found = limen.recommend(scores, labels, **given)

    assert limen.optimal_threshold(scores, labels, **given) == found.optimum
    assert 0 == found.distance(found.optimum.threshold)


def answers(found: limen.Recommendation) -> tuple[Any, ...]:
    return (
        *(found.threshold, found.optimum, found.interval, found.regret, found.keep),
        *(found.cost(), found.labels_needed(0.01), found.distance(0.3), found.reason),
    )


@pytest.mark.parametrize("levels", [None, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_rows_leaves_no_trace(levels: Any, weighted: bool) -> None:
    scores, labels = drawn(400, levels=levels)
    rng = np.random.default_rng(3)
    weights = rng.random(400) * 10
    told = set()
    for _ in range(4):
        order = rng.permutation(400)
        found = limen.recommend(
            scores[order],
            labels[order],
            weights=weights[order] if weighted else None,
            false_negative=3,
            current=0.4,
        )
        told.add(answers(found))

    assert 1 == len(told)


@pytest.mark.parametrize("levels", [None, 12])
def test_a_monotone_transform_of_the_scores_changes_no_answer(levels: Any) -> None:
    scores, labels = drawn(2_000, levels=levels)
    given: Any = {"false_negative": 4, "scores_are": "ranks"}
    plain = limen.recommend(scores, labels, **given)
    bent = limen.recommend(np.exp(5 * scores) - 7, labels, **given)

    assert (plain.predict(scores) == bent.predict(np.exp(5 * scores) - 7)).all()
    assert plain.cost() == bent.cost()
    assert plain.regret == bent.regret
    for ours, theirs in zip(plain.interval, bent.interval, strict=True):
        assert ((scores >= ours) == (np.exp(5 * scores) - 7 >= theirs)).all()


def test_infinite_scores_are_scores_like_others() -> None:
    scores, labels = drawn(200, levels=10)
    bent = np.where(scores == 0, -np.inf, np.where(scores == scores.max(), np.inf, scores))
    plain, far = (limen.recommend(each, labels, scores_are="ranks") for each in (scores, bent))

    assert (plain.predict(scores) == far.predict(bent)).all()
    assert plain.cost() == far.cost()


def test_no_threshold_reaches_an_infinite_score_that_is_answered_0() -> None:
    found = limen.recommend([1.0] * 20 + [np.inf] * 20, [0] * 15 + [1] * 5 + [0] * 15 + [1] * 5)

    assert math.isnan(found.interval[1])
    assert [0, 0] == found.predict([1.0, np.inf]).tolist()
    assert "or above" in found.reason or "anywhere" in found.reason


def test_scores_that_tell_nothing_give_one_of_the_two_ends() -> None:
    found = limen.recommend([0.5] * 40, [1] * 10 + [0] * 30)

    assert math.inf == found.threshold
    assert 10 == found.optimum.loss
    assert math.inf == found.interval[1]


def test_perfect_separation_is_kept() -> None:
    found = limen.recommend([0.1] * 50 + [0.9] * 50, [0] * 50 + [1] * 50)

    assert 0.5 == found.optimum.threshold == pytest.approx(found.threshold)
    assert (0.5, 0.5) == found.interval
    assert 0 == found.regret
    assert 10 == found.labels_needed(0.01)
    assert "the exact optimum" in found.reason
    assert found.cost().few
    assert "from only 0 errors" in str(found.cost())
    assert (0, pytest.approx(-math.log(0.05) / 100)) == found.cost().interval


def test_equal_weights_are_no_weights() -> None:
    scores, labels = drawn(500)
    plain = limen.recommend(scores, labels, false_negative=3)
    for weight in (1, 7, 0.25):
        found = limen.recommend(
            scores, labels, false_negative=3, weights=np.full(len(scores), weight)
        )
        assert plain.threshold == found.threshold
        assert plain.interval == found.interval
        assert plain.regret == pytest.approx(found.regret)
        assert plain.cost().mean == pytest.approx(found.cost().mean)
        assert plain.cost().standard_error == pytest.approx(found.cost().standard_error)


def test_a_weight_of_0_leaves_a_row_out() -> None:
    scores, labels = drawn(300)
    weights = np.arange(300) % 3
    kept = weights > 0

    assert answers(limen.recommend(scores, labels, weights=weights)) == answers(
        limen.recommend(scores[kept], labels[kept], weights=weights[kept])
    )


def test_unequal_weights_make_the_interval_wider() -> None:
    scores, labels = drawn(2_000)
    even = ranked_of(scores, labels)
    uneven = ranked_of(scores, labels, np.random.default_rng(4).pareto(2, 2_000) + 1)

    assert 2_000 == even.effective
    assert uneven.effective < 1_500


def test_costs_scale_what_is_told_and_not_what_is_chosen() -> None:
    scores, labels = drawn(500)
    euro = limen.recommend(scores, labels, false_positive=1, false_negative=5)
    cents = limen.recommend(scores, labels, false_positive=100, false_negative=500)

    assert (euro.threshold, euro.interval) == (cents.threshold, cents.interval)
    assert cents.regret == pytest.approx(100 * euro.regret)
    assert cents.cost().mean == pytest.approx(100 * euro.cost().mean)
    assert cents.labels_needed(1) == euro.labels_needed(0.01)


@pytest.mark.parametrize(
    ("counts", "current", "words"),
    [
        ((4, 50), None, "4 samples of label 1: it takes 5 of each label"),
        ((50, 4), 0.5, "4 samples of label 0: .* keep the current threshold 0.5"),
        ((0, 0), None, "0 samples of label 1"),
        ((50, 0), None, "larger group"),
    ],
)
def test_less_than_five_samples_of_a_label_are_refused(
    counts: tuple[int, int], current: float | None, words: str
) -> None:
    labels = [1] * counts[0] + [0] * counts[1]
    with pytest.raises(ValueError, match=words):
        limen.recommend(np.linspace(0, 1, len(labels)), labels, current=current)


def test_one_heavy_sample_is_not_five() -> None:
    weights = [1000] + [1] * 59
    with pytest.raises(ValueError, match=r"whose weights are worth 1\.\d"):
        limen.recommend(np.linspace(0, 1, 60), [1] * 30 + [0] * 30, weights=weights)


def test_five_of_each_are_enough_to_recommend_and_seven_for_the_cost() -> None:
    five = limen.recommend(np.arange(10), [0] * 5 + [1] * 5)

    assert 4.5 == five.threshold
    with pytest.raises(ValueError, match="at least 7 of each"):
        five.cost()
    assert limen.recommend(np.arange(14), [0] * 7 + [1] * 7).cost().errors <= 1


@pytest.mark.parametrize("confidence", [0.5, 0.96, 1, "0.95", None, [0.95], math.nan])
def test_other_confidences_are_refused(confidence: Any) -> None:
    with pytest.raises(ValueError, match=r"confidence must be one of 0.8, 0.9, 0.95, 0.99, got"):
        limen.recommend([0.1] * 10, [0, 1] * 5, confidence=confidence)


def test_more_confidence_makes_a_wider_interval() -> None:
    scores, labels = drawn(1_000)
    found = [limen.recommend(scores, labels, confidence=level).interval for level in SAFE]

    assert sorted(found, key=lambda ends: ends[1] - ends[0]) == found
    assert found[0] != found[-1]


def test_a_current_threshold_is_kept_inside_the_interval_only() -> None:
    scores, labels = drawn(3_000)
    free = limen.recommend(scores, labels)
    low, high = free.interval
    inside = limen.recommend(scores, labels, current=(low + high) / 2)
    outside = limen.recommend(scores, labels, current=high + 0.01)

    assert free.keep is None
    assert inside.keep is True
    assert outside.keep is False
    assert free.threshold == inside.threshold == outside.threshold
    assert inside.reason.startswith("Keep ")
    assert outside.reason.startswith("Change ")
    assert free.reason.startswith("Use ")
    for end in (low, high):
        assert limen.recommend(scores, labels, current=end).keep


def test_a_refusal_names_the_current_threshold_as_it_was_given() -> None:
    with pytest.raises(ValueError, match=r"keep the current threshold 0\.5\."):
        limen.recommend(np.linspace(0, 1, 20), [1] * 19 + [0], current=0.5, direction="<=")


def test_costs_of_each_row_are_refused() -> None:
    with pytest.raises(TypeError, match="false_negative must be one number for all rows"):
        limen.recommend(np.linspace(0, 1, 20), [0, 1] * 10, false_negative=np.arange(20))


def test_errors_name_the_place_and_the_value() -> None:
    with pytest.raises(ValueError, match="nan"):
        limen.recommend([0.1, math.nan] * 10, [0, 1] * 10)
    with pytest.raises(ValueError, match=r"labels\[3\]"):
        limen.recommend([0.1] * 20, [0, 1, 0, 2] * 5)
    with pytest.raises(ValueError, match="weight"):
        limen.recommend([0.1] * 20, [0, 1] * 10, weights=[1, -1] * 10)
    with pytest.raises(TypeError, match="current must be a threshold"):
        limen.recommend([0.1] * 20, [0, 1] * 10, current="0.5")
    with pytest.raises(ValueError, match="target must be a positive"):
        limen.recommend(np.arange(10), [0] * 5 + [1] * 5).labels_needed(0)


def test_many_samples_bring_the_recommended_threshold_to_the_exact_one() -> None:
    gaps = []
    for n in (300, 3_000, 30_000):
        costs = Costs(1, 2)
        moved = []
        for seed in range(8):
            ranked = ranked_of(*drawn(n, seed))
            best = best_place(ranked, costs)
            chosen = recommended_place(ranked, best, costs, Maps(ranked, "ranks"))
            moved.append(abs(chosen - best) / n)
        gaps.append(np.mean(moved))

    assert sorted(gaps, reverse=True) == gaps


def test_a_recommendation_is_a_value() -> None:
    scores, labels = drawn(100)
    found, again = limen.recommend(scores, labels), limen.recommend(scores, labels)
    cost = found.cost()

    assert found == again
    assert found.cost() is cost
    with pytest.raises(AttributeError):
        found.threshold = 0.5
    assert found == pickle.loads(pickle.dumps(found))
    assert pickle.loads(pickle.dumps(again)).cost() == cost
    scores[:] = 0
    assert again.cost() == cost


def test_a_recommendation_of_weights_is_a_value() -> None:
    scores, labels = drawn(100)
    found = limen.recommend(scores, labels, weights=np.arange(1, 101) / 10)
    again = pickle.loads(pickle.dumps(found))

    assert (found, found.cost()) == (again, again.cost())
    assert found.distance(0.3) == again.distance(0.3)


def test_frames_are_read_like_everywhere() -> None:
    polars = pytest.importorskip("polars")
    scores, labels = drawn(100)
    frame = polars.DataFrame({"score": scores, "label": labels})

    assert limen.recommend(scores, labels) == limen.recommend(frame["score"], frame["label"])


def test_the_tables_are_what_the_simulation_gave() -> None:
    """The numbers of benchmarks/results/trust/constants.json; SAFE and NAMED lean to safety."""
    import json

    path = Path(__file__).parents[1] / "benchmarks" / "results" / "trust" / "constants.json"
    told = json.loads(path.read_text())
    for place, level in enumerate(told["levels"]):
        law = {name: law["quantile"][place] for name, law in told["laws"].items()}

        assert SMOOTH[level] == pytest.approx(law["smooth"], abs=0.015)
        assert law["end 2"] - 0.01 < SAFE[level] < law["wall"]
        assert law["named"] < NAMED[level] < law["named"] + 0.06


def test_a_recommendation_prints_its_reason_and_shows_its_numbers() -> None:
    scores, labels = drawn(100)
    free = limen.recommend(scores, labels)
    used = limen.recommend(scores, labels, current=0.5)
    numbers = (
        f"threshold {free.threshold!r}, interval {free.interval!r}, confidence 0.95, "
        f"optimum {free.optimum.threshold!r}"
    )

    assert free.reason == str(free)
    assert f"<Recommendation: {numbers}>" == repr(free)
    assert f"<Recommendation: {numbers}, current 0.5, keep {used.keep}>" == repr(used)


@pytest.mark.parametrize("direction", [">=", "<="])
def test_the_sentence_says_why_a_threshold_beyond_the_interval_is_kept(direction: Any) -> None:
    sign = 1 if direction == ">=" else -1
    scores = [sign * i / 64 for i in range(64)]
    labels = [int(i * i % 64 < i) for i in range(64)]
    low, high = limen.recommend(scores, labels, direction=direction).interval
    for current, end in ((low - 0.005, low), (high + 0.005, high)):
        found = limen.recommend(scores, labels, current=current, direction=direction)
        assert found.keep
        assert found.reason.endswith(
            f"rule this one out: it gives all of them the same answers as {end:.4g}."
        )
        answers = [[sign * s >= sign * t for s in scores] for t in (current, end)]
        assert answers[0] == answers[1]
    inside = limen.recommend(scores, labels, current=(low + high) / 2, direction=direction)
    assert inside.reason.endswith("rule this one out.")


def test_the_reason_names_the_ends_of_a_narrow_interval_apart() -> None:
    """It said that the best threshold lies between 0.1607 and 0.1607."""
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 200, 4000)
    labels = (scores + rng.normal(0, 1, 4000) > 100).astype(int)
    found = limen.recommend(0.1607 + scores / 1e7, labels)
    low, high = found.interval
    said = re.search(r"between ([\d.]+) and ([\d.]+)\.", found.reason)

    assert said is not None, found.reason
    assert float(said[1]) < float(said[2])
    assert low == pytest.approx(float(said[1]), abs=high - low)
    assert high == pytest.approx(float(said[2]), abs=high - low)
