# SPDX-License-Identifier: Apache-2.0
"""limen inside SQL: exact thresholds as aggregates of DuckDB.

DuckDB knows no aggregates written in Python. So each one here is a macro that gathers the samples
of a group with ``list()`` and hands the lists of many groups at once, as Arrow arrays, to a scalar
function.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.aim import Aim
from limen.confidence import LEAST
from limen.samples import Samples
from limen.trust.recommended import recommended

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

__all__ = ["register"]

_SAMPLE = "STRUCT(score DOUBLE, label DOUBLE, weight DOUBLE)"
_MACRO = """
    CREATE OR REPLACE TEMPORARY MACRO {name}(
        score, label, false_positive := 1, false_negative := 1, weight := 1
    ) AS limen_{name}(
        list(struct_pack(
            score := score::DOUBLE, label := label::DOUBLE, weight := weight::DOUBLE
        )),
        false_positive::DOUBLE, false_negative::DOUBLE
    )
"""


def register(connection: DuckDBPyConnection) -> None:
    """Add ``optimal_threshold`` and ``recommend`` to the SQL of a connection, until it closes.

    Both are aggregates of ``(score, label, false_positive := 1, false_negative := 1, weight := 1)``
    and work with and without ``GROUP BY``. Costs may differ from group to group. Without any row
    the answer is NULL.

    ``optimal_threshold``
        The exact optimum of the samples as ``STRUCT(threshold, lower, upper, loss)``, as by
        `limen.optimal_threshold`. O(n).
    ``recommend``
        The threshold for new rows as ``STRUCT(threshold, low, high)``: `limen.recommend` with the
        interval in which the best one lies at 95 % confidence; NULL below five samples of a label.
        O(n log n).

    Parameters
    ----------
    connection
        As made by ``duckdb.connect``. Needs pyarrow.

    Notes
    -----
    Scores, weights and costs are read as DOUBLE and labels are 0 and 1 or booleans. A NULL or nan
    is an error, which names the column and the way to leave such rows out.

    Examples
    --------
    >>> import duckdb, limen.duckdb
    >>> connection = duckdb.connect()
    >>> limen.duckdb.register(connection)
    >>> connection.sql('''
    ...     SELECT shop, optimal_threshold(score, label, false_negative := 5).threshold
    ...     FROM (VALUES ('a', 0.25, 0), ('a', 0.5, 1), ('b', 0.5, 0), ('b', 1.0, 1))
    ...         AS samples(shop, score, label)
    ...     GROUP BY shop ORDER BY shop
    ... ''').fetchall()
    [('a', 0.375), ('b', 0.75)]
    """
    try:
        import duckdb
        import pyarrow  # noqa: F401 - in which DuckDB hands over the samples
    except ModuleNotFoundError as missing:
        raise ImportError(
            'limen.duckdb needs duckdb and pyarrow. Install them with: pip install "limen[frames]"'
        ) from missing

    for name, answer, fields in (
        ("optimal_threshold", _optimum, ("threshold", "lower", "upper", "loss")),
        ("recommend", _recommended, ("threshold", "low", "high")),
    ):
        function = f"limen_{name}"
        result = f"STRUCT({', '.join(f'{field} DOUBLE' for field in fields)})"
        with suppress(duckdb.Error):  # it was not registered before
            connection.remove_function(function)
        connection.create_function(
            function,
            _by_list(name, answer, fields),
            [f"{_SAMPLE}[]", "DOUBLE", "DOUBLE"],
            result,
            type="arrow",
            null_handling="special",
        )
        connection.execute(_MACRO.format(name=name))


def _by_list(
    name: str, answer: Callable[..., tuple[float | None, ...] | None], fields: tuple[str, ...]
) -> Callable[[Any, Any, Any], Any]:
    """Make the function of Arrow arrays, a list of samples in each row, that DuckDB calls."""
    import pyarrow

    nothing = (None,) * len(fields)

    def answers(lists: Any, false_positive: Any, false_negative: Any) -> Any:
        lists = lists.combine_chunks() if isinstance(lists, pyarrow.ChunkedArray) else lists
        flat = lists.flatten()  # leaves out the lists that are NULL
        scores, labels, weights = (
            _column(name, flat, field) for field in ("score", "label", "weight")
        )
        if not ((labels == 0) | (labels == 1)).all():
            raise ValueError(f"{name}: a label is not 0 or 1. Pass a condition: outcome = 'bad'.")
        weighted = bool((weights != 1).any())  # a search without weights is faster
        samples = Samples(scores, labels.astype(np.uint8), weights if weighted else None)
        rows: list[tuple[float | None, ...]] = []
        first = 0
        for length, positive, negative in zip(
            lists.value_lengths().to_pylist(),
            false_positive.to_pylist(),
            false_negative.to_pylist(),
            strict=True,
        ):
            if positive is None or negative is None:
                raise ValueError(f"{name}: a cost is NULL. Give it as a number above 0.")
            part = slice(first, first := first + (length or 0))
            aim = Aim.of(false_positive=positive, false_negative=negative)
            found = length and answer(samples.rows(part), aim)
            rows.append(found or nothing)
        columns = [pyarrow.array(column, pyarrow.float64()) for column in zip(*rows, strict=True)]
        missing = pyarrow.array([row is nothing for row in rows])
        return pyarrow.StructArray.from_arrays(columns, fields, mask=missing)

    return answers


def _column(name: str, samples: Any, field: str) -> NDArray[np.float64]:
    """One field of the samples as an array; raise ValueError where a value is missing."""
    column = samples.field(field)
    if samples.null_count or column.null_count:
        raise ValueError(
            f"{name}: {field} is NULL in a row. Leave such rows out: WHERE {field} IS NOT NULL."
        )
    values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    if np.isnan(values).any():
        raise ValueError(
            f"{name}: {field} is nan in a row. Leave such rows out: WHERE NOT isnan({field})."
        )
    return values


def _optimum(samples: Samples, aim: Aim) -> tuple[float | None, ...]:
    found = aim.best(samples)
    return found.threshold, found.lower, found.upper, found.loss


def _recommended(samples: Samples, aim: Aim) -> tuple[float | None, ...] | None:
    if min(samples.positives, len(samples) - samples.positives) < LEAST:
        return None
    found = recommended(samples, aim)
    return (found.threshold, *found.interval)
