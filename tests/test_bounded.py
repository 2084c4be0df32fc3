# SPDX-License-Identifier: Apache-2.0
"""Bounded memory: the threshold costs no more than is said, and no threshold costs less."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest
from benchmarks import bounded as bounded_quality
from benchmarks import bounded_designs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import limen
from limen import (
    BoundedCalibrator,
    BoundedCut,
    BoundedThreshold,
    Grouped,
    OnlineCalibrator,
    OnlineCut,
    OnlineThreshold,
)
from limen.model import Model

LONG = bool(os.environ.get("LIMEN_THOROUGH"))
SCORES = st.one_of(
    st.floats(-4, 4),
    st.integers(-6, 6).map(float),
    st.sampled_from([math.inf, -math.inf, 0.0, -0.0, 5e-324]),
)
WEIGHTS = st.sampled_from([1, 1, 1, 2, 7, 0.5, 0.125])


def require_certificate(bounded: Any, exact: Any) -> None:
    """What is said of the threshold holds, by an exact model of the same samples."""
    bounded._check()
    assert len(bounded) == len(exact)
    assert bounded._distinct() <= bounded.capacity
    assert 0 <= bounded.loss_bound
    assert bounded.loss - bounded.loss_bound <= exact.loss <= bounded.loss
    cost = sum(
        above if score >= bounded.threshold else below
        for score, below, above in exact.samples_given
    )
    assert exact.loss <= cost <= bounded.loss


class Remembering:
    """An exact model that keeps its samples, so that any threshold can be priced."""

    def __init__(self, model: OnlineCut) -> None:
        self.model = model
        self.samples_given: list[tuple[float, float, float]] = []

    def __len__(self) -> int:
        return len(self.model)

    @property
    def loss(self) -> float:
        return self.model.loss

    def update(self, score: float, below: float, above: float) -> None:
        self.model.update(score, below, above)
        self.samples_given.append((score, below, above))

    def revert(self, at: int) -> tuple[float, float, float]:
        sample = self.samples_given.pop(at)
        self.model.revert(*sample)
        return sample


class BoundedSteps(RuleBasedStateMachine):
    """Random calls; an exact model beside."""

    def __init__(self) -> None:
        super().__init__()
        self.exact = Remembering(OnlineCut())
        self.bounded = OnlineCut(capacity=8)

    @rule(score=SCORES, label=st.booleans(), weight=WEIGHTS)
    def update(self, score: float, label: bool, weight: float) -> None:
        sample = (score, 3 * weight if label else 0, 0 if label else weight)
        self.exact.update(*sample)
        self.bounded.update(*sample)

    @rule(scores=st.lists(SCORES, min_size=1, max_size=30), upwards=st.booleans())
    def update_many(self, scores: list[float], upwards: bool) -> None:
        scores = sorted(scores) if upwards else scores
        below = [float(place % 2) for place in range(len(scores))]
        above = [float(place % 3 == 0) * 2 for place in range(len(scores))]
        self.bounded.update_many(scores, below, above)
        for sample in zip(scores, below, above, strict=True):
            if sample[1] or sample[2]:
                self.exact.update(*sample)

    @rule(draw=st.randoms(use_true_random=False))
    def revert(self, draw: random.Random) -> None:
        if self.exact.samples_given:
            self.bounded.revert(*self.exact.revert(draw.randrange(len(self.exact.samples_given))))

    @rule(scores=st.lists(SCORES, min_size=1, max_size=30))
    def merge(self, scores: list[float]) -> None:
        other = self.bounded.empty()
        for place, score in enumerate(scores):
            sample = (score, 2.0 * (place % 2), 1.0 - place % 2)
            other.update(*sample)
            self.exact.update(*sample)
        self.bounded.merge(other)

    @rule()
    def store(self) -> None:
        again = limen.from_bytes(self.bounded.to_bytes())
        assert again._state() == self.bounded._state()
        self.bounded = again

    @invariant()
    def certified(self) -> None:
        require_certificate(self.bounded, self.exact)


TestBoundedSteps = BoundedSteps.TestCase
TestBoundedSteps.settings = settings(
    max_examples=400 if LONG else 40, stateful_step_count=60, deadline=None
)


@pytest.mark.parametrize("costs", [{}, {"false_negative": 5, "unit": 0.01}])
def test_it_is_the_exact_model_while_distinct_scores_are_fewer_than_the_capacity(
    costs: dict[str, Any],
) -> None:
    draw = random.Random(1)
    exact, bounded = OnlineThreshold(**costs), BoundedThreshold(**costs, capacity=64)
    held: list[Any] = []
    for _ in range(1_000):
        if held and draw.random() < 0.4:
            sample = held.pop(draw.randrange(len(held)))
            exact.revert(*sample)
            bounded.revert(*sample)
        else:
            sample = (draw.randrange(63) / 8, draw.random() < 0.5, draw.choice([1, 2.25]))
            held.append(sample)
            exact.update(*sample)
            bounded.update(*sample)
        assert (bounded.optimum, bounded.loss_bound) == (exact.optimum, 0)


@pytest.mark.parametrize("shape", ["drawn", "ascending", "zigzag", "inward", "drift", "noise"])
@pytest.mark.parametrize("capacity", [64, 1024])
def test_the_bound_holds_on_streams_of_every_shape(shape: str, capacity: int) -> None:
    draw = np.random.default_rng(3)
    n = 4_000
    way = np.arange(n) / n
    labels = draw.random(n) < 0.3
    scores = {
        "drawn": draw.normal(labels, 1),
        "ascending": way,
        "zigzag": np.where(np.arange(n) % 2, way, -way),
        "inward": np.where(np.arange(n) % 2, way, 2 - way),
        "drift": draw.normal(labels, 1) + 3 * way,
        "noise": draw.random(n),
    }[shape]
    exact, bounded = OnlineThreshold(), BoundedThreshold(capacity=capacity)
    for first in range(0, n, 200):
        part = slice(first, first + 200)
        exact.update_many(scores[part], labels[part])
        bounded.update_many(scores[part], labels[part])
        bounded._check()
        seen_scores, seen_labels = scores[: first + 200], labels[: first + 200]
        wrong = (seen_scores >= bounded.threshold) != seen_labels
        assert bounded.loss - bounded.loss_bound <= exact.loss <= wrong.sum() <= bounded.loss


def test_one_by_one_and_in_batches_is_the_same() -> None:
    draw = np.random.default_rng(4)
    scores, labels = draw.random(3_000), draw.random(3_000) < 0.5
    one, many = OnlineThreshold(capacity=1024), OnlineThreshold(capacity=1024)
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        one.update(score, label)
    many.update_many(scores, labels)

    assert one._state() == many._state()


def test_a_batch_with_an_error_changes_nothing() -> None:
    model = OnlineThreshold(capacity=8)
    model.update_many([0.1, 0.2], [0, 1])
    before = model._state()

    with pytest.raises(limen.NotHeld):
        model.revert_many([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match="nan"):
        model.update_many([0.1, math.nan], [0, 1])
    with pytest.raises(OverflowError):
        model.update_many([0.3, 0.4], [1, 1], [1, 2**61])

    assert model._state() == before


def test_what_was_certainly_never_added_is_refused() -> None:
    model = OnlineThreshold(capacity=8)
    model.update(0.5, 1)

    for sample in ((0.4, 1), (0.5, 0), (0.6, 1)):
        with pytest.raises(limen.NotHeld):
            model.revert(*sample)
    assert len(model) == 1


@pytest.mark.parametrize("capacity", [7, 65_537, 0, -1, 64.0, "64", True])
def test_a_capacity_that_is_none_is_refused_with_the_limits(capacity: Any) -> None:
    with pytest.raises(ValueError, match="capacity must be a whole number from 8 to 65,536"):
        OnlineThreshold(capacity=capacity)
    with pytest.raises(ValueError, match="capacity must be a whole number from 8 to 65,536"):
        OnlineCut(capacity=capacity)
    with pytest.raises(ValueError, match="capacity must be a whole number from 8 to 65,536"):
        OnlineCalibrator(capacity=capacity)


def test_a_capacity_makes_the_bounded_model_and_none_the_exact_one() -> None:
    assert type(OnlineThreshold(capacity=8)) is BoundedThreshold
    assert type(OnlineCut(capacity=8)) is BoundedCut
    assert type(OnlineCalibrator(capacity=8)) is BoundedCalibrator
    assert type(OnlineThreshold(capacity=None)) is OnlineThreshold
    assert isinstance(OnlineThreshold(capacity=8), Model)
    assert OnlineThreshold(capacity=8).settings["capacity"] == 8


def test_copies_pickles_and_bytes_are_independent_and_equal() -> None:
    model = OnlineThreshold(capacity=8, false_negative=3)
    model.update_many(np.arange(100) % 37 / 37, np.arange(100) % 3 == 0)
    for again in (
        model.copy(),
        pickle.loads(pickle.dumps(model)),
        limen.from_bytes(model.to_bytes()),
    ):
        assert again._state() == model._state()
        again.update(0.5, 1)
        assert again._state() != model._state()


def test_models_of_other_capacities_do_not_merge() -> None:
    one, other = OnlineThreshold(capacity=8), OnlineThreshold(capacity=16)

    with pytest.raises(ValueError, match="capacity is 8 here and 16 there"):
        one.merge(other)
    with pytest.raises(TypeError, match="cannot merge"):
        one.merge(OnlineThreshold())


def test_groups_take_a_bounded_model() -> None:
    shops = Grouped(OnlineThreshold(capacity=8))
    keys = [f"shop {place % 5}" for place in range(500)]
    draw = np.random.default_rng(6)
    shops.update_many(keys, draw.random(500), draw.random(500) < 0.5)

    for key in set(keys):
        model = shops.model(key)
        assert (len(model), model.capacity) == (100, 8)
        assert model._distinct() <= 8


@pytest.mark.parametrize(
    "remember", [lambda model: limen.LastN(model, 10), lambda model: limen.LastPeriod(model, 10)]
)
def test_windows_refuse_a_bounded_model_with_the_reason_and_the_way_out(remember: Any) -> None:
    for model in (OnlineThreshold(capacity=8), OnlineCut(capacity=8)):
        with pytest.raises(TypeError, match=r"widens the bound .* Use Fading"):
            remember(model)
        model.merge(model.empty())  # it belongs to nobody


def test_what_would_need_every_score_is_refused_with_the_reason() -> None:
    for model in (OnlineThreshold(capacity=8), OnlineCalibrator(capacity=8)):
        for name in ("curve", "recommended", "probability"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match="without a capacity"):
                getattr(model, name)
        with pytest.raises(AttributeError, match=r"no attribute 'wrong'\.$"):
            model.wrong  # noqa: B018
    with pytest.raises(TypeError, match="a calibrator with a capacity cannot be in a window"):
        limen.Ledger(OnlineCalibrator(capacity=8))


def test_types_say_which_model_a_capacity_makes() -> None:
    assert_type(OnlineThreshold(capacity=8), BoundedThreshold)
    assert_type(OnlineCut(capacity=8), BoundedCut)
    assert_type(OnlineCalibrator(capacity=8), BoundedCalibrator)
    assert_type(OnlineThreshold(), OnlineThreshold)


class LedgerSteps(RuleBasedStateMachine):
    """Ledgers over bounded models, with weights that stay and weights that fade by whole numbers.

    A half-life of 1 and whole times make every weight a power of two, so that fractions are exact.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stays = limen.Ledger(OnlineThreshold(false_negative=3, capacity=8))
        fading = limen.Fading(OnlineThreshold(false_negative=3, capacity=8), 1, by="time")
        self.fades = limen.Ledger(fading)
        self.known: dict[int, tuple[float, bool, int]] = {}
        self.clock = self.ids = 0

    @property
    def ledgers(self) -> tuple[limen.Ledger, limen.Ledger]:
        return self.stays, self.fades

    @rule(
        samples=st.lists(st.tuples(SCORES, st.booleans(), st.integers(0, 9)), max_size=12),
        ahead=st.integers(0, 4),
    )
    def add(self, samples: list[tuple[float, bool, int]], ahead: int) -> None:
        self.clock += ahead
        for ledger in self.ledgers:
            ledger.advance(self.clock)
        for score, label, late in samples:
            time = self.clock - (late if late > 6 and self.known else 0)
            self.ids += 1
            for ledger in self.ledgers:
                ledger.score(self.ids, score, time=time)
                ledger.label(self.ids, label)
            self.known[self.ids] = (score, label, time)

    @rule(draw=st.randoms(use_true_random=False), labels=st.lists(st.booleans(), max_size=20))
    def add_many(self, draw: random.Random, labels: list[bool]) -> None:
        ids = [self.ids + 1 + place for place in range(len(labels))]
        scores = [draw.choice([draw.random(), draw.randrange(5) / 4]) for _ in labels]
        self.ids += len(labels)
        for ledger in self.ledgers:
            ledger.score_many(ids, scores, times=[self.clock] * len(ids))
            ledger.label_many(ids, labels)
        for each, score, label in zip(ids, scores, labels, strict=True):
            self.known[each] = (score, label, self.clock)

    @rule(draw=st.randoms(use_true_random=False))
    def correct(self, draw: random.Random) -> None:
        if self.known:
            which = draw.choice(sorted(self.known))
            score, label, time = self.known[which]
            self.known[which] = (score, not label, time)
            for ledger in self.ledgers:
                ledger.label(which, not label)

    @rule(draw=st.randoms(use_true_random=False))
    def forget(self, draw: random.Random) -> None:
        if self.known:
            which = draw.choice(sorted(self.known))
            del self.known[which]
            for ledger in self.ledgers:
                assert ledger.forget(which)

    @rule()
    def store(self) -> None:
        self.stays, self.fades = (limen.from_bytes(each.to_bytes()) for each in self.ledgers)

    @invariant()
    def certified(self) -> None:
        for ledger in self.ledgers:
            ledger._check()
            fades = ledger is self.fades
            samples = [
                (score, label, Fraction(1, 2 ** (self.clock - time)) if fades else Fraction(1))
                for score, label, time in self.known.values()
            ]

            def loss(threshold: float, samples: Any = samples) -> Fraction:
                return sum(
                    (weight * (3 if label else 1))
                    for score, label, weight in samples
                    if (score >= threshold) != label
                ) + Fraction(0)

            cuts = {math.nan, *(score for score, _, _ in samples)}
            best = min(loss(cut) for cut in cuts)
            paid = loss(ledger.threshold)
            # Sums are exact; they are read as doubles.
            close = Fraction(1, 10**12) * (1 + sum(weight for _, _, weight in samples))
            assert ledger.loss - ledger.loss_bound <= best + close
            assert best <= paid <= Fraction(ledger.loss) + close


TestLedgerSteps = LedgerSteps.TestCase
TestLedgerSteps.settings = settings(
    max_examples=200 if LONG else 20, stateful_step_count=30, deadline=None
)


class CalibratorSteps(RuleBasedStateMachine):
    """A bounded calibrator, an exact one beside."""

    def __init__(self) -> None:
        super().__init__()
        self.exact, self.bounded = OnlineCalibrator(), OnlineCalibrator(capacity=8)
        self.held: list[tuple[float, bool, float]] = []

    @rule(samples=st.lists(st.tuples(SCORES, st.booleans(), WEIGHTS), max_size=20))
    def update(self, samples: list[tuple[float, bool, float]]) -> None:
        for model in (self.exact, self.bounded):
            if len(samples) % 2:
                for sample in samples:
                    model.update(*sample)
            elif samples:
                model.update_many(*zip(*samples, strict=True))
        self.held += samples

    @rule(draw=st.randoms(use_true_random=False))
    def revert(self, draw: random.Random) -> None:
        if self.held:
            sample = self.held.pop(draw.randrange(len(self.held)))
            for model in (self.exact, self.bounded):
                model.revert(*sample)

    @rule(samples=st.lists(st.tuples(SCORES, st.booleans(), WEIGHTS), min_size=1, max_size=20))
    def merge(self, samples: list[tuple[float, bool, float]]) -> None:
        for model in (self.exact, self.bounded):
            other = model.empty()
            other.update_many(*zip(*samples, strict=True))
            model.merge(other)
        self.held += samples

    @rule()
    def store(self) -> None:
        again = limen.from_bytes(self.bounded.to_bytes())
        assert again._state() == self.bounded._state()
        self.bounded = again

    @invariant()
    def certified(self) -> None:
        self.bounded._check()
        assert len(self.bounded) == len(self.exact)
        assert self.bounded._distinct() <= 8
        for costs in ((1, 1), (1, 7), (2.5, 1), (1, 1000)):
            named = dict(zip(("false_positive", "false_negative"), costs, strict=True))
            offered, bound = self.bounded.optimum(**named), self.bounded.loss_bound(**named)
            best = self.exact.optimum(**named)
            paid = sum(
                weight * costs[label]
                for score, label, weight in self.held
                if (score >= offered.threshold) != label
            )
            assert paid == offered.loss
            assert offered.loss - bound <= best.loss <= offered.loss
            assert repr(self.bounded.threshold(**named)) == repr(offered.threshold)
            if len({score + 0.0 for score, _, _ in self.held}) < 8 and not self.widened():
                assert (offered, bound) == (best, 0)

    def widened(self) -> bool:
        return self.bounded._state()[24:32] != bytes(8)


TestCalibratorSteps = CalibratorSteps.TestCase
TestCalibratorSteps.settings = settings(
    max_examples=200 if LONG else 25, stateful_step_count=30, deadline=None
)


def test_the_tables_of_the_page_are_those_of_the_raw_results() -> None:
    root = Path(__file__).parents[1]
    raw = json.loads((root / "benchmarks/results/bounded/quality.json").read_text())

    page = (root / "docs/bounded.md").read_text()
    assert "\n".join(bounded_quality.table(raw["rows"])) in page
    rows = json.loads(bounded_designs.RESULT.read_text())["rows"]
    assert "\n".join(bounded_designs.table(rows)) in page
    said = {1_024: (0.78, 4, 7), 4_096: (0.67, 5, 11)}  # of a grid beside the runs
    for capacity, (ratio, wider, narrower) in said.items():
        found = bounded_designs.beside(rows, capacity)
        assert (round(found[0], 2), *found[1:]) == (ratio, wider, narrower)


def test_an_empty_model_takes_what_another_holds() -> None:
    """Also as many scores as there is room for, which once never ended."""
    random = np.random.default_rng(6)
    for samples in (*range(1, 20), 500):
        scores = random.random(samples)
        labels = (random.random(samples) < scores).astype(int)
        exact = limen.optimal_threshold(scores, labels)
        full, empty = (limen.OnlineThreshold(capacity=8) for _ in range(2))
        for sample in zip(scores.tolist(), labels.tolist(), strict=True):
            full.update(*sample)
        empty.merge(full)
        loss = np.count_nonzero((scores >= empty.threshold) != labels)

        assert samples == len(empty)
        assert exact.loss <= loss <= exact.loss + empty.loss_bound


@pytest.mark.parametrize("weight", [1, 2**50, 0.125])
def test_merges_of_every_size_around_the_capacity_hold_at_the_ends_of_all_numbers(
    weight: float,
) -> None:
    """Extremes, neighbours and equal scores; into empty models, full ones, and emptied ones."""
    ends = [math.inf, 1.7976931348623157e308, 1.0, 1 + 2**-52, 5e-324, 1e-323]
    scores = [*ends, 0.0, -0.0, *(-each for each in ends), *(place / 8 for place in range(30))]
    draw = random.Random(5)
    for held, given in [(a, b) for a in (0, 1, 7, 8, 9, 40) for b in (0, 1, 6, 7, 8, 9, 16, 40)]:
        exact, bounded = Remembering(OnlineCut()), OnlineCut(capacity=8)
        other = bounded.empty()
        for model, count in ((bounded, held), (other, given)):
            for _ in range(count):
                label = draw.random() < 0.5
                sample = (draw.choice(scores), weight * label, weight * (not label))
                exact.update(*sample)
                model.update(*sample)
        bounded.merge(other)
        require_certificate(bounded, exact)
        bounded = limen.from_bytes(bounded.to_bytes()).copy()
        while exact.samples_given:
            bounded.revert(*exact.revert(draw.randrange(len(exact.samples_given))))
            require_certificate(bounded, exact)
        assert (bounded.loss, bounded.loss_bound, bounded._distinct()) == (0, 0, 0)
        bounded.merge(other)
        assert len(bounded) == given
