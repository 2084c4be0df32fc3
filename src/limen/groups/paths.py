# SPDX-License-Identifier: Apache-2.0
"""Groups as paths, from the larger group to the smaller one, and which of them answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, overload

import numpy as np

from limen.arrays import as_array, is_single
from limen.columns import ordered_scores, require_same_length
from limen.optimum import answer
from limen.picture import picture_of_groups

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.optimum import Direction
    from limen.units import Cost

__all__ = [
    "EVERYTHING",
    "Answers",
    "Path",
    "by_depth",
    "coded",
    "named_path",
    "names_a_group",
    "path_of",
    "refuse_group",
    "require_count",
    "rows_by_group",
]

Path: TypeAlias = tuple[Hashable, ...]

EVERYTHING: Path = ()
_SHOWN = 20  # groups, in a notebook


def path_of(group: Hashable) -> Path:
    """Write a group as a path; a tuple is one already. Numbers of NumPy become those of Python.

    NumPy compares its numbers with ``()`` element by element, and they cannot be stored.

    >>> path_of("de"), path_of(("de", "berlin")), path_of(np.int64(3))
    (('de',), ('de', 'berlin'), (3,))
    """
    if not isinstance(group, tuple):
        return (group.item(),) if isinstance(group, np.generic) else (group,)
    for part in group:
        if isinstance(part, np.generic | tuple):
            return tuple(map(_plain, group))
    return group


def _plain(part: Hashable) -> Hashable:
    if isinstance(part, tuple):
        return path_of(part)
    return part.item() if isinstance(part, np.generic) else part


def names_a_group(path: Path) -> bool:
    """Whether a path has parts, and none of them is missing."""
    for part in path:
        if part is None or part != part:
            return False
    return path != EVERYTHING


def refuse_group(name: str, group: object) -> NoReturn:
    """Say that this is the group of nothing."""
    raise ValueError(f"{name} is {group!r}, which names no group. Drop or fill it before the call.")


def named_path(group: Hashable) -> Path:
    """Write the group of a sample as a path; raise ValueError unless it names one."""
    path = path_of(group)
    if not names_a_group(path):
        refuse_group("group", group)
    return path


def require_count(at_least: int) -> None:
    """Raise ValueError unless this is a number of samples."""
    if isinstance(at_least, bool) or not isinstance(at_least, int | np.integer) or at_least < 1:
        raise ValueError(f"at_least must be a number of samples, 1 or more, got {at_least!r}.")


def coded(groups: Any, length: int | None = None) -> tuple[list[Path], NDArray[np.int64]]:
    """Read one group per sample: the distinct ones as paths, and which of them each sample has.

    Groups are values, tuples, or the rows of several columns; `length` of them, where given.
    """
    array = None if isinstance(groups, list | tuple) else as_array(groups, "groups")
    if array is not None and array.ndim not in (1, 2):
        raise ValueError(f"groups must be one column or several, got shape {array.shape}.")
    if array is not None and array.ndim == 1 and array.dtype.kind in "biuSU":
        values, inverse = np.unique(array, return_inverse=True)
        distinct: Any = values.tolist()
        inverse = inverse.astype(np.int64)
    else:
        keys: Any = groups if array is None else array.tolist()
        if array is not None and array.ndim == 2:
            keys = map(tuple, keys)
        codes: dict[Any, int] = {}
        inverse = np.fromiter((codes.setdefault(key, len(codes)) for key in keys), dtype=np.int64)
        distinct = list(codes)
        for code, group in enumerate(distinct):
            if type(group) is not str and not names_a_group(path_of(group)):
                refuse_group(f"groups[{int((inverse == code).argmax())}]", group)
    if length is not None:
        require_same_length(groups=inverse, samples=np.empty(length))
    return [path_of(group) for group in distinct], inverse


def by_depth(
    paths: list[Path], inverse: NDArray[np.int64]
) -> Iterator[tuple[list[Path], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield for each depth its groups, the rows that have one, and which of them each row has.

    The largest groups come first, after that of all rows, which is left out. O(rows) each.
    """
    deepest = max(map(len, paths), default=0)
    if deepest == 1 and len(set(paths)) == len(paths):
        yield paths, np.arange(len(inverse)), inverse
        return
    for depth in range(1, deepest + 1):
        found: dict[Path, int] = {}
        places = [
            found.setdefault(path[:depth], len(found)) if len(path) >= depth else -1
            for path in paths
        ]
        members = np.array(places, np.int64)[inverse]
        rows = np.flatnonzero(members >= 0)
        yield list(found), rows, members[rows]


def rows_by_group(
    paths: list[Path], inverse: NDArray[np.int64]
) -> Iterator[tuple[Path, NDArray[np.int64]]]:
    """Yield the rows of every group, the largest groups first, without that of all rows. O(rows).

    Rows keep their order, for models that care which sample came first.
    """
    for groups, rows, members in by_depth(paths, inverse):
        order = rows[np.argsort(members, kind="stable")]
        ends = np.cumsum(np.bincount(members, minlength=len(groups)))
        yield from zip(groups, np.split(order, ends[:-1]), strict=True)


class Answers(ABC):
    """What is read by group: the group answers itself, or the next larger one that may."""

    __slots__ = ()

    if TYPE_CHECKING:
        at_least: int
        direction: Direction

    @abstractmethod
    def count(self, group: Hashable) -> int:
        """Return how many samples a group holds."""

    @abstractmethod
    def __iter__(self) -> Iterator[Path]:
        """Iterate over the groups as paths; the first is ``()``, which holds everything."""

    @abstractmethod
    def _threshold(self, path: Path, costs: dict[str, Any]) -> float: ...

    def source(self, group: Hashable) -> Path:
        """Return the group that answers for this one, as a path. O(depth)."""
        path = path_of(group)
        while path != EVERYTHING and self.count(path) < self.at_least:
            path = path[:-1]
        return path

    def threshold(self, group: Hashable, **costs: Cost) -> float:
        """Return the threshold for a group, seen before or not. O(depth)."""
        return self._threshold(self.source(group), costs)

    def thresholds(self, **costs: Cost) -> dict[Path, float]:
        """Return the threshold of every group. O(groups)."""
        return {path: self.threshold(path, **costs) for path in self}

    def _repr_html_(self) -> str | None:
        """Show the groups with most samples in a notebook, and their thresholds. O(groups)."""
        counted = sorted(((self.count(path), path) for path in self), key=lambda each: -each[0])
        try:
            rows = [
                (" / ".join(map(str, path)) or "all", count, self.threshold(path))
                for count, path in counted[:_SHOWN]
            ]
        except TypeError:  # each asks for costs
            return None
        title = f"{type(self).__name__}: {len(counted) - 1:,} groups, at_least={self.at_least}"
        return picture_of_groups(title, rows, len(counted) - len(rows))

    @overload
    def predict(self, groups: Any, scores: float, **costs: Cost) -> int: ...
    @overload
    def predict(self, groups: Any, scores: ArrayLike, **costs: Cost) -> Any: ...
    def predict(self, groups: Any, scores: ArrayLike, **costs: Cost) -> int | NDArray[np.int64]:
        """Answer 1 or 0 to each score by the threshold of its group. O(m).

        One group and one score give one number.
        """
        if is_single(scores):
            return answer(scores, self.threshold(groups, **costs), self.direction)
        (paths, inverse), array = coded(groups), ordered_scores(scores)
        require_same_length(groups=inverse, scores=array)
        thresholds = np.array([self.threshold(path, **costs) for path in paths], dtype=np.float64)
        bounds = thresholds[inverse]
        return (array >= bounds if self.direction == ">=" else array <= bounds).astype(np.int64)
