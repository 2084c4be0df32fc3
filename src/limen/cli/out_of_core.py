# SPDX-License-Identifier: Apache-2.0
"""The cheapest cut of more rows than memory holds: look at all of them, keep those near the cut.

The scores are put into buckets in ascending order, and duckdb counts the labels in each. The cut
before a bucket has a known loss; within the bucket the loss falls by at most its labels 0. Where
that does not reach the lowest known loss, no cut inside is the best one and the counts are enough.
The others are looked into, or put into finer buckets first when they hold too much.

The counts of a bucket that is not looked into stand for its rows, all at its highest score. It is
never next to the best cut: a bucket at either side of a cut of the lowest loss is looked into, or
holds one score. So the answer is the same to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limen.cli.duckdb_reader import NeedsLineReader
from limen.cli.progress import polling
from limen.cli.samples import Samples
from limen.units import exact_costs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.units import Cost

__all__ = ["narrow"]

_BUCKETS = 2**16
_PASSES = 8


def narrow(
    connection: Any,
    sql: str,
    given: list[Any],
    *,
    false_positive: Cost,
    false_negative: Cost,
    most: int,
    buckets: int = _BUCKETS,
) -> Samples:
    """Reduce the rows of a query, with a score and a label each, to about `most` of them. O(n).

    The weight of a sample is the number of rows that it stands for.

    Raise `NeedsLineReader` where a score or a label is missing or has no order.
    """
    costs = exact_costs(false_positive, false_negative)[:2]
    source = f"(SELECT CAST(score AS DOUBLE) AS score, label FROM ({sql}))"
    bounds = _ends(connection, source, given)
    counts = _count(connection, source, given, *bounds, buckets)
    kept = _worth_a_look(counts, *costs)
    for _ in range(_PASSES):
        found = np.flatnonzero(kept)
        if counts["n"][kept].sum() <= most or len(found) == 0:
            break
        finer = float(counts["first"][found[0]]), float(counts["last"][found[-1]])
        if finer == bounds:
            break
        bounds = finer
        within = f"(SELECT * FROM {source} WHERE score BETWEEN ? AND ?)"
        inside = _count(connection, within, [*given, *bounds], *bounds, buckets)
        counts = _joined(counts, inside, *bounds)
        kept = _worth_a_look(counts, *costs)
    return _reduced(connection, source, given, counts, kept, (*bounds, buckets))


def _joined(
    coarse: dict[str, NDArray[Any]], fine: dict[str, NDArray[Any]], low: float, high: float
) -> dict[str, NDArray[Any]]:
    """Put fine buckets in the place of the coarse ones between two scores."""
    below, above = coarse["last"] < low, coarse["first"] > high
    return {
        name: np.concatenate([coarse[name][below], fine[name], coarse[name][above]])
        for name in coarse
    }


def _ends(connection: Any, source: str, given: list[Any]) -> tuple[float, float]:
    with polling("all rows", connection.query_progress):
        low, high, wrong = connection.execute(
            "SELECT min(score) FILTER (isfinite(score)), max(score) FILTER (isfinite(score)), "
            "count(*) FILTER (score IS NULL OR isnan(score) OR label IS NULL) "
            f"FROM {source}",
            given,
        ).fetchone()
    if wrong:
        raise NeedsLineReader
    return (0.0, 0.0) if low is None else (float(low), float(high))


def _bucket(low: float, high: float, buckets: int) -> tuple[str, list[float]]:
    """Write a function that numbers buckets and never falls, also in doubles."""
    if not high > low or high - low == np.inf:
        return "CASE WHEN score < ? THEN -1 WHEN score > ? THEN 1 ELSE 0 END", [low, high]
    return (
        "CASE WHEN score < ? THEN -1 WHEN score > ? THEN ? ELSE "
        "least(CAST(floor((score - ?) / ? * ?) AS BIGINT), ?) END"
    ), [low, high, buckets, low, high - low, buckets, buckets - 1]


def _count(
    connection: Any, source: str, given: list[Any], low: float, high: float, buckets: int
) -> dict[str, NDArray[Any]]:
    number, values = _bucket(low, high, buckets)
    with polling("all rows", connection.query_progress):
        found: dict[str, NDArray[Any]] = connection.execute(
            f"SELECT {number} AS bucket, min(score) AS first, max(score) AS last, count(*) AS n, "
            "CAST(sum(label) AS BIGINT) AS ones "
            f"FROM {source} GROUP BY bucket ORDER BY bucket",
            [*values, *given],
        ).fetchnumpy()
    return {name: np.asarray(column) for name, column in found.items()}


def _worth_a_look(
    counts: dict[str, NDArray[Any]], false_positive: int, false_negative: int
) -> NDArray[np.bool_]:
    """Find the buckets in which a cut may be as cheap as the cheapest at their ends."""
    ones = counts["ones"].astype(object)  # whole numbers of any size
    zeros = counts["n"].astype(object) - ones
    below = np.concatenate([[0], np.cumsum(ones)])
    above = sum(zeros) - np.concatenate([[0], np.cumsum(zeros)])
    losses = false_negative * below + false_positive * above
    reach = losses[:-1] - false_positive * zeros
    several = counts["first"] < counts["last"]
    return np.asarray(reach <= min(losses), dtype=bool) & several


def _reduced(
    connection: Any,
    source: str,
    given: list[Any],
    counts: dict[str, NDArray[Any]],
    kept: NDArray[np.bool_],
    bounds: tuple[float, float, int],
) -> Samples:
    number, values = _bucket(*bounds)
    with polling("near the cut", connection.query_progress):
        near = connection.execute(
            f"SELECT score, label FROM {source} WHERE score BETWEEN ? AND ? "
            f"AND {number} IN (SELECT unnest(?))",
            [*given, *bounds[:2], *values, counts["bucket"][kept].tolist()],
        ).fetchnumpy()
    ones = counts["ones"][~kept]
    zeros = counts["n"][~kept] - ones
    some, none = ones > 0, zeros > 0
    last = counts["last"][~kept]
    scores = (near["score"], last[some], last[none])
    labels = (near["label"], np.ones(some.sum(), np.uint8), np.zeros(none.sum(), np.uint8))
    weights = (np.ones(len(near["score"]), np.int64), ones[some], zeros[none])
    return Samples(
        np.concatenate(scores),
        np.concatenate(labels).astype(np.uint8),
        np.concatenate(weights),
    )
