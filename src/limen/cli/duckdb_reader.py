# SPDX-License-Identifier: Apache-2.0
"""Samples by duckdb, which is fast: out of text, and for `limen.cli.columnar` out of queries."""

from __future__ import annotations

import os
from glob import has_magic
from importlib.util import find_spec
from typing import Any

import numpy as np

from limen.cli.exits import Failure
from limen.cli.line_reader import csv_header
from limen.cli.packing import packed_by
from limen.cli.progress import on_terminal, polling
from limen.cli.rows import Columns
from limen.reporting.aim import OUTCOMES
from limen.reporting.samples import Samples

__all__ = [
    "NUMBERS",
    "NeedsLineReader",
    "connected",
    "duckdb_is_installed",
    "fetch",
    "label_sql",
    "quoted_name",
    "read_table",
    "select_sql",
    "text_query",
]

_LONG = 2**20
_UNPACKED = (None, "gzip", "zstd")  # by duckdb itself
NUMBERS = ("score", "weight", *OUTCOMES)


class NeedsLineReader(Exception):  # noqa: N818 - reads as what happened
    """Something in the file is wrong or unusual: read it by lines, which names the line."""


def duckdb_is_installed() -> bool:
    """Whether duckdb is installed; does not load it."""
    try:
        return find_spec("duckdb") is not None
    except ValueError:  # it was made to look absent
        return False


def connected() -> Any:
    """Open duckdb for one command."""
    try:
        import duckdb
    except ImportError:
        raise Failure(
            'Parquet and Arrow need duckdb. Install it with: pip install "limen[cli]"'
        ) from None
    # The order of the samples does not change the answer, and without it duckdb is faster. Its
    # own progress bar would go to standard output; asked by `query_progress`, it only counts.
    connection = duckdb.connect(config={"preserve_insertion_order": "false"})
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute(f"SET enable_progress_bar = {str(on_terminal()).lower()}")
    return connection


def quoted_name(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def label_sql(column: str, positive: str | None) -> tuple[str, list[Any]]:
    """0, 1 or NULL, as `limen.cli.rows.labels_of` decides, and the values it refers to."""
    text = f"CAST({column} AS VARCHAR)"
    if positive is None:
        return (
            f"CASE {text} WHEN '0' THEN 0 WHEN '1' THEN 1 ELSE "
            f"CASE lower(trim({text})) WHEN 'false' THEN 0 WHEN 'true' THEN 1 ELSE "
            f"CASE TRY_CAST({text} AS DOUBLE) WHEN 0 THEN 0 WHEN 1 THEN 1 END END END"
        ), []
    given: list[Any] = [positive]
    same = f"{text} = ?"
    try:
        number = float(positive)
    except ValueError:
        pass
    else:
        same += f" OR coalesce(TRY_CAST({text} AS DOUBLE) = ?, false)"
        given.append(number)
    missing = f"{text} IS NULL OR {text} = ''"
    return f"CASE WHEN {missing} THEN NULL WHEN {same} THEN 1 ELSE 0 END", given


def select_sql(parts: dict[str, str], positive: str | None) -> tuple[str, list[Any]]:
    """Write what to take out of each row, and the values it refers to."""
    label, given = label_sql(parts["label"], positive) if "label" in parts else ("0", [])
    taken = [f"{parts['score']} AS score", f"CAST({label} AS UTINYINT) AS label"]
    if "weight" in parts:
        taken.append(f"{parts['weight']} AS weight")
    if "group" in parts:
        taken.append(f"CAST({parts['group']} AS VARCHAR) AS name")
    taken += [f"{parts[part]} AS {part}" for part in parts if part in OUTCOMES]
    return f"SELECT {', '.join(taken)}", given


def read_table(path: str, format: str, columns: Columns) -> Samples:
    """Read a file of CSV or NDJSON, or raise `NeedsLineReader`. O(n)."""
    sql, given = text_query(path, format, columns)
    import duckdb

    try:
        return fetch(connected(), sql, given, path, columns)
    except duckdb.Error as error:
        raise NeedsLineReader from error


def text_query(path: str, format: str, columns: Columns) -> tuple[str, list[Any]]:
    """Write the query for the samples of CSV or NDJSON, and the values it refers to."""
    named = columns.named()
    if columns.comma and format != "csv":
        raise NeedsLineReader
    packing = packed_by(path)
    if has_magic(path) or packing not in _UNPACKED or not (packing or _ends_in_a_line(path)):
        raise NeedsLineReader
    # Not 'none', which duckdb knows for JSON since 2.0 alone.
    options = [f"compression = '{packing or 'uncompressed'}'", "auto_detect = false"]
    types = {part: "DOUBLE" if part in NUMBERS else "VARCHAR" for part in named}
    if format == "csv":
        places, width, delimiter = csv_header(path, columns)
        parts = {part: f"c{place}" for part, place in zip(named, places, strict=True)}
        kinds = {f"c{place}": "VARCHAR" for place in range(width)}
        kinds |= {parts[part]: types[part] for part in named}
        mark = {"'": "''"}.get(delimiter, delimiter)
        options += ["header = true", f"delim = '{mark}'", "quote = '\"'", "escape = '\"'"]
        if columns.comma:
            parts |= {part: _pointed(parts[part]) for part in named if part in NUMBERS}
            kinds = dict.fromkeys(kinds, "VARCHAR")
    else:
        parts = {part: quoted_name(name) for part, name in named.items()}
        kinds = {name: types[part] for part, name in named.items()}
        options += ["format = 'newline_delimited'", f"maximum_object_size = {2**24}"]
    listed = ", ".join(f"{_text(name)}: '{kind}'" for name, kind in kinds.items())
    reader = "read_csv" if format == "csv" else "read_json"
    select, given = select_sql(parts, columns.positive)
    sql = f"{select} FROM {reader}(?, columns = {{{listed}}}, {', '.join(options)})"
    return sql, [*given, path]


def _pointed(column: str) -> str:
    """Read a number with a decimal comma; one with a point, or that is none, becomes NULL."""
    return (
        f"CASE WHEN contains({column}, '.') THEN NULL "
        f"ELSE TRY_CAST(replace({column}, ',', '.') AS DOUBLE) END"
    )


def _ends_in_a_line(path: str) -> bool:
    """Whether the last line is of a reasonable length.

    Where it is longer than its buffer and has no end, duckdb 2.0 drops it without an error.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LONG))
        return size <= _LONG or b"\n" in file.read()


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def fetch(connection: Any, sql: str, given: list[Any], path: str, columns: Columns) -> Samples:
    """Run the query, or raise `NeedsLineReader` if a value is missing, nan or would be lost."""
    with polling(path, connection.query_progress):
        names: list[str] = []
        if columns.group is not None:
            # Numbers instead of names: an array of twenty million texts is slow and large.
            connection.execute(f"CREATE OR REPLACE TEMP TABLE samples AS {sql}", given)
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE names AS SELECT name, "
                "row_number() OVER (ORDER BY name) - 1 AS code "
                "FROM (SELECT DISTINCT name FROM samples)"
            )
            listed = connection.execute("SELECT name FROM names ORDER BY code").fetchall()
            names = [name for (name,) in listed]
            if None in names or "" in names:
                raise NeedsLineReader
            sql, given = (
                "SELECT samples.* EXCLUDE (name), code FROM samples JOIN names USING (name)",
                [],
            )
        found = connection.execute(sql, given).fetchnumpy()
    if any(
        isinstance(column, np.ma.MaskedArray) and column.mask.any() for column in found.values()
    ):
        raise NeedsLineReader
    arrays = {name: np.asarray(column) for name, column in found.items()}
    scores, weights = arrays["score"], arrays.get("weight")
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        raise NeedsLineReader
    if weights is not None:
        lowest = (weights >= columns.finest) | (weights == 0)
        if not bool(np.all(lowest & (weights < np.inf))):
            raise NeedsLineReader
    costs = {outcome: arrays[outcome].astype(np.float64) for outcome, _ in columns.costs}
    if not all(np.isfinite(each).all() for each in costs.values()):
        raise NeedsLineReader
    codes = arrays.get("code")
    if codes is not None:
        codes = codes.astype(np.min_scalar_type(len(names)))  # small ones are sorted faster
    return Samples(scores, arrays["label"], weights, codes, tuple(names), costs=costs)
