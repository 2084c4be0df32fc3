# SPDX-License-Identifier: Apache-2.0
"""A small version of the study, how it goes on after a stop, and what its page says."""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))
pytest.importorskip("betacal")
pytest.importorskip("mapie")
pytest.importorskip("river")

from benchmarks.study import (
    analysis,
    claims,
    data,
    floors,
    methods,
    new_rows,
    results,
    streams,
    work,
)
from benchmarks.study.plan import COSTS, PLAN, fingerprint, named

pytestmark = pytest.mark.check

PARTS = ("new_rows", "claims", "floors", "streams", "work")


def test_the_plan_names_the_methods_that_exist() -> None:
    assert list(methods.MAPS) == PLAN["methods"]["maps"]
    assert list(methods.THRESHOLDS) == PLAN["methods"]["thresholds"]
    assert set(PLAN["methods"]["need_probabilities"]) <= set(methods.MAPS)


@pytest.mark.parametrize("name", PLAN["sets"])
def test_a_set_is_the_one_of_the_plan_with_its_source_and_licence(name: str) -> None:
    scores, labels = data.read(name)
    (line,) = (
        line
        for line in (data.FOLDER / "README.md").read_text().splitlines()
        if line.startswith(f"| {name} |")
    )
    _, _, rows, what, source, licence, _ = line.split("|")

    assert int(rows.replace(",", "")) == len(scores) == len(labels)
    assert all(each.strip() for each in (what, source, licence))


def test_a_set_that_was_changed_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    (tmp_path / "wdbc_gnb.csv.gz").write_bytes(gzip.compress(b"score,label\n0.5,1\n"))

    with pytest.raises(ValueError, match="not the file that"):
        data.read("wdbc_gnb")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("wdbc_gnb", "random"),
        ("wdbc_worst_radius", "random"),
        ("fte_nhl_games", "time"),
        ("smooth", "law"),
    ],
)
def test_a_cell_is_paid_for_by_every_method(name: str, how: str) -> None:
    found = new_rows.cell(name, how, 100, count=2)

    assert found is not None
    raw = set() if name == "wdbc_worst_radius" else {PLAN["methods"]["raw"]}
    assert {*methods.MAPS, *methods.THRESHOLDS, *raw} == set(found["methods"])
    for costs in map(named, COSTS):
        assert all(len(values[costs]) == 2 for values in found["methods"].values())
        best, trivial = found["best"][costs], found["trivial"][costs]
        assert all(0 <= low <= high for low, high in zip(best, trivial, strict=True))
    for name in methods.MAPS:
        assert all(math.isfinite(each) for each in found["methods"][name]["log loss"])
    exact = found["methods"]["limen, exact"][new_rows.HELD]
    for other in methods.THRESHOLDS:
        errors = found["methods"][other][new_rows.HELD]
        assert all(a <= b for a, b in zip(exact, errors, strict=True))


def test_a_split_pays_what_its_answers_cost() -> None:
    (split,) = data.of_set("wdbc_gnb", "random", 300, 1)
    values: new_rows.Values = {}
    new_rows.pay(values, split, np.random.default_rng(0))
    answers = split.new >= 1 / 6
    missed = int(((split.truth == 1) & ~answers).sum())

    assert len(split.new) == 269
    assert values[PLAN["methods"]["raw"]]["1:5"] == [
        int(((split.truth == 0) & answers).sum()) + 5 * missed
    ]


def test_sets_with_too_few_rows_have_no_cell() -> None:
    assert new_rows.cell("wdbc_gnb", "random", 1_000, count=1) is None


def test_the_threshold_costs_as_little_as_any_monotone_map_on_the_rows_it_was_chosen_on() -> None:
    found = claims.cell("wdbc_gnb", 300)
    for costs in found["costs"].values():
        assert costs["exact"] == costs["its bins"]
        assert costs["its sigmoid"] in (None, costs["exact"])
        for name, monotone in found["monotone"].items():
            assert not monotone or costs["exact"] <= costs[name]


def test_a_floor_is_tried_by_every_method() -> None:
    found = floors.cell("two_class_example", 300, count=2)

    assert found is not None
    assert set(PLAN["floors"]["methods"]) == set(found["methods"])
    for values in found["methods"].values():
        assert len(values["precision"]) == len(values["recall"]) == 2


def test_a_stream_is_answered_by_every_method_with_labels_that_are_old_enough() -> None:
    found = streams.cell("sudden", 30, 0, rows=1_500)

    assert set(PLAN["streams"]["methods"]) == set(found["methods"])
    assert found["rows"] == 500


class Counting:
    """A model that knows how many labels it had when it was asked."""

    def __init__(self) -> None:
        self.learned = 0
        self.asked: list[int] = []

    def update(self, score: float, label: int) -> None:
        self.learned += 1

    learn_one = update

    @property
    def threshold(self) -> float:
        self.asked.append(self.learned)
        return 0.5

    def predict_proba_one(self, row: dict) -> dict:
        self.asked.append(self.learned)
        return {True: 0.5}


@pytest.mark.parametrize("delay", [1, 30, 300])
def test_no_answer_knows_a_label_before_its_delay(delay: int) -> None:
    """Row 1,000 knows the labels of rows 0 to 1,000 - delay."""
    scores, labels = streams.drifting("none", 2_500, 0)
    stream = streams.Stream(scores, labels, delay)
    known = [row - delay + 1 for row in range(1_000, 2_500)]
    for follow in (lambda make: streams.follow(lambda costs: make()), streams.online):
        models: list[Counting] = []

        def make(models=models) -> Counting:
            models.append(Counting())
            return models[-1]

        follow(make)(stream)
        assert all(known == model.asked for model in models)
    seen: list[int] = []

    def choose(sample, rng) -> float:
        seen.append(len(sample.scores))
        return 0.5

    def fit(scores, labels):
        seen.append(len(scores))
        return np.zeros_like

    for method in (streams.refit(choose), streams.refit(choose, once=True), streams.refit_map(fit)):
        method(stream)

    assert {known[0], known[1_000]} == set(seen)


def test_work_is_measured_for_every_method() -> None:
    found = work.cell(100)

    assert set(work.METHODS) == set(found["methods"])
    for values in found["methods"].values():
        assert values["fit"] > 0
        assert not values["refit"] or values["one more"] == values["fit"]
    assert 0 <= work.grown("limen, exact", 1_000) < 1e8


@pytest.fixture
def places(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(results, "WORKING", tmp_path / "working")
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    return tmp_path


def test_a_study_goes_on_where_it_was_stopped(places: Path) -> None:
    asked: list[int] = []

    def cell(n: int) -> dict:
        asked.append(n)
        if n == 3 and asked.count(3) == 1:
            raise KeyboardInterrupt
        return {"value": n}

    keys = [(n,) for n in range(1, 5)]
    with pytest.raises(KeyboardInterrupt):
        results.run("part", keys, cell)
    with (places / "working" / "part.jsonl").open("a") as lines:
        lines.write('{"key": [3], "val')  # cut off while it was written
    results.run("part", keys, cell)

    assert [1, 2, 3, 3, 4] == asked
    assert [1, 2, 3, 4] == [each["value"] for each in results.stored("part")]
    assert fingerprint("part") == results.header("part")["plan"]
    (places / "working" / "part.jsonl").unlink()
    results.run("part", keys, cell)
    assert 5 == len(asked)


def test_results_of_another_plan_are_not_gone_on_with(places: Path, monkeypatch) -> None:
    results.run("part", [(1,)], lambda n: {"value": n})
    monkeypatch.setattr(results, "fingerprint", lambda part: "another")

    with pytest.raises(SystemExit, match="those of another plan"):
        results.run("part", [(1,), (2,)], lambda n: {"value": n})


def test_ranks_share_ties_and_the_friedman_statistic_is_its_formula() -> None:
    values = np.array([[1.0, 2, 3], [1, 3, 2], [2, 2, 5], [0, 7, 9]])
    found = analysis.ranks(values, ["a", "b", "c"])
    means = np.array([1.125, 2.125, 2.75])
    plain = 12 * 4 / (3 * 4) * ((means - 2) ** 2).sum()
    tied = 1 - (2**3 - 2) / (4 * (3**3 - 3))  # one pair

    assert means.tolist() == list(found.mean.values())
    assert found.statistic == pytest.approx(plain / tied)
    assert 4 == found.sets


def test_the_critical_difference_is_that_of_the_published_table() -> None:
    """Q of Nemenyi's test at 5 %, from Demsar (2006): 2.569 for 4 methods, 3.164 for 10."""
    rng = np.random.default_rng(0)
    for k, q in ((4, 2.569), (10, 3.164)):
        found = analysis.ranks(rng.random((14, k)), [str(each) for each in range(k)])
        assert found.critical == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 14)), abs=1e-3)


def test_an_interval_over_sets_is_students() -> None:
    found = analysis.interval(np.array([1.0, 2, 3, 4]))

    assert found.mean == 2.5
    assert found.high - found.mean == pytest.approx(3.1824 * math.sqrt(5 / 3) / 2, abs=1e-3)
    assert found.clear
    assert (0, 4) == (found.below, found.count)


@pytest.mark.parametrize("part", PARTS)
def test_recorded_results_are_complete_and_of_this_plan(part: str) -> None:
    recorded = {tuple(each["key"]) for each in results.stored(part)}
    expected = {
        "new_rows": new_rows.keys,
        "claims": claims.keys,
        "floors": floors.keys,
        "streams": streams.keys,
        "work": lambda: [(n,) for n in PLAN["work"]["sizes"]],
    }[part]()

    assert set(expected) == recorded
    assert fingerprint(part) == results.header(part)["plan"]
    assert {"processor", "cores", "numpy", "limen"} <= set(results.header(part)["machine"])


def test_a_recorded_cell_can_be_repeated() -> None:
    (recorded,) = (
        each for each in results.stored("new_rows") if each["key"] == ["wdbc_gnb", "random", 100]
    )
    again = json.loads(json.dumps(new_rows.cell("wdbc_gnb", "random", 100)))
    for name in ("limen, exact", "limen, recommended", "Platt", "isotonic", "Venn-Abers"):
        for costs in map(named, COSTS):
            assert recorded["methods"][name][costs] == again["methods"][name][costs]


def test_the_page_and_the_readme_say_what_the_results_say() -> None:
    from benchmarks.study import page

    assert page.page() == page.PAGE.read_text(encoding="utf-8")
    assert page.long_page() == page.LONG.read_text(encoding="utf-8")
    assert page.readme() == page.README.read_text(encoding="utf-8")


def test_no_number_stands_in_the_words_of_the_page() -> None:
    """Numbers of results come from the results; what remains are sizes, levels and costs."""
    words = Path(new_rows.__file__).with_name("page.md").read_text()
    text = re.sub(r"\{\{.+?\}\}|`[^`]*`|\]\([^)]*\)", "", words)

    assert not re.findall(r"\d+\.\d+|\d+ %(?! interval| confidence)", text)


def test_the_words_of_the_page_hold() -> None:
    """Who leads, what the tests can tell apart, and where limen loses."""
    from benchmarks.study import tables

    few = analysis.cells("random", analysis.RANKED_SIZES)
    ranks = tables.cost_ranks()
    leaders = sorted(ranks.mean, key=lambda name: ranks.mean[name])[:4]
    ours, exact = "limen, recommended", "limen, exact"
    assert {ours, "temperature", "beta", "Venn-Abers"} == set(leaders)
    assert ranks.mean[leaders[3]] - ranks.mean[leaders[0]] < ranks.critical
    assert ours == leaders[0]
    assert not analysis.difference(few, ours, "temperature").clear
    for other in ("Venn-Abers", "beta"):
        assert analysis.difference(few, ours, other).high < 0
    for other in (exact, "isotonic", "scikit-learn's tuner, five folds"):
        assert analysis.difference(few, ours, other).high < 0

    hundred = {
        name: analysis.by_size("random", name)[100][0] for name in (*ranks.mean, analysis.RAW)
    }
    worse = {name for name, value in hundred.items() if value > hundred[exact]}
    assert {analysis.RAW, *(name for name in ranks.mean if "tuner" in name)} == worse
    in_time = analysis.cells("time", analysis.RANKED_SIZES)
    for other in ("temperature", "beta"):
        found = analysis.difference(in_time, ours, other)
        assert not found.clear
        assert 2 * found.below > found.count

    loss = tables.probability_ranks("log loss")
    for leader in ("temperature", "beta", "Venn-Abers", "Platt"):
        for other in ("ENIR", "histogram binning", "isotonic"):
            assert loss.mean[other] - loss.mean[leader] > loss.critical
    for measure in ("log loss", "Brier"):
        of = analysis.measured(measure)
        assert analysis.difference(few, "Venn-Abers", "isotonic", of).high < 0
    for name in ("jump left", "jump right", "smooth, 1 to 5", "2 % of ones, 1 to 20"):
        law = [each for each in analysis.cells("law") if each["key"][0] == name]
        winner = "Venn-Abers" if "jump" in name else "Platt"
        (values,) = analysis.by_set(law, [winner, ours])[1]
        assert values[0] < values[1]


def test_what_the_page_says_of_streams_floors_and_the_paper_holds() -> None:
    from benchmarks.study import tables

    ratios = {
        name: analysis.stream_ratios("drift", 30, name) for name in PLAN["streams"]["methods"]
    }
    fading, all_samples = (
        ratios["limen, exact, half-life 1,000"],
        ratios["limen, exact, all samples"],
    )
    river = "river, logistic regression on the score"
    assert analysis.interval(fading - all_samples).high < 0
    assert analysis.interval(ratios[river] - fading).high < 0
    for group in ("games", "occupancy"):
        assert analysis.stream_ratios(group, 30, river).mean() > 1

    samples, confident, mapie = PLAN["floors"]["methods"]
    found = analysis.floors()
    for n in PLAN["floors"]["sizes"]:
        assert found[samples, n]["broken"] > 0.4
        assert max(found[each, n]["broken"] for each in (confident, mapie)) <= 0.05
        assert found[confident, n]["none"] < found[mapie, n]["none"]
        assert found[confident, n]["recall"] > found[mapie, n]["recall"]

    claim = tables.claims()
    assert claim["bins equal"] == claim["cases"] == 5 * len(PLAN["sets"])
    assert claim["sigmoids equal"] == claim["sigmoids"]
    assert claim["monotone cheaper"] == 0
