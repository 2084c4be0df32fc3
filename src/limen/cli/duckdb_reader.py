# SPDX-License-Identifier: Apache-2.0
"""Samples by duckdb, which is fast: out of text, and for `limen.cli.columnar` out of queries."""

from __future__ import annotations

import codecs
import math
import mmap
import os
import re
from glob import has_magic
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.exits import Failure
from limen.cli.line_reader import csv_header
from limen.cli.packing import packed_by
from limen.cli.progress import on_terminal, polling
from limen.cli.rows import Columns
from limen.names import OUTCOMES
from limen.reporting.samples import FileRows

if TYPE_CHECKING:
    from collections.abc import Callable

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
        number = math.nan
    missing = f"{text} IS NULL OR {text} = ''"
    odd = "false"
    if not math.isnan(number):
        same += f" OR coalesce(TRY_CAST({text} AS DOUBLE) = ?, false)"
        given.append(number)
        # Python reads the digits of every script, and spaces too, where duckdb sees no number.
        odd = f"strlen({text}) > length({text}) AND regexp_matches({text}, '\\p{{Nd}}')"
    return (
        f"CASE WHEN {missing} THEN NULL WHEN {same} THEN 1 WHEN {odd} THEN NULL ELSE 0 END",
        given,
    )


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


def read_table(path: str, format: str, columns: Columns) -> FileRows:
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
        _require_alike(path, lambda text: _is_odd_csv(text, delimiter, width))
        mark = {"'": "''"}.get(delimiter, delimiter)
        options += ["header = true", f"delim = '{mark}'", "quote = '\"'", "escape = '\"'"]
        if columns.comma:
            parts |= {part: _pointed(parts[part]) for part in named if part in NUMBERS}
            kinds = dict.fromkeys(kinds, "VARCHAR")
    else:
        if (columns.positive or "").startswith(("[", "{")):
            raise NeedsLineReader  # duckdb writes arrays and objects without spaces
        _require_alike(path, _is_odd_json)
        parts = {part: quoted_name(name) for part, name in named.items()}
        kinds = {name: types[part] for part, name in named.items()}
        if "group" in parts:
            group = parts["group"]
            parts["group"] = f"CASE WHEN {group}[1] NOT IN ('[', '{{') THEN {group} END"
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


def _require_alike(path: str, odd: Callable[[Any], bool]) -> None:
    """Leave a file to the line reader if duckdb would read it by looser rules. O(bytes), fast.

    A packed file is not looked into.
    """
    if packed_by(path) is not None or os.path.getsize(path) == 0:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for start in range(0, len(text), _LONG):
                decoder.decode(text[start : start + _LONG])
        except UnicodeDecodeError:
            raise NeedsLineReader from None
        if odd(text):
            raise NeedsLineReader


def _is_odd_json(text: Any) -> bool:
    """Whether there is a comma after the last value, which duckdb overlooks."""
    return re.search(rb",\s*[}\]]", text) is not None


def _is_odd_csv(text: Any, delimiter: str, width: int) -> bool:
    """Whether there may be blanks round quotes, or more fields than the header has.

    Duckdb overlooks the blanks, and fields beyond the last if they are empty.
    """
    mark, blank = re.escape(delimiter.encode()), b"[%b]" % b" \t".replace(delimiter.encode(), b"")
    quotes = mark + blank + b'+"', b"\n" + blank + b'+"', b'"' + blank + b"+(?:\r|\n|%b)" % mark
    if text.find(b'"') >= 0 and any(re.search(pattern, text) for pattern in quotes):
        return True
    if not re.search(mark + rb'(?:"")?\r?(?:\n|\Z)', text):
        return False
    return re.search(rb"\n(?:[^%b\n]*%b){%d}" % (mark, mark, width), text) is not None


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


def fetch(connection: Any, sql: str, given: list[Any], path: str, columns: Columns) -> FileRows:
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
    return FileRows(scores, arrays["label"], weights, codes=codes, names=tuple(names), costs=costs)
