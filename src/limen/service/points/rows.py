# SPDX-License-Identifier: Apache-2.0
"""Rows that came together: one event, with their values in columns."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["UNLABELLED", "Rows"]

UNLABELLED = 255  # in place of the label

_TYPES: dict[str, np.dtype[Any]] = {
    "scores": np.dtype("<f8"),
    "labels": np.dtype("u1"),
    "weights": np.dtype("<f8"),
    "times": np.dtype("<i8"),
    "answers": np.dtype("u1"),
    "places": np.dtype("<u4"),
    "kinds": np.dtype("u1"),
    "below": np.dtype("<f8"),
    "above": np.dtype("<f8"),
}


class Rows(msgspec.Struct, array_like=True, gc=False):
    """The columns of an event of the kind "rows"; one that is empty is not given.

    A point that joins by id takes scores and answers, or labels, with an id for each row beside
    the event: the times of scores are their own, those of labels their as_of. A point without ids
    takes scores, answers and labels at once. A stream has both in any row, as `stream` says.
    """

    scores: bytes = b""
    labels: bytes = b""  # 0 or 1; without ids also UNLABELLED
    weights: bytes = b""
    times: bytes = b""  # microseconds; not given: scores are of the time of the event
    answers: bytes = b""  # that were given: `Point.answers` gives those of the version in effect
    segments: list[str] = []  # the names that occur, in order of their first row
    places: bytes = b""  # the place of each row's segment among them, from 1; 0: it has none
    kinds: bytes = b""  # of a stream: how each time is written, where it may be missing or a float
    below: bytes = b""  # what each row costs if it is answered 0, where that is not by its label
    above: bytes = b""  # and if it is answered 1

    @classmethod
    def of(
        cls,
        *,
        segments: Sequence[str | None] | None = None,
        **columns: ArrayLike | None,
    ) -> Rows:
        """Pack columns, which are named as the fields are.

        >>> rows = Rows.of(scores=[0.25, 0.5], labels=[0, 1], segments=["a", None])
        >>> len(rows), rows.column("labels"), rows.named_segments()
        (2, array([0, 1], dtype=uint8), ['a', None])
        """
        given: dict[str, Any] = {name: each for name, each in columns.items() if each is not None}
        names: dict[str | None, int] = {None: 0}
        if segments is not None:
            given["places"] = [names.setdefault(each, len(names)) for each in segments]
        packed = {
            name: np.ascontiguousarray(each, _TYPES[name]).tobytes() for name, each in given.items()
        }
        return cls(**packed, segments=[each for each in names if each is not None])

    def __len__(self) -> int:
        column = "scores" if self.scores else "labels"
        return len(getattr(self, column)) // _TYPES[column].itemsize

    def column(self, name: str) -> NDArray[Any] | None:
        """Return a column, or None where it is not given; ValueError where it is of other rows."""
        found: NDArray[Any] = np.frombuffer(getattr(self, name), _TYPES[name])
        if not len(found):
            return None
        if len(found) != len(self):
            raise ValueError(f"{name} has {len(found)} rows, and there are {len(self)}")
        return found

    def shown(self) -> dict[str, list[Any]]:
        """Describe them for JSON, which has no infinity: columns as lists."""
        names = ("scores", "labels", "weights", "times", "answers")
        found = {name: self.column(name) for name in names}
        shown = {name: each.tolist() for name, each in found.items() if each is not None}
        if "scores" in shown:
            shown["scores"] = [each if isfinite(each) else str(each) for each in shown["scores"]]
        segments = self.named_segments()
        return shown if segments is None else {**shown, "segments": segments}

    def named_segments(self) -> list[str | None] | None:
        """Return the segment of each row, or None where none has one."""
        places = self.column("places")
        if places is None:
            return None
        names: list[str | None] = [None, *self.segments]
        return [names[place] for place in places.tolist()]
