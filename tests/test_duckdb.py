# SPDX-License-Identifier: Apache-2.0
"""In SQL the answers are those of Python, group by group."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import limen

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import limen.duckdb  # noqa: E402


@pytest.fixture
def connection() -> Any:
    opened = duckdb.connect()
    limen.duckdb.register(opened)
    yield opened
    opened.close()


def table(connection: Any, rows: int, groups: int, seed: int) -> dict[str, np.ndarray]:
    """Fill the table `samples` with ties, infinities and groups of many sizes."""
    draw = np.random.default_rng(seed)
    columns = {
        "g": (draw.random(rows) ** 3 * groups).astype(np.int64),
        "score": draw.choice([-math.inf, 0.0, 0.25, 0.5, 1.0, math.inf, *draw.random(9)], rows),
        "label": draw.integers(0, 2, rows),
        "weight": draw.choice([0.0, 0.5, 1.0, 3.0], rows),
    }
    columns["missed"] = 1.0 + columns["g"] % 7
    connection.execute(
        "CREATE TABLE samples (g BIGINT, score DOUBLE, label BIGINT, weight DOUBLE, missed DOUBLE)"
    )
    values = ", ".join(f"unnest(${name})" for name in columns)
    connection.execute(
        f"INSERT INTO samples SELECT {values}",
        {name: column.tolist() for name, column in columns.items()},
    )
    return columns


@pytest.mark.parametrize("groups", [3, 5_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_group_has_the_exact_optimum_of_its_samples(
    connection: Any, groups: int, weighted: bool
) -> None:
    columns = table(connection, 10_000, groups, seed=groups)
    extra = ", weight := weight" if weighted else ""
    found = connection.execute(
        f"SELECT g, optimal_threshold(score, label, false_negative := missed{extra}) "
        "FROM samples GROUP BY g, missed"
    ).fetchall()

    assert len(found) == len(set(columns["g"].tolist()))
    for group, answer in found:
        own = columns["g"] == group
        expected = limen.optimal_threshold(
            columns["score"][own],
            columns["label"][own],
            false_negative=1.0 + group % 7,
            weights=columns["weight"][own] if weighted else None,
        )
        fields = ("threshold", "lower", "upper", "loss")
        # As text, since nan, the threshold that answers 1 to no score, equals nothing.
        assert str(answer) == str({field: getattr(expected, field) for field in fields})


def test_recommend_is_that_of_python_and_null_where_samples_are_too_few(connection: Any) -> None:
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, 400).astype(bool)
    scores = draw.normal(labels, 1)
    connection.execute(
        "CREATE TABLE samples AS SELECT unnest($s) AS score, unnest($l) AS label",
        {"s": scores.tolist(), "l": labels.tolist()},
    )
    expected = limen.recommend(scores, labels, false_positive=3)
    low, high = expected.interval

    assert connection.execute(
        "SELECT recommend(score, label, false_positive := 3) FROM samples"
    ).fetchone() == ({"threshold": expected.threshold, "low": low, "high": high},)
    assert connection.execute(
        "SELECT recommend(score, label) FROM (SELECT * FROM samples WHERE label LIMIT 50)"
    ).fetchone() == (None,)


def test_no_rows_have_no_optimum(connection: Any) -> None:
    query = "SELECT optimal_threshold(s, l) FROM (SELECT 0.5 AS s, 1 AS l WHERE false)"

    assert connection.execute(query).fetchall() == [(None,)]
    assert connection.execute(f"{query} GROUP BY l").fetchall() == []


@pytest.mark.parametrize(
    ("score", "label", "more", "message"),
    [
        ("NULL", "1", "", "score is NULL.*WHERE score IS NOT NULL"),
        ("0.5", "NULL", "", "label is NULL"),
        ("0.5", "1", ", weight := NULL", "weight is NULL"),
        ("'nan'::DOUBLE", "1", "", "score is nan"),
        ("0.5", "2", "", "label is not 0 or 1"),
        ("0.5", "1", ", weight := -1", "-1"),
        ("0.5", "1", ", false_negative := -1", "false_negative"),
        ("0.5", "1", ", false_negative := NULL", "cost is NULL"),
    ],
)
def test_what_is_no_sample_is_refused_with_the_way_out(
    connection: Any, score: str, label: str, more: str, message: str
) -> None:
    with pytest.raises(duckdb.Error, match=message):
        connection.execute(
            f"SELECT optimal_threshold(score, label{more}) "
            f"FROM (VALUES (0.25, 0), ({score}, {label})) AS samples(score, label)"
        ).fetchall()
    assert connection.execute("SELECT optimal_threshold(0.5, true).threshold").fetchone() == (
        -math.inf,
    )


def test_registering_again_changes_nothing(connection: Any) -> None:
    limen.duckdb.register(connection)

    assert connection.execute("SELECT optimal_threshold(0.5, 1).loss").fetchone() == (0.0,)
