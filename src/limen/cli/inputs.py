# SPDX-License-Identifier: Apache-2.0
"""Samples out of files, whatever they are: names and patterns in, arrays out."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from glob import glob, has_magic
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.duckdb_reader import (
    Part,
    Stumbled,
    connected,
    duckdb_is_there,
    parquet_query,
    read_parquet,
    read_table,
    text_query,
)
from limen.cli.exits import BAD_INPUT, NOT_FOUND, USAGE, Failure
from limen.cli.line_reader import Collected, is_gzip, is_regular, name_of, read_text
from limen.cli.out_of_core import Narrowed, narrow
from limen.cli.output import require_distinct
from limen.cli.progress import counting
from limen.cli.rows import Columns
from limen.columns import as_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["Samples", "read", "read_narrowed"]

# Below this many bytes of text, Python is done before duckdb has been loaded.
_SMALL = 2**21
_BYTES_PER_ROW = 32
_SHORTEST_ROW = 6  # bytes of text, such as 0.5,1 and the end of the line
_SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    **dict.fromkeys((".ndjson", ".jsonl", ".json"), "ndjson"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of all files in one array for each column."""

    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    weights: NDArray[Any] | None
    codes: NDArray[Any] | None
    names: list[str]

    def __len__(self) -> int:
        return len(self.scores)

    def by_group(self) -> Iterator[tuple[str, Samples]]:
        """Yield the samples of each group, in the order of their names. O(n)."""
        if self.codes is None:
            return
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.names)))
        rows = dict(zip(self.names, np.split(order, ends), strict=False))
        for name in sorted(rows):
            if len(rows[name]):
                yield name, replace(self.taken(rows[name]), codes=None, names=[])

    def taken(self, rows: NDArray[Any]) -> Samples:
        """Take some rows. O(rows)."""
        weights = None if self.weights is None else self.weights[rows]
        codes = None if self.codes is None else self.codes[rows]
        return Samples(self.scores[rows], self.labels[rows], weights, codes, self.names)


def read(patterns: Sequence[str], format: str | None, columns: Columns) -> Samples:
    """Read every file that is named, or raise `Failure`. O(n)."""
    parts = []
    for path in _expanded(patterns):
        kind = format or _format_of(path)
        if kind == "parquet":
            if not is_regular(path):
                raise Failure(
                    f"{name_of(path)} can be read only once, and Parquet is read from its end. "
                    "Save it to a file, and name that.",
                    USAGE,
                )
            parts.append(read_parquet(path, columns))
        else:
            parts.append(_read_lines(path, kind, columns))
    samples = _joined(parts)
    if samples.weights is not None and not samples.weights.all():
        samples = samples.taken(np.flatnonzero(samples.weights))  # 0 is the same as no row
    listed = patterns[0] if len(patterns) == 1 else f"{len(parts)} files"
    _require_two_classes(samples, name_of(listed), columns)
    return samples


def read_narrowed(
    patterns: Sequence[str], format: str | None, columns: Columns, costs: dict[str, Any]
) -> Narrowed | None:
    """Read files of more rows than memory holds, as few rows with the same cheapest cut.

    None where all rows fit, or where something in the files is better told by `read`.
    """
    paths = _expanded(patterns)
    kinds = [format or _format_of(path) if is_regular(path) else None for path in paths]
    if columns.weight or columns.group or None in kinds or not duckdb_is_there():
        return None
    most = _most_rows()
    if sum(os.path.getsize(path) for path in paths) < most:
        return None  # not even with one byte for each row
    connection = connected()
    import duckdb

    try:
        rows = (_rows(connection, path, kind) for path, kind in zip(paths, kinds, strict=True))
        if sum(rows) <= most:
            return None
        queries = [
            parquet_query(connection, path, columns)
            if kind == "parquet"
            else text_query(path, str(kind), columns)
            for path, kind in zip(paths, kinds, strict=True)
        ]
        sql = " UNION ALL ".join(f"({query})" for query, _ in queries)
        given = [value for _, values in queries for value in values]
        narrowed = narrow(connection, sql, given, **costs, most=most)
    except (Stumbled, duckdb.Error):
        return None
    return narrowed if 0 < narrowed.positives < narrowed.rows else None


def _most_rows() -> int:
    """How many rows half of the memory holds."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return memory // 2 // _BYTES_PER_ROW


def _rows(connection: Any, path: str, kind: str | None) -> int:
    """Count the rows of Parquet; bound those of text by its size."""
    if kind == "parquet":
        counting = "SELECT sum(num_rows) FROM parquet_file_metadata(?)"
        return int(connection.execute(counting, [path]).fetchone()[0])
    return os.path.getsize(path) * (8 if is_gzip(path) else 1) // _SHORTEST_ROW


def _expanded(patterns: Sequence[str]) -> list[str]:
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
        raise Failure("standard input (-) can be read only once.", USAGE)
    require_distinct(paths)
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise Failure(f"{path} is not there. Check the name.", NOT_FOUND)
        if os.path.isdir(path):
            raise Failure(f"{path} is a folder. Name its files: '{path}/*.csv'", NOT_FOUND)
    return paths


def _format_of(path: str) -> str | None:
    """Tell by the name; None where only a look into the file tells.

    Into a pipe there is no look before the one reading: what it gave is gone.
    """
    if not is_regular(path):
        return None
    plain = path.lower().removesuffix(".gz")
    kind = _SUFFIXES.get(os.path.splitext(plain)[1])
    with open(path, "rb") as file:
        return "parquet" if file.read(4) == b"PAR1" else kind


def _read_lines(path: str, kind: str | None, columns: Columns) -> Part:
    """Text by duckdb where that is faster, and line by line where duckdb stumbles."""
    large = is_regular(path) and os.path.getsize(path) > _SMALL
    if kind is not None and large and duckdb_is_there():
        try:
            return read_table(path, kind, columns)
        except Stumbled:
            pass
    rows = Collected()
    with counting(path) as tick:
        read_text(path, kind, columns, rows, tick)
    return Part(
        np.frombuffer(rows.scores, dtype=np.float64),
        np.frombuffer(rows.labels, dtype=np.uint8),
        None if columns.weight is None else np.frombuffer(rows.weights, dtype=np.float64),
        None if columns.group is None else np.frombuffer(rows.codes, dtype=np.int64),
        list(rows.names),
    )


def _joined(parts: list[Part]) -> Samples:
    names: dict[str, int] = {}
    codes = []
    for part in parts:
        if part.codes is not None:
            renamed = [names.setdefault(name, len(names)) for name in part.names]
            codes.append(np.asarray(renamed, np.min_scalar_type(len(names)))[part.codes])
    weights = [part.weights for part in parts if part.weights is not None]
    try:
        scores = [as_scores(part.scores) for part in parts]
    except ValueError as error:
        raise Failure(str(error), BAD_INPUT) from None
    return Samples(
        _one(scores),
        _one([part.labels for part in parts]),
        _one(weights) if weights else None,
        _one(codes) if codes else None,
        list(names),
    )


def _one(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _require_two_classes(samples: Samples, listed: str, columns: Columns) -> None:
    counted = "" if columns.weight is None else f" of a {columns.weight} above 0"
    if len(samples) == 0:
        raise Failure(
            f"{listed}: no rows{counted}. A threshold needs samples of both classes.", BAD_INPUT
        )
    ones = int(np.count_nonzero(samples.labels))
    if ones in (0, len(samples)):
        hint = (
            f"Is {columns.positive!r} the class that counts as 1?"
            if columns.positive is not None
            else "Is this the right column? If labels are not 0 and 1, name one with --positive."
        )
        raise Failure(
            f"{listed}, column {columns.label}: every label counts as {int(ones > 0)} "
            f"({len(samples):,} row{'s' * (len(samples) > 1)}{counted}). A threshold needs both "
            f"classes. {hint}",
            BAD_INPUT,
        )
