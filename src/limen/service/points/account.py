# SPDX-License-Identifier: Apache-2.0
"""The account of a point: what its answers cost by day and by segment, and how late labels are.

It needs a pass over all ids that are known.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.digits import difference
from limen.groups.models import key_of
from limen.memory.base import innermost
from limen.metrics import cost
from limen.service.points.definitions import Definition, as_rule, reaches
from limen.service.points.point import OTHERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limen.service.points.point import Point

__all__ = ["by_segment", "passed"]

_DAY = 86_400_000_000
_DAYS = 60
_SEGMENTS = 500


class _Columns:
    """What the ledger knows of each score, in columns."""

    def __init__(self, point: Point) -> None:
        empty = Definition().empty()._scored() if point.ledger is None else None
        columns = empty or point.ledger._scored()  # without ids, no single score is known
        self.scores, self.answers, self.labels, self.times, *rest = columns
        self.as_of, self.dated, self.weights, self.groups = rest
        self.labelled = self.labels < 2
        given, self.direction = point.definition, point.direction
        self.price = cost(false_positive=given.false_positive, false_negative=given.false_negative)

    def many(self, answer: int, label: int) -> int:
        """Return how many have this answer and this label."""
        return int(np.count_nonzero((self.answers == answer) & (self.labels == label)))

    def mistakes(self, answers: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weight of each sample that would be a false positive, and a false negative.

        They are added up before they have a price: one such as 0.1 would be rounded in each sum.
        """
        false_1 = self.labelled & (answers == 1) & (self.labels == 0)
        false_0 = self.labelled & (answers == 0) & (self.labels == 1)
        return self.weights * false_1, self.weights * false_0


def passed(point: Point, best: float, now: int, age: int) -> tuple[_Columns, dict[str, Any]]:
    """Make what needs the columns alone: it may be done while the ledger goes on. O(n log n)."""
    columns = _Columns(point)
    return columns, {
        "days": _days(columns, best, now, age),
        "delays": _delays(columns, age),
        "coverage": _coverage(columns, now - age),
        "answers": {
            "right_1": columns.many(1, 1),
            "false_1": columns.many(1, 0),
            "missed": columns.many(0, 1),
            "right_0": columns.many(0, 0),
        },
    }


def _days(columns: _Columns, best: float, now: int, age: int) -> list[dict[str, Any]]:
    day = columns.times // _DAY
    first = now // _DAY - _DAYS + 1
    recent = day >= first
    place = (day[recent] - first).clip(0, _DAYS)  # a time may lie some minutes ahead

    def total(values: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(place, values[recent].astype(np.float64), _DAYS + 1)

    def priced(answers: NDArray[Any]) -> NDArray[np.float64]:
        alarms, missed = map(total, columns.mistakes(answers))
        costs: NDArray[np.float64] = columns.price(0 * alarms, alarms, missed, 0 * missed)
        return costs

    scored = total(np.ones(len(day)))
    rows = zip(
        scored,
        total(columns.labelled),
        total(columns.answers == 1),
        priced(columns.answers),
        priced(reaches(columns.scores, best, columns.direction)),
        strict=True,
    )
    return [
        {
            "day": datetime.fromtimestamp((first + at) * 86400, UTC).date().isoformat(),
            "scored": int(many),
            "labelled": int(labelled),
            "answered_1": int(ones),
            "cost": float(paid),
            "cheapest": float(cheapest),
            "regret": difference(paid, cheapest),
            "young": bool((first + at + 1) * _DAY + age > now),
        }
        for at, (many, labelled, ones, paid, cheapest) in enumerate(rows)
        if many
    ]


def _delays(columns: _Columns, age: int) -> dict[str, Any] | None:
    known = columns.labelled & (columns.dated != 0)
    if not known.any():
        return None
    late = np.sort(np.maximum(columns.as_of[known] - columns.times[known], 0)) / 1e6
    shares = np.linspace(0, 1, min(51, len(late) + 1))[1:]
    places = np.ceil(shares * len(late)).astype(int) - 1
    curve = [
        {"seconds": float(late[place]), "share": float(share)}
        for place, share in zip(places, shares, strict=True)
    ]
    return {
        "labels": len(late),
        "curve": curve,
        "half": float(late[(len(late) - 1) // 2]),
        "nine_in_ten": float(late[int(np.ceil(0.9 * len(late))) - 1]),
        "age": age / 1e6,
    }


def _coverage(columns: _Columns, until: int) -> dict[str, dict[str, int]]:
    old = columns.times <= until
    return {
        str(answer): {
            "scored": int(np.count_nonzero(old & (columns.answers == answer))),
            "labelled": int(np.count_nonzero(old & (columns.answers == answer) & columns.labelled)),
        }
        for answer in (0, 1)
    }


def by_segment(columns: _Columns, point: Point) -> list[dict[str, Any]]:
    """Return what the answers cost in each segment, the largest ones first."""
    if point.definition.segments is None or point.ledger is None:
        return []
    grouped, version = point.held, point.published or point.version
    own = {path: grouped._models.held[key_of(path)] for path in grouped}
    places = {path: int(innermost(model)._group) for path, model in own.items()}
    most = max(max(places.values()), int(columns.groups.max(initial=0))) + 1
    sums = [
        np.bincount(columns.groups, values, most)
        for values in (
            *columns.mistakes(columns.answers),
            columns.answers == 1,
            columns.labels == 1,
        )
    ]
    rows = []
    for path in sorted(own, key=lambda each: (len(each) > 0, -grouped.count(each)))[:_SEGMENTS]:
        inside = [at for found, at in places.items() if found[: len(path)] == path]
        alarms, missed, ones, label_1 = (float(values[inside].sum()) for values in sums)
        paid = columns.price(0, alarms, missed, 0)
        name, samples, best = "/".join(path), grouped.count(path), own[path].optimum
        threshold, source = version.find(None if name == OTHERS else name)
        rows.append(
            {
                "segment": name,
                "samples": samples,
                "ones": int(label_1),
                "answered_1": int(ones),
                "in_effect": as_rule(threshold, point.direction),
                "source": source,
                "optimum": as_rule(float(best.threshold), point.direction),
                "enough": not path or samples >= grouped.at_least,
                "cost": paid,
                "cheapest": float(best.loss),
                "regret": difference(paid, float(best.loss)),
            }
        )
    return rows
