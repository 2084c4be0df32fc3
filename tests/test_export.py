# SPDX-License-Identifier: Apache-2.0
"""Rules that others run answer as `predict` does: SQL in two databases, JSON, Python, and files."""

from __future__ import annotations

import csv
import io
import json
import math
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from streams import EFFORT

import limen
from limen import Budget, Fading, Grouped, LastN, LastPeriod, Ledger, OnlineThreshold
from limen.aim import Aim
from limen.export import OtherAim, Rule

INF, NAN = math.inf, math.nan
SCORES = (-INF, -1e300, -2.0, -0.5, -5e-324, -0.0, 0.0, 5e-324, 0.1, 0.3, 0.5, 2.0, 1e300, INF)
GROUPS = ("de", "fr", "it's", 'a "b', "", "ß €", "null", "1")
Answers = list[int | None]

scores = st.one_of(st.sampled_from(SCORES), st.floats(allow_nan=False))
directions = st.sampled_from([">=", "<="])


@st.composite
def rules(draw: Any, groups: bool = True) -> Rule:
    thresholds = st.one_of(scores, st.just(NAN))
    own = None
    if groups and draw(st.booleans()):
        path = st.lists(st.sampled_from(GROUPS), min_size=1, max_size=2).map(tuple)
        own = draw(st.dictionaries(path, thresholds, max_size=5))
    return Rule(draw(thresholds), draw(directions), own)


@st.composite
def rules_and_rows(draw: Any) -> tuple[Rule, list[float], list[tuple[str, str]]]:
    rule = draw(rules())
    known = [rule.threshold, *(rule.groups or {}).values()]
    near = [value for value in known if not math.isnan(value)]
    near += [math.nextafter(value, side) for value in near for side in (-INF, INF)]
    chosen = draw(st.lists(st.one_of(scores, st.sampled_from(near or [0.0])), min_size=1))
    pairs = st.tuples(st.sampled_from(GROUPS), st.sampled_from(GROUPS))
    paths = draw(st.lists(pairs, min_size=len(chosen), max_size=len(chosen)))
    return rule, chosen, paths


def expected(rule: Rule, values: list[float], paths: list[tuple[str, str]]) -> Answers:
    """By the words of the documentation: the smallest group that has a threshold, else all."""
    found: Answers = []
    for score, path in zip(values, paths, strict=True):
        own = rule.groups or {}
        threshold = own.get(path, own.get(path[:1], rule.threshold))
        found.append(int(score >= threshold if rule.direction == ">=" else score <= threshold))
    return found


def by_sql(connection: Any, rule: Rule, values: list[Any], paths: list[Any]) -> Answers:
    """Answers of a database, in the order of the rows."""
    text = "VARCHAR" if connection is not SQLITE else "TEXT"
    connection.execute("DROP TABLE IF EXISTS given")
    connection.execute(
        f'CREATE TABLE given (place INTEGER, score DOUBLE, "big" {text}, sub {text})'
    )
    rows = [(at, score, *path) for at, (score, path) in enumerate(zip(values, paths, strict=True))]
    connection.executemany("INSERT INTO given VALUES (?, ?, ?, ?)", rows)
    columns = () if rule.groups is None else ("big", "sub")
    sql = rule.as_sql(groups=columns)
    return [
        row[0] for row in connection.execute(f"SELECT {sql} FROM given ORDER BY place").fetchall()
    ]


SQLITE = sqlite3.connect(":memory:")


@given(rules_and_rows())
@settings(max_examples=150 * EFFORT)
def test_duckdb_answers_as_the_rule_does(given_: Any) -> None:
    connection = pytest.importorskip("duckdb").connect()

    assert expected(*given_) == by_sql(connection, *given_)


@given(rules_and_rows())
@settings(max_examples=300 * EFFORT)
def test_sqlite_answers_as_the_rule_does(given_: Any) -> None:
    for threshold in (given_[0].threshold, *(given_[0].groups or {}).values()):
        if math.isfinite(threshold):  # it reads some numbers below 1e-290 as their neighbours
            assume((threshold,) == SQLITE.execute(f"SELECT {threshold!r}").fetchone())
    assert expected(*given_) == by_sql(SQLITE, *given_)


@pytest.mark.parametrize("direction", [">=", "<="])
@pytest.mark.parametrize("threshold", [-INF, 0.5, INF, NAN])
@pytest.mark.parametrize("groups", [None, {}, {("de",): 0.25}])
def test_sql_answers_null_to_what_predict_refuses(direction: Any, threshold: float, groups) -> None:
    connection = pytest.importorskip("duckdb").connect()
    rule = Rule(threshold, direction, groups)
    found = by_sql(connection, rule, [NAN, None, -NAN], [("de", "x")] * 3)
    unnamed = by_sql(connection, rule, [1.0, 1.0], [(None, "x"), ("de", None)])

    assert [None, None, None] == found
    assert groups is None or [None, None] == unnamed


def test_sql_answers_whole_numbers_down_to_the_lowest() -> None:
    connection = pytest.importorskip("duckdb").connect()
    sql = Rule(-0.5).as_sql("n")
    numbers = "(VALUES (-9223372036854775808), (-1), (0), (9223372036854775807)) AS t(n)"

    assert [(0,), (0,), (1,), (1,)] == connection.execute(f"SELECT {sql} FROM {numbers}").fetchall()


@given(rules_and_rows())
def test_python_without_limen_answers_as_the_rule_does(given_: Any) -> None:
    rule, values, paths = given_
    made: dict[str, Any] = {}
    exec(rule.as_python(), made)
    predict: Callable[..., int] = made["predict"]
    if rule.groups is None:
        found = [predict(score) for score in values]
    else:
        found = [predict(path, score) for score, path in zip(values, paths, strict=True)]

    assert expected(*given_) == found


def test_python_refuses_what_predict_refuses() -> None:
    one: dict[str, Any] = {}
    exec(Rule(0.5).as_python(), one)
    many: dict[str, Any] = {}
    exec(Rule(0.5, groups={("de",): 0.25}).as_python(), many)

    with pytest.raises(ValueError, match="nan"):
        one["predict"](NAN)
    with pytest.raises(ValueError, match="nan"):
        many["predict"]("de", NAN)
    for group in (None, (), ("de", None), NAN):
        with pytest.raises(ValueError, match="names no group"):
            many["predict"](group, 0.5)


def test_python_of_a_rule_needs_no_limen_nor_any_other_module(tmp_path: Path) -> None:
    program = Rule(0.5, groups={("de", 1, True, 2.5, b"x"): INF}).as_python()
    (tmp_path / "rule.py").write_text(program + "\nprint(predict('fr', 0.7))\n")
    command = [sys.executable, "-I", "-S", str(tmp_path / "rule.py")]

    assert "1\n" == subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "import" not in program


@given(rules_and_rows())
def test_json_says_all_that_is_needed_to_answer(given_: Any) -> None:
    rule, values, paths = given_
    read = json.loads(rule.as_json())
    listed = {tuple(each["group"]): float(each["threshold"]) for each in read.get("groups", [])}
    again = Rule(float(read["threshold"]), read["direction"], listed)

    assert expected(rule, values, paths) == expected(again, values, paths)
    assert (rule.groups is not None) == ("groups" in read)


# ---- rules of models ----------------------------------------------------------------------------


def rows_of(seed: int, size: int = 60) -> tuple[Any, Any, list[str]]:
    random = np.random.default_rng(seed)
    given_scores = random.choice([*SCORES, *random.normal(size=8)], size)
    groups = random.choice(list("abc"), size)
    middle = random.normal(size=3)[np.searchsorted(["a", "b", "c"], groups)]
    labels = (given_scores > middle) ^ (random.random(size) < 0.1)
    return given_scores, labels.astype(int), groups.tolist()


def held(model: Any, seed: int, *times: str) -> Any:
    xs, ys, groups = rows_of(seed)
    extra = {"times": np.arange(len(xs))} if times else {}
    columns = (groups, xs, ys) if isinstance(model, Grouped) else (xs, ys)
    model.update_many(*columns, **extra)
    return model


def ledger_of(model: Any, seed: int) -> Ledger[Any]:
    ledger = Ledger(model)
    xs, ys, groups = rows_of(seed)
    for at, (score, label, group) in enumerate(zip(xs, ys, groups, strict=True)):
        ledger.score(at, score, **({"group": group} if isinstance(model, Grouped) else {}))
        ledger.label(at, int(label))
    return ledger


def cut_of(model: Any, seed: int) -> Any:
    xs, ys, _ = rows_of(seed)
    model.update_many(xs, ys, 1 - ys)
    return model


def budget_of(seed: int, direction: Any) -> Budget:
    budget = Budget(max_positives=20, direction=direction)
    budget.update_many(rows_of(seed)[0])
    return budget


KINDS: dict[str, Callable[[int, Any], Any]] = {
    "threshold": lambda seed, way: held(OnlineThreshold(false_negative=3, direction=way), seed),
    "cut": lambda seed, way: cut_of(limen.OnlineCut(direction=way), seed),
    "bounded": lambda seed, way: held(limen.BoundedThreshold(capacity=8, direction=way), seed),
    "bounded cut": lambda seed, way: cut_of(limen.BoundedCut(capacity=8, direction=way), seed),
    "last n": lambda seed, way: held(LastN(OnlineThreshold(direction=way), 20), seed),
    "period": lambda seed, way: held(LastPeriod(OnlineThreshold(direction=way), 20), seed, "times"),
    "fading": lambda seed, way: held(Fading(OnlineThreshold(direction=way), half_life=9), seed),
    "ledger": lambda seed, way: ledger_of(OnlineThreshold(direction=way), seed),
    "budget": budget_of,
    "grouped": lambda seed, way: held(Grouped(OnlineThreshold(direction=way), at_least=18), seed),
    "groups of windows": lambda seed, way: held(
        Grouped(LastPeriod(OnlineThreshold(direction=way), 30), at_least=9), seed, "times"
    ),
    "ledger of groups": lambda seed, way: ledger_of(
        Grouped(OnlineThreshold(direction=way), at_least=18), seed
    ),
    "empty": lambda seed, way: OnlineThreshold(direction=way),
    "empty groups": lambda seed, way: Grouped(OnlineThreshold(direction=way)),
}
ANY_AIM = {
    "calibrator": lambda seed: held(limen.OnlineCalibrator(), seed),
    "bounded calibrator": lambda seed: held(limen.BoundedCalibrator(capacity=8), seed),
    "groups of calibrators": lambda seed: held(
        Grouped(limen.OnlineCalibrator(), at_least=18), seed
    ),
}


def predicted(model: Any, values: list[float], groups: list[str], **costs: Any) -> list[int]:
    grouped = isinstance(getattr(model, "model", model), Grouped) or isinstance(model, Grouped)
    return list(
        model.predict(groups, values, **costs) if grouped else model.predict(values, **costs)
    )


def asked_about(rule: Rule, seed: int) -> tuple[list[float], list[str]]:
    """Rows at every threshold, beside it, and at odd scores; of groups seen and not."""
    thresholds = [rule.threshold, *(rule.groups or {}).values()]
    near = [value for value in thresholds if not math.isnan(value)]
    near += [math.nextafter(value, side) for value in near for side in (-INF, INF)]
    values = [*SCORES, *near, *rows_of(seed + 1)[0].tolist()]
    names = ["a", "b", "c", "new"]
    return [each for each in values for _ in names], names * len(values)


@pytest.mark.parametrize("way", [">=", "<="])
@pytest.mark.parametrize("kind", KINDS)
def test_every_export_answers_as_the_model_does(kind: str, way: Any) -> None:
    connection = pytest.importorskip("duckdb").connect()
    for seed in range(3):
        model = KINDS[kind](seed, way)
        rule = Rule.of(model)
        values, groups = asked_about(rule, seed)
        answers = predicted(model, values, groups)
        pairs = [(group, group) for group in groups]
        made: dict[str, Any] = {}
        exec(rule.as_python(), made)
        by_group = rule.groups is not None
        rows = zip(groups, values, strict=True)

        assert answers == by_sql(connection, rule, values, pairs)
        assert answers == by_sql(SQLITE, rule, values, pairs)
        assert answers == [made["predict"](*(row if by_group else row[1:])) for row in rows]


@pytest.mark.parametrize("kind", ANY_AIM)
def test_a_model_for_any_aim_exports_the_rule_of_the_aim(kind: str) -> None:
    model = ANY_AIM[kind](1)
    costs: dict[str, Any] = {"false_positive": 1, "false_negative": 4}
    rule = Rule.of(model, Aim.of(**costs))
    values, groups = asked_about(rule, 1)

    found = [rule.answer(score, (name,)) for score, name in zip(values, groups, strict=True)]
    assert predicted(model, values, groups, **costs) == found
    with pytest.raises(OtherAim, match="any aim"):
        Rule.of(model)


def test_a_model_with_costs_of_its_own_has_no_rule_of_others() -> None:
    model = held(OnlineThreshold(false_negative=5), 1)

    assert Rule.of(model) == Rule.of(model, Aim.of(false_negative=5))
    with pytest.raises(OtherAim):
        Rule.of(model, Aim.of(false_negative=4))
    with pytest.raises(OtherAim):
        Rule.of(model, Aim.of(metric=limen.metrics.f1))
    with pytest.raises(TypeError, match="Evidence answers no rows"):
        Rule.of(limen.Evidence(0.5, 0.4))


def test_answers_and_optima_are_exported_too() -> None:
    xs, ys, _ = rows_of(3)
    found = limen.optimal_threshold(xs, ys, direction="<=")

    assert Rule(found.threshold, "<=") == Rule.of(found)
    numbers = np.linspace(0, 1, 64)
    advice = limen.recommend(numbers, numbers > 0.5)
    assert Rule(advice.threshold) == Rule.of(advice)


@pytest.mark.parametrize("way", [">=", "<="])
@pytest.mark.parametrize("shrink", [False, True])
def test_thresholds_by_group_are_exported_too(way: Any, shrink: bool) -> None:
    xs, ys, groups = rows_of(4, 200)
    found = limen.by_group(groups, xs, ys, at_least=60, direction=way, shrink=shrink)
    rule = Rule.of(found)
    values, names = asked_about(rule, 4)

    answers = [rule.answer(score, (name,)) for score, name in zip(values, names, strict=True)]
    assert list(found.predict(names, values)) == answers


@pytest.mark.parametrize("part", ["a\0b", "\ud800", (1, 2), 3j])
def test_a_group_that_a_language_cannot_write_is_refused(part: Any) -> None:
    rule = Rule(0.5, groups={(part,): 0.25})

    for write in (rule.as_sql, rule.as_json, rule.as_python):
        with pytest.raises(ValueError, match="cannot be written in"):
            write()


def test_levels_without_a_column_are_refused() -> None:
    with pytest.raises(ValueError, match="2 levels"):
        Rule(0.5, groups={("de", "bonn"): 0.25}).as_sql(groups=["country"])
    with pytest.raises(ValueError, match="no groups"):
        Rule(0.5).as_sql(groups=["country"])


# ---- the commands -------------------------------------------------------------------------------


def written_rows(values: list[float], groups: list[str]) -> None:
    """The same rows in every format, in order, with a column that needs quotes."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import ipc

    notes = [f'row "{at}", \n\n of many' if at % 3 == 0 else str(at) for at in range(len(values))]
    table = {"note": notes, "p": values, "shop": groups}
    text = io.StringIO()
    plain = csv.writer(text)  # with \r\n
    plain.writerows([tuple(table), *zip(*table.values(), strict=True)])
    Path("rows.csv").write_text(text.getvalue(), newline="")
    Path("rows.tsv").write_text(text.getvalue().replace(",", "\t"), newline="")
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    Path("rows.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.table(table), "rows.parquet", row_group_size=7)
    with ipc.new_file("rows.arrow", pa.table(table).schema) as file:
        file.write_table(pa.table(table))


@pytest.mark.parametrize("way", [">=", "<="])
@pytest.mark.parametrize("kind", KINDS)
def test_apply_answers_every_format_as_the_model_does(run, kind: str, way: Any) -> None:
    pytest.importorskip("duckdb")
    model = KINDS[kind](5, way)
    model.save("kept.limen")
    rule = Rule.of(model)
    values, groups = asked_about(rule, 5)
    written_rows(values, groups)
    answers = predicted(model, values, groups)
    named = ["--score-column", "p", *(["--group-column", "shop"] * (rule.groups is not None))]
    for suffix in ("csv", "tsv", "parquet", "arrow", "ndjson"):
        code, out, err = run("apply", "kept.limen", f"rows.{suffix}", *named)

        assert 0 == code, err
        assert f"{len(values):,} rows, {sum(answers):,} predicted positive" in err
        if suffix == "ndjson":
            lines = [json.loads(line) for line in out.splitlines()]
            assert lines[0]["note"] == 'row "0", \n\n of many'
            assert answers == [line["answer"] for line in lines]
            continue
        table = csv.reader(io.StringIO(out, newline=""), delimiter="\t" if suffix == "tsv" else ",")
        header, *rows = table
        assert ["note", "p", "shop", "answer"] == header
        assert values == [float(row[1]) for row in rows]
        assert answers == [int(row[3]) for row in rows]


def test_apply_writes_rows_as_they_were_read(run) -> None:
    text = 'id;score;"a ""b"\r\n 1 ;0.50;x\r\n\r\n"2\n\n;";.7;""\r\n3;+4e-1; y'
    Path("rows.csv").write_text(text, newline="")
    code, out, _ = run("apply", "0.5", "rows.csv", "--answer-column", "is;1")

    assert 0 == code
    assert 'id;score;"a ""b";"is;1"\r\n 1 ;0.50;x;1\r\n"2\n\n;";.7;"";1\r\n3;+4e-1; y;0\n' == out


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("0.5", "011"),
        ("0.5 --lower-is-positive", "110"),
        ("-inf", "111"),
        ("nan", "000"),
        ("inf --lower-is-positive", "111"),
    ],
)
def test_apply_takes_a_number_for_the_threshold(run, words: str, answers: str) -> None:
    Path("rows.csv").write_text("score\n0.4\n0.5\n0.6\n")
    code, out, _ = run("apply", *words.split(), "rows.csv")

    assert (0, answers) == (code, "".join(line[-1] for line in out.splitlines()[1:]))


def test_apply_reads_several_files_with_one_header(run) -> None:
    Path("a.csv").write_text("score\n0.4\n")
    Path("b.csv").write_text("score\n0.5\n")
    Path("c.csv").write_text("score,id\n0.5,1\n")

    assert "score,answer\n0.4,0\n0.5,1\n" == run("apply", "0.5", "a.csv", "b.csv")[1]
    code, _, err = run("apply", "0.5", "a.csv", "c.csv")
    assert (2, True) == (code, "different columns" in err)


def test_apply_finds_groups_inside_groups_and_numbers_written_as_text(run) -> None:
    grouped = Grouped(OnlineThreshold(), at_least=2)
    paths = [("de", 1), ("de", 1), ("de", 2), ("fr", True), ("fr", True)]
    grouped.update_many(paths, [0.1, 0.3, 0.9, 0.5, 0.7], [0, 1, 0, 0, 1])
    grouped.save("kept.limen")
    Path("rows.csv").write_text("country,shop,score\nde,1,.2\nde,2,.2\nfr,true,.6\nxx,1,.2\n")
    code, out, err = run(
        *("apply", "kept.limen", "rows.csv", "--group-column", "country", "--group-column", "shop")
    )
    rows = [("de", 1), ("de", 2), ("fr", True), ("xx", 1)]

    assert 0 == code, err
    answers = [int(line[-1]) for line in out.splitlines()[1:]]
    assert list(grouped.predict(rows, [0.2, 0.2, 0.6, 0.2])) == answers
    assert {0, 1} == set(answers)


REFUSED = {
    "nan": ("score\n0.4\nnan\n", ["0.5"], 3, "line 3, column score: the score is nan"),
    "missing": ("score\n0.4\n\n", ["0.5"], 0, ""),
    "no column": ("p\n0.4\n", ["0.5"], 3, "Choose with --score-column"),
    "no group column": ("score\n0.4\n", ["g", "--group-column", "z"], 3, "--group-column."),
    "empty group": ("score,z\n1,\n", ["g", "--group-column", "z"], 3, "the group is missing"),
    "no group named": ("score\n0.4\n", ["g"], 2, "has groups. Name their column"),
    "groups of none": ("score\n0.4\n", ["m", "--group-column", "z"], 2, "has no groups"),
    "groups of a number": ("score\n0.4\n", ["1", "--group-column", "z"], 2, "no groups"),
    "costs of a number": ("score\n0.4\n", ["1", "--metric", "f1"], 2, "needs no costs"),
    "other costs": ("score\n0.4\n", ["m", "--false-negative", "7"], 2, "costs of its own"),
    "no aim": ("score\n0.4\n", ["any"], 2, "holds samples for any aim"),
    "other direction": ("score\n0.4\n", ["m", "--lower-is-positive"], 2, "higher scores mean"),
    "answer twice": ("score,answer\n1,2\n", ["0.5"], 2, "--answer-column"),
    "answer in JSON": ('{"score": 1, "answer": 2}\n', ["0.5"], 2, "line 1: the rows have"),
    "no file": ("score\n0.4\n", ["absent"], 4, "absent does not exist"),
    "no model": ("score\n0.4\n", ["e"], 2, "Evidence answers no rows"),
    "Parquet out": ("score\n1\n", ["1", "-o", "x.parquet"], 2, "limen show --as sql"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_apply_refuses_with_the_place_and_the_next_step(run, case: str) -> None:
    rows, words, code, message = REFUSED[case]
    held(OnlineThreshold(), 1).save("m")
    held(Grouped(OnlineThreshold()), 1).save("g")
    held(limen.OnlineCalibrator(), 1).save("any")
    limen.Evidence(0.5, 0.4).save("e")
    Path("rows").write_text(rows)
    output = [] if "-o" in words else ["-o", "answers"]
    found, _, err = run("apply", words[0], "rows", *words[1:], *output)

    assert code == found, err
    assert message in err
    assert (code == 0) == Path("answers").exists()  # all of it, or nothing


def test_apply_leaves_out_malformed_rows_where_it_is_asked_to(run) -> None:
    pytest.importorskip("duckdb")
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path("rows.csv").write_text("score\n0.4\nhigh\n0.6\n")
    pq.write_table(pa.table({"score": [0.4, None, NAN, 0.6]}), "rows.parquet")
    for name, skipped in (("rows.csv", "1 malformed row was"), ("rows.parquet", "2 malformed")):
        code, out, err = run("apply", "0.5", name, "--skip-malformed")

        assert (0, "score,answer\n0.4,0\n0.6,1\n") == (code, out)
        assert skipped in err
        code, out, err = run("apply", "0.5", name)
        assert 3 == code
        assert name in err


@pytest.mark.parametrize("language", ["sql", "json", "python"])
def test_show_writes_the_rule_as_the_library_does(run, language: str) -> None:
    model = held(Grouped(OnlineThreshold(), at_least=18), 2)
    model.save("kept.limen")
    names = ["--score-column", "p", "--group-column", "shop"] if language == "sql" else []
    code, out, _ = run("show", "kept.limen", "--as", language, *names)
    rule = Rule.of(model)
    shown = {"json": rule.as_json, "python": rule.as_python}.get(
        language, lambda: rule.as_sql("p", ["shop"])
    )()

    assert (0, shown.rstrip() + "\n") == (code, out)


def test_show_writes_the_rule_of_an_aim_or_says_that_it_needs_one(run) -> None:
    model = held(limen.OnlineCalibrator(), 2)
    model.save("any.limen")
    best = model.best(limen.metrics.f1).threshold
    code, out, _ = run("show", "any.limen", "--as", "json", "--metric", "f1")

    assert (0, best) == (code, float(json.loads(out)["threshold"]))
    assert 2 == run("show", "any.limen", "--as", "json")[0]
    assert 2 == run("show", "any.limen", "any.limen", "--as", "json")[0]
    assert 2 == run("show", "any.limen", "--score-column", "p")[0]
    assert 2 == run("show", "any.limen", "--as", "json", "--score-column", "p")[0]


def test_show_describes_alarms_and_budgets(run) -> None:
    limen.Alarm(0.5, min_precision=0.9).save("alarm.limen")
    budget_of(1, ">=").save("budget.limen")
    code, out, err = run("show", "alarm.limen", "budget.limen")
    alarm, budget = map(json.loads, out.splitlines())

    assert 0 == code, err
    assert (False, 0.5) == (alarm["raised"], alarm["threshold"])
    assert budget["threshold"] == budget_of(1, ">=").threshold
