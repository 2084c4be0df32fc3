# SPDX-License-Identifier: Apache-2.0
"""More rows than memory holds: duckdb counts them, and `limen.narrowing` asks it."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.duckdb_reader import BadValue, fetch
from limen.cli.line_reader import text_pieces
from limen.cli.progress import polling
from limen.narrowing import Counts, Rows
from limen.narrowing.answers import represented, weighing, with_cheapest_cut
from limen.narrowing.search import BUCKETS, DRAWN
from limen.narrowing.sql import (
    AUTOMATIC,
    REFUSED,
    Dialect,
    finer_steps,
    literal,
    ranges,
    steps_of,
    units_of,
)
from limen.reporting.samples import FileRows
from limen.units import exact_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limen.cli.rows import Columns
    from limen.narrowing import Kept, Level, Root
    from limen.units import Cost

__all__ = ["TextTables", "groups", "narrow"]

_DUCKDB = Dialect("{array}[{place} + 1]", "round_even({}, 0)")


class DuckdbSource:
    """The rows of a query, with a score, a label and perhaps a weight each.

    Raises `BadValue` where a value is missing, has no order or would be lost.
    """

    def __init__(
        self, connection: Any, sql: str, given: list[Any], *, weighted: bool, unit: Fraction | None
    ) -> None:
        taken = "CAST(score AS DOUBLE) AS score, label"
        self.unit = AUTOMATIC if unit is None else unit
        if weighted:
            try:
                units = units_of("CAST(weight AS DOUBLE)", self.unit, _DUCKDB)
            except ValueError:
                raise BadValue from None
            sound = f"weight = 0 OR ({units}) BETWEEN 1 AND {literal(2.0**61)}"
            taken += f", CASE WHEN {sound} THEN CAST({units} AS BIGINT) END AS units"
        self._connection, self._given, self._weighted = connection, given, weighted
        self._rows = f"(SELECT {taken} FROM ({sql}))"
        self._numbered, self._values, self._levels = "", list[Any](), 0
        self.counted = 0, 0  # rows, and those of label 1

    def _run(self, what: str, sql: str, values: list[Any]) -> dict[str, NDArray[Any]]:
        with polling(what, self._connection.query_progress):
            found = self._connection.execute(sql, values).fetchnumpy()
        return {name: np.asarray(column) for name, column in found.items()}

    def draw(self) -> NDArray[np.float64]:
        """Return the lowest, the highest and the first scores, after a look at all rows."""
        held = "units IS NOT NULL" if self._weighted else "true"
        counted = "units > 0" if self._weighted else "true"
        found = self._run(
            "all rows",
            "SELECT min(score) FILTER (isfinite(score)) AS low, "
            "max(score) FILTER (isfinite(score)) AS high, "
            f"count(*) FILTER (score IS NULL OR isnan(score) OR label IS NULL OR NOT {held}) "
            f"AS wrong, count(*) FILTER ({counted}) AS rows, "
            f"count(*) FILTER ({counted} AND label = 1) AS ones FROM {self._rows}",
            self._given,
        )
        if found["wrong"][0]:
            raise BadValue
        self.counted = int(found["rows"][0]), int(found["ones"][0])
        if self._weighted:
            self._rows = f"(SELECT * FROM {self._rows} WHERE units > 0)"
        if not self.counted[0]:
            return np.zeros(0)
        some = self._run("all rows", f"SELECT score FROM {self._rows} LIMIT {DRAWN}", self._given)
        ends = [float(found[end][0]) for end in ("low", "high")]
        return np.concatenate([np.nan_to_num(ends), some["score"]])

    def count(self, root: Root) -> Counts:
        """Count all rows by bucket."""
        self._numbered, self._values = self._rows, self._given
        for name, step in steps_of(root, "CAST(? AS DOUBLE[])", "CAST(? AS DOUBLE[])", _DUCKDB):
            self._numbered = f"(SELECT *, {step} AS {name} FROM {self._numbered})"
        arrays = [root.base.tolist(), root.size.tolist()] if len(root.base) else []
        self._values = [*arrays, *self._given]
        return self._count()

    def split(self, level: Level) -> Counts:
        """Count the rows of some buckets by finer ones."""
        self._levels += 1
        names = ("number", "by_magnitude", "start", "stretch", "scale", "base", "last")
        listed = ", ".join(f"unnest(?) AS {name}" for name in names)
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE level_{self._levels} AS SELECT {listed}",
            [getattr(level, name).tolist() for name in names],
        )
        columns = f"score, label{', units' if self._weighted else ''}"
        ends = f"{literal(level.first_score)} AND {literal(level.last_score)}"
        inside = f"SELECT {columns}, number FROM {self._numbered} WHERE score BETWEEN {ends}"
        finer = f"(SELECT * FROM ({inside}) JOIN level_{self._levels} USING (number))"
        for name, step in finer_steps():
            finer = f"(SELECT *, {step} AS {name} FROM {finer})"
        self._numbered = f"(SELECT {columns}, finer AS number FROM {finer})"
        return self._count()

    def _count(self) -> Counts:
        units = "units" if self._weighted else "1"
        found = self._run(
            "all rows",
            "SELECT number, min(score) AS first, max(score) AS last, count(*) AS n, "
            f"CAST(sum({units} * (1 - label)) AS BIGINT) AS zeros, "
            f"CAST(sum({units} * label) AS BIGINT) AS ones FROM {self._numbered} GROUP BY number",
            self._values,
        )
        if (found["number"] == REFUSED).any():
            raise BadValue
        return Counts(**{name: found[name] for name in Counts._fields})

    def collect(self, kept: Kept) -> Rows:
        """Fetch the rows to keep."""
        near = f"SELECT * FROM {self._rows} WHERE {ranges(kept)}"
        values = self._given
        if kept.number is not None:
            wanted = f"number IN (SELECT unnest(?)) AND ({ranges(kept)})"
            near = f"SELECT * FROM {self._numbered} WHERE {wanted}"
            values = [*self._values, kept.number.tolist()]
        found = self._run("near the cut", near, values)
        return Rows(found["score"], found["label"].astype(np.uint8), found.get("units"))


class _TextStream:
    """The samples of a file of text as a stream of Arrow, which duckdb opens for each query."""

    def __init__(self, path: str, format: str, columns: Columns) -> None:
        self._given = path, format, columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        kinds = {"score": pa.float64(), "label": pa.uint8()}
        if self._given[2].weight is not None:
            kinds["weight"] = pa.float64()
        if self._given[2].group is not None:
            kinds["name"] = pa.string()
        schema = pa.schema(list(kinds.items()))

        def batches() -> Iterator[Any]:
            for piece in text_pieces(*self._given):
                columns = [piece.scores, piece.labels]
                if piece.weights is not None:
                    columns.append(piece.weights)
                arrays = [pa.array(column) for column in columns]
                if piece.codes is not None:
                    arrays.append(pa.array(piece.names, pa.string()).take(pa.array(piece.codes)))
                yield pa.record_batch(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()


class TextTables:
    """A connection of duckdb with files of text as tables, which each query reads again.

    Before duckdb 1.5, a stream of Arrow can be read once after each registration.
    """

    def __init__(self, connection: Any) -> None:
        self._connection, self._streams = connection, dict[str, _TextStream]()
        self.query_progress = connection.query_progress

    def query(self, path: str, format: str, columns: Columns) -> tuple[str, list[Any]]:
        """Write the query for the samples of CSV or NDJSON, and the values it refers to."""
        import_module("pyarrow")  # before the query, in which an ImportError would be another error
        name = f"text_{len(self._streams)}"
        self._streams[name] = _TextStream(path, format, columns)
        return f"SELECT * FROM {name}", []

    def execute(self, sql: str, values: list[Any] | None = None) -> Any:
        """Run a query."""
        for name, stream in self._streams.items():
            self._connection.register(name, stream)
        return self._connection.execute(sql, values)


def narrow(
    connection: Any,
    sql: str,
    given: list[Any],
    *,
    false_positive: Cost,
    false_negative: Cost,
    most: int,
    buckets: int = BUCKETS,
    weighted: bool = False,
    unit: Cost | None = None,
) -> FileRows:
    """Reduce the rows of a query to about `most` samples with the same cheapest cut. O(n).

    The weight of a sample is that of the rows that it stands for.

    Raise `BadValue` where a score or a label is missing or has no order.
    """
    source = DuckdbSource(connection, sql, given, weighted=weighted, unit=exact_unit(unit))
    narrowed = with_cheapest_cut(
        source,
        false_positive=false_positive,
        false_negative=false_negative,
        most=most,
        buckets=buckets,
    )
    size = source.unit if weighted else Fraction(1)
    return FileRows(*weighing(represented(narrowed), size).columns, stands_for=source.counted)


def groups(
    connection: Any, sql: str, given: list[Any], columns: Columns, *, most: int, **costs: Any
) -> Iterator[tuple[str, FileRows]]:
    """Yield each group and its samples, in the order of their names, at most about `most` at once.

    A group that is larger by itself is narrowed. O(n) for each so many rows.
    """
    held = f"({sql})" if columns.weight is None else f"(SELECT * FROM ({sql}) WHERE weight > 0)"
    counting = f"SELECT name, count(*) FROM {held} GROUP BY name ORDER BY name"
    counted = connection.execute(counting, given).fetchall()
    if any(name in (None, "") for name, _ in counted):
        raise BadValue
    return _groups(connection, held, given, columns, counted, most=most, **costs)


def _groups(
    connection: Any,
    held: str,
    given: list[Any],
    columns: Columns,
    counted: list[tuple[str, int]],
    *,
    most: int,
    **costs: Any,
) -> Iterator[tuple[str, FileRows]]:
    while counted:
        sums = np.cumsum([rows for _, rows in counted])
        together = int(np.searchsorted(sums, most, side="right"))
        names = [name for name, _ in counted[: max(1, together)]]
        counted = counted[len(names) :]
        if together:
            chosen = f"SELECT * FROM {held} WHERE name BETWEEN ? AND ?"
            ends = [*given, names[0], names[-1]]
            rows = fetch(connection, chosen, ends, "groups", columns)
            yield from ((name, rows.rows(places)) for name, places in rows.groups())
        else:
            chosen = f"SELECT * EXCLUDE (name) FROM {held} WHERE name = ?"
            weights = {"weighted": columns.weight is not None, "unit": columns.unit}
            one = [*given, names[0]]
            yield names[0], narrow(connection, chosen, one, most=most, **weights, **costs)
