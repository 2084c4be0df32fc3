# SPDX-License-Identifier: Apache-2.0
"""More rows than memory holds: counts by bucket, few rows, the answer of all of them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import EFFORT

import limen
from limen import narrowing

TINY = {"most": 20, "buckets": 32, "cells": 4}

GRID = st.integers(0, 40).map(lambda place: place / 8)
ENDS = st.sampled_from([-math.inf, math.inf, -1.7e308, 1.7e308, 1e-300, 5e-324, -0.0, 0.1])
SCORES = GRID | GRID | ENDS | st.floats(allow_nan=False)
ROWS = st.lists(st.tuples(SCORES, st.integers(0, 1), st.integers(0, 3)), max_size=60)


def pieces_of(columns, size: int = 7):
    """Read columns in pieces of a few rows."""
    return lambda: (
        tuple(column[at : at + size] for column in columns)
        for at in range(0, len(columns[0]), size)
    )


def columns_of(rows):
    scores, labels, weights = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(scores, float), np.array(labels, np.uint8), np.array(weights, np.int64)


def same_fit(one: limen.Blocks, other: limen.Blocks) -> bool:
    names = ("first", "last", "counts", "probabilities", "positive", "weight")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def shapes():
    """Scores as they come: even, saturated at both ends, over all exponents, few, sorted."""
    random = np.random.default_rng(8)
    even = random.random(5_000)
    logits = random.normal(0, 40, 5_000)
    near_one = np.nextafter(1.0, 0) - random.integers(0, 40, 5_000) * 2.0**-53
    return {
        "even": even,
        "sorted": np.sort(even),
        "saturated": 1 / (1 + np.exp(-logits)),
        "exponents": np.exp(random.normal(0, 150, 5_000)) * random.choice([-1, 1], 5_000),
        "few": random.integers(0, 9, 5_000) / 8,
        "one": np.full(5_000, 0.25),
        "neighbours": near_one,
        "huge": random.choice([-1.0, 1.0], 5_000) * (1.7e308 - even * 1e308),
        "tiny": random.integers(-50, 50, 5_000) * 5e-324,
        "infinite": np.where(even < 0.3, -math.inf, np.where(even > 0.7, math.inf, even)),
    }


SHAPES = shapes()


@settings(max_examples=300)
@given(ROWS, st.integers(1, 3), st.integers(1, 3), st.integers(0, 12), st.integers(2, 40))
def test_pieces_give_the_cheapest_cut_of_all(rows, positive, negative, most, buckets) -> None:
    columns = columns_of(rows)
    costs = {"false_positive": positive, "false_negative": negative}
    tuning = {"most": most, "buckets": buckets, "cells": 4}
    found = narrowing.optimal_threshold(narrowing.Chunks(pieces_of(columns)), **costs, **tuning)

    assert found == limen.optimal_threshold(*columns[:2], weights=columns[2], **costs)


@settings(max_examples=300)
@given(ROWS, st.integers(0, 12), st.integers(2, 40))
def test_pieces_give_the_isotonic_fit_of_all(rows, most, buckets) -> None:
    columns = columns_of(rows)
    tuning = {"most": most, "buckets": buckets, "cells": 4, "finer": None}
    found = narrowing.isotonic(narrowing.Chunks(pieces_of(columns)), **tuning)

    assert same_fit(limen.isotonic(*columns[:2], weights=columns[2]), found)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ratio", [0.1, 1, 7])
def test_every_shape_of_scores_gives_the_same_answers(shape, ratio) -> None:
    scores = SHAPES[shape]
    labels = (np.random.default_rng(3).random(len(scores)) < 0.5).astype(np.uint8)
    labels |= scores > np.median(scores)
    source = narrowing.Chunks(pieces_of((scores, labels), 1000))
    found = narrowing.optimal_threshold(source, false_negative=ratio, **TINY)
    fit = narrowing.isotonic(narrowing.Chunks(pieces_of((scores, labels), 1000)), **TINY)

    assert found == limen.optimal_threshold(scores, labels, false_negative=ratio)
    assert same_fit(limen.isotonic(scores, labels), fit)


def test_few_rows_are_fetched_where_the_cheapest_cuts_lie_at_both_ends() -> None:
    at_ends = np.concatenate([np.linspace(0, 1e-3, 50_000), np.linspace(1 - 1e-3, 1, 50_000)])
    shares = np.tile(np.linspace(0, 1, 50_000), 2)
    labels = (np.random.default_rng(2).random(100_000) < shares).astype(np.uint8)
    source = narrowing.Chunks(pieces_of((at_ends, labels), 10_000))
    rule = narrowing.cheapest_cuts
    found = narrowing.search(source, lambda each: rule(each, 1, 1), most=5_000, buckets=64)

    assert len(found.near.scores) <= 5_000
    assert len(found.rest) <= 2_000
    assert 100_000 == found.rows


def test_rows_that_change_between_two_readings_are_noticed() -> None:
    random = np.random.default_rng(0)
    labels = np.tile(np.array([0, 1], np.uint8), 500)
    changing = narrowing.Chunks(lambda: [(random.random(1000), labels)])
    with pytest.raises(RuntimeError, match="were others when they were read again"):
        narrowing.optimal_threshold(changing, most=10)


@pytest.mark.parametrize("wrong", ["unordered", "constant"])
def test_an_engine_whose_map_is_wrong_costs_time_and_never_the_answer(wrong) -> None:
    class WrongRoot:
        def __init__(self, root) -> None:
            self.root = root

        def numbers(self, scores):
            off = (scores * 1e6).astype(int) % 97 == 0
            return (
                np.zeros(len(scores), int)
                if wrong == "constant"
                else self.root.numbers(scores) + off
            )

    class Wrong(narrowing.Chunks):
        def count(self, root):
            return super().count(WrongRoot(root))

    scores = SHAPES["even"]
    labels = (np.random.default_rng(5).random(len(scores)) < scores).astype(np.uint8)
    found = narrowing.optimal_threshold(Wrong(pieces_of((scores, labels), 500)), **TINY)

    assert found == limen.optimal_threshold(scores, labels)


def test_partitions_of_dask_are_pieces() -> None:
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    scores = SHAPES["saturated"]
    labels = (np.random.default_rng(5).random(len(scores)) < scores).astype(np.uint8)
    frame = frames.from_pandas(pandas.DataFrame({"score": scores, "label": labels}), npartitions=5)

    def pieces():
        return ((p.score, p.label) for p in (part.compute() for part in frame.partitions))

    found = narrowing.optimal_threshold(narrowing.Chunks(pieces), false_negative=5, **TINY)

    assert found == limen.optimal_threshold(scores, labels, false_negative=5)


RAY = """
import numpy as np, pyarrow as pa, ray
import limen
from limen import narrowing
from test_narrowing import SHAPES, TINY

scores = SHAPES["saturated"]
labels = (np.random.default_rng(5).random(len(scores)) < scores).astype(np.uint8)
table = pa.table({"score": scores, "label": labels})
ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
dataset = ray.data.from_arrow([table.slice(at, 1_000) for at in range(0, len(scores), 1_000)])
pieces = lambda: ((b["score"], b["label"]) for b in dataset.iter_batches(batch_format="numpy"))
found = narrowing.optimal_threshold(narrowing.Chunks(pieces), false_negative=5, **TINY)
assert found == limen.optimal_threshold(scores, labels, false_negative=5)
ray.shutdown()
print("the same")
"""


@pytest.mark.skipif(EFFORT == 1, reason="Ray takes long to start: LIMEN_THOROUGH=1")
def test_batches_of_ray_are_pieces() -> None:
    pytest.importorskip("ray")
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", RAY], capture_output=True, text=True, env=path)

    assert done.stdout.endswith("the same\n"), done.stderr


def test_weights_in_pieces_are_whole_numbers_and_stand_for_a_unit() -> None:
    source = narrowing.Chunks(lambda: [([0.5, 0.25], [1, 1], [3, 1]), ([0.75], [0], [2])])
    found = narrowing.optimal_threshold(source, unit=limen.units.exact_unit(0.01))
    with pytest.raises(ValueError, match="whole numbers of at least 0"):
        narrowing.optimal_threshold(narrowing.Chunks(lambda: [([0.5], [1], [0.5])]))

    assert found == limen.optimal_threshold(
        [0.5, 0.25, 0.75], [1, 1, 0], weights=[0.03, 0.01, 0.02], unit=0.01
    )


def test_any_losses_have_the_cheapest_cut_of_all() -> None:
    random = np.random.default_rng(4)
    scores = random.integers(0, 300, 2_000) / 300
    below, above = random.integers(-3, 6, 2_000), random.integers(-3, 6, 2_000)
    z = above - below

    class Losses(narrowing.Chunks):
        least = int(np.minimum(below, above).sum())

        def _pieces(self):
            yield narrowing.Rows(scores, (z < 0).astype(np.uint8), np.abs(z))

    found = narrowing.optimal_cut(Losses(lambda: ()), **TINY)

    assert found == limen.optimal_cut(scores, below, above)


def test_a_recommendation_of_rows_that_memory_holds_is_that_of_limen() -> None:
    scores = SHAPES["few"]
    labels = (np.random.default_rng(9).random(len(scores)) < scores).astype(np.uint8)
    for each in (scores, SHAPES["even"]):
        source = narrowing.Chunks(pieces_of((each, labels), 1000))
        found = narrowing.recommend(source, false_negative=3, current=0.4, buckets=64, cells=8)

        assert found == limen.recommend(each, labels, false_negative=3, current=0.4)
        assert found.cost() == limen.recommend(each, labels, false_negative=3).cost()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.95])
def test_a_recommendation_by_counts_differs_by_a_few_buckets(share) -> None:
    random = np.random.default_rng(10)
    scores = random.random(200_000)
    labels = (random.random(200_000) < scores).astype(np.uint8)
    costs = {"false_positive": 1, "false_negative": (1 - share) / share}
    source = narrowing.Chunks(pieces_of((scores, labels), 50_000))
    found = narrowing.recommend(source, most=20_000, buckets=8_192, current=0.05, **costs)
    expected = limen.recommend(scores, labels, current=0.05, **costs)

    assert (expected.optimum, expected.samples) == (found.optimum, found.samples)
    assert expected.keep == found.keep
    assert np.allclose(expected.interval, found.interval, rtol=0, atol=8 / 8_192)
    low, high = expected.interval  # the maps follow the samples in their bins, of whole buckets
    assert math.isclose(expected.threshold, found.threshold, abs_tol=(high - low) / 10)
    assert math.isclose(expected.regret, found.regret, rel_tol=0.1)
    for refused in (found.cost, lambda: found.distance(0.5), lambda: found.rules_out(0.5)):
        with pytest.raises(ValueError, match="only counts are held"):
            refused()
