# SPDX-License-Identifier: Apache-2.0
"""The samples of files of any format: names and patterns in, arrays out."""

from __future__ import annotations

import os
from dataclasses import replace
from glob import glob, has_magic
from typing import TYPE_CHECKING, Any

import numpy as np

from limen._core import number_of
from limen.cli.columnar import is_arrow, parquet_query, read_arrow, read_parquet
from limen.cli.duckdb_reader import BadValue, connected, duckdb_is_installed
from limen.cli.exits import BAD_INPUT, NOT_FOUND, USAGE, Failure
from limen.cli.line_reader import is_regular, name_of, read_text
from limen.cli.out_of_core import TextTables, groups, narrow
from limen.cli.output import require_distinct
from limen.cli.packing import packed_by, without_packing
from limen.cli.progress import counting
from limen.cli.rows import Columns
from limen.columns import as_scores
from limen.reporting.samples import FileRows, concatenated, weighted_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["expanded", "format_of", "is_columnar", "read", "read_narrowed", "require_other_files"]

_BYTES_PER_ROW = 32
_ONCE = "standard input (-) can be read only once."
_SHORTEST_ROW = 6  # bytes of text, such as 0.5,1 and the end of the line
_SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    **dict.fromkeys((".ndjson", ".jsonl", ".json"), "ndjson"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_COLUMNAR = {"parquet": "Parquet", "arrow": "Arrow"}


def read(
    patterns: Sequence[str], format: str | None, columns: Columns, *, one_class: bool = False
) -> FileRows:
    """Read every file that is named, or raise `Failure`. O(n).

    Labels of both classes are needed, unless `one_class` is enough.
    """
    parts = []
    for path in expanded(patterns):
        kind = format or format_of(path)
        if is_columnar(path, kind):
            parts.append((read_parquet if kind == "parquet" else read_arrow)(path, columns))
        else:
            with counting(path) as tick:
                parts.append(read_text(path, kind, columns, tick))
    try:
        parts = [replace(part, scores=as_scores(part.scores)) for part in parts]
    except ValueError as error:
        raise Failure(str(error), BAD_INPUT) from None
    samples = concatenated(parts).with_direction(columns.direction)
    if samples.weights is not None and not samples.weights.all():
        samples = samples.rows(np.flatnonzero(samples.weights))  # 0 is the same as no row
    listed = patterns[0] if len(patterns) == 1 else f"{len(parts)} files"
    _require_classes(samples, name_of(listed), columns, one_class)
    if columns.prevalence is None:
        return samples
    try:
        return weighted_to(samples, columns.prevalence)
    except ValueError as error:
        raise Failure(f"--{error}", BAD_INPUT) from None


def require_other_files(chosen_on: Sequence[str], checked_on: str) -> None:
    """Refuse to check a threshold on a file that it is chosen on, before any work is done."""
    paths = [*expanded(chosen_on), *expanded([checked_on])]
    require_distinct(paths, "a check needs rows that the threshold was not chosen on.")
    if paths.count("-") > 1:
        raise Failure(_ONCE, USAGE)


def read_narrowed(
    patterns: Sequence[str], format: str | None, columns: Columns, costs: dict[str, Any]
) -> tuple[FileRows, Iterator[tuple[str, FileRows]]] | None:
    """Read files of more rows than memory holds, as few rows with the same cheapest cut.

    The groups and their samples come with them, a few at once. None where all rows fit, or where
    something is wrong that `read` will name.
    """
    paths = expanded(patterns)
    kinds = [format or format_of(path) if is_regular(path) else None for path in paths]
    by_rows = columns.costs or columns.prevalence is not None
    if by_rows or not {"csv", "ndjson", "parquet"}.issuperset(kinds) or not duckdb_is_installed():
        return None
    most = _most_rows()
    if sum(os.path.getsize(path) for path in paths) < most:
        return None  # not even with one byte for each row
    connection = TextTables(connected())
    import duckdb

    try:
        rows = (_rows(connection, path, kind) for path, kind in zip(paths, kinds, strict=True))
        if sum(rows) <= most:
            return None
        queries = [
            parquet_query(connection, path, columns)
            if kind == "parquet"
            else connection.query(path, str(kind), columns)
            for path, kind in zip(paths, kinds, strict=True)
        ]
        sql = " UNION ALL ".join(f"({query})" for query, _ in queries)
        if columns.direction == "<=":
            sql = f"SELECT * REPLACE (-CAST(score AS DOUBLE) AS score) FROM ({sql})"
        given = [value for _, values in queries for value in values]
        each_group: Iterator[tuple[str, FileRows]] = iter(())
        if columns.group is not None:
            each_group = groups(connection, sql, given, columns, most=most, **costs)
        weights = {"weighted": columns.weight is not None, "unit": columns.unit}
        narrowed = narrow(connection, sql, given, most=most, **weights, **costs)
    except (BadValue, ImportError, duckdb.Error):
        return None
    counted, ones = narrowed.counts
    if columns.direction == "<=":
        # The query negated the scores, as the core has them.
        narrowed = replace(narrowed, direction="<=")
        each_group = ((name, replace(part, direction="<=")) for name, part in each_group)
    return (narrowed, each_group) if 0 < ones < counted else None


def _most_rows() -> int:
    """How many rows half of the memory holds."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return memory // 2 // _BYTES_PER_ROW


def _rows(connection: Any, path: str, kind: str | None) -> int:
    """Count the rows of Parquet; bound those of text by its size."""
    if kind == "parquet":
        counting = "SELECT sum(num_rows) FROM parquet_file_metadata(?)"
        return int(connection.execute(counting, [path]).fetchone()[0])
    return os.path.getsize(path) * (1 if packed_by(path) is None else 8) // _SHORTEST_ROW


def expanded(patterns: Sequence[str]) -> list[str]:
    """List the files that names, patterns and folders stand for, or raise `Failure`."""
    paths: list[str] = []
    for pattern in patterns:
        if pattern == "-" or os.path.exists(pattern) or not has_magic(pattern):
            paths.append(pattern)
            continue
        found = sorted(glob(pattern, recursive=True))
        if not found:
            raise Failure(f"no file matches {pattern}. Check the pattern.", NOT_FOUND)
        paths += found
    if paths.count("-") > 1:
        raise Failure(_ONCE, USAGE)
    require_distinct(paths)
    for path in paths:
        if path != "-" and not os.path.exists(path):
            number = number_of(path) is not None
            hint = "If it is a threshold, give each with a -t of its own." if number else ""
            raise Failure(f"{path} does not exist. {hint or 'Check the name.'}", NOT_FOUND)
    return [file for path in paths for file in (_within(path) if os.path.isdir(path) else [path])]


def _within(folder: str) -> list[str]:
    """List the Parquet files of a folder as Spark writes it: not hidden, at any depth."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        named = (name for name in sorted(files) if not name.startswith((".", "_")))
        found += [os.path.join(place, name) for name in named if name.endswith((".parquet", ".pq"))]
    if not found:
        raise Failure(
            f"{folder} is a folder without Parquet files. Name its files: '{folder}/*.csv'",
            NOT_FOUND,
        )
    return found


def is_columnar(path: str, kind: str | None) -> bool:
    """Whether a file is one of columns; raise `Failure` where such a one is a pipe."""
    if kind not in _COLUMNAR:
        return False
    if not is_regular(path):
        raise Failure(
            f"{name_of(path)} can be read only once, and {_COLUMNAR[kind]} is read from its end. "
            "Save it to a file, and name that.",
            USAGE,
        )
    return True


def format_of(path: str) -> str | None:
    """Find the format by the name; None where that needs the first line.

    A pipe is not looked into here, as what it gave could not be read again.
    """
    if not is_regular(path):
        return None
    kind = _SUFFIXES.get(os.path.splitext(without_packing(path.lower()))[1])
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin.startswith(b"PAR1"):
        return "parquet"
    return "arrow" if is_arrow(begin) else None if kind == "arrow" else kind


def _require_classes(samples: FileRows, listed: str, columns: Columns, one_class: bool) -> None:
    counted = "" if columns.weight is None else f" of a {columns.weight} above 0"
    if len(samples) == 0:
        needed = "Some are needed" if one_class else "A threshold needs samples of both classes"
        raise Failure(f"{listed}: no rows{counted}. {needed}.", BAD_INPUT)
    ones = samples.positives
    if ones in (0, len(samples)) and not one_class:
        hint = (
            f"Is {columns.positive!r} the positive class?"
            if columns.positive is not None
            else "Is this the right column? If labels are not 0 and 1, name one with --positive."
        )
        raise Failure(
            f"{listed}, column {columns.label}: every label counts as {int(ones > 0)} "
            f"({len(samples):,} row{'s' * (len(samples) > 1)}{counted}). A threshold needs both "
            f"classes. {hint}",
            BAD_INPUT,
        )
