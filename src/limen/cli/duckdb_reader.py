# SPDX-License-Identifier: Apache-2.0
"""Samples out of queries of duckdb."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.exits import Failure
from limen.cli.progress import on_terminal, polling
from limen.names import OUTCOMES
from limen.reporting.samples import FileRows

if TYPE_CHECKING:
    from limen.cli.rows import Columns

__all__ = [
    "NUMBERS",
    "BadValue",
    "connected",
    "duckdb_is_installed",
    "fetch",
    "quoted_name",
    "select_sql",
]

NUMBERS = ("score", "weight", *OUTCOMES)


class BadValue(Exception):  # noqa: N818 - reads as what happened
    """A value is missing, has no order or would be lost."""


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


def select_sql(parts: dict[str, str]) -> str:
    """Write what to take out of each row."""
    taken = [f"{parts['score']} AS score", f"CAST({parts.get('label', '0')} AS UTINYINT) AS label"]
    if "weight" in parts:
        taken.append(f"{parts['weight']} AS weight")
    if "group" in parts:
        taken.append(f"CAST({parts['group']} AS VARCHAR) AS name")
    taken += [f"{parts[part]} AS {part}" for part in parts if part in OUTCOMES]
    return f"SELECT {', '.join(taken)}"


def fetch(connection: Any, sql: str, given: list[Any], path: str, columns: Columns) -> FileRows:
    """Run the query, or raise `BadValue` if a value is missing, nan or would be lost."""
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
                raise BadValue
            sql, given = (
                "SELECT samples.* EXCLUDE (name), code FROM samples JOIN names USING (name)",
                [],
            )
        found = connection.execute(sql, given).fetchnumpy()
    if any(
        isinstance(column, np.ma.MaskedArray) and column.mask.any() for column in found.values()
    ):
        raise BadValue
    arrays = {name: np.asarray(column) for name, column in found.items()}
    scores, weights = arrays["score"], arrays.get("weight")
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        raise BadValue
    if weights is not None:
        lowest = (weights >= columns.finest) | (weights == 0)
        if not bool(np.all(lowest & (weights < np.inf))):
            raise BadValue
    costs = {outcome: arrays[outcome].astype(np.float64) for outcome, _ in columns.costs}
    if not all(np.isfinite(each).all() for each in costs.values()):
        raise BadValue
    codes = arrays.get("code")
    if codes is not None:
        codes = codes.astype(np.min_scalar_type(len(names)))  # small ones are sorted faster
    return FileRows(scores, arrays["label"], weights, codes=codes, names=tuple(names), costs=costs)
