# SPDX-License-Identifier: Apache-2.0
"""What is asked for: one table of names, checked at the door, one place that finds the cut."""

from __future__ import annotations

import inspect
import math
import pickle
import random
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen import OnlineCalibrator, losses, metrics
from limen.aim import Aim
from limen.best_cut import Demands, demands_of
from limen.names import DEMANDS, METRIC_NAMES, OUTCOMES
from limen.samples import Samples


def drawn(seed: int, rows: int = 14) -> tuple[list[float], list[int], list[int]]:
    source = random.Random(seed)
    scores = [source.choice((0.1, 0.2, 0.3, 0.5, 0.8, 0.9)) for _ in range(rows)]
    labels = [0, 1, *(source.randrange(2) for _ in range(rows - 2))]
    return scores, labels, [source.randrange(1, 4) for _ in range(rows)]


def cheapest(scores: list[float], below: list[Any], above: list[Any]) -> tuple[float, Any]:
    """The lowest score answered 1 at the highest of the cheapest cuts, and what it costs."""
    found = {
        cut: sum(
            high if score >= cut else low
            for score, low, high in zip(scores, below, above, strict=True)
        )
        for cut in (*sorted(set(scores)), math.inf)
    }
    lowest = min(found.values())
    return max(cut for cut, loss in found.items() if loss == lowest), lowest


class TestNames:
    def test_demands_of_signatures_are_those_of_the_table(self) -> None:
        assert list(Demands.__annotations__) == list(DEMANDS)
        options = inspect.signature(OnlineCalibrator.best).parameters
        assert [name for name in options if name.startswith(("min_", "max_"))] == list(DEMANDS)

    def test_the_classifier_takes_every_demand_that_is_a_share(self) -> None:
        ours = pytest.importorskip("limen.sklearn").ThresholdClassifier
        named = [name for name in inspect.signature(ours).parameters if name in DEMANDS]

        assert named == [name for name, bound in DEMANDS.items() if not bound.counts]

    def test_the_command_line_has_an_option_for_every_outcome_and_demand(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "limen", "fit", "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        options = set(re.findall(r"--[a-z-]+", done.stdout))

        for name in (*OUTCOMES, *DEMANDS, *(f"{outcome}_column" for outcome in OUTCOMES)):
            assert f"--{name.replace('_', '-')}" in options
        assert set(METRIC_NAMES) <= set(re.findall(r"\w+", done.stdout))

    @pytest.mark.parametrize("name", [*DEMANDS, *OUTCOMES, *METRIC_NAMES])
    def test_every_name_stands_in_the_documentation(self, name: str) -> None:
        pages = Path(__file__).parent.parent / "docs"
        if not pages.is_dir():
            pytest.skip("the documentation is not here")
        dashed = "--" + name.replace("_", "-")

        assert any(
            name in text or dashed in text for text in (p.read_text() for p in pages.glob("*.md"))
        )

    def test_costs_of_signatures_are_outcomes_of_the_table(self) -> None:
        for function in (Aim.of, limen.report):
            assert set(OUTCOMES) <= set(inspect.signature(function).parameters)
        for function in (limen.optimal_threshold, limen.recommend, limen.by_group):
            named = set(inspect.signature(function).parameters) & set(OUTCOMES)
            assert named == {"false_positive", "false_negative"}

    def test_every_demand_has_a_rate_and_reads_as_its_name(self) -> None:
        for name, bound in DEMANDS.items():
            assert hasattr(metrics.Confusion, bound.rate)
            assert bound.is_floor == name.startswith("min_")
            (demand,) = demands_of(**{name: 1})
            assert (demand.name, demand.rate) == (name, bound.rate)
            assert bound.counts == (demand.count is not None)

    def test_every_metric_of_the_table_is_one_of_limen(self) -> None:
        for name in METRIC_NAMES:
            assert Aim.of(metric=name).metric is getattr(metrics, name)
            assert Aim.of(metric=name.upper()).name == name

    @pytest.mark.parametrize(
        ("name", "made"),
        [
            ("f2", metrics.fbeta(2)),
            ("f0.5", metrics.fbeta(0.5)),
            ("f1.0", metrics.f1),
            ("net_benefit=0.2", metrics.net_benefit(0.2)),
        ],
    )
    def test_a_name_as_one_types_it_may_end_in_a_number(
        self, name: str, made: metrics.Metric
    ) -> None:
        aim = Aim.of(metric=metrics.from_text(name))
        cells = 3, 1, 2, 4

        assert isinstance(aim.metric, metrics.Metric)
        assert (aim.name, aim.metric(*cells)) == (name, made(*cells))
        assert aim.metric.ratio(*cells) == made.ratio(*cells)
        again = pickle.loads(pickle.dumps(aim.metric))
        assert (again.name, again(*cells)) == (name, made(*cells))

    @pytest.mark.parametrize(
        ("given", "error", "words"),
        [
            ({"min_precison": 0.9}, TypeError, "Did you mean 'min_precision'?"),
            ({"max_positve_rate": 0.9}, TypeError, "Did you mean 'max_positive_rate'?"),
            ({"sample_weight": [1]}, TypeError, "got 'sample_weight'"),  # a column is no aim
            ({"metric": "balanced_acuracy"}, ValueError, "Did you mean 'balanced_accuracy'?"),
            ({"metric": "auc"}, ValueError, "got 'auc'.$"),
        ],
    )
    def test_a_name_that_is_nearly_right_is_recognised(
        self, given: Any, error: Any, words: str
    ) -> None:
        with pytest.raises(error, match=words.replace("?", r"\?")):
            Aim.of(**given)


class TestOf:
    @pytest.mark.parametrize(
        ("given", "error", "words"),
        [
            ({"false_positive": 0}, ValueError, "false_positive must be a positive"),
            ({"false_negative": None}, ValueError, "false_negative must be a positive"),
            ({"false_negative": None, "metric": "f1"}, ValueError, "two aims"),
            ({"false_negative": None, "min_recall": 1}, ValueError, "false_negative must be a pos"),
            ({"false_negative": None, "false_positive": [1]}, TypeError, "is not a number"),
            ({"false_negative": "5"}, ValueError, "false_negative must be a positive"),
            ({"false_negative": True}, ValueError, "false_negative must be a positive"),
            ({"unit": 0}, ValueError, "unit must be a positive"),
            ({"unit": -1, "metric": "f1"}, ValueError, "unit must be a positive"),
            ({"metric": "f1", "false_negative": 2}, ValueError, "two aims"),
            ({"metric": "f1", "false_negative": [1, 2]}, ValueError, "two aims"),
            ({"metric": "f1", "true_positive": -1}, ValueError, "two aims"),
            ({"metric": 3}, TypeError, "metric must be a name"),
            ({"min_recall": 2}, ValueError, "min_recall must be a share"),
            ({"min_recall": 0.5, "true_positive": -1}, ValueError, "demands are known with one"),
            ({"min_recall": 0.5, "false_negative": [1]}, ValueError, "demands are known with one"),
            ({"prevalence": 1}, ValueError, "prevalence must lie"),
            ({"prevalence": "x"}, ValueError, "prevalence must be a share"),
            ({"prevalence": 0.5, "false_negative": [1]}, ValueError, "prevalence works only"),
            ({"false_negative": [1, -2]}, ValueError, r"false_negative\[1\] is -2; a mistake"),
            ({"false_negative": [1, math.nan]}, ValueError, r"false_negative\[1\] is nan"),
            ({"false_negative": [1], "false_positive": -2}, ValueError, "false_positive is -2"),
            ({"false_negative": 1, "true_positive": 2}, ValueError, "false_negative must be a pos"),
            ({"true_positive": [math.inf]}, ValueError, r"true_positive\[0\] is inf"),
        ],
    )
    def test_what_does_not_fit_is_refused_at_the_door(
        self, given: Any, error: Any, words: str
    ) -> None:
        with pytest.raises(error, match=words):
            Aim.of(**given)

    def test_one_cost_of_each_mistake_is_made_once(self) -> None:
        assert Aim.of(false_negative=5) is Aim.of(false_negative=5)
        assert Aim.of(false_negative=5) is not Aim.of(false_negative=5.0)

    @pytest.mark.parametrize("cost", [5, 0.1, Fraction(1, 3), Decimal("0.3"), np.float64(0.1)])
    def test_any_kind_of_number_is_one_cost(self, cost: Any) -> None:
        aim = Aim.of(false_negative=cost)

        assert not aim.by_row
        assert aim.parts is not None
        assert Fraction(aim.exact[1], aim.exact[0]) == Fraction(str(cost))

    @pytest.mark.parametrize("costs", [[1, 2], (1, 2), np.array([1, 2]), np.array([[1], [2]])])
    def test_any_kind_of_column_is_a_cost_of_each_sample(self, costs: Any) -> None:
        aim = Aim.of(false_negative=costs)

        assert aim.by_row == {"false_negative": "false_negative"}
        assert aim.costs["false_negative"].tolist() == [1, 2]
        assert aim.parts is None

    def test_gains_may_be_negative_and_are_subtracted_exactly(self) -> None:
        aim = Aim.of(false_negative=0.2, true_positive=-0.1, true_negative=0)

        assert aim.priced
        assert aim.mistakes == {"false_positive": 1, "false_negative": Fraction(3, 10)}
        assert aim.exact == (10, 3, Fraction(1, 10))
        assert Aim.of(false_negative=[-1.0, 2.0], true_positive=0).by_row

    def test_columns_that_are_read_later(self) -> None:
        aim = Aim.of(by_row={"false_negative": "amount"}, true_positive=0)

        assert aim.facts() == {
            "false_positive": 1.0,
            "false_negative": "amount",
            "true_positive": 0.0,
            "true_negative": 0.0,
        }
        read = aim.with_rows({"false_negative": [3, -1]})
        assert read.facts() == aim.facts()
        assert read.costs["false_negative"].tolist() == [3, -1]
        assert read.rows([1]).costs["false_negative"].tolist() == [-1]
        assert Aim.of().rows([1]) is Aim.of()
        with pytest.raises(ValueError, match=r"false_negative\[0\] is nan"):
            aim.with_rows({"false_negative": [math.nan]})

    def test_facts_are_ready_for_json(self) -> None:
        assert Aim.of(false_negative=5).facts() == {"false_positive": 1.0, "false_negative": 5.0}
        bounds: Any = {"min_recall": Fraction(1, 2), "max_positives": 3, "min_precision": None}
        found = Aim.of(metric=metrics.from_text("f2"), **bounds)
        assert found.facts() == {"metric": "f2", "min_recall": 0.5, "max_positives": 3.0}
        assert Aim.of(min_recall=0.5).facts() == {
            "false_positive": 1.0,
            "false_negative": 1.0,
            "min_recall": 0.5,
        }

    def test_by_cost_is_the_lowest_cost_alone(self) -> None:
        assert Aim.of(false_negative=[1]).by_cost
        assert not Aim.of(min_recall=0.5).by_cost
        assert not Aim.of(metric="f1").by_cost
        assert Aim.of(min_recall=None).by_cost

    def test_a_cost_that_no_sample_has_may_be_infinite(self) -> None:
        samples = Samples.of([1.0, 2.0], [0, 1])

        assert Aim.of(false_negative=[math.inf, 5]).best(samples).loss == 0
        with pytest.raises(ValueError, match="finite"):
            Aim.of(false_negative=[1, math.inf]).best(samples)

    def test_demands_of_none_make_a_best_cut_of_a_search(self) -> None:
        best = limen.optimal_threshold([1.0, 2.0], [0, 1], min_recall=None)

        assert isinstance(best, limen.BestCut)
        assert best.value == 0

    def test_a_function_has_its_own_name(self) -> None:
        def gain(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
            return tp - fp

        assert Aim.of(metric=gain).name == "gain"


class TestBest:
    @pytest.mark.parametrize("direction", [">=", "<="])
    @pytest.mark.parametrize("seed", range(30))
    def test_costs_of_four_outcomes_by_brute_force(self, seed: int, direction: Any) -> None:
        scores, labels, weights = drawn(seed)
        source = random.Random(seed)
        prices: dict[str, Any] = {
            "false_positive": 7,
            "false_negative": 9,
            "true_positive": source.choice((0, -2, 3)),
            "true_negative": source.choice((0, -1, 2)),
        }
        for outcome in prices:
            if source.random() < 0.3:
                prices[outcome] = [source.randrange(-5, 20) for _ in scores]
        each = {
            name: price if isinstance(price, list) else [price] * len(scores)
            for name, price in prices.items()
        }
        rows = list(zip(labels, weights, *each.values(), strict=True))
        below = [(fn if y else tn) * w for y, w, fp, fn, tp, tn in rows]
        above = [(tp if y else fp) * w for y, w, fp, fn, tp, tn in rows]
        cut, loss = cheapest(scores, below, above)

        aim = Aim.of(**prices)
        given = scores if direction == ">=" else [-score for score in scores]
        samples = Samples.of(given, labels, weights, direction)
        best = aim.best(samples)
        end = best.upper if direction == ">=" else best.lower
        assert (math.inf if end is None else abs(end), best.loss) == (cut, loss)
        assert best.direction == direction

        # The same by a model, and by labels and weights alone.
        model = aim.model()
        model.update_many(*aim.columns_of(samples))
        assert samples.present(aim.best_of(model)) == best
        reduced, plain = aim.reduced(samples)
        again = plain.best(reduced)
        assert (again.lower, again.upper) == (best.lower, best.upper)

    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize(
        "given",
        [
            {"false_negative": 3},
            {"false_negative": 3, "min_recall": 0.5},
            {"metric": "f1"},
            {"metric": "mcc", "max_positive_rate": 0.6},
            {"metric": "recall", "max_positives": 4},
            {"metric": lambda tp, fp, fn, tn: tp - 2 * fp},
        ],
    )
    def test_prevalence_is_weights_by_label(self, given: Any, seed: int) -> None:
        scores, labels, weights = drawn(seed)
        samples = Samples.of(scores, labels, weights)
        best = Aim.of(prevalence=0.2, **given).best(samples)

        zero, one = losses.at_prevalence(labels, 0.2, weights=weights)
        each = [w * (one if y else zero) for y, w in zip(labels, weights, strict=True)]
        unit = Fraction(1, math.lcm(*(Fraction(w).denominator for w in each)))
        weighted = Samples.of(scores, labels, [float(w) for w in each])
        expected = Aim.of(unit=unit, **given).best(weighted)
        assert (best.lower, best.upper) == (expected.lower, expected.upper)

    def test_demands_with_confidence_are_those_of_the_calibrator(self) -> None:
        source = np.random.default_rng(5)
        labels = source.integers(0, 2, 4000)
        scores = labels + source.normal(size=4000)
        aim = Aim.of(metric="recall", min_precision=0.8, confidence=0.95)
        calibrator = OnlineCalibrator()
        calibrator.update_many(scores, labels)

        best = aim.best(Samples.of(scores, labels))
        assert best == calibrator.best("recall", min_precision=0.8, confidence=0.95)
        careless = replace(aim, confidence=None).best(Samples.of(scores, labels))
        assert careless.threshold < best.threshold
        with pytest.raises(ValueError, match="confidence needs samples of weight 1"):
            replace(aim, prevalence=0.2).best(Samples.of(scores, labels))

    def test_what_no_cut_meets_is_refused_in_the_scores_given(self) -> None:
        samples = Samples.of([1.0, 2.0, 3.0], [0, 1, 0], direction="<=")

        with pytest.raises(limen.Infeasible) as refused:
            Aim.of(min_precision=0.9).best(samples)
        nearest = refused.value.nearest
        assert nearest.direction == "<="
        assert repr(nearest.threshold) in str(refused.value)

    def test_costs_must_be_as_many_as_samples(self) -> None:
        with pytest.raises(ValueError, match="labels has 2, false_negative has 3"):
            Aim.of(false_negative=[1, 2, 3]).best(Samples.of([1, 2], [0, 1]))
