# SPDX-License-Identifier: Apache-2.0
"""A text means the same number or label to every reader: one list of odd values holds for all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_values import CLASSES, LABELS, NUMBERS
from watching import watched

from limen import _core
from limen.cli import inputs, line_reader
from limen.cli.exits import Failure
from limen.cli.rows import Columns

duckdb = pytest.importorskip("duckdb")


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


# ---- the parser ------------------------------------------------------------------------------


def test_the_native_parser_reads_the_list() -> None:
    wrong = {text for text, value in NUMBERS.items() if not same(value, _core.number_of(text))}
    assert set() == wrong
    rule = _core.LabelRule(None)
    assert {text: rule(text) for text in LABELS} == LABELS
    found = {(name, text): _core.LabelRule(name)(text) for name, text in CLASSES}
    assert found == CLASSES


def python_reads(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@given(st.floats())
def test_every_double_is_read_back(number) -> None:
    assert same(abs(number) if math.isnan(number) else number, _core.number_of(repr(number)))


PIECES = st.sampled_from([*"0123456789+-._eE \t", "inf", "nan", "00", "\uff11", "\xa0", "x", "1e"])


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=6))
def test_a_text_is_a_number_where_it_is_one_to_python(text) -> None:
    found = _core.number_of(text)
    expected = python_reads(text)
    assert same(expected, found) or (math.isnan(expected or 0.0) and math.isnan(found or 0.0))


@given(
    st.integers(0, 10**40), st.integers(-360, 330), st.sampled_from(["{}e{}", ".{}e{}", "{}.5e{}"])
)
def test_decimals_of_many_digits_are_rounded_as_by_python(digits, exponent, form) -> None:
    text = form.format(digits, exponent)
    assert same(float(text), _core.number_of(text))


def test_digits_and_blanks_are_those_of_unicode() -> None:
    """Of version 14, which Python 3.11 has; later ones add digits, and take none away."""
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    if unicodedata.unidata_version == "14.0.0":
        digits = {each: unicodedata.decimal(each, None) for each in characters}
        assert [] == [each for each, digit in digits.items() if digit != _core.number_of(each)]
    odd = set("\x1c\x1d\x1e\x1f")  # which no number of Python's has round it
    blanks = {each for each in characters if each.isspace()} - odd
    assert blanks == {each for each in characters if _core.number_of(f"{each}1{each}") == 1} - {
        *"0+"
    } - {each for each in characters if unicodedata.decimal(each, None) is not None}


# ---- every reader ----------------------------------------------------------------------------


def write_csv(rows: list[tuple[str, str]]) -> str:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("score", "label"), *rows])
    Path("odd.csv").write_text(table.getvalue(), newline="")
    return "odd.csv"


def write_json(rows: list[tuple[str, str]]) -> str:
    objects = [{"score": score, "label": label} for score, label in rows]
    lines = [json.dumps(each, ensure_ascii=False) for each in objects]
    Path("odd.ndjson").write_text("".join(f"{line}\n" for line in lines), newline="")
    return "odd.ndjson"


def write_packed(rows: list[tuple[str, str]]) -> str:
    Path("odd.csv.gz").write_bytes(gzip.compress(Path(write_csv(rows)).read_bytes()))
    return "odd.csv.gz"


def read(path: str, positive: str | None) -> list[tuple[float, int]] | None:
    try:
        found = inputs.read([path], None, Columns(positive=positive), one_class=True)
    except Failure:
        return None
    return list(zip(found.scores.tolist(), found.labels.tolist(), strict=True))


def by_file(write: Callable[..., str]) -> Callable[..., Any]:
    return lambda rows, positive, patch: read(write(rows), positive)


def by_lines(rows, positive, patch) -> Any:
    patch.setattr(line_reader, "_BLOCK", 1)
    return read(write_csv(rows), positive)


def by_pieces(rows, positive, patch) -> Any:
    """As files are read that memory does not hold."""
    try:
        pieces = list(line_reader.text_pieces(write_csv(rows), None, Columns(positive=positive)))
    except Failure:
        return None
    (piece,) = pieces
    return list(zip(piece.scores.tolist(), piece.labels.tolist(), strict=True))


READERS: dict[str, Callable[..., Any]] = {
    "blocks": by_file(write_csv),
    "lines": by_lines,
    "objects": by_file(write_json),
    "packed": by_file(write_packed),
    "pieces": by_pieces,
}
USUAL = ("0.25", "0")  # a row that is right, before the odd one


@pytest.fixture(params=READERS)
def reader(request, tmp_path, monkeypatch) -> Callable[..., Any]:
    """Read one row, and perhaps name a class: its score and label; None where it is refused."""
    monkeypatch.chdir(tmp_path)

    def call(row: tuple[str, str], positive: str | None = None) -> tuple[float, int] | None:
        usual = (USUAL[0], positive or USUAL[1])
        found = READERS[request.param]([usual, row], positive, monkeypatch)
        return None if found is None else found[1]

    return call


def test_every_reader_reads_the_numbers_of_the_list(reader) -> None:
    expected = {text: None if value != value else value for text, value in NUMBERS.items()}
    found = {text: reader((text, "1")) for text in NUMBERS}
    wanted = {text: None if value is None else (value, 1) for text, value in expected.items()}
    assert wanted == found


def test_every_reader_reads_the_labels_of_the_list(reader) -> None:
    found = {text: reader(("0.5", text)) for text in LABELS}
    assert {t: None if value is None else (0.5, value) for t, value in LABELS.items()} == found


def test_every_reader_finds_the_class_that_is_named(reader) -> None:
    found = {case: reader(("0.5", case[1]), case[0]) for case in CLASSES}
    assert {c: None if value is None else (0.5, value) for c, value in CLASSES.items()} == found


def quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def after_each(rows: list[str], *options: str) -> list[tuple[Any, Any] | None]:
    """Watch rows, of which only the last one is held: the scores next to the cut after each."""
    given = ("--last-n", "1", "--every", "1", "--skip-malformed", "-q", *options)
    code, lines, _ = watched(["score,label", *rows], *given)
    assert 0 == code
    skipped = [0, *(line["skipped"] for line in lines)]
    assert len(rows) == len(lines)
    return [
        None if line["skipped"] > before else (line["lower"], line["upper"])
        for before, line in zip(skipped[:-1], lines, strict=True)
    ]


def as_json(number: float) -> Any:
    return number if math.isfinite(number) else repr(number)


def test_a_stream_reads_the_list(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = dict(zip(NUMBERS, after_each([f"{quoted(text)},1" for text in NUMBERS]), strict=True))
    wanted = {
        text: None if value is None or value != value else (None, as_json(value))
        for text, value in NUMBERS.items()
    }
    assert wanted == found
    cuts = {None: None, 0: (0.5, None), 1: (None, 0.5)}
    labels = after_each([f"0.5,{quoted(text)}" for text in LABELS])
    assert {t: cuts[label] for t, label in LABELS.items()} == dict(zip(LABELS, labels, strict=True))
    for positive in {name for name, _ in CLASSES}:
        expected = {text: value for (name, text), value in CLASSES.items() if name == positive}
        rows = [f"0.5,{quoted(text)}" for text in expected]
        found = after_each(rows, "--positive", positive)
        assert [cuts[label] for label in expected.values()] == found


def test_many_rows_of_a_stream_at_once_are_read_alike(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    right = {text: value for text, value in NUMBERS.items() if value is not None and value == value}
    plain = [text for text in right if "," not in text]
    _, lines, _ = watched(["score,label", *(f"{text},1" for text in plain)], "--last-n", "1", "-q")
    one = [watched(["score,label", f"{text},1"], "-q")[1][-1]["upper"] for text in plain[-9:]]
    assert [as_json(right[text]) for text in plain[-9:]] == one
    assert as_json(right[plain[-1]]) == lines[-1]["upper"]
    heading = {"format": "csv", "header": ["score", "label"], "delimiter": ","}
    for text, value in NUMBERS.items():
        if '"' in text or "\n" in text:  # not the text of one field of one line
            continue
        ordered = value is not None and value == value
        rows = line_reader.native_rows(heading, Columns())
        rows.read(f"{text},1\n".encode(errors="surrogateescape"), 0)
        found = rows.take()[0].tolist()  # nothing where the row is not plain
        assert found == [] or (ordered and same([value], found))
        assert found or not ordered or text not in plain


def test_texts_in_parquet_are_the_same_labels(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    def label_of(text: str, usual: str, positive: str | None) -> int | None:
        rows = [{"score": 0.25, "label": usual}, {"score": 0.5, "label": text}]
        Path("odd.parquet").unlink(missing_ok=True)
        sql = "COPY (SELECT unnest(?) AS score, unnest(?) AS label) TO 'odd.parquet'"
        columns = [[row[name] for row in rows] for name in ("score", "label")]
        connection.execute(sql, columns)
        found = read("odd.parquet", positive)
        return None if found is None else sorted(found)[1][1]

    with duckdb.connect() as connection:
        monkeypatch.setattr("limen.cli.columnar.connected", connection.cursor)
        assert {text: label_of(text, "0", None) for text in LABELS} == LABELS
        found = {case: label_of(case[1], case[0], case[0]) for case in CLASSES}
        assert found == CLASSES
