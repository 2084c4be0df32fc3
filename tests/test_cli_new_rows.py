# SPDX-License-Identifier: Apache-2.0
"""What the command line says about new rows: recommended thresholds, checks and savings."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limen
from limen.cli import fit as fitting
from limen.cli import inputs
from limen.demo import load_phishing, phishing_csv
from limen.reporting import advice
from limen.trust.new_rows import cost_of_answers, saving

SCORES, LABELS = load_phishing()
FIVE = ("--false-negative", "5")


def write(name: str, *columns: Any, header: str = "score,label") -> None:
    rows = zip(*columns, strict=True)
    Path(name).write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def write_past_and_later() -> None:
    write("past.csv", SCORES[:1000], LABELS[:1000])
    write("later.csv", SCORES[1000:], LABELS[1000:])


# ---- fit ------------------------------------------------------------------------------------


def test_fit_shows_the_recommended_threshold_its_interval_and_the_exact_one(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    code, out, err = run("fit", "scores.csv", *FIVE)
    found = limen.recommend(SCORES, LABELS, false_negative=5)
    low, high = found.interval

    assert (0, f"{found.optimum.threshold!r}\n") == (code, out)
    assert [
        "1,250 rows: 548 positive, 702 negative",
        f"recommended for new rows: answer 1 when score >= {found.threshold:.6f}",
        f"  with 95 % confidence the best threshold lies between {low:.4g} and {high:.4g}",
        f"exact optimum of these samples: answer 1 when score >= {found.optimum.threshold:.6f}",
    ] == err.splitlines()[:4]
    assert max(map(len, err.splitlines())) <= 80


def test_the_recommended_threshold_is_printed_when_asked_for(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    code, out, err = run("fit", "scores.csv", *FIVE, "--recommended", "-q")

    assert (0, "") == (code, err)
    assert limen.recommend(SCORES, LABELS, false_negative=5).threshold == float(out)


def test_the_bare_threshold_takes_no_time_for_what_nobody_reads(run, monkeypatch) -> None:
    Path("scores.csv").write_text(phishing_csv())
    monkeypatch.setattr(fitting, "advice_on", None)

    assert 0 == run("fit", "scores.csv", "-q")[0]


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.99])
def test_the_confidence_is_that_of_the_interval(run, confidence) -> None:
    Path("scores.csv").write_text(phishing_csv())
    out = run("fit", "scores.csv", *FIVE, "--json", "--confidence", str(confidence))[1]
    found = limen.recommend(SCORES, LABELS, false_negative=5, confidence=confidence)

    assert [*found.interval, confidence] == [*json.loads(out)["interval"], found.confidence]


@pytest.mark.parametrize(("current", "keep"), [(0.45, True), (0.5, False), (math.nan, False)])
def test_the_current_threshold_is_kept_while_it_lies_inside(run, current, keep) -> None:
    Path("scores.csv").write_text(phishing_csv())
    _, out, err = run("fit", "scores.csv", *FIVE, "--json", "--current", str(current))
    facts = json.loads(out)
    reason = limen.recommend(SCORES, LABELS, false_negative=5, current=current).reason

    assert (keep, reason) == (facts["keep"], facts["reason"])
    assert f"  {'keep' if keep else 'change'} {current}" in err


def test_weights_count_as_they_do_in_the_library(run) -> None:
    weights = [1.5 + place % 4 for place in range(len(SCORES))]
    write("scores.csv", SCORES, LABELS, weights, header="score,label,w")
    given = ("fit", "scores.csv", *FIVE, "--weight-column", "w", "--json")
    facts, rounded = (json.loads(run(*given, *unit)[1]) for unit in ([], ["--unit", "2"]))
    found = limen.recommend(SCORES, LABELS, weights=weights, false_negative=5)
    whole = limen.recommend(
        SCORES, LABELS, weights=np.rint(np.array(weights) / 2), false_negative=5
    )

    assert (found.threshold, [*found.interval]) == (facts["recommended"], facts["interval"])
    assert (whole.threshold, [*whole.interval]) == (rounded["recommended"], rounded["interval"])
    assert whole.optimum.threshold == rounded["threshold"]


def test_demands_are_recommended_at_the_cut_where_new_rows_meet_them(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    model = limen.OnlineCalibrator()
    model.update_many(SCORES, LABELS)
    sure = model.best("recall", min_precision=0.9, confidence=0.95)
    _, out, err = run("fit", "scores.csv", "--min-precision", "0.9", "--json")
    facts = json.loads(out)

    assert sure.threshold == facts["recommended"]
    assert (None, None) == (facts["interval"], facts["regret"])
    assert "  with 95 % confidence new rows meet min_precision=0.9" in err.splitlines()


FEW = "score,label,w\n" + "".join(f"0.{place},{place % 2},1\n" for place in range(1, 9))
REFUSED = {
    "few": ([], 3, "from 4 samples of label 1: it takes 5 of each label"),
    "metric": (["--metric", "f1"], 2, "by f1: that works only with costs and demands"),
    "demands": (["--min-precision", "0.5"], 5, "8 samples are too few to be sure at 95 %"),
    "weights": (["--min-recall", "0.5", "--weight-column", "w"], 5, "where all rows weigh 1"),
}


@pytest.mark.parametrize(("given", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_recommended_is_one_line_and_null(run, given, code, words) -> None:
    Path("few.csv").write_text(FEW)
    done, out, err = run("fit", "few.csv", *given, "--json")
    facts = json.loads(out)
    asked = run("fit", "few.csv", *given, "--recommended")

    assert 0 == done
    assert (None, None, None) == tuple(
        facts[name] for name in ("recommended", "interval", "regret")
    )
    assert words in facts["reason"]
    assert [f"for new rows: {facts['reason']}"] == [
        line for line in err.splitlines() if "new rows:" in line
    ]
    assert (code, "") == asked[:2]


def test_rows_beyond_memory_have_no_recommended_threshold_to_print(run, monkeypatch) -> None:
    Path("scores.csv").write_text(phishing_csv())
    monkeypatch.setattr(inputs, "_most_rows", lambda: 100)
    code, out, err = run("fit", "scores.csv", "--recommended")

    assert (1, "") == (code, out)
    assert "memory does not hold all rows" in err


def test_memory_that_suffices_for_the_exact_optimum_alone_is_enough(run, monkeypatch) -> None:
    def fail(*given: Any, **named: Any) -> None:
        raise MemoryError

    Path("scores.csv").write_text(phishing_csv())
    monkeypatch.setattr(advice, "recommend", fail)
    code, out, err = run("fit", "scores.csv", *FIVE)

    assert (0, limen.optimal_threshold(SCORES, LABELS, false_negative=5).threshold) == (
        code,
        float(out),
    )
    assert "as memory does not suffice for it" in err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["fit", "--confidence", "0.5"], "--confidence must be one of 0.8, 0.9, 0.95, 0.99"),
        (["fit", "--confidence", "95"], "not a share"),
        (["compare", "-t", "0", "--confidence", "0.7"], "--confidence must be one of"),
        (["fit", "--group-column", "g", "--confidence", "0.9"], "Leave --confidence out"),
        (["fit", "--metric", "f1", "--recommended"], "not with --metric f1"),
        (["fit", "--current", "half"], "'half' is not a number"),
    ],
)
def test_options_about_new_rows_are_refused_before_files_are_read(run, given, words) -> None:
    code, out, err = run(given[0], "absent.csv", *given[1:])

    assert (2, "") == (code, out)
    assert words in err


def test_infinite_scores_and_thresholds_are_shown(run) -> None:
    write("ends.csv", [-math.inf] * 6 + [math.inf] * 6, [1] * 6 + [0] * 6)
    code, out, err = run("fit", "ends.csv", "--json")
    found = limen.recommend([-math.inf] * 6 + [math.inf] * 6, [1] * 6 + [0] * 6)
    facts = json.loads(out)

    assert 0 == code
    assert repr(found.threshold) == facts["recommended"]
    assert [repr(end) for end in found.interval] == facts["interval"]
    assert "recommended for new rows: answer" in err


# ---- check ----------------------------------------------------------------------------------


def test_check_shows_what_both_thresholds_cost_on_other_rows(run) -> None:
    write_past_and_later()
    code, out, err = run("fit", "past.csv", "--check", "later.csv", *FIVE, "--json")
    found = limen.recommend(SCORES[:1000], LABELS[:1000], false_negative=5)
    labels, scores = np.asarray(LABELS[1000:], np.uint8), np.asarray(SCORES[1000:])
    check = json.loads(out)["check"]

    assert (0, "later.csv", 250, 121) == (
        code,
        *(check[n] for n in ("file", "samples", "positives")),
    )
    for key, threshold in (("exact", found.optimum.threshold), ("recommended", found.threshold)):
        answers = scores >= threshold
        alarms, missed = int((answers & (labels == 0)).sum()), int((~answers & (labels == 1)).sum())
        cost = cost_of_answers(labels, answers, false_negative=5)
        assert (threshold, alarms + 5 * missed) == (check[key]["threshold"], check[key]["loss"])
        assert (alarms, missed) == (check[key]["confusion"]["fp"], check[key]["confusion"]["fn"])
        assert {
            "mean": (alarms + 5 * missed) / 250,
            "interval": [*cost.interval],
            "errors": alarms + missed,
        } == check[key]["cost_per_row"]
        assert f"cost {alarms + 5 * missed}, {cost}" in err
    saved = saving(
        labels, scores >= found.optimum.threshold, scores >= found.threshold, false_negative=5
    )
    assert {
        "against": "exact",
        "per_row": saved.per_row,
        "interval": [*saved.interval],
        "share": saved.per_row / saved.before,
        "rows": saved.rows,
        "distinguishable": saved.distinguishable,
    } == check["recommended"]["saving"]
    assert check["exact"]["saving"] is None


def test_check_prints_the_threshold_and_lines_that_fit_a_terminal(run) -> None:
    write_past_and_later()
    _, out, err = run("fit", "past.csv", "--check", "later.csv", *FIVE, "--current", "0.5")

    assert limen.optimal_threshold(
        SCORES[:1000], LABELS[:1000], false_negative=5
    ).threshold == float(out)
    assert "on later.csv, 250 rows that had no part in the choice:" in err
    assert "  current 0.5: cost 73, 0.292 per row" in err
    assert "    not distinguishable from 0.5 at 95 % (saves -0.2% to 60.5%)" in err.splitlines()
    assert max(map(len, err.splitlines())) <= 80


def test_check_by_a_metric_or_demands_shows_the_value_and_what_is_met(run) -> None:
    write_past_and_later()
    given = ("fit", "past.csv", "--check", "later.csv", "--json")
    by_metric = json.loads(run(*given, "--metric", "f1")[1])["check"]
    _, out, err = run(*given, "--min-precision", "0.97")
    check = json.loads(out)["check"]

    assert {"file", "samples", "positives", "exact"} == set(by_metric)
    assert limen.metrics.f1(**by_metric["exact"]["confusion"]) == by_metric["exact"]["value"]
    right = limen.Confusion(**check["exact"]["confusion"])
    assert right.recall == check["exact"]["value"]
    meets = "meets" if right.precision >= 0.97 else "does not meet"
    assert f"    {meets} min_precision=0.97: {right.precision:.2%}" in err.splitlines()


def test_check_of_costs_under_demands_shows_both(run) -> None:
    write_past_and_later()
    given = ("fit", "past.csv", "--check", "later.csv", *FIVE, "--min-precision", "0.9")
    _, out, err = run(*given, "--json")
    exact = json.loads(out)["check"]["exact"]

    assert exact["confusion"]["fp"] + 5 * exact["confusion"]["fn"] == exact["value"]
    assert exact["value"] / 250 == exact["cost_per_row"]["mean"]
    assert "per row" in err
    assert "    meets min_precision=0.9: 91.45%" in err.splitlines()


def test_check_answers_each_row_by_the_threshold_of_its_group(run) -> None:
    teams = ["ab"[place % 2] for place in range(1250)]
    header = "score,label,team"
    shifted = [
        score / 4 if team == "b" else score for score, team in zip(SCORES, teams, strict=True)
    ]
    write("past.csv", shifted[:1000], LABELS[:1000], teams[:1000], header=header)
    write("later.csv", shifted[1000:], LABELS[1000:], ["new", *teams[1001:]], header=header)
    given = ("--group-column", "team", *FIVE, "--json")
    facts = json.loads(run("fit", "past.csv", "--check", "later.csv", *given)[1])
    columns = teams[:1000], shifted[:1000], LABELS[:1000]
    shrunk = limen.by_group(*columns, false_negative=5, shrink=True)
    exact = limen.by_group(*columns, false_negative=5)
    later = ["new", *teams[1001:]], shifted[1000:]

    assert {"a": "own", "b": "all"} == {part["group"]: part["basis"] for part in facts["groups"]}
    for key, found in (("exact_by_group", exact), ("recommended_by_group", shrunk)):
        answers = found.predict(*later)
        labels = np.asarray(LABELS[1000:])
        wrong = ((answers == 1) & (labels == 0)).sum() + 5 * ((answers == 0) & (labels == 1)).sum()
        assert (None, wrong) == (facts["check"][key]["threshold"], facts["check"][key]["loss"])
    assert "exact" == facts["check"]["recommended_by_group"]["saving"]["against"]


@pytest.mark.parametrize(
    ("check", "code", "words"),
    [
        ("bad.csv", 3, "bad.csv, line 3, column score: 'high' is not a number"),
        ("other.csv", 3, "other.csv, line 1: it has no column 'score'"),
        ("empty.csv", 3, "empty.csv: no rows. Some are needed."),
        ("absent.csv", 4, "absent.csv does not exist"),
        ("past.csv", 2, "past.csv is named twice; a check needs rows"),
        ("link.csv", 2, "link.csv and past.csv are the same file; a check needs rows"),
        ("*.none", 4, "no file matches *.none"),
    ],
)
def test_what_is_wrong_with_the_rows_to_check_is_named_and_nothing_is_saved(
    run, check, code, words
) -> None:
    write_past_and_later()
    Path("bad.csv").write_text("score,label\n0.1,0\nhigh,1\n")
    Path("other.csv").write_text("p,label\n0.1,0\n")
    Path("empty.csv").write_text("score,label\n")
    Path("link.csv").symlink_to("past.csv")
    done, out, err = run("fit", "past.csv", "--check", check, "--save", "model.limen")

    assert (code, "") == (done, out)
    assert err.startswith("limen: ")
    assert words in err
    assert not os.path.exists("model.limen")


def test_standard_input_cannot_be_both_chosen_on_and_checked(run) -> None:
    assert 2 == run("fit", "-", "--check", "-")[0]


def test_rows_of_one_class_can_be_checked(run) -> None:
    write_past_and_later()
    write("ones.csv", [0.1, 0.9, 0.95], [1, 1, 1])
    code, out, err = run("fit", "past.csv", "--check", "ones.csv", *FIVE, "--json")

    assert 0 == code
    assert 5 == json.loads(out)["check"]["exact"]["loss"]
    assert "from only 1 error\n" in err


def test_rows_beyond_memory_are_checked_at_the_exact_threshold(run, monkeypatch) -> None:
    write_past_and_later()
    monkeypatch.setattr(inputs, "_most_rows", lambda: 300)
    out = run("fit", "past.csv", "--check", "later.csv", *FIVE, "--json")[1]

    assert 64 == json.loads(out)["check"]["exact"]["loss"]
    assert "recommended" not in json.loads(out)["check"]


# ---- compare --------------------------------------------------------------------------------


def test_compare_says_whether_a_threshold_may_be_the_best(run) -> None:
    Path("scores.csv").write_text(phishing_csv())
    given = ("compare", "scores.csv", *FIVE)
    outside, inside = run(*given, "-t", "0.5")[2], run(*given, "-t", "0.45")[2]

    assert "  outside: for new rows it is not the best threshold" in outside.splitlines()
    assert "  inside: not distinguishable from the optimum at 95 %" in inside.splitlines()
    assert outside.startswith(
        "with 95 % confidence the best threshold lies between 0.1971 and 0.49"
    )
    assert "Savings" not in outside
    assert max(map(len, (outside + inside).splitlines())) <= 80


def test_compare_gives_the_saving_against_the_first_threshold(run) -> None:
    write_past_and_later()
    given = ("compare", "later.csv", *FIVE, "-t", "0.5", "-t", "0.342", "-t", "0.9", "-t", "0.5")
    _, out, err = run(*given, "--json")
    facts = json.loads(out)
    scores, labels = np.asarray(SCORES[1000:]), np.asarray(LABELS[1000:], np.uint8)
    found = limen.recommend(scores, labels, false_negative=5)

    assert (found.threshold, [*found.interval]) == (facts["recommended"], facts["interval"])
    assert facts["thresholds"][0]["saving"] is None
    for row in facts["thresholds"]:
        kept = limen.recommend(scores, labels, false_negative=5, current=row["threshold"])
        assert (kept.keep, kept.reason) == (row["keep"], row["reason"])
    for row in facts["thresholds"][1:]:
        each = saving(labels, scores >= 0.5, scores >= row["threshold"], false_negative=5)
        assert ("0.5", each.per_row) == (row["saving"]["against"], row["saving"]["per_row"])
        assert each.distinguishable == row["saving"]["distinguishable"]
    lines = [line.strip() for line in err.splitlines()]
    assert "saves 35.6% against 0.5 (2.3% to 68.9%)" in lines
    assert any(line.startswith("costs ") and "more than 0.5" in line for line in lines)
    assert "gives the same answers as 0.5" in lines
    assert "Savings hold for new rows only if these rows chose neither threshold." == lines[-1]


def test_compare_of_few_samples_says_so_once(run) -> None:
    Path("few.csv").write_text(FEW)
    code, out, err = run("compare", "few.csv", "-t", "0.5", "-t", "0.25", "--json")

    assert 0 == code
    assert [None, None] == [row["keep"] for row in json.loads(out)["thresholds"]]
    assert 1 == err.count("it takes 5 of each label")


# ---- groups ---------------------------------------------------------------------------------


def test_groups_have_the_shrunk_threshold_its_interval_and_what_it_rests_on(run) -> None:
    teams = ["large"] * 700 + ["other"] * 500 + ["tiny"] * 50
    labels = [*LABELS[:700], *(1 - label for label in LABELS[700:1200]), *([1] * 50)]
    write("teams.csv", SCORES, labels, teams, header="score,label,team")
    given = ("fit", "teams.csv", "--group-column", "team", *FIVE)
    code, out, err = run(*given)
    facts = json.loads(run(*given, "--json", "-q")[1])
    shrunk = limen.by_group(teams, SCORES, labels, false_negative=5, shrink=True)
    rows = {row["team"]: row for row in csv.DictReader(io.StringIO(out))}

    assert 0 == code
    assert {"large": ("own", "0"), "other": ("all", "0"), "tiny": ("all", "1")} == {
        name: (row["basis"], row["few"]) for name, row in rows.items()
    }
    for part in facts["groups"]:
        each, row = shrunk.recommendation(part["group"]), rows[part["group"]]
        ends = ["", ""] if each.interval is None else [repr(end) for end in each.interval]
        assert [repr(each.threshold), *ends] == [row[n] for n in ("recommended", "low", "high")]
        assert (part["basis"], part["few"]) == (row["basis"], row["few"] == "1")
        assert each.samples == part["samples"] == int(row["samples"])
        assert (part["interval"] is None) == (each.interval is None)
    assert "1 of 3 groups rest on few samples" in err


def test_a_group_that_does_not_object_has_the_recommended_threshold_of_all(run) -> None:
    teams = ["ab"[place % 2] for place in range(1250)]
    write("teams.csv", SCORES, LABELS, teams, header="score,label,team")
    facts = json.loads(run("fit", "teams.csv", "--group-column", "team", "--json", *FIVE)[1])

    assert [facts["recommended"]] * 2 == [part["recommended"] for part in facts["groups"]]
    assert ["all", "all"] == [part["basis"] for part in facts["groups"]]


def test_groups_by_a_metric_keep_their_columns_empty(run) -> None:
    teams = ["ab"[place % 2] for place in range(1250)]
    write("teams.csv", SCORES, LABELS, teams, header="score,label,team")
    out = run("fit", "teams.csv", "--group-column", "team", "--metric", "f1")[1]

    assert [["", "", "", "", "0"]] * 2 == [row.split(",")[5:] for row in out.splitlines()[1:]]
