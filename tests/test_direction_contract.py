# SPDX-License-Identifier: Apache-2.0
"""Direction "<=" says of scores x, mirrored, exactly what ">=" says of -x.

Of every model, window, ledger and group, after any updates, reverts, merges, copies and files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limen
from limen import Fading, Grouped, LastN, LastPeriod, Ledger
from limen import OnlineCalibrator as Calibrator
from limen import OnlineCut as Cut
from limen import OnlineThreshold as Threshold

SCORES = [-math.inf, -2.5, -1.0, -0.0, 0.0, 5e-324, 0.5, 0.75, 1.0, 3.0, math.inf]
COSTS: dict[str, Any] = {"false_positive": 2, "false_negative": 3}

MODELS: dict[str, Callable[[Any], Any]] = {
    "threshold": lambda direction: Threshold(**COSTS, direction=direction),
    "calibrator": lambda direction: Calibrator(direction=direction),
    "cut": lambda direction: Cut(direction=direction),
    "bounded threshold": lambda direction: Threshold(**COSTS, capacity=8, direction=direction),
    "bounded calibrator": lambda direction: Calibrator(capacity=8, direction=direction),
    "bounded cut": lambda direction: Cut(capacity=8, direction=direction),
}
MEMORIES: dict[str, Callable[[Any], Any]] = {
    "all": lambda model: model,
    "last n": lambda model: LastN(model, 7),
    "last period": lambda model: LastPeriod(model, 9),
    "fading": lambda model: Fading(model, 4),
    "fading by time": lambda model: Fading(model, 4, by="time"),
}
TIMED = ("last period", "fading by time")
PAIRS = [
    (model, memory)
    for model in MODELS
    for memory in MEMORIES
    if memory == "all"
    or not model.startswith("bounded")
    or (memory == "fading" and "cali" not in model)
]
pairs = pytest.mark.parametrize(("model", "memory"), PAIRS)

sample = st.tuples(st.sampled_from(SCORES), st.integers(0, 1), st.integers(1, 3))
samples = st.lists(sample, min_size=1, max_size=24)


class Told:
    """What is read from an object, turned to the other direction by `sign`."""

    def __init__(self, sign: int) -> None:
        self.sign = sign

    def number(self, found: float | None) -> float | None:
        return None if found is None else self.sign * found + 0.0

    def ends(self, low: float | None, high: float | None) -> list[float | None]:
        return [self.number(end) for end in (low, high)[:: self.sign]]

    def column(self, found: Any) -> list[float]:
        return [self.sign * each + 0.0 for each in found.tolist()[:: self.sign]]

    def cut(self, found: Any) -> Any:
        assert found.direction == (">=" if self.sign == 1 else "<=")
        worth = getattr(found, "loss", None), getattr(found, "value", None)
        return self.number(found.threshold), self.ends(found.lower, found.upper), worth

    def model(self, model: Any) -> dict[str, Any]:
        """Return all that a model or window answers; what it does not know is left out."""
        costs = COSTS if model.takes_costs else {}
        scores = [self.sign * score for score in SCORES]
        found: dict[str, Any] = {"samples": len(model)}
        if model.takes_costs:
            found["threshold"] = self.number(model.threshold(**costs))
            found["cut"] = self.cut(model.optimum(**costs))
        else:
            found |= {"threshold": self.number(model.threshold), "loss": model.loss}
            found["cut"] = self.cut(model.optimum)
        found["predict"] = (
            model.predict(scores, **costs).tolist(),
            model.predict(scores[4], **costs),
        )
        known = [name for name in _ANSWERS if hasattr(getattr(model, "model", model), name)]
        for name in known:
            found[name] = getattr(self, name)(model, costs, scores)
        return found

    def curve(self, model: Any, costs: Any, scores: Any) -> Any:
        curve = model.curve(**costs)
        return self.column(curve.thresholds), curve.losses.tolist()[:: self.sign]

    def interval(self, model: Any, costs: Any, scores: Any) -> Any:
        return self.ends(*model.interval(0.8, **costs))

    def keeps(self, model: Any, costs: Any, scores: Any) -> Any:
        return [model.keeps(score, confidence=0.8, **costs) for score in (*scores, math.nan)]

    def recommended(self, model: Any, costs: Any, scores: Any) -> Any:
        return self.number(model.recommended(**costs) if costs else model.recommended)

    def probability(self, model: Any, costs: Any, scores: Any) -> Any:
        one = [model.probability(score) for score in scores]
        return one, *(model.probability(scores, between=way).tolist() for way in ("step", "linear"))

    def probability_interval(self, model: Any, costs: Any, scores: Any) -> Any:
        low, high = model.probability_interval(scores)
        return low.tolist(), high.tolist(), model.probability_interval(scores[5])

    def confusion(self, model: Any, costs: Any, scores: Any) -> Any:
        return [model.confusion(score) for score in (*scores, math.nan)]

    def blocks(self, model: Any, costs: Any, scores: Any) -> Any:
        blocks = model.blocks()
        ends = (blocks.first, blocks.last)[:: self.sign]
        rest = blocks.probabilities, blocks.positive, blocks.weight, blocks.counts
        columns = [column.tolist()[:: self.sign] for column in rest]
        fit = blocks.probability(scores).tolist()
        return *map(self.column, ends), columns, blocks.fractions()[:: self.sign], fit

    def roc_hull(self, model: Any, costs: Any, scores: Any) -> Any:
        hull = model.roc_hull()
        weights = [getattr(hull, name).tolist()[:: self.sign] for name in ("tp", "fp", "fn", "tn")]
        return self.column(hull.thresholds), weights

    def best(self, model: Any, costs: Any, scores: Any) -> Any:
        found = [self.cut(model.best("f1")), self.cut(model.best("mcc"))]
        try:
            found.append(self.cut(model.best("recall", min_precision=0.75)))
        except limen.Infeasible as infeasible:
            found.append(self.cut(infeasible.nearest))
            found.append(repr(infeasible.nearest.threshold) in str(infeasible))
        return found

    def near_best(self, model: Any, costs: Any, scores: Any) -> Any:
        runs = model.near_best("accuracy", within=0.2)
        return [self.ends(*run) for run in runs[:: self.sign]]

    def review_band(self, model: Any, costs: Any, scores: Any) -> Any:
        bands = [model.review_band(asking=1, **COSTS)]
        if not isinstance(model, Fading):
            bands.append(model.review_band(asking=1, **COSTS, max_questions=2))
        return [
            (self.ends(band.low, band.high), band.loss, band.ask, band.predict(scores).tolist())
            for band in bands
        ]

    def groups(self, groups: Any, names: list[str]) -> dict[str, Any]:
        costs = COSTS if groups.model(()).takes_costs else {}
        scores = [self.sign * score for score in SCORES]
        found: dict[Any, Any] = {
            "thresholds": {
                path: self.number(each) for path, each in groups.thresholds(**costs).items()
            },
            "predict": groups.predict([names[0]] * len(scores), scores, **costs).tolist(),
            "one": groups.predict(names[0], scores[3], **costs),
        }
        for name in names:
            found[name] = self.cut(groups.optimum(name, **costs)), groups.count(name)
            found[name, "model"] = self.model(groups.model(name))
            if hasattr(groups.model(()), "interval"):
                found[name, "interval"] = self.ends(*groups.interval(name, confidence=0.8, **costs))
                found[name, "keeps"] = groups.keeps(name, scores[5], confidence=0.8, **costs)
        if hasattr(groups.model(()), "interval"):
            found["recommended"] = self.recommended_of(groups, names, costs)
        return found

    def recommended_of(self, groups: Any, names: list[str], costs: Any) -> Any:
        try:
            found = groups.recommended(**costs)
        except ValueError as few:
            return str(few)
        each = [found.recommendation(name) for name in names]
        return [
            (
                self.number(one.threshold),
                one.source,
                one.interval and self.ends(*one.interval),
                self.cut(one.optimum),
            )
            for one in each
        ]


_ANSWERS = [
    name
    for name in vars(Told)
    if name not in ("number", "ends", "column", "cut", "model", "groups", "recommended_of")
    and not name.startswith("_")
]
HIGHER, LOWER = Told(1), Told(-1)


def same(higher: Any, lower: Any) -> None:
    """Raise unless both were told the same, bit for bit: reprs differ for any two doubles."""
    for name, expected in higher.items():
        assert repr(expected) == repr(lower[name]), name
    assert higher.keys() == lower.keys()


def columns_of(rows: Any, cut: bool, sign: int) -> tuple[list[Any], ...]:
    """Columns as a model takes them."""
    scores, labels, weights = (list(column) for column in zip(*rows, strict=True))
    scores = [sign * score for score in scores]
    if not cut:
        return scores, labels, weights
    below = [label * weight for label, weight in zip(labels, weights, strict=True)]
    above = [weight - each for each, weight in zip(below, weights, strict=True)]
    return scores, below, above


@pairs
@settings(max_examples=25, deadline=None)
@given(rows=samples, more=samples, back=st.data())
def test_models_and_windows(model: str, memory: str, rows: Any, more: Any, back: Any) -> None:
    cut, timed = "cut" in model, memory in TIMED
    both = []
    gone = back.draw(st.lists(st.sampled_from(rows), max_size=3, unique_by=id))
    for told, direction in ((HIGHER, ">="), (LOWER, "<=")):
        made, other = (MEMORIES[memory](MODELS[model](direction)) for _ in range(2))
        columns, later = (columns_of(each, cut, told.sign) for each in (rows, more))
        for at, row in enumerate(zip(*columns, strict=True)):
            named: Any = {"time": at} if timed else {}
            made.update(*row, **named)
        named = {"times": list(range(len(more)))} if timed else {}
        other.update_many(*later, **named)
        seen = [told.model(made)]
        if memory == "all":
            for row in zip(*columns_of(gone, cut, told.sign), strict=True) if gone else ():
                made.revert(*row)
            seen.append(told.model(made))
            other.revert_many(*later)
            other.update_many(*later)
        if memory in ("all", "last period", "fading by time"):
            made.merge(other)
        else:
            made.update_many(*later)
        again = limen.from_bytes(made.to_bytes())
        assert made.direction == again.direction == again.copy().direction == direction
        assert again.to_bytes() == made.to_bytes()
        seen += [told.model(each) for each in (made, again, made.copy(), made.empty())]
        both.append(seen)
    for higher, lower in zip(*both, strict=True):
        same(higher, lower)


@pairs
@settings(max_examples=12, deadline=None)
@given(rows=samples, more=samples)
def test_groups(model: str, memory: str, rows: Any, more: Any) -> None:
    cut, timed, names = "cut" in model, memory in TIMED, ["a", "b"]
    both = []
    for told, direction in ((HIGHER, ">="), (LOWER, "<=")):
        made, other = (Grouped(MEMORIES[memory](MODELS[model](direction))) for _ in range(2))
        columns, later = (columns_of(each, cut, told.sign) for each in (rows * 3, more * 2))
        for at, row in enumerate(zip(*columns, strict=True)):
            named: Any = {"time": at} if timed else {}
            made.update(names[at % 2], *(row[:2] if at % 3 and not cut else row), **named)
        named = {"times": list(range(len(later[0])))} if timed else {}
        given = later if cut or len(more) % 2 else later[:2]  # some without weights
        other.update_many([names[at % 2] for at in range(len(later[0]))], *given, **named)
        if memory == "all":  # the last sample, with the weight that it was given
            place = len(columns[0]) - 1
            row = tuple(column[place] for column in columns)
            made.revert(names[place % 2], *(row[:2] if place % 3 and not cut else row))
        seen = [told.groups(made, names), told.groups(other, names)]
        if memory in ("all", *TIMED):
            made.merge(other)
        again = limen.from_bytes(made.to_bytes())
        assert made.direction == again.direction == direction
        both.append([*seen, told.groups(made, names), told.groups(again, names)])
    for higher, lower in zip(*both, strict=True):
        same(higher, lower)


def ledger_told(told: Told, ledger: Any, grouped: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"cost": ledger.cost, "regret": ledger.regret, "ids": len(ledger)}
    for id in ledger:
        score, *rest = ledger._known(id)
        found[f"known {id}"] = told.number(score), rest
    for group, trial in ledger.trials.items():
        ends = told.number(trial.current), told.number(trial.candidate)
        evidence = trial.evidence
        counts = evidence.wins, evidence.losses, evidence.missing, evidence.value
        found[f"trial {group}"] = ends, counts, trial.waiting, trial.candidates, trial.decided
    more = told.groups(ledger.model, ["a", "b"]) if grouped else told.model(ledger.model)
    return found | more


@pytest.mark.parametrize("grouped", [False, True], ids=["one", "groups"])
@pytest.mark.parametrize("memory", ["all", "last period", "fading by time", "last n"])
@pytest.mark.parametrize("model", ["threshold", "calibrator"])
@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(sample, min_size=8, max_size=60),
    many=samples,
    current=st.sampled_from([*SCORES, math.nan]),
)
def test_ledgers(
    model: str, memory: str, grouped: bool, rows: Any, many: Any, current: float
) -> None:
    if grouped and memory == "last n":
        return
    both = []
    for told, direction in ((HIGHER, ">="), (LOWER, "<=")):

        def made(direction: Any = direction) -> Any:
            inner = MEMORIES[memory](MODELS[model](direction))
            return Ledger(Grouped(inner, at_least=3) if grouped else inner, maturity=2)

        ledger, other = made(), made()
        sign, seen, answers = told.sign, [], []
        in_use = sign * current
        for at, (score, label, _) in enumerate(rows):
            group: Any = {"group": "ab"[at % 2]} if grouped else {}
            answers.append(ledger.score(at, sign * score, time=at, **group))
            if at % 7 != 3:
                ledger.label(at, label)
            if at % 5 == 4:
                ledger.label(at - 1, 1 - label)
            at_all: Any = {"group": ()} if grouped else {}
            found = ledger.proposal(in_use, age=3, confidence=0.8, largest_loss=3, **at_all)
            answers.append(None if found is None else told.number(found.candidate))
        scores, labels, weights = columns_of(many, False, sign)
        ids = [f"m{at}" for at in range(len(many))]
        groups: Any = {"groups": ["a"] * len(many)} if grouped else {}
        answers += other.score_many(ids, scores, list(range(len(many))), weights, **groups).tolist()
        other.label_many(ids, labels)
        again = limen.from_bytes(ledger.to_bytes())
        seen += [ledger_told(told, each, grouped) for each in (ledger, again, other)]
        if memory != "last n":
            again.merge(other)
            seen.append(ledger_told(told, again, grouped))
        assert ledger.direction == again.direction == direction
        both.append([{"answers": answers}, *seen])
    for higher, lower in zip(*both, strict=True):
        same(higher, lower)


def test_directions_are_not_mixed_and_are_said() -> None:
    for make in (
        *MODELS.values(),
        lambda direction: LastPeriod(Threshold(direction=direction), 9),
        lambda direction: Ledger(Threshold(direction=direction)),
        lambda direction: Grouped(Threshold(direction=direction)),
        lambda direction: Grouped(LastPeriod(Cut(direction=direction), 9)),
        lambda direction: Ledger(Grouped(Calibrator(direction=direction))),
    ):
        lower = make("<=")
        assert ("<=", ">=") == (lower.direction, make(">=").direction)
        for one, other in ((lower, make(">=")), (make(">="), lower)):
            with pytest.raises(ValueError, match=r"cannot merge: direction is '[<>]=' here"):
                one.merge(other)
        with pytest.raises(ValueError, match='direction must be ">="'):
            make("<")
        assert "direction='<='" in repr(lower)
        assert "direction" not in repr(make(">="))
    assert Threshold(direction="<=").settings["direction"] == "<="
    assert "direction" not in Threshold().settings


def test_a_label_that_stands_for_the_score_is_still_found_out() -> None:
    for make in (lambda model: model, lambda model: LastN(model, 3)):
        with pytest.raises(ValueError, match="were the two swapped"):
            make(Threshold(direction="<=")).update(1, 0.25)


def test_what_is_not_held_is_named_as_it_was_given() -> None:
    model = Threshold(direction="<=")
    model.update(3.5, 1)
    with pytest.raises(limen.NotHeld, match=r"cannot revert score 2\.5"):
        model.revert(2.5, 1)
    with pytest.raises(limen.NotHeld, match=r"cannot revert score 4\.5"):
        model.revert_many([3.5, 4.5], [1, 1])
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        model.update_many([1.0, math.nan], [1, 0])
    assert 1 == len(model)
    ledger = Ledger(model.empty())
    ledger.score("a", 3.5)
    with pytest.raises(ValueError, match=r"has score 3\.5 .* got 2\.5"):
        ledger.score("a", 2.5)
    with pytest.raises(ValueError, match=r"has score 3\.5 .* got 2\.5"):
        ledger.score_many(["b", "a"], [1.0, 2.5])


@pytest.mark.parametrize("grouped", [False, True], ids=["one", "groups"])
def test_a_candidate_is_judged_by_the_scores_between_and_changed_to(grouped: bool) -> None:
    both = []
    for told, direction in ((HIGHER, ">="), (LOWER, "<=")):
        model = Threshold(false_negative=4, direction=direction)
        ledger: Any = Ledger(Grouped(model) if grouped else model)
        group: Any = {"group": "a"} if grouped else {}
        seen = []
        for at in range(400):
            ledger.score(at, told.sign * (at % 20 / 20), answer=1, **group)
            ledger.label(at, int(at % 20 > 5))
            found = ledger.proposal(told.sign * 0.75, age=5, **group)
            seen.append(ledger_told(told, ledger, grouped) if at % 20 == 7 or found else at)
            if found:
                break
        assert found.evidence.settings["direction"] == direction
        assert found.candidate == told.sign * 0.175
        assert found.evidence.wins >= 3
        both.append(seen)
    assert repr(both[0]) == repr(both[1])
