# SPDX-License-Identifier: Apache-2.0
"""Aims other than cost, everywhere: metrics, floors and near-optimal sets, by brute force."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import limen
from limen import OnlineCalibrator, metrics

# What a metric is, written down again; floats of fractions, None where it is infinite.
DEFINED: dict[str, Callable[[int, int, int, int], Fraction | float]] = {
    "kappa": lambda tp, fp, fn, tn: ratio(
        2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
    ),
    "roc01": lambda tp, fp, fn, tn: ratio(fn, tp + fn) ** 2 + ratio(fp, fp + tn) ** 2,
    "odds_ratio": lambda tp, fp, fn, tn: (
        math.inf if fp * fn == 0 and tp * tn else ratio(tp * tn, fp * fn)
    ),
    "f1": lambda tp, fp, fn, tn: ratio(2 * tp, 2 * tp + fp + fn),
    "net_benefit": lambda tp, fp, fn, tn: ratio(4 * tp - fp, 4 * (tp + fp + fn + tn)),
    "cost": lambda tp, fp, fn, tn: Fraction(2 * fp + 5 * fn),
}
LOWEST = ("roc01", "cost")
MADE = {"net_benefit": metrics.net_benefit(0.2)}
MADE["cost"] = metrics.cost(false_positive=2, false_negative=5)


def ratio(top: int, bottom: int) -> Fraction:
    return Fraction(top, bottom) if bottom else Fraction(0)


def drawn(seed: int, rows: int = 12) -> tuple[list[float], list[int], list[int]]:
    source = random.Random(seed)
    scores = [source.choice((0.1, 0.2, 0.3, 0.5, 0.8, 0.9)) for _ in range(rows)]
    labels = [0, 1, *(source.randrange(2) for _ in range(rows - 2))]
    return scores, labels, [source.randrange(1, 4) for _ in range(rows)]


def confusions(scores: Any, labels: Any, weights: Any) -> dict[float, tuple[int, int, int, int]]:
    """The weights of right and wrong answers at each cut, by the lowest score answered 1."""
    found = {}
    for cut in (*sorted(set(scores)), math.inf):
        cells = dict.fromkeys([(a, y) for a in (True, False) for y in (0, 1)], 0)
        for score, label, weight in zip(scores, labels, weights, strict=True):
            cells[score >= cut, label] += weight
        found[cut] = cells[True, 1], cells[True, 0], cells[False, 1], cells[False, 0]
    return found


def best_cut(name: str, cuts: dict[float, Any], met: Callable[..., bool]) -> float | None:
    """The highest of the best cuts that meet the demands."""
    sign = -1 if name in LOWEST else 1
    values = {cut: sign * DEFINED[name](*cells) for cut, cells in cuts.items() if met(*cells)}
    if not values:
        return None
    return max(cut for cut, value in values.items() if value == max(values.values()))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", DEFINED)
def test_every_metric_finds_the_best_of_all_cuts(name: str, seed: int) -> None:
    scores, labels, weights = drawn(seed)
    cuts = confusions(scores, labels, weights)
    demands: Any = [{}, {"min_recall": 0.6}, {"min_precision": 0.5}][seed % 3]

    def met(tp: int, fp: int, fn: int, tn: int) -> bool:
        if "min_recall" in demands:
            return 5 * tp >= 3 * (tp + fn)
        return not demands or (tp + fp > 0 and 2 * tp >= tp + fp)

    cut = best_cut(name, cuts, met)
    metric: Any = MADE.get(name, name.upper())
    if cut is None:
        with pytest.raises(limen.Infeasible):
            limen.optimal_threshold(scores, labels, weights=weights, metric=metric, **demands)
        return
    best = limen.optimal_threshold(scores, labels, weights=weights, metric=metric, **demands)
    assert isinstance(best, limen.BestCut)
    assert (best.upper if best.upper is not None else math.inf) == cut
    expected = DEFINED[name](*cuts[cut])
    assert best.value == pytest.approx(
        math.sqrt(expected) if name == "roc01" else float(expected), rel=1e-15
    )
    turned = limen.optimal_threshold(
        [-score for score in scores],
        labels,
        weights=weights,
        metric=metric,
        direction="<=",
        **demands,
    )
    assert (turned.value, turned.threshold) == (best.value, -best.threshold)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", DEFINED)
def test_near_optimal_sets_hold_every_threshold_and_no_other(name: str, seed: int) -> None:
    scores, labels, weights = drawn(seed)
    model = OnlineCalibrator()
    model.update_many(scores, labels, weights)
    within = (Fraction(1, 10), Fraction(0), Fraction(1, 3))[seed % 3]
    runs = model.near_best(MADE.get(name, name), within=within)

    cuts = confusions(scores, labels, weights)
    top = best_cut(name, cuts, lambda *_: True)
    assert top is not None
    best = DEFINED[name](*cuts[top])
    for cut, cells in cuts.items():
        value = DEFINED[name](*cells)
        if name == "roc01":  # a distance is a root, compared by its square
            near = value <= best * (1 + within) ** 2
        elif name in LOWEST:
            near = value <= best * (1 + within)
        elif best == math.inf:
            near = value == math.inf
        else:
            near = value >= best - within * abs(best)
        at = cut if cut < math.inf else 1e9
        assert near == any(low < at <= high for low, high in runs), (cut, runs)


def test_runs_end_where_scores_do() -> None:
    model = OnlineCalibrator()
    assert [(-math.inf, math.inf)] == model.near_best("f1")
    model.update_many([0.1, 0.2], [1, 0])
    assert [(-math.inf, math.inf)] == model.near_best("accuracy", within=1)
    assert [(-math.inf, 0.1)] == model.near_best("recall", min_precision=0.5, within=0)
    with pytest.raises(TypeError, match="not a function"):
        model.near_best(lambda tp, fp, fn, tn: tp)
    with pytest.raises(TypeError, match=r"a demand must be one of min_precision, .* got 'min_f1'"):
        model.near_best("f1", min_f1=0.5)


def test_names_may_be_written_in_capitals_and_metrics_pickled() -> None:
    assert metrics.mcc is metrics.as_metric("MCC")
    for metric in (metrics.kappa, metrics.roc01, metrics.odds_ratio, metrics.net_benefit(0.25)):
        again = pickle.loads(pickle.dumps(metric))
        assert repr(metric) == repr(again)
        assert metric(3, 1, 2, 4) == again(3, 1, 2, 4)
    for bad in (0, 1, 1.5, -0.1):
        with pytest.raises(ValueError, match="probability must"):
            metrics.net_benefit(bad)


def test_costs_are_the_aim_under_demands_alone() -> None:
    scores, labels, weights = drawn(3)
    given: Any = {"weights": weights, "false_positive": 2, "false_negative": 5}
    best: Any = limen.optimal_threshold(scores, labels, min_precision=0.5, **given)

    cuts = confusions(scores, labels, weights)
    cut = best_cut("cost", cuts, lambda tp, fp, fn, tn: tp + fp > 0 and 2 * tp >= tp + fp)
    assert cut is not None
    assert (cut, float(DEFINED["cost"](*cuts[cut]))) == (best.upper, best.value)
    with pytest.raises(ValueError, match="two aims"):
        limen.optimal_threshold(scores, labels, metric="f1", false_negative=5)
    with pytest.raises(TypeError, match=r"must be one of .* got 'min_sensitivity'"):
        limen.optimal_threshold(scores, labels, min_sensitivity=0.5)


# ---- the command line ------------------------------------------------------------------------


def write(seed: int, sign: int = 1) -> tuple[list[float], list[int], list[int]]:
    scores, labels, weights = drawn(seed, 30)
    rows = (f"{sign * s},{y},{w}" for s, y, w in zip(scores, labels, weights, strict=True))
    Path("rows.csv").write_text("score,label,weight\n" + "\n".join(rows) + "\n")
    return scores, labels, weights


def test_a_curve_by_a_metric_names_the_best_cut_by_it_also_where_rows_have_costs(run: Any) -> None:
    """The message named the metric, and the cut that the column of costs makes the cheapest."""
    rows = ("0.1,0,1", "0.2,1,1000", "0.3,0,1", "0.4,0,1", "0.5,1,1")
    Path("rows.csv").write_text("score,label,amount\n" + "\n".join(rows) + "\n")
    given = ("rows.csv", "--metric", "precision", "--false-negative-column", "amount")

    assert "the best by precision at 0.45" in run("curve", *given)[2]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_curve_has_one_column_per_metric(run: Any, sign: int) -> None:
    cuts = confusions(*write(4, sign))
    given = ["--weight-column", "weight", "--metric", "f1", "--metric", "Kappa", "--quiet"]
    given += ["--lower-is-positive"] if sign < 0 else []
    _, out, _ = run("curve", "rows.csv", *given, "--metric", "odds-ratio", "--min-recall", "0.5")
    lines = [line.split(",") for line in out.splitlines()]

    assert ["threshold", "f1", "kappa", "odds_ratio", "meets"] == lines[0]
    assert len(cuts) + 1 == len(lines)
    for (_, (tp, fp, fn, tn)), line in zip(cuts.items(), lines[1:][::sign], strict=True):
        names = ("f1", "kappa", "odds_ratio")
        expected = [float(DEFINED[name](tp, fp, fn, tn)) for name in names]
        assert expected == pytest.approx([float(cell) for cell in line[1:4]], rel=1e-12)
        assert str(int(2 * tp >= tp + fn)) == line[4]


def test_compare_shows_values_and_whether_demands_are_met(run: Any) -> None:
    cuts = confusions(*write(7))
    given = ("--weight-column", "weight", "--metric", "f1", "--min-precision", "0.5")
    code, out, err = run("compare", "rows.csv", "-t", "0.2", "-t", "0.9", *given, "--json")
    facts = json.loads(out)

    assert (0, "f1", 0.5) == (code, facts["metric"], facts["min_precision"])
    cut = best_cut("f1", cuts, lambda tp, fp, fn, tn: tp + fp > 0 and 2 * tp >= tp + fp)
    assert cut is not None
    assert float(DEFINED["f1"](*cuts[cut])) == pytest.approx(facts["best"]["value"])
    for at, row in zip((0.2, 0.9), facts["thresholds"], strict=True):
        tp, fp, _, _ = cuts[at]
        assert float(DEFINED["f1"](*cuts[at])) == pytest.approx(row["value"])
        assert int(2 * tp >= tp + fp) == row["meets"]
        assert row["value"] - facts["best"]["value"] == row["difference"]
    assert "the best f1 is " in err
    assert "meet min_precision=0.5: " in err


def test_fit_lists_near_optimal_runs(run: Any) -> None:
    scores, labels, weights = write(6)
    given = ("rows.csv", "--weight-column", "weight", "--within", "0.1", "--json")
    model = OnlineCalibrator()
    model.update_many(scores, labels, weights)
    for aim in (["--metric", "mcc"], ["--false-negative", "5"]):
        _, out, err = run("fit", *given, *aim)
        metric: Any = "mcc" if aim[0] == "--metric" else metrics.cost(false_negative=5)
        near = [
            [str(e) if math.isinf(e) else e for e in r] for r in model.near_best(metric, within=0.1)
        ]
        assert near == json.loads(out)["near"]
        assert f"is at most 10 % {'below' if metric == 'mcc' else 'above'} the best" in err
    assert run("fit", *given, "--true-positive", "-1")[0] == 2


@pytest.mark.parametrize("aim", ["--metric f1", "--metric odds_ratio", "--metric roc01"])
def test_a_report_by_a_metric_has_no_word_of_cost(run: Any, aim: str) -> None:
    cuts = confusions(*write(7))
    given = ("--weight-column", "weight", "-o", "page.html", "--group-column", "label")
    code, _, err = run("report", "rows.csv", *aim.split(), *given)
    page = Path("page.html").read_text()
    name = aim.split()[1]

    assert 0 == code, err
    assert f"The aim is the {'lowest' if name == 'roc01' else 'highest'} " in page
    cut = best_cut(name, cuts, lambda *_: True)
    assert cut is not None
    _, fp, fn, _ = cuts[cut]
    assert f"<div><b>{fp}</b><span>false positives" in page
    assert f"<div><b>{fn}</b><span>false negatives" in page
    figures = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    assert name.replace("_", " ") == figures["word"]
    assert len(cuts) == len(figures["curve"]["loss"])


def test_a_report_under_demands_says_where_new_rows_meet_them(run: Any) -> None:
    from limen.demo import load_phishing, phishing_csv

    Path("rows.csv").write_text(phishing_csv())
    code, _, err = run("report", "rows.csv", "-o", "page.html", "--min-precision", "0.8")
    model = OnlineCalibrator()
    model.update_many(*load_phishing())
    sure = model.best("recall", min_precision=0.8, confidence=0.95).threshold

    assert 0 == code
    assert f'id="sure" data-exact="{sure!r}"' in Path("page.html").read_text()
    assert "new rows meet min_precision=0.8. They do at threshold" in err
