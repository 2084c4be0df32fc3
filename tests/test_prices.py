# SPDX-License-Identifier: Apache-2.0
"""Gains of right answers, and costs that rows have of their own: in Python and in files."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen.demo import load_phishing

OUTCOMES = ("tp", "fp", "fn", "tn")


def drawn(seed: int, rows: int = 14) -> list[dict[str, Any]]:
    """Rows with few distinct scores, a whole weight, and a cost of each outcome."""
    source = random.Random(seed)
    found = []
    for _ in range(rows):
        row = {"score": source.choice((0.1, 0.2, 0.4, 0.5, 0.8)), "label": source.randrange(2)}
        row |= {"weight": source.randrange(3), "tp": -source.randrange(4)}
        found.append(row | {"fp": source.randrange(9), "fn": source.randrange(9), "tn": -1})
    found[0]["label"], found[1]["label"] = 0, 1
    found[0]["weight"] = found[1]["weight"] = 1
    return found


def outcome(row: dict[str, Any], answer: bool) -> str:
    return ("tp" if row["label"] else "fp") if answer else ("fn" if row["label"] else "tn")


def total(rows: list[dict[str, Any]], prices: dict[str, Any], cut: float) -> Fraction:
    """Add up what every row costs; a price is a number or the name of a column."""
    sum_ = Fraction(0)
    for row in rows:
        price = prices[outcome(row, row["score"] >= cut)]
        sum_ += Fraction(row[price] if isinstance(price, str) else price) * row["weight"]
    return sum_


def cheapest(rows: list[dict[str, Any]], prices: dict[str, Any]) -> tuple[Fraction, float]:
    """Try every cut; the highest of the cheapest."""
    cuts = [*sorted({row["score"] for row in rows}), math.inf]
    lowest = min(total(rows, prices, cut) for cut in cuts)
    return lowest, max(cut for cut in cuts if total(rows, prices, cut) == lowest)


def write(rows: list[dict[str, Any]], name: str = "rows.csv") -> None:
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    Path(name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", range(40))
def test_costs_per_row_just_work(seed: int) -> None:
    rows = drawn(seed)
    column: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    given: Any = {"false_negative": np.array(column["fn"]), "weights": column["weight"]}
    best = limen.optimal_threshold(column["score"], column["label"], false_positive=3, **given)
    curve = limen.loss_curve(column["score"], column["label"], false_positive=3, **given)

    prices = {"tp": 0, "fp": 3, "fn": "fn", "tn": 0}
    lowest, cut = cheapest(rows, prices)

    assert best.loss == lowest == curve.losses.min()
    held = [row for row in rows if row["weight"] * (3 if not row["label"] else row["fn"])]
    assert best.predict([row["score"] for row in held]).tolist() == [
        int(row["score"] >= cut) for row in held
    ]
    falling: Any = limen.optimal_threshold(
        [-score for score in column["score"]],
        column["label"],
        false_positive=3,
        direction="<=",
        **given,
    )
    assert falling.loss == best.loss
    assert falling.threshold == -best.threshold


def test_costs_per_row_of_any_kind_are_refused_by_name() -> None:
    for cost, words in (
        ([1, -2], r"false_negative\[1\] is -2; .*cost_matrix"),
        ([1, math.nan], r"false_negative\[1\] is nan"),
        ([1, 2, 3], "labels has 2, false_negative has 3"),
    ):
        with pytest.raises(ValueError, match=words):
            limen.optimal_threshold([0.1, 0.2], [0, 1], false_negative=cost)
    with pytest.raises(ValueError, match="weights"):
        limen.optimal_threshold([0.1, 0.2], [0, 1], false_negative=[1, 2], weights=[1, -1])


PRICES: dict[str, dict[str, Any]] = {
    "--true-positive -5 --true-negative 0": {"tp": -5, "fp": 1, "fn": 1, "tn": 0},
    "--false-negative 0 --true-positive -0.5 --true-negative -1/4": {
        "tp": "-0.5",
        "fp": 1,
        "fn": 0,
        "tn": "-0.25",
    },
    "--false-negative-column fn --false-positive 2": {"tp": 0, "fp": 2, "fn": "fn", "tn": 0},
    "--true-positive-column tp --false-positive-column fp --false-negative 9 --true-negative -1": {
        "tp": "tp",
        "fp": "fp",
        "fn": 9,
        "tn": -1,
    },
}


def asked(text: str) -> list[str]:
    return [word if "/" not in word else "-0.25" for word in text.split()]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("text", PRICES)
def test_fit_compare_and_curve_add_up_every_row(run: Any, text: str, seed: int) -> None:
    rows = drawn(seed)
    write(rows)
    prices = {name: Fraction(p) if p not in rows[0] else p for name, p in PRICES[text].items()}
    given = ["rows.csv", "--weight-column", "weight", *asked(text)]
    lowest, _ = cheapest(rows, prices)

    code, out, err = run("fit", *given, "--json")
    facts = json.loads(out)
    assert (0, float(lowest)) == (code, facts["loss"]), err
    assert total(rows, prices, float(facts["threshold"])) == lowest
    assert facts["confusion"]["tp"] == sum(
        row["weight"] for row in rows if row["label"] and row["score"] >= float(facts["threshold"])
    )
    assert f"cost {float(lowest):,.6g}".rstrip("0").rstrip(".") in err

    _, out, _ = run("compare", *given, "-t", "0.3", "-t", "-inf", "-t", "nan", "--json")
    found = [each["loss"] for each in json.loads(out)["thresholds"]]
    assert [float(total(rows, prices, at)) for at in (0.3, -math.inf, math.inf)] == found

    _, out, _ = run("curve", *given, "--quiet")
    for line in out.splitlines()[1:]:
        threshold, loss = map(float, line.split(","))
        assert loss == float(total(rows, prices, threshold))


def test_a_column_of_amounts_chooses_the_threshold_for_new_rows_too(run: Any) -> None:
    scores, labels = load_phishing()
    rows = [
        {"score": score, "label": label, "amount": 1 + at % 7}
        for at, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]
    write(rows)
    given = ("rows.csv", "--false-negative-column", "amount", "--false-positive", "3", "--json")
    _, out, _ = run("fit", *given, "--current", "0.5", "--group-column", "label", "--quiet")
    facts = json.loads(out)

    weights = [row["amount"] if row["label"] else 3 for row in rows]
    expected = limen.recommend(scores, labels, weights=weights, current=0.5)
    assert (expected.threshold, list(expected.interval)) == (
        facts["recommended"],
        facts["interval"],
    )
    assert (expected.keep, "amount") == (facts["keep"], facts["false_negative"])


def test_new_rows_are_judged_by_their_own_costs(run: Any) -> None:
    rows = drawn(5, 60)
    for row in rows:
        row["weight"] = 1
    write(rows[:40], "past.csv")
    write(rows[40:], "later.csv")
    given = ("--check", "later.csv", "--false-negative-column", "fn", "--json", "--current", "0.3")
    code, out, err = run("fit", "past.csv", *given)
    check = json.loads(out)["check"]

    prices = {"tp": 0, "fp": 1, "fn": "fn", "tn": 0}
    exact, later = float(json.loads(out)["threshold"]), rows[40:]
    costs = {at: [total([row], prices, at) for row in later] for at in (0.3, exact)}
    mean = float(sum(costs[exact]) / 20)
    saved = [a - b for a, b in zip(costs[0.3], costs[exact], strict=True)]
    assert 0 == code, err
    assert mean == pytest.approx(check["exact"]["cost_per_row"]["mean"])
    assert float(sum(saved) / 20) == pytest.approx(check["exact"]["saving"]["per_row"])
    error = float(np.std([float(s) for s in saved], ddof=1)) / math.sqrt(20)
    low, high = check["exact"]["saving"]["interval"]
    assert 2 * 1.959964 * error == pytest.approx(high - low, rel=1e-5)
    assert check["exact"]["saving"]["share"] is None


def test_what_is_saved_holds_the_losses(run: Any) -> None:
    rows = drawn(2)
    write(rows)
    given = (
        "rows.csv",
        "--true-positive",
        "-5",
        "--save",
        "cut.limen",
        "--weight-column",
        "weight",
    )
    _, out, _ = run("fit", *given, "--quiet")
    _, shown, _ = run("show", "cut.limen", "--quiet")

    model = limen.load("cut.limen")
    assert ("OnlineCut", float(out)) == (json.loads(shown)["kind"], model.threshold)
    assert model.loss == float(cheapest(rows, {"tp": -5, "fp": 1, "fn": 1, "tn": 0})[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--true-positive 2", "--false-negative 1 must be more than --true-positive 2"),
        (
            "--false-positive 0",
            "--false-positive 0: the cost of a mistake is not a positive number",
        ),
        ("--true-positive -5 --min-recall 0.5", "Leave out --true-positive, or the demands"),
        ("--true-positive -5 --metric f1", "two aims"),
        ("--true-positive -5 --true-positive-column tp", "two costs of one thing"),
        ("--false-negative-column nothing", "for the false negative. There are"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Any, words: str, message: str) -> None:
    write(drawn(1))
    code, _, err = run("fit", "rows.csv", *words.split())

    assert code in (2, 3)
    assert message in err


def test_a_cost_that_is_no_number_names_its_place(run: Any) -> None:
    Path("bad.csv").write_text("score,label,amount\n0.1,0,5\n0.2,1,inf\n")
    code, _, err = run("fit", "bad.csv", "--false-negative-column", "amount")

    assert (3, True) == (code, "bad.csv, line 3, column amount: the cost is inf" in err)


def test_parquet_has_costs_too(run: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    write(drawn(4))
    with duckdb.connect() as connection:
        connection.execute("COPY (FROM 'rows.csv') TO 'rows.parquet' (FORMAT parquet)")
    given = ("--false-negative-column", "fn", "--group-column", "weight", "--quiet")

    assert run("fit", "rows.csv", *given) == run("fit", "rows.parquet", *given)


@pytest.mark.parametrize("name", ["false_positive", "false_negative"])
@pytest.mark.parametrize("search", [limen.optimal_threshold, limen.loss_curve])
def test_costs_of_another_length_are_refused_by_their_name(search: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"but labels has 4, {name} has 2"):
        search([1, 2, 3, 4], [0, 1, 0, 1], **{name: [1, 2]})
