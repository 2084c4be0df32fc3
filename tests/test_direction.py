# SPDX-License-Identifier: Apache-2.0
"""Where lower scores mean positive: the same answers as by negating all scores by hand."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen import OnlineCalibrator, OnlineThreshold
from limen.aim import Aim
from limen.demo import load_phishing
from limen.reporting.charts import Charts
from limen.reporting.findings import calibrator_of
from limen.samples import Samples

INFINITE = (math.inf, -math.inf)


def drawn(seed: int, infinite: bool = True) -> tuple[list[float], list[int]]:
    """Few distinct scores, so that ties occur, and sometimes infinite ones."""
    source = random.Random(seed)
    values = [source.choice((-2.5, -1.0, -0.0, 0.0, 0.5, 0.75, 3.0)) for _ in range(9)]
    if infinite and source.random() < 0.4:
        values[source.randrange(9)] = source.choice(INFINITE)
    return values, [source.randrange(2) for _ in values]


def cheapest(scores: Any, labels: Any, fp: int, fn: int) -> tuple[int, frozenset[float]]:
    """Try every set {s : s <= t}: the lowest cost, and the smallest set that has it."""
    distinct = sorted(set(scores))
    best = None
    for size in range(len(distinct) + 1):
        flagged = set(distinct[:size])
        loss = sum(
            fp * (s in flagged and not y) + fn * (s not in flagged and y)
            for s, y in zip(scores, labels, strict=True)
        )
        if best is None or loss < best[0]:  # the first of equals says 1 to the fewest
            best = loss, frozenset(flagged)
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(60))
def test_the_threshold_flags_the_cheapest_low_scores(seed: int) -> None:
    scores, labels = drawn(seed)
    costs: Any = {"false_positive": 2, "false_negative": 3}
    best = limen.optimal_threshold(scores, labels, direction="<=", **costs)
    model = OnlineThreshold(**costs, direction="<=")
    for score, label in zip(scores, labels, strict=True):
        model.update(score, label)

    loss, flagged = cheapest(scores, labels, 2, 3)

    assert (loss, flagged) == (best.loss, {s for s in scores if s <= best.threshold})
    assert best == model.optimum
    assert [int(s in flagged) for s in scores] == best.predict(scores).tolist()
    assert best.predict(scores).tolist() == model.predict(scores).tolist()
    assert best.lower == (max(flagged) if flagged else None)
    assert best.upper == min(set(scores) - flagged, default=None)


@pytest.mark.parametrize("seed", range(40))
def test_every_answer_is_that_of_negating_by_hand(seed: int) -> None:
    scores, labels = drawn(seed)
    negative = [-score for score in scores]
    by_hand, turned = OnlineCalibrator(), OnlineCalibrator(direction="<=")
    by_hand.update_many(negative, labels)
    turned.update_many(scores, labels)
    curve, mirrored = limen.loss_curve(scores, labels, direction="<="), by_hand.curve()
    hull, hand_hull = turned.roc_hull(), by_hand.roc_hull()

    assert np.array_equal(curve.thresholds, -mirrored.thresholds[::-1], equal_nan=True)
    assert curve.losses.tolist() == mirrored.losses[::-1].tolist() == turned.curve().losses.tolist()
    assert np.array_equal(hull.thresholds, -hand_hull.thresholds[::-1], equal_nan=True)
    assert hull.tp.tolist() == hand_hull.tp[::-1].tolist()
    assert np.array_equal(turned.probability(scores), by_hand.probability(negative))
    for threshold in (*scores, math.nan, 0.25):
        assert turned.confusion(threshold) == by_hand.confusion(-threshold)
    for metric in ("f1", "mcc", "precision"):
        best, hand = turned.best(metric), by_hand.best(metric)
        assert (best.value, best.confusion) == (hand.value, hand.confusion)
        assert best.predict(scores).tolist() == hand.predict(negative).tolist()
    below, above = limen.losses.cost_matrix(labels, fn=[3] * 9, tp=-1)
    cut, hand_cut = (
        limen.optimal_cut(scores, below, above, direction="<="),
        limen.optimal_cut(negative, below, above),
    )
    assert cut.loss == hand_cut.loss
    assert cut.predict(scores).tolist() == hand_cut.predict(negative).tolist()


def test_edges_read_in_the_scores_of_the_user() -> None:
    find: Callable[..., Any] = limen.optimal_threshold

    assert math.inf == find([1, 2], [1, 1], direction="<=").threshold
    assert -math.inf == find([1, 2], [0, 0], direction="<=").threshold
    assert math.isnan(find([-math.inf, 2], [0, 0], direction="<=").threshold)
    assert "0.0" == repr(find([-1, 1], [1, 0], direction="<=").threshold)
    near = find([1.0, math.nextafter(1.0, 2)], [1, 0], direction="<=")
    assert (1.0, [1, 0]) == (near.threshold, near.predict([1.0, 1.0000000000000002]).tolist())
    with pytest.raises(ValueError, match=r'direction must be ">=".*got \'lower\''):
        find([1], [0], direction="lower")


def test_a_sigmoid_and_bins_decide_alike() -> None:
    best = limen.optimal_threshold([1.0, 2.0, 3.0], [1, 0, 0], direction="<=")
    slope, shift = best.as_sigmoid()
    edges, probabilities = best.as_bins()

    scores = [1.0, 1.5, 1.5000000000000002, 2.0]
    answers = best.predict(scores).tolist()
    assert [1, 1, 0, 0] == answers == [int(slope * s + shift >= 0) for s in scores]
    assert answers == [int(probabilities[int(s >= edges[1])]) for s in scores]


@pytest.mark.parametrize("kind", [OnlineThreshold, OnlineCalibrator])
def test_it_is_stored_merged_copied_and_reverted(kind: Any) -> None:
    model = kind(direction="<=")
    model.update_many([1.0, 2.0], [1, 0])
    again = limen.from_bytes(model.to_bytes())
    other = model.empty()
    other.update(5, 0, weight=2)
    other.merge(model)
    other.revert(score=5, label=0, weight=2)

    assert model.to_bytes() == again.to_bytes() == model.copy().to_bytes() == other.to_bytes()
    assert isinstance(model, limen.model.Model)


def test_a_demand_that_no_cut_meets_names_the_scores_of_the_user() -> None:
    model = OnlineCalibrator(direction="<=")
    model.update_many([1.0, 2.0, 3.0], [0, 1, 0])

    with pytest.raises(limen.Infeasible, match=r"at threshold 2\.5, ") as caught:
        model.best("recall", min_precision=0.9)

    assert ("<=", 2.5) == (caught.value.nearest.direction, caught.value.nearest.threshold)


def test_recommendations_and_groups_are_those_of_negating_by_hand() -> None:
    scores, labels = (np.asarray(column)[:400] for column in load_phishing())
    costs: Any = {"false_negative": 5, "scores_are": "raw"}
    found = limen.recommend(1 - scores, labels, current=0.3, direction="<=", **costs)
    hand = limen.recommend(scores - 1, labels, current=-0.3, **costs)

    assert (found.threshold, found.interval) == (
        -hand.threshold,
        tuple(-e for e in hand.interval[::-1]),
    )
    assert (found.keep, found.regret, found.cost()) == (hand.keep, hand.regret, hand.cost())
    assert found.distance(0.25) == hand.distance(-0.25)
    assert found.predict(1 - scores).tolist() == hand.predict(scores - 1).tolist()
    names = ["ab"[at % 2] for at in range(400)]
    for shrink in (False, True):
        given: Any = {"shrink": shrink, **costs}
        groups = limen.by_group(names, 1 - scores, labels, direction="<=", **given)
        by_hand = limen.by_group(names, scores - 1, labels, **given)
        assert groups.thresholds() == {k: -v for k, v in by_hand.thresholds().items()}
        answers = groups.predict(names, 1 - scores).tolist()
        assert answers == by_hand.predict(names, scores - 1).tolist()


def test_low_scores_that_mean_positive_are_probabilities_of_label_0() -> None:
    scores, labels = (np.asarray(column)[:400] for column in load_phishing())
    low = 1 - scores
    for costs in ({}, {"false_negative": 5}, {"false_positive": 20}):
        given: Any = {**costs, "direction": "<="}
        found, rising = (
            limen.recommend(low, labels, **given),
            limen.recommend(scores, labels, **costs),
        )
        model = OnlineThreshold(**given, scores="probabilities")
        model.update_many(low, labels)

        assert 1 - rising.threshold == pytest.approx(found.threshold, abs=1e-9)
        assert found.threshold == model.recommended
        assert found.predict(low).tolist() == rising.predict(scores).tolist()


# ---- the command line ------------------------------------------------------------------------


def write_both() -> None:
    scores, labels = load_phishing()
    for name, sign in (("low.csv", -1), ("high.csv", 1)):
        rows = (
            f"{sign * 1.25 * (score - 1)!r},{label},{'ab'[at % 2]}\n"
            for at, (score, label) in enumerate(zip(scores, labels, strict=True))
        )
        Path(name).write_text("score,label,team\n" + "".join(rows))


TURNED = ("threshold", "recommended")


def turned_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """What the facts about negated scores say in those of the user, where that differs."""
    found = {name: -facts[name] for name in TURNED if facts.get(name) is not None}
    if facts.get("interval"):
        found["interval"] = [-end for end in facts["interval"][::-1]]
    return facts | found | {"lower": -facts["upper"], "upper": -facts["lower"]}


@pytest.mark.parametrize("aim", ["--false-negative 5", "--metric f1", "--min-precision 0.9"])
def test_fit_finds_what_negating_by_hand_finds(run: Any, aim: str) -> None:
    write_both()
    code, out, err = run("fit", "low.csv", "--lower-is-positive", "--json", *aim.split())
    _, hand, _ = run("fit", "high.csv", "--json", *aim.split())
    facts, expected = json.loads(out), turned_facts(json.loads(hand))

    assert 0 == code
    assert "<=" == facts.pop("direction")
    for each in (facts, expected):
        each.pop("reason")
    assert expected == facts
    assert "answer 1 when score <= 0." in err
    assert ">=" not in err


def test_groups_checks_and_comparisons_run_the_same_way(run: Any) -> None:
    write_both()
    given = ("--false-negative", "5", "--group-column", "team", "--json", "--quiet")
    _, out, _ = run("fit", "low.csv", "--lower-is-positive", *given)
    _, hand, _ = run("fit", "high.csv", *given)
    groups, expected = json.loads(out)["groups"], json.loads(hand)["groups"]
    assert [-each["recommended"] for each in expected] == [each["recommended"] for each in groups]
    assert [each["confusion"] for each in expected] == [each["confusion"] for each in groups]

    _, out, _ = run("compare", "low.csv", "--lower-is-positive", "-t", "0.5")
    _, hand, _ = run("compare", "high.csv", "-t", "-0.5")
    cells, other = (text.splitlines()[2].split(",") for text in (out, hand))
    assert ["0.5", *other[1:]] == cells

    _, out, _ = run("curve", "low.csv", "--lower-is-positive", "--quiet")
    _, hand, _ = run("curve", "high.csv", "--quiet")
    mirrored = [line.split(",") for line in hand.splitlines()[:0:-1]]
    assert [f"{-float(t)!r},{loss}" for t, loss in mirrored] == out.splitlines()[1:]


def test_saved_models_answer_the_same_way(run: Any) -> None:
    write_both()
    for grouped in ([], ["--group-column", "team"]):
        given = ("--lower-is-positive", "--quiet", "--save", "m.limen", "--force", *grouped)
        _, out, _ = run("fit", "low.csv", *given)
        _, shown, _ = run("show", "m.limen", "--quiet")
        code, _, _ = run("merge", "m.limen", "-o", "again.limen", "--force")
        facts = json.loads(shown)
        assert 0 == code
        if not grouped:
            assert float(out) == facts["threshold"]
        else:
            found = {line.split(",")[0]: line.split(",")[1] for line in out.splitlines()[1:]}
            listed = {each["group"]: repr(each["threshold"]) for each in facts["groups"]}
            assert found == listed


def test_the_report_says_at_most(run: Any) -> None:
    write_both()
    code, _, err = run("report", "low.csv", "--lower-is-positive", "-o", "page.html")
    page = Path("page.html").read_text()

    assert 0 == code
    assert "Answer 1 when the score is at most <strong" in page
    assert "the best fit that never rises" in page
    figures = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    assert sorted(figures["fit"]["p"], reverse=True) == figures["fit"]["p"]
    assert sorted(figures["curve"]["at"]) == figures["curve"]["at"]
    assert "run the other way" not in err


def test_a_chart_places_what_no_score_reaches_below_all_scores() -> None:
    samples = Samples.of([1.0, 2.0], [1, 0], direction="<=")
    charts = Charts(calibrator_of(samples, None), samples, Aim.of())

    assert [0, 0, 1, 1, 2] == [charts.place(t) for t in (math.nan, 0.5, 1.0, 1.5, math.inf)]


def test_scores_that_run_the_wrong_way_name_the_option(run: Any) -> None:
    write_both()

    assert "If a low score means 1, add --lower-is-positive" in run("fit", "low.csv")[2]
    assert "leave out --lower-is-positive" in run("fit", "high.csv", "--lower-is-positive")[2]
    assert "label 1 has the lower score" in run("fit", "high.csv", "--lower-is-positive")[2]


def test_rows_that_memory_does_not_hold_have_the_same_answer(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    write_both()
    _, whole, _ = run("fit", "low.csv", "--lower-is-positive", "--quiet")
    monkeypatch.setattr("limen.cli.inputs._most_rows", lambda: 100)

    _, out, err = run("fit", "low.csv", "--lower-is-positive")

    assert whole == out
    assert "memory does not hold all rows" in err


def test_evidence_is_that_of_negating_by_hand() -> None:
    random = np.random.default_rng(3)
    scores, labels = random.integers(0, 20, 300) / 8, random.integers(0, 2, 300)
    given: dict[str, Any] = {"false_negative": 3, "largest_loss": 9}
    for current, candidate in ((0.5, 1.25), (1.25, 0.5), (math.inf, 1.0), (1.0, math.nan)):
        lower = limen.Evidence(current, candidate, **given, direction="<=")
        by_hand = limen.Evidence(0.0 - current, 0.0 - candidate, **given)
        lower.update_many(scores, labels, labels + 1)
        by_hand.update_many(-scores, labels, labels + 1)
        for score in (0.5, 1.0, 1.25, 0.0, math.inf):
            lower.update(score, 1)
            by_hand.update(-score, 1)
        again = limen.from_bytes(lower.to_bytes())

        assert (by_hand.wins, by_hand.losses) == (lower.wins, lower.losses)
        assert by_hand.value == lower.value == again.value
        assert "direction='<='" in repr(again)
        with pytest.raises(ValueError, match="direction"):
            lower.merge(limen.Evidence(current, candidate, **given))
        with pytest.raises(ValueError, match="score is nan"):
            lower.update(math.nan, 1)
    with pytest.raises(TypeError, match="score must be a number, got 'high'"):
        lower.update("high", 1)
    with pytest.raises(ValueError, match="direction must be"):
        limen.Evidence(0.5, 0.25, direction="<")


def test_what_is_said_of_the_threshold_in_use_is_that_of_negating_by_hand() -> None:
    random = np.random.default_rng(4)
    scores = random.random(400)
    labels = (random.random(400) > scores).astype(int)
    for kind in (limen.OnlineThreshold, limen.OnlineCalibrator):
        lower, by_hand = kind(direction="<="), kind()
        lower.update_many(scores, labels)
        by_hand.update_many(-scores, labels)
        answers = [lower.keeps(each) for each in np.linspace(0, 1, 21).tolist()]

        assert {True, False} == set(answers)
        assert [by_hand.keeps(-each) for each in np.linspace(0, 1, 21).tolist()] == answers
