# SPDX-License-Identifier: Apache-2.0
"""Whole arrays against the paper's algorithms, against sorting, and on every instruction set."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import streams
from hypothesis import given
from hypothesis import strategies as st
from streams import as_typed, at_the_door, sorted_best, whole_losses

import limen
from limen import OnlineCut, OnlineThreshold, loss_curve, optimal_cut, optimal_threshold, paper

labelled = st.lists(st.tuples(streams.scores, streams.labels, streams.weights), max_size=40)
with_losses = st.lists(
    st.tuples(streams.scores, streams.losses_of_one, streams.losses_of_one), max_size=40
)


def columns(rows):
    return [[row[column] for row in rows] for column in range(3)]


def held(rows, false_positive, false_negative):
    """Score, below and above of each row that counts, as exact fractions."""
    costs = (as_typed(false_positive), as_typed(false_negative))
    return [
        (score, label * exact * costs[1], (1 - label) * exact * costs[0])
        for score, label, weight in rows
        if (exact := at_the_door(weight))
    ]


@given(labelled, streams.costs)
def test_optimal_threshold_is_the_cheapest_of_all_cuts(rows, costs):
    samples = held(rows, *costs)
    scores, z = [s for s, _, _ in samples], [above - below for _, below, above in samples]
    best = paper.brute_force(scores, z)
    loss = float(best.L1 + sum(below for _, below, _ in samples))
    xs, ys, ws = columns(rows)
    found = optimal_threshold(xs, ys, weights=ws, false_positive=costs[0], false_negative=costs[1])

    assert (best.X0, best.X1, loss) == (found.lower, found.upper, found.loss)


@given(with_losses)
def test_optimal_cut_is_the_cheapest_of_all_cuts(rows):
    samples = [(score, Fraction(below), Fraction(above)) for score, below, above in rows]
    samples = [sample for sample in samples if any(sample[1:])]
    scores, z = [s for s, _, _ in samples], [above - below for _, below, above in samples]
    best = paper.brute_force(scores, z)
    loss = float(best.L1 + sum(below for _, below, _ in samples))
    found = optimal_cut(*columns(rows))

    assert (best.X0, best.X1, loss) == (found.lower, found.upper, found.loss)


@given(labelled, streams.costs)
def test_loss_curve_has_the_loss_of_every_cut(rows, costs):
    samples = held(rows, *costs)
    base = sum(below for _, below, _ in samples)
    cuts = paper.every_cut([s for s, _, _ in samples], [up - low for _, low, up in samples])
    xs, ys, ws = columns(rows)
    curve = loss_curve(xs, ys, weights=ws, false_positive=costs[0], false_negative=costs[1])
    best = optimal_threshold(xs, ys, weights=ws, false_positive=costs[0], false_negative=costs[1])

    assert len({score for score, _, _ in samples}) + 1 == len(curve)
    assert [float(base + cut.L1) for cut in cuts] == curve.losses.tolist()
    assert best.loss == curve.losses.min()
    assert np.array_equal(best.threshold, curve.cheapest[-1], equal_nan=True)


@given(labelled, st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    before, after = (
        optimal_threshold(xs, ys, weights=ws, false_negative=3)
        for xs, ys, ws in (columns(rows), columns(shuffled))
    )

    assert before == after


SIZES = [0, 1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1024, 3001, 5000]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_search_without_sorting_finds_what_sorting_finds(shape, n):
    for seed in range(3):
        scores, labels = streams.SHAPES[shape](n, seed)
        for costs in [(1, 1), (1, 4), (7, 2)]:
            expected = sorted_best(scores, *whole_losses(labels, *costs))
            found = optimal_threshold(
                scores, labels, false_positive=costs[0], false_negative=costs[1]
            )

            assert (seed, *expected[:3]) == (seed, found.lower, found.upper, found.loss)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_search_without_sorting_finds_what_sorting_finds_with_weights(shape, n):
    """Weights from 0 to 2**40, most of them light: a few samples decide."""
    for seed in range(2):
        scores, labels = streams.SHAPES[shape](n, seed)
        random = np.random.default_rng(seed)
        weights = 2 ** random.integers(0, 40, n) * (random.random(n) < 0.8)
        heard = weights > 0
        expected = sorted_best(scores[heard], *whole_losses(labels[heard], 3, 2, weights[heard]))
        found = optimal_threshold(
            scores, labels, weights=weights, false_positive=3, false_negative=2
        )

        assert (seed, *expected[:3]) == (seed, found.lower, found.upper, found.loss)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", streams.SHAPES)
def test_search_without_sorting_finds_what_sorting_finds_with_any_losses(shape, n):
    scores, labels = streams.SHAPES[shape](n)
    random = np.random.default_rng(n)
    below, above = random.integers(-9, 10, (2, n)) + np.where(labels, [[5], [-5]], [[-5], [5]])
    counted = (below != 0) | (above != 0)
    expected = sorted_best(scores[counted], below[counted], above[counted])
    found = optimal_cut(scores, below, above)

    assert expected[:3] == (found.lower, found.upper, found.loss)


@pytest.mark.parametrize("shape", streams.SHAPES)
def test_large_arrays_of_any_shape_are_searched_exactly(shape):
    """Large enough for buckets of buckets."""
    scores, labels = streams.SHAPES[shape](200_000)
    expected = sorted_best(scores, *whole_losses(labels, 2, 3))
    found = optimal_threshold(scores, labels, false_positive=2, false_negative=3)
    cut = OnlineThreshold(false_positive=2, false_negative=3)
    cut.update_many(scores, labels)

    assert expected[:3] == (found.lower, found.upper, found.loss)
    assert found == cut.optimum


@pytest.mark.parametrize("n", [100, 1_000, 20_000])
@pytest.mark.parametrize("copies", [1, 3])
def test_outliers_and_heaps_of_equal_scores_are_searched_exactly(n, copies):
    """Scores that a few drawn samples do not show: a spike here, a single far value there."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        scores = random.normal(size=n)
        scores[random.random(n) < 0.5] = random.choice(scores)
        scores[random.integers(0, n, 3)] = random.choice([1e300, -1e300, np.inf, -np.inf, 5e-324])
        scores = np.repeat(scores, copies)
        labels = (random.random(n * copies) < 1 / (1 + np.exp(-np.clip(scores, -9, 9)))) * 1
        expected = sorted_best(scores, *whole_losses(labels, 1, 2))
        found = optimal_threshold(scores, labels, false_negative=2)

        assert (seed, *expected[:3]) == (seed, found.lower, found.upper, found.loss)


@pytest.mark.parametrize("shape", streams.SHAPES)
def test_batch_and_online_agree_on_weights_with_fractions(shape):
    scores, labels = streams.SHAPES[shape](3_000)
    weights = np.random.default_rng(7).random(3_000) * 100
    cut = OnlineThreshold(false_positive=0.1, false_negative=0.3)
    cut.update_many(scores, labels, weights)
    found = optimal_threshold(
        scores, labels, weights=weights, false_positive=0.1, false_negative=0.3
    )
    whole = np.rint(weights * 2**20).astype(np.int64)
    expected = sorted_best(scores, *whole_losses(labels, 1, 3, whole))

    assert cut.optimum == found
    assert (expected.lower, expected.upper) == (found.lower, found.upper)
    assert float(expected.loss * Fraction(1, 10) / 2**20) == found.loss


@pytest.mark.parametrize("shape", streams.SHAPES)
def test_batch_and_online_agree_on_any_losses(shape):
    scores, labels = streams.SHAPES[shape](3_000)
    noise = np.random.default_rng(8).normal(size=(2, 3_000))
    losses = np.round(noise + np.stack([labels, 1 - labels]), 3)
    cut = OnlineCut(unit=0.001)
    cut.update_many(scores, *losses)

    assert cut.optimum == optimal_cut(scores, *losses, unit=0.001)


# Every instruction set.

ANSWERS = """
import hashlib, pickle
import numpy as np
import limen, streams

seen = []
for shape, stream in streams.SHAPES.items():
    for n in (0, 1, 7, 64, 300, 513, 4_000):
        scores, labels = stream(n)
        weights = np.random.default_rng(n).integers(0, 2**20, n) / 8
        losses = limen.losses.cost_matrix(labels, tp=-1, fp=weights, fn=3, tn=0)
        given = {"false_positive": 2, "false_negative": 0.7}
        seen.append(limen.optimal_threshold(scores, labels, weights=weights, **given))
        seen.append(limen.optimal_threshold(scores, labels, **given))
        seen.append(limen.optimal_cut(scores, *losses))
        curve = limen.loss_curve(scores, labels, weights=weights, **given)
        seen.append((curve.thresholds.tobytes(), curve.losses.tobytes()))
        for model in (limen.OnlineThreshold, streams.SmallNodeThreshold):
            cut = model(**given)
            for sample in zip(scores[:800], labels, weights):
                cut.update(*sample)
                seen.append(cut.optimum)
            cut.revert_many(scores[:400], labels[:400], weights[:400])
            for sample in zip(scores[400:500], labels[400:500], weights[400:500]):
                cut.revert(*sample)
                seen.append(cut.optimum)
            cut._check()
            cut.update_many(scores, labels, weights)
            cut._check()
            seen.append((cut.optimum, cut._state(), cut.predict(scores).tolist()))
        cut = limen.OnlineCut()
        cut.update_many(scores, *losses)
        cut._check()
        seen.append((cut.optimum, cut._state()))
print(limen._core.isa, len(seen), hashlib.sha256(repr(seen).encode()).hexdigest())
"""


def run_with_isa(isa, program):
    environment = {key: value for key, value in os.environ.items() if key != "LIMEN_ISA"}
    path = [str(Path(__file__).parent), environment.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    if isa is not None:
        environment["LIMEN_ISA"] = isa
    return subprocess.run(
        [sys.executable, "-W", "ignore:a threshold needs", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
    )


def supported_isas():
    """As the error for an unknown one lists them."""
    told = run_with_isa("abacus", "import limen._core").stderr
    return told.partition("support: ")[2].partition(". Unset")[0].split(", ")


def test_every_instruction_set_gives_the_same_answers():
    supported = supported_isas()
    told = {isa: run_with_isa(isa, ANSWERS) for isa in supported}
    for isa, done in told.items():
        assert "" == done.stderr.strip(), isa
    answers = {isa: done.stdout.splitlines()[-1].split() for isa, done in told.items()}

    assert {"generic", "sse2"} & set(supported)
    assert {isa: isa for isa in supported} == {isa: words[0] for isa, words in answers.items()}
    assert 1 == len({tuple(words[1:]) for words in answers.values()})


def test_the_widest_instruction_set_is_chosen_unless_told_otherwise():
    chosen = run_with_isa(None, "import limen; print(limen._core.isa)").stdout.split()[-1]

    assert supported_isas()[0] == chosen
    assert run_with_isa("", "import limen; print(limen._core.isa)").stdout.split()[-1] == chosen


@pytest.mark.parametrize("isa", ["abacus", "avx512", "avx2", "sse2", "generic", "AVX2", "sse2 "])
def test_an_instruction_set_that_is_not_supported_is_an_import_error(isa):
    """The error names the variable, the value, what there is, and the way out."""
    done = run_with_isa(isa, "import limen; print(limen._core.isa)")
    supported = supported_isas()
    if isa in supported:
        assert isa == done.stdout.split()[-1]
        return
    last = done.stderr.strip().splitlines()[-1]

    assert 1 == done.returncode
    assert last.startswith("ImportError: ")
    for word in ("LIMEN_ISA", f"'{isa}'", "Unset", *supported):
        assert word in last


def test_the_isa_in_use_can_be_read():
    assert limen._core.isa in {"avx512", "avx2", "sse2", "generic"}


@pytest.mark.parametrize("label", [0, 1])
def test_a_cost_that_no_sample_pays_may_be_any_size(label):
    """In units of 2**-40 it is far beyond 64 bits; a sanitizer sees it even where answers hold."""
    absent = {"false_positive" if label else "false_negative": 2**40}
    found = optimal_threshold([0.25, 0.75], [label, label], unit=Fraction(1, 2**40), **absent)

    assert 0 == found.loss
    assert (-math.inf if label else math.inf) == found.threshold


def usual(n, dtype=np.int64):
    """Arrays that need no conversion: contiguous float64 scores, and labels of this type."""
    rng = np.random.default_rng(n)
    scores = rng.random(n)
    return scores, (rng.random(n) < scores).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.uint8, np.int32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 100, 513, 5000])
def test_plain_arrays_give_what_the_same_lists_give(n, dtype):
    scores, labels = usual(n, dtype)
    costs = {"false_positive": 0.1, "false_negative": 0.3, "unit": Fraction(1, 7)}
    for options in ({}, costs):
        expected = optimal_threshold(scores.tolist(), labels.astype(int).tolist(), **options)

        assert optimal_threshold(scores, labels, **options) == expected


def test_arrays_of_any_layout_give_what_plain_ones_give():
    scores, labels = usual(600)
    best = optimal_threshold(scores, labels)
    shifted = np.zeros(601 * 8, dtype=np.uint8)
    shifted[1:4801] = scores.view(np.uint8)
    wide = np.repeat(scores, 2)
    backwards = scores[::-1].copy()
    for same in (
        wide[::2],
        backwards[::-1],
        shifted[1:4801].view(np.float64),
        scores.astype(">f8"),
        np.ma.masked_array(scores),
    ):
        assert optimal_threshold(same, labels) == best
        assert optimal_threshold(scores.copy(), np.repeat(labels, 3)[::3]) == best
    mask = (labels * 255).astype(np.uint8).view(np.bool_)

    assert optimal_threshold(scores, mask) == best


@pytest.mark.parametrize("n", [4, 3000])
def test_plain_arrays_are_refused_in_the_words_that_lists_are(n):
    scores, labels = usual(n)
    unordered = scores.copy()
    unordered[n - 1] = math.nan
    wrong = labels.copy()
    wrong[n - 2] = 2
    masked = np.ma.masked_array(scores, mask=labels == labels[0])
    for refused, told in (
        ((unordered, labels), rf"scores\[{n - 1}\] is nan"),
        ((scores, wrong), rf"got 2 at labels\[{n - 2}\]"),
        ((scores, labels[1:]), f"scores has {n}, labels has {n - 1}"),
        ((scores.reshape(2, -1), labels), "scores must be one-dimensional"),
        ((masked, labels), r"scores\[0\] is masked"),
    ):
        with pytest.raises(ValueError, match=told):
            optimal_threshold(*refused)
    with pytest.raises(OverflowError):
        optimal_threshold(scores, labels, false_positive=2**62 - 1, false_negative=2**62 - 2)


def test_no_samples_have_no_threshold_of_their_own_also_as_arrays():
    empty = np.array([])

    assert optimal_threshold(empty, empty.astype(np.int64)) == optimal_threshold([], [])
