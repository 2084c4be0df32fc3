# SPDX-License-Identifier: Apache-2.0
"""Samples out of files of columns, Parquet and Arrow, by duckdb; an error names the row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from limen.cli.duckdb_reader import (
    NUMBERS,
    BadValue,
    connected,
    fetch,
    quoted_name,
    select_sql,
)
from limen.cli.exits import BAD_INPUT, NOT_FOUND, Failure
from limen.cli.rows import (
    MANY_LABELS,
    SHOWN,
    Columns,
    Malformed,
    labels_of,
    option_of,
    refuse_column,
    which_labels,
)
from limen.names import OUTCOMES
from limen.reporting.samples import FileRows

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_arrow", "ordered_rows", "parquet_query", "read_arrow", "read_parquet"]

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_WHOLE = {*_SIGNED, *(f"U{kind}" for kind in _SIGNED)}
_REAL = ("FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT", "DECIMAL")
_SOME = 10_000  # labels that are held at once
_FILE, _STREAM = b"ARROW1", b"\xff\xff\xff\xff"  # of Arrow, by their first bytes


class _Source(NamedTuple):
    """Where rows come from: SQL with a column file_row_number, and the values it refers to."""

    path: str
    sql: str
    given: list[Any]


def is_arrow(begin: bytes) -> bool:
    """Whether a file is one of Arrow, which Feather is too, by its first bytes."""
    return begin.startswith((_FILE, _STREAM))


def read_parquet(path: str, columns: Columns) -> FileRows:
    """Read a Parquet file. O(n)."""
    return _read(connected(), _parquet(path), columns)


def read_arrow(path: str, columns: Columns) -> FileRows:
    """Read an Arrow or Feather file, all of the columns needed at once. O(n)."""
    connection = connected()
    return _read(connection, _arrow(connection, path, columns), columns)


def ordered_rows(
    path: str, kind: str, columns: Columns
) -> tuple[list[str], Iterator[list[tuple[Any, ...]]], Malformed]:
    """Read all columns of a file, in the order of its rows.

    Returns their names, the rows in batches, and the malformed ones, which are left out. A row is
    the values of the columns that are asked for, then the text of all columns.
    """
    import duckdb

    connection = connected()
    connection.execute("SET preserve_insertion_order = true")
    try:
        source = _parquet(path) if kind == "parquet" else _arrow(connection, path, columns, True)
        parts, found = _parts(connection, source, columns), Malformed()
        names = _types(connection, source)
        wrong = _wrong(parts, columns)
        malformed = " OR ".join(wrong.values())
        counting = f"SELECT count(*) FROM {source.sql} WHERE {malformed}"
        if connection.execute(counting, source.given).fetchone()[0]:
            found = _malformed(connection, source, parts, wrong, columns)
            if not columns.skip:
                found.refuse()
        taken = [parts["score"], *(f"CAST({parts[part]} AS VARCHAR)" for part in _groups(parts))]
        texts = [f"CAST({quoted_name(name)} AS VARCHAR)" for name in names]
        sql = f"SELECT {', '.join(taken + texts)} FROM {source.sql} WHERE NOT ({malformed})"
        connection.execute(sql, source.given)
    except duckdb.IOException as error:
        raise Failure(f"{path} cannot be read: {_first_line(error)}", NOT_FOUND) from None
    except duckdb.Error as error:
        raise Failure(f"{path}: {_first_line(error)}", BAD_INPUT) from None
    return list(names), iter(lambda: connection.fetchmany(_SOME), []), found


def _groups(parts: dict[str, str]) -> list[str]:
    """List the parts that are groups: one, or one for each level."""
    return [part for part in parts if option_of(part) == "group"]


def _arrow(connection: Any, path: str, columns: Columns, all_columns: bool = False) -> _Source:
    """Let duckdb read an Arrow file, of which the columns needed are taken, or all of them."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Failure(
            f"{path} is an Arrow file, which needs pyarrow. Install it with: pip install "
            '"limen[cli]"'
        ) from None
    try:
        table = _arrow_table(path, columns, all_columns)
        numbers = pa.array(range(table.num_rows), pa.int64())
        connection.register("arrow_rows", table.append_column("file_row_number", numbers))
    except pa.ArrowException as error:
        raise Failure(f"{path}: {_first_line(error)}", BAD_INPUT) from None
    return _Source(path, "arrow_rows", [])


def _arrow_table(path: str, columns: Columns, all_columns: bool) -> Any:
    """Take the columns that are asked for, or all; refuse one that is missing."""
    import pyarrow as pa
    from pyarrow import ipc

    with open(path, "rb") as file:
        opener = ipc.open_stream if file.read(8).startswith(_STREAM) else ipc.open_file
    header = opener(pa.memory_map(path)).schema.names
    for part, name in columns.named().items():
        if header.count(name) != 1:
            refuse_column(part, name, header, path)
    if all_columns:
        return opener(pa.memory_map(path)).read_all()
    needed = [header.index(name) for name in dict.fromkeys(columns.named().values())]
    options = ipc.IpcReadOptions(included_fields=needed)
    return opener(pa.memory_map(path), options=options).read_all()


def parquet_query(connection: Any, path: str, columns: Columns) -> tuple[str, list[Any]]:
    """Write the query for the samples of a Parquet file, and the values it refers to."""
    source = _parquet(path)
    return _query(source, _parts(connection, source, columns)), source.given


def _parquet(path: str) -> _Source:
    return _Source(path, "read_parquet(?, file_row_number = true)", [path])


def _query(source: _Source, parts: dict[str, str]) -> str:
    return f"{select_sql(parts)} FROM {source.sql}"


def _read(connection: Any, source: _Source, columns: Columns) -> FileRows:
    import duckdb

    try:
        parts = _parts(connection, source, columns)
        sql = _query(source, parts)
        try:
            return fetch(connection, sql, source.given, source.path, columns)
        except BadValue:
            wrong = _wrong(parts, columns)
            malformed = _malformed(connection, source, parts, wrong, columns)
        if not columns.skip:
            malformed.refuse()
        sql = f"{sql} WHERE NOT ({' OR '.join(wrong.values())})"
        samples = fetch(connection, sql, source.given, source.path, columns)
        return replace(samples, skipped=malformed.count, examples=tuple(malformed.first))
    except duckdb.IOException as error:
        raise Failure(f"{source.path} cannot be read: {_first_line(error)}", NOT_FOUND) from None
    except duckdb.Error as error:
        raise Failure(f"{source.path}: {_first_line(error)}", BAD_INPUT) from None


def _parts(connection: Any, source: _Source, columns: Columns) -> dict[str, str]:
    """Write each column that is asked for as an expression, or refuse it."""
    types = _types(connection, source)
    parts = {}
    for part, name in columns.named().items():
        if name not in types:
            refuse_column(part, name, list(types), source.path)
        parts[part] = quoted_name(name)
        if part in NUMBERS:
            parts[part] = _as_number(parts[part], types[name], source.path, name)
        if part == "label":
            parts[part] = _as_label(connection, source, parts[part], types[name], columns.positive)
    return parts


def _types(connection: Any, source: _Source) -> dict[str, str]:
    """Return the names of all columns, and what each holds."""
    found = connection.execute(f"DESCRIBE SELECT * FROM {source.sql}", source.given).fetchall()
    types = {str(name): str(kind) for name, kind, *_ in found}
    types.pop("file_row_number", None)
    return types


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _as_number(column: str, kind: str, path: str, name: str) -> str:
    if kind in _WHOLE:
        return column  # so that an integer that no double holds is refused
    if kind.split("(")[0] in _REAL:
        return f"CAST({column} AS DOUBLE)"
    raise Failure(
        f"{path}, column {name}: it holds {kind}, not numbers. Choose another column, or convert "
        "it.",
        BAD_INPUT,
    )


def _as_label(
    connection: Any, source: _Source, column: str, kind: str, positive: str | None
) -> str:
    """Write a label as 0, 1 or NULL, by what each of the texts there are means."""
    label_of, held = labels_of(positive), {0: list[str](), 1: list[str]()}
    distinct = f"SELECT DISTINCT {column} AS value FROM {source.sql}"
    found = connection.execute(f"SELECT CAST(value AS VARCHAR) FROM ({distinct})", source.given)
    while some := found.fetchmany(_SOME):
        for (text,) in some:
            label = None if text is None else label_of(text)
            if label is not None and (label or positive is None):
                held[label].append(text)
    listed = {
        label: " OR ".join([f"{column} = CAST({_literal(each)} AS {kind})" for each in texts])
        for label, texts in held.items()
    }
    cases = [f"WHEN {listed[label]} THEN {label}" for label in (1, 0) if listed[label]]
    if positive is not None:
        missing = f"{column} IS NULL OR CAST({column} AS VARCHAR) = ''"
        cases.append(f"WHEN {missing} THEN NULL ELSE 0")
    return f"CASE {' '.join(cases)} END" if cases else "NULL"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _wrong(parts: dict[str, str], columns: Columns) -> dict[str, str]:
    """Write for each part when its value is malformed."""
    number = "CAST({} AS DOUBLE)"
    wrong = {"score": f"coalesce(isnan({number.format(parts['score'])}), true)"}
    if "label" in parts:
        wrong["label"] = f"({parts['label']}) IS NULL"
    if "weight" in parts:
        weight = number.format(parts["weight"])
        condition = f"{weight} < {columns.finest!r} AND {weight} != 0"
        condition += f" OR isnan({weight}) OR isinf({weight})"
        wrong["weight"] = f"coalesce({condition}, true)"
    for outcome, _ in columns.costs:
        each = number.format(parts[outcome])
        wrong[outcome] = f"coalesce(isnan({each}) OR isinf({each}), true)"
    for part in _groups(parts):
        wrong[part] = f"coalesce(CAST({parts[part]} AS VARCHAR), '') = ''"
    return wrong


def _malformed(
    connection: Any,
    source: _Source,
    parts: dict[str, str],
    wrong: dict[str, str],
    columns: Columns,
) -> Malformed:
    """Find the malformed rows; or refuse the file where it has other labels than 0 and 1."""
    cases = " ".join(f"WHEN {condition} THEN '{part}'" for part, condition in wrong.items())
    label = quoted_name(columns.label or "")
    shown = {**parts, "label": label}
    texts = ", ".join(f"CAST({shown[part]} AS VARCHAR)" for part in wrong)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE malformed AS SELECT * FROM (SELECT file_row_number + 1 AS "
        f"row_number, CASE {cases} END AS part, [{texts}] AS texts FROM {source.sql}) "
        "WHERE part IS NOT NULL",
        source.given,
    )
    found = Malformed()
    found.count = connection.execute("SELECT count(*) FROM malformed").fetchone()[0]
    if found.count == 0:
        raise Failure(f"{source.path} cannot be read.", BAD_INPUT)
    labels = "SELECT * FROM malformed WHERE part = 'label' AND coalesce(texts[2], '') != ''"
    first = connection.execute(f"{labels} ORDER BY row_number LIMIT 1").fetchone()
    if first is not None and not columns.skip and columns.positive is None:
        each = f"SELECT CAST({label} AS VARCHAR), count(*) FROM {source.sql} GROUP BY 1"
        counts = connection.execute(f"{each} LIMIT {MANY_LABELS + 2}", source.given).fetchall()
        raise Failure(
            f"{source.path}, row {first[0]:,}, column {columns.label}: the label is {first[2][1]}, "
            f"not 0 or 1. {which_labels({text or '': count for text, count in counts})}",
            BAD_INPUT,
        )
    rows = connection.execute(f"SELECT * FROM malformed ORDER BY row_number LIMIT {SHOWN}")
    for row, part, values in rows.fetchall():
        value = values[list(wrong).index(part)]
        found.first.append(_problem(source.path, row, part, value, columns))
    return found


def _problem(path: str, row: int, part: str, value: str | None, columns: Columns) -> str:
    needed = {
        "score": "a number that has an order",
        "label": "0 or 1" if columns.positive is None else "some value",
        "weight": f"0, or finite and at least {columns.finest!r} (see --unit)",
        "group": "the name of a group",
    }.get(option_of(part), "a finite number")
    what = "cost" if part in OUTCOMES else option_of(part)
    return (
        f"{path}, row {row:,}, column {columns.named()[part]}: the {what} is "
        f"{'missing' if value is None else value}; it must be {needed}. Correct it or drop the row."
    )
