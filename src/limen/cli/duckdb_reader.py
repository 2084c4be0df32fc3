# SPDX-License-Identifier: Apache-2.0
"""Samples out of large files by duckdb: Parquet, and text where a line at a time is too slow."""

from __future__ import annotations

import os
from glob import has_magic
from importlib.util import find_spec
from typing import Any, NoReturn

import numpy as np

from limen.cli.exits import BAD_INPUT, NOT_FOUND, Failure
from limen.cli.line_reader import csv_header, is_gzip
from limen.cli.progress import on_terminal, polling
from limen.cli.rows import MANY_LABELS, Columns, refuse_column, which_labels
from limen.reporting.aim import OUTCOMES
from limen.reporting.samples import Samples

__all__ = [
    "NeedsLineReader",
    "connected",
    "duckdb_is_installed",
    "fetch",
    "parquet_query",
    "read_parquet",
    "read_table",
    "text_query",
]

_INTEGER = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_LONG = 2**20
_PARQUET = "read_parquet(?, file_row_number = true)"
_NUMBERS = ("score", "weight", *OUTCOMES)
_REAL = ("FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT", "DECIMAL")


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
        raise Failure('Parquet needs duckdb. Install it with: pip install "limen[cli]"') from None
    # The order of the samples does not change the answer, and without it duckdb is faster. Its
    # own progress bar would go to standard output; asked by `query_progress`, it only counts.
    connection = duckdb.connect(config={"preserve_insertion_order": "false"})
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute(f"SET enable_progress_bar = {str(on_terminal()).lower()}")
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _label_sql(column: str, positive: str | None) -> tuple[str, list[Any]]:
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


def _select(parts: dict[str, str], positive: str | None) -> tuple[str, list[Any]]:
    """Write what to take out of each row, and the values it refers to."""
    label, given = _label_sql(parts["label"], positive)
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
    if has_magic(path) or not (is_gzip(path) or _ends_in_a_line(path)):
        raise NeedsLineReader
    options = [f"compression = '{'gzip' if is_gzip(path) else 'none'}'", "auto_detect = false"]
    types = {part: "DOUBLE" if part in _NUMBERS else "VARCHAR" for part in named}
    if format == "csv":
        places, width, delimiter = csv_header(path, columns)
        parts = {part: f"c{place}" for part, place in zip(named, places, strict=True)}
        kinds = {f"c{place}": "VARCHAR" for place in range(width)}
        kinds |= {parts[part]: types[part] for part in named}
        mark = {"'": "''"}.get(delimiter, delimiter)
        options += ["header = true", f"delim = '{mark}'", "quote = '\"'", "escape = '\"'"]
    else:
        parts = {part: _quoted(name) for part, name in named.items()}
        kinds = {name: types[part] for part, name in named.items()}
        options += ["format = 'newline_delimited'", f"maximum_object_size = {2**24}"]
    listed = ", ".join(f"{_text(name)}: '{kind}'" for name, kind in kinds.items())
    reader = "read_csv" if format == "csv" else "read_json"
    select, given = _select(parts, columns.positive)
    sql = f"{select} FROM {reader}(?, columns = {{{listed}}}, {', '.join(options)})"
    return sql, [*given, path]


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


def read_parquet(path: str, columns: Columns) -> Samples:
    """Read a Parquet file; an error names the row. O(n)."""
    connection = connected()
    import duckdb

    try:
        parts = _parquet_parts(connection, path, columns)
        sql, given = _parquet_query(path, parts, columns)
        try:
            return fetch(connection, sql, given, path, columns)
        except NeedsLineReader:
            _refuse_row(connection, _PARQUET, parts, columns, path)
    except duckdb.IOException as error:
        raise Failure(f"{path} cannot be read: {_first_line(error)}", NOT_FOUND) from None
    except duckdb.Error as error:
        raise Failure(f"{path}: {_first_line(error)}", BAD_INPUT) from None


def parquet_query(connection: Any, path: str, columns: Columns) -> tuple[str, list[Any]]:
    """Write the query for the samples of a Parquet file, and the values it refers to."""
    return _parquet_query(path, _parquet_parts(connection, path, columns), columns)


def _parquet_parts(connection: Any, path: str, columns: Columns) -> dict[str, str]:
    """Write each column that is asked for as an expression, or refuse it."""
    found = connection.execute(f"DESCRIBE SELECT * FROM {_PARQUET}", [path]).fetchall()
    types = {str(name): str(kind) for name, kind, *_ in found}
    types.pop("file_row_number", None)
    parts = {}
    for part, name in columns.named().items():
        if name not in types:
            refuse_column(part, name, list(types), path)
        parts[part] = _quoted(name)
        if part in _NUMBERS:
            parts[part] = _as_number(parts[part], types[name], path, name)
    return parts


def _parquet_query(path: str, parts: dict[str, str], columns: Columns) -> tuple[str, list[Any]]:
    select, given = _select(parts, columns.positive)
    return f"{select} FROM {_PARQUET}", [*given, path]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _as_number(column: str, kind: str, path: str, name: str) -> str:
    if kind in _INTEGER or kind in _UNSIGNED:
        return column  # so that an integer that no double holds is refused
    if kind.split("(")[0] in _REAL:
        return f"CAST({column} AS DOUBLE)"
    raise Failure(
        f"{path}, column {name}: it holds {kind}, not numbers. Choose another column, or convert "
        "it.",
        BAD_INPUT,
    )


def _refuse_row(
    connection: Any, source: str, parts: dict[str, str], columns: Columns, path: str
) -> NoReturn:
    """Name the first row with something wrong, and what it is."""
    label, given = _label_sql(parts["label"], columns.positive)
    number = "CAST({} AS DOUBLE)"
    wrong = {"score": f"coalesce(isnan({number.format(parts['score'])}), true)"}
    wrong["label"] = f"({label}) IS NULL"
    if "weight" in parts:
        weight = number.format(parts["weight"])
        wrong["weight"] = (
            f"coalesce({weight} < {columns.finest!r} AND {weight} != 0 OR isnan({weight}) OR "
            f"isinf({weight}), true)"
        )
    for outcome, _ in columns.costs:
        each = number.format(parts[outcome])
        wrong[outcome] = f"coalesce(isnan({each}) OR isinf({each}), true)"
    if "group" in parts:
        wrong["group"] = f"coalesce(CAST({parts['group']} AS VARCHAR), '') = ''"
    for part, condition in wrong.items():
        row = connection.execute(
            f"SELECT file_row_number + 1, CAST({parts[part]} AS VARCHAR) FROM {source} "
            f"WHERE {condition} ORDER BY file_row_number LIMIT 1",
            [path, *(given if part == "label" else [])],
        ).fetchone()
        if row is not None:
            value = "missing" if row[1] is None else str(row[1])
            if part == "label" and row[1]:
                each = f"SELECT CAST({parts[part]} AS VARCHAR), count(*) FROM {source} GROUP BY 1"
                counts = connection.execute(f"{each} LIMIT {MANY_LABELS + 2}", [path]).fetchall()
                raise Failure(
                    f"{path}, row {row[0]:,}, column {columns.label}: the label is {value}, not 0 "
                    f"or 1. {which_labels({text or '': count for text, count in counts})}",
                    BAD_INPUT,
                )
            needed = {
                "score": "a number that has an order",
                "label": "0 or 1" if columns.positive is None else "some value",
                "weight": f"0, or finite and at least {columns.finest!r} (see --unit)",
                "group": "the name of a group",
            }.get(part, "a finite number")
            raise Failure(
                f"{path}, row {row[0]:,}, column {columns.named()[part]}: the "
                f"{'cost' if part in OUTCOMES else part} is {value}; "
                f"it must be {needed}. Correct it or drop the row.",
                BAD_INPUT,
            )
    raise Failure(f"{path} cannot be read.", BAD_INPUT)
