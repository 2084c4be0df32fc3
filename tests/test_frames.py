# SPDX-License-Identifier: Apache-2.0
"""Columns and frames of every library are read alike, uncopied where they lie in one piece."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import limen
from limen import columns
from limen.columns import as_labels, as_numbers, as_scores, from_frame

SCORES = [0.1, 0.25, 0.5, 0.75]
LABELS = [0, 1, 0, 1]
WEIGHTS = [1, 2, 3, 4]


def pandas_columns(**of: list) -> dict:
    pandas = pytest.importorskip("pandas")
    return {name: pandas.Series(values) for name, values in of.items()}


def pandas_nullable_columns(**of: list) -> dict:
    pandas = pytest.importorskip("pandas")
    return {name: pandas.Series(values).convert_dtypes() for name, values in of.items()}


def pandas_arrow_columns(**of: list) -> dict:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    arrays = {name: pyarrow.array(values) for name, values in of.items()}
    return {
        name: pandas.Series(array, dtype=pandas.ArrowDtype(array.type))
        for name, array in arrays.items()
    }


def polars_columns(**of: list) -> dict:
    polars = pytest.importorskip("polars")
    return {name: polars.Series(values) for name, values in of.items()}


def arrow_columns(**of: list) -> dict:
    pyarrow = pytest.importorskip("pyarrow")
    return {name: pyarrow.array(values) for name, values in of.items()}


def arrow_chunks(**of: list) -> dict:
    pyarrow = pytest.importorskip("pyarrow")
    typed = {name: pyarrow.array(values).type for name, values in of.items()}
    return {
        name: pyarrow.chunked_array([values[:1], values[1:]], typed[name])
        for name, values in of.items()
    }


def arrow_only_columns(**of: list) -> dict:
    """Objects that offer the Arrow stream and nothing else."""
    chunks = arrow_chunks(**of)
    return {
        name: SimpleNamespace(__arrow_c_stream__=column.__arrow_c_stream__)
        for name, column in chunks.items()
    }


def dlpack_only_columns(**of: list) -> dict:
    return {name: DlpackOnly(np.array(values)) for name, values in of.items()}


class DlpackOnly:
    """An object that offers DLPack and nothing else."""

    def __init__(self, column: np.ndarray) -> None:
        self.column = column

    def __dlpack__(self, **given: Any) -> Any:
        return self.column.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self.column.__dlpack_device__()


def duckdb_columns(**of: list) -> dict:
    relation = duckdb_relation(**of)
    return {name: relation[name] for name in of}


def duckdb_relation(**of: list):
    duckdb = pytest.importorskip("duckdb")
    rows = ", ".join(
        "(" + ", ".join("null" if value is None else repr(value) for value in row) + ")"
        for row in zip(*of.values(), strict=True)
    )
    return duckdb.sql(f"select * from (values {rows}) as t({', '.join(of)})")


def pandas_frame(**of: list):
    return pytest.importorskip("pandas").DataFrame(of)


def polars_frame(**of: list):
    return pytest.importorskip("polars").DataFrame(of)


def polars_lazy_frame(**of: list):
    return pytest.importorskip("polars").LazyFrame(of)


def arrow_table(**of: list):
    return pytest.importorskip("pyarrow").table(of)


def arrow_batch(**of: list):
    return pytest.importorskip("pyarrow").record_batch(of)


def arrow_only_frame(**of: list):
    return SimpleNamespace(__arrow_c_stream__=arrow_table(**of).__arrow_c_stream__)


def structured_array(**of: list):
    return np.rec.fromarrays(list(of.values()), names=list(of))


COLUMNS = [
    pandas_columns,
    pandas_nullable_columns,
    pandas_arrow_columns,
    polars_columns,
    arrow_columns,
    arrow_chunks,
    arrow_only_columns,
    duckdb_columns,
]


@pytest.mark.parametrize("make", [*COLUMNS, dlpack_only_columns])
def test_every_function_takes_columns_of_every_library(make) -> None:
    given = make(score=SCORES, label=LABELS, weight=WEIGHTS)
    score, label, weight = given.values()
    expected = limen.optimal_threshold(SCORES, LABELS, weights=WEIGHTS, false_negative=5)
    below, above = limen.losses.classification(LABELS, false_negative=5, weights=WEIGHTS)

    assert expected == limen.optimal_threshold(score, label, weights=weight, false_negative=5)
    assert expected == limen.optimal_cut(
        score, *limen.losses.classification(label, false_negative=5, weights=weight)
    )
    priced = limen.losses.cost_matrix(label, fn=weight)
    assert [0, 2, 0, 4] == priced[0].tolist()
    assert (below.tolist(), above.tolist()) == ([0, 10, 0, 20], [1, 0, 3, 0])
    curve = limen.loss_curve(score, label, weights=weight)
    assert limen.loss_curve(SCORES, LABELS, weights=WEIGHTS).losses.tolist() == (
        curve.losses.tolist()
    )
    cut = limen.OnlineThreshold(false_negative=5)
    cut.update_many(score, label, weight)
    assert expected == cut.optimum
    assert [0, 1, 1, 1] == cut.predict(score).tolist() == expected.predict(score).tolist()
    cut.revert_many(score, label, weight)
    assert 0 == len(cut)
    calibrator = limen.OnlineCalibrator()
    calibrator.update_many(score, label, weight)
    assert expected == calibrator.optimum(false_negative=5)
    fit = limen.isotonic(score, label, weights=weight)
    assert calibrator.probability(SCORES).tolist() == calibrator.probability(score).tolist()
    assert calibrator.probability(SCORES).tolist() == fit.probability(score).tolist()


def holder(column) -> np.ndarray:
    """The memory in which a library keeps the numbers of a column."""
    if hasattr(column, "to_arrow"):  # polars
        pytest.importorskip("pyarrow")
        column = column.to_arrow()
    array = getattr(column, "array", column)
    if hasattr(array, "_data"):  # pandas nullable
        return array._data
    if hasattr(array, "_pa_array"):  # pandas on Arrow
        array = array._pa_array
    if hasattr(array, "combine_chunks") and array.num_chunks == 1:
        array = array.chunk(0)
    if hasattr(array, "buffers"):
        return np.frombuffer(array.buffers()[1], dtype=np.uint8)
    return np.asarray(column)


@pytest.mark.parametrize(
    "make",
    [
        pandas_columns,
        pandas_nullable_columns,
        pandas_arrow_columns,
        polars_columns,
        arrow_columns,
    ],
)
def test_scores_in_one_piece_are_not_copied(make) -> None:
    column = make(score=SCORES)["score"]

    assert np.shares_memory(holder(column), as_scores(column))
    taken = from_frame({"p": column, "y": LABELS}, score="p", label="y")
    assert np.shares_memory(holder(column), taken.scores)


def test_whole_weights_and_true_or_false_are_not_copied() -> None:
    given = pandas_nullable_columns(weight=WEIGHTS, label=[True, False, True, True])

    assert np.shares_memory(holder(given["weight"]), as_numbers(given["weight"], "weights"))
    assert np.shares_memory(holder(given["label"]), as_labels(given["label"]))


@pytest.mark.parametrize("make", [make for make in COLUMNS if make is not pandas_columns])
def test_a_null_is_refused_with_its_place(make) -> None:
    given = make(score=[0.1, 0.2, None], label=[0, None, 1], weight=[1, None, 2])

    with pytest.raises(ValueError, match=r"scores\[2\] is null. Drop or fill nulls"):
        limen.optimal_threshold(given["score"], [0, 1, 1])
    with pytest.raises(ValueError, match=r"labels\[1\] is null"):
        limen.optimal_threshold([0.1, 0.2, 0.3], given["label"])
    with pytest.raises(ValueError, match=r"weights\[1\] is null"):
        limen.optimal_threshold([0.1, 0.2, 0.3], [0, 1, 1], weights=given["weight"])


@pytest.mark.parametrize("make", COLUMNS)
@pytest.mark.parametrize("values", [[True, False, None], ["yes", "no", None]])
def test_a_null_among_other_labels_is_refused_with_its_place(make, values: list) -> None:
    label = make(label=values)["label"]

    with pytest.raises(ValueError, match=r"labels\[2\] is (null|nan|None)"):
        as_labels(label, positive=values[0])


@pytest.mark.parametrize("make", [polars_frame, arrow_table, duckdb_relation])
def test_a_null_in_a_frame_is_refused_with_column_and_row(make) -> None:
    with pytest.raises(ValueError, match=r"frame\['score'\]\[1\] is null"):
        from_frame(make(score=[0.1, None], label=[0, 1]))


def test_nan_in_a_column_of_pandas_is_refused_with_its_row() -> None:
    given = pandas_columns(score=[0.1, None], label=[0, 1])

    with pytest.raises(ValueError, match=r"frame\['score'\]\[1\] is nan"):
        from_frame(given)


def categories(library: str, values: list):
    module = pytest.importorskip(library)
    if library == "pandas":
        return module.Series(values, dtype="category")
    if library == "polars":
        return module.Series(values, dtype=module.Categorical)
    return module.array(values).dictionary_encode()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_categories_are_labels(library: str) -> None:
    label = categories(library, ["bad", "good", "bad"])

    assert [1, 0, 1] == as_labels(label, positive="bad").tolist()


@pytest.mark.parametrize("make", COLUMNS)
@pytest.mark.parametrize(
    ("values", "positive"),
    [
        (["good", "bad", "good", "good"], "bad"),
        ([False, True, False, False], True),
        ([1, 2, 1, 1], 2),
        ([1.5, -1.5, 1.5, 1.5], -1.5),
    ],
)
def test_any_two_values_are_labels_once_the_positive_one_is_named(make, values, positive) -> None:
    assert [0, 1, 0, 0] == as_labels(make(label=values)["label"], positive=positive).tolist()


FRAMES = [
    dict,
    structured_array,
    pandas_frame,
    polars_frame,
    polars_lazy_frame,
    arrow_table,
    arrow_batch,
    arrow_only_frame,
    duckdb_relation,
]


@pytest.mark.parametrize("make", COLUMNS)
def test_windows_take_columns_of_every_library(make) -> None:
    given = make(score=SCORES, label=LABELS, weight=WEIGHTS, time=[1, 2, 3, 4])
    score, label, weight, time = given.values()
    last = limen.LastN(limen.OnlineThreshold(), n=3)
    last.update_many(score, label, weights=weight)
    period = limen.LastPeriod(limen.OnlineThreshold(), 3)
    period.update_many(score, label, weight, times=time)
    expected = limen.optimal_threshold(SCORES[1:], LABELS[1:], weights=WEIGHTS[1:])

    assert expected == last.optimum == period.optimum
    assert 3 == len(last) == len(period)


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_gives_its_columns(make) -> None:
    frame = make(p=SCORES, y=LABELS, w=WEIGHTS, g=["a", "b", "a", "b"])
    taken = from_frame(frame, score="p", label="y", weight="w", group="g")

    assert (SCORES, LABELS) == (taken.scores.tolist(), taken.labels.tolist())
    assert (WEIGHTS, ["a", "b", "a", "b"]) == (taken.weights.tolist(), taken.groups.tolist())
    assert (np.float64, np.uint8, np.int64) == tuple(array.dtype for array in taken[:3])


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_gives_score_and_label_without_further_names(make) -> None:
    taken = from_frame(make(score=SCORES, label=LABELS))

    assert (SCORES, LABELS, None, None) == (taken[0].tolist(), taken[1].tolist(), *taken[2:])


@pytest.mark.parametrize("make", FRAMES)
def test_a_column_that_is_missing_is_told_with_those_that_are_there(make) -> None:
    with pytest.raises(ValueError, match=r"no column 'prob'. It has 'score', 'label'\."):
        from_frame(make(score=SCORES, label=LABELS), score="prob")


def test_the_result_of_a_query_is_a_frame() -> None:
    duckdb = pytest.importorskip("duckdb")
    query = "select i / 4 as score, i % 2 as label from range(4) t(i)"

    assert ([0.0, 0.25, 0.5, 0.75], LABELS) == tuple(
        column.tolist() for column in from_frame(duckdb.connect().execute(query))[:2]
    )


def test_the_columns_of_a_query_are_read_in_one_run() -> None:
    """Each run of this query draws other numbers, so two runs would not fit together."""
    duckdb = pytest.importorskip("duckdb")
    drawn = duckdb.sql(
        "select r as score, (r > 0.5)::int as label from (select random() as r from range(1000))"
    )
    taken = from_frame(drawn)

    assert (taken.scores > 0.5).astype(int).tolist() == taken.labels.tolist()


def test_names_with_quotes_are_names_in_a_query_too() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql('select 0.5 as "the ""score""", 1 as label')

    assert [0.5] == from_frame(relation, score='the "score"').scores.tolist()


def test_one_column_may_serve_twice() -> None:
    relation = duckdb_relation(score=SCORES, label=LABELS)

    assert LABELS == from_frame(relation, group="label").groups.tolist()


def test_a_relation_of_several_columns_is_no_column() -> None:
    relation = duckdb_relation(score=SCORES, label=LABELS)

    with pytest.raises(ValueError, match=r"scores must be one column, got 2: 'score', 'label'"):
        limen.optimal_threshold(relation, LABELS)


@pytest.mark.parametrize(
    ("frame", "names", "told"),
    [
        ({"score": [0.1, np.nan]}, {}, r"frame\['score'\]\[1\] is nan. Samples are ordered"),
        ({"label": [0.0, np.nan]}, {"positive": 1}, r"frame\['label'\]\[1\] is nan"),
        ({"label": [0, 2]}, {}, r"frame\['label'\] must be 0 or 1, got 2 at .*positive="),
        ({"label": ["a", None]}, {"positive": "a"}, r"frame\['label'\]\[1\] is None"),
        ({"weight": [1.0, np.nan]}, {"weight": "weight"}, r"frame\['weight'\]\[1\] is nan"),
        ({"group": ["a", None]}, {"group": "group"}, r"frame\['group'\]\[1\] is None"),
        ({"group": ["a"]}, {"group": "group"}, "scores has 2, labels has 2, groups has 1"),
        ({}, {"score": None}, "score must name a column"),
        ({}, {"label": None}, "label must name a column"),
    ],
)
def test_what_is_no_sample_is_refused_with_column_and_row(frame, names, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        from_frame({"score": [0.1, 0.2], "label": [0, 1], **frame}, **names)


@pytest.mark.parametrize(
    ("values", "positive", "told"),
    [
        (["a", "b", "c"], "a", r"'a' and one other, got 'b', 'c' at labels\[1\] and labels\[2\]"),
        (["yes", "no"], "Yes", r"'Yes' and one other, got 'yes', 'no'"),
        ([0, 1], "1", r"'1' and one other, got 0, 1"),
        (["0", "1"], 1, r"1 and one other, got '0', '1'"),
    ],
)
def test_a_third_label_is_refused_with_its_place(values, positive, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        as_labels(values, positive=positive)


def test_one_class_alone_is_fine() -> None:
    assert [0, 0] == as_labels(["no", "no"], positive="yes").tolist()
    assert [1, 1] == as_labels(["yes", "yes"], positive="yes").tolist()
    assert [] == as_labels(np.array([], dtype="U3"), positive="yes").tolist()


@pytest.mark.parametrize("reader", ["pyarrow", "polars"])
def test_what_speaks_arrow_only_is_read_by_what_is_loaded(reader: str, monkeypatch) -> None:
    pytest.importorskip(reader)
    column = arrow_only_columns(score=SCORES)["score"]
    monkeypatch.delitem(sys.modules, {"pyarrow": "polars", "polars": "pyarrow"}[reader], False)

    assert SCORES == as_scores(column).tolist()


def test_a_column_that_dlpack_cannot_hand_over_is_refused_with_the_reason() -> None:
    class Elsewhere(DlpackOnly):
        def __dlpack__(self, **given: Any) -> Any:
            raise BufferError("it lies on a GPU")

    with pytest.raises(TypeError, match=r"scores is Elsewhere, which has only the DLPack interf"):
        limen.optimal_threshold(Elsewhere(np.array(SCORES)), LABELS)


def test_what_speaks_arrow_only_needs_a_reader_that_is_loaded() -> None:
    program = """
import types, limen
column = types.SimpleNamespace(__arrow_c_stream__=None)
for call in (limen.optimal_threshold, limen.columns.from_frame):
    try:
        call(column, *([[1]] if call is limen.optimal_threshold else []))
    except TypeError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert (
        "scores is SimpleNamespace, which has only the Arrow interface. Import pyarrow"
        in done.stdout
    )
    assert "frame is SimpleNamespace, which has only the Arrow interface." in done.stdout


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_reading_a_column_loads_no_other_library(library: str) -> None:
    pytest.importorskip(library)
    column = {
        "pandas": "pandas.Series([0.5, 0.75])",
        "polars": "polars.Series([0.5, 0.75])",
        "pyarrow": "pyarrow.array([0.5, 0.75])",
        "duckdb": "duckdb.sql('select 0.5::double as score')",
    }[library]
    program = f"""
import sys, {library}, limen
column = {column}
before = set(sys.modules)
limen.optimal_cut(column, column, column)
loaded = {{name.split('.')[0] for name in set(sys.modules) - before}}
print(*loaded & {{"pandas", "polars", "pyarrow", "duckdb", "narwhals"}})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "" == done.stdout.strip()


def test_columns_unpack_in_the_order_of_the_functions() -> None:
    cut = limen.OnlineThreshold()
    cut.update_many(*columns.from_frame({"score": SCORES, "label": LABELS})[:3])

    assert limen.optimal_threshold(SCORES, LABELS) == cut.optimum
