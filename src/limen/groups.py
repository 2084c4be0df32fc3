# SPDX-License-Identifier: Apache-2.0
"""One threshold for each group, and that of the larger group where a group is too small."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, overload

import numpy as np

from limen.arrays import as_array, readable
from limen.batch import optimal_threshold
from limen.columns import ordered_scores, require_same_length, samples_with_labels
from limen.model import asked, refuse_costs
from limen.storage import Storable
from limen.storage.packing import id_column, ids_of, whole_number
from limen.trust.ranked import height
from limen.trust.recommended import Recommendation, recommend

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limen.optimum import Optimum
    from limen.units import Cost

__all__ = ["GroupOptima", "GroupThreshold", "GroupThresholds", "Grouped", "by_group"]

Path: TypeAlias = tuple[Hashable, ...]

EVERYTHING: Path = ()


def path_of(group: Hashable) -> Path:
    """Write a group as a path; a tuple is one already.

    >>> path_of("de"), path_of(("de", "berlin"))
    (('de',), ('de', 'berlin'))
    """
    return group if isinstance(group, tuple) else (group,)


def _coded(groups: Any) -> tuple[list[Path], NDArray[np.int64]]:
    """Read one group per sample: the distinct ones as paths, and which of them each sample has.

    Groups are values, tuples, or the rows of several columns.
    """
    array = None if isinstance(groups, list | tuple) else as_array(groups, "groups")
    if array is not None and array.ndim not in (1, 2):
        raise ValueError(f"groups must be one column or several, got shape {array.shape}.")
    if array is not None and array.ndim == 1 and array.dtype.kind in "biuSU":
        distinct, inverse = np.unique(array, return_inverse=True)
        return [path_of(value) for value in distinct.tolist()], inverse.astype(np.int64)
    keys: Any = groups if array is None else array.tolist()
    if array is not None and array.ndim == 2:
        keys = map(tuple, keys)
    codes: dict[Any, int] = {}
    inverse = np.fromiter((codes.setdefault(key, len(codes)) for key in keys), dtype=np.int64)
    paths = [path_of(key) for key in codes]
    for code, path in enumerate(paths):
        if path == EVERYTHING or any(part is None or part != part for part in path):
            raise ValueError(
                f"groups[{int((inverse == code).argmax())}] is {list(codes)[code]!r}, which names "
                "no group. Drop or fill it before the call."
            )
    return paths, inverse


def _rows_by_group(groups: Any, length: int) -> dict[Path, NDArray[np.int64]]:
    """Rows of every group and of every larger group that contains it, the largest first.

    Rows keep their order, for models that care which sample came first.
    """
    paths, inverse = _coded(groups)
    require_same_length(groups=inverse, samples=np.empty(length))
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse, minlength=len(paths)))
    parts: dict[Path, list[NDArray[np.int64]]] = {EVERYTHING: [np.arange(length)]}
    for path, rows in zip(paths, np.split(order, ends)[: len(paths)], strict=True):
        for depth in range(1, len(path) + 1):
            parts.setdefault(path[:depth], []).append(rows)
    return {
        path: rows[0] if len(rows) == 1 else np.sort(np.concatenate(rows))
        for path, rows in parts.items()
    }


class _Answers(ABC):
    """What is read by group: the group answers itself, or the next larger one that may."""

    __slots__ = ()

    if TYPE_CHECKING:
        at_least: int

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

    def predict(self, groups: Any, scores: ArrayLike, **costs: Cost) -> NDArray[np.int64]:
        """Answer 1 or 0 to each score by the threshold of its group. O(m)."""
        (paths, inverse), array = _coded(groups), ordered_scores(scores)
        require_same_length(groups=inverse, scores=array)
        thresholds = np.array([self.threshold(path, **costs) for path in paths], dtype=np.float64)
        return (array >= thresholds[inverse]).astype(np.int64)


class GroupOptima(_Answers):
    """The cheapest cut of each group, as found by `by_group`.

    Attributes
    ----------
    at_least
        A group with fewer samples is answered for by the next larger one.

    Examples
    --------
    >>> from limen import by_group
    >>> found = by_group(["a", "a", "b", "b"], [0.25, 0.5, 0.75, 1.0], [0, 1, 0, 1])
    >>> found.threshold("a"), found.threshold("b"), found.threshold("never seen")
    (0.375, 0.875, 0.875)
    >>> found.source("never seen")
    ()
    """

    __slots__ = ("_counts", "_optima", "at_least")

    def __init__(self, optima: dict[Path, Optimum], counts: dict[Path, int], at_least: int) -> None:
        self._optima, self._counts, self.at_least = optima, counts, at_least

    def count(self, group: Hashable) -> int:
        """Return how many samples a group holds. O(1)."""
        return self._counts.get(path_of(group), 0)

    def optimum(self, group: Hashable) -> Optimum:
        """Return the cut for a group, seen before or not. O(depth)."""
        return self._optima[self.source(group)]

    def _threshold(self, path: Path, costs: dict[str, Any]) -> float:
        if costs:
            refuse_costs()
        return self._optima[path].threshold

    def __iter__(self) -> Iterator[Path]:
        return iter(self._optima)

    def __repr__(self) -> str:
        groups = len(self._optima) - 1
        small = sum(self.source(path) != path for path in self)
        return (
            f"<GroupOptima(at_least={self.at_least}): {self.count(EVERYTHING):,} samples, "
            f"{groups:,} groups, {small:,} of them too small>"
        )


@dataclass(frozen=True, slots=True)
class GroupThreshold:
    """The threshold of the next larger group, moved into the interval of the group's own samples.

    Attributes
    ----------
    threshold
        The number to use: that of the next larger group where the group's own samples do not rule
        it out, else the nearest end of their interval. Of all samples, the recommended one.
    source
        The group whose samples decided it, as a path: this one where it was moved.
    interval
        Where the best threshold of this group lies, with 95 % confidence, by its samples alone;
        None where they are too few to say.
    optimum
        The exact optimum of the group's samples.
    samples
        How many samples the group has.
    """

    threshold: float
    source: Path
    interval: tuple[float, float] | None
    optimum: Optimum = field(repr=False)
    samples: int


class GroupThresholds(_Answers):
    """A threshold for the new rows of each group, as found by `by_group` with ``shrink=True``.

    Reads as `GroupOptima` does. `recommendation` tells where a threshold comes from.

    Attributes
    ----------
    at_least
        A group with fewer samples takes the threshold of the next larger one as it is.
    """

    __slots__ = ("_found", "at_least")

    def __init__(self, found: dict[Path, GroupThreshold], at_least: int) -> None:
        self._found, self.at_least = found, at_least

    def count(self, group: Hashable) -> int:
        """Return how many samples a group holds. O(1)."""
        found = self._found.get(path_of(group))
        return 0 if found is None else found.samples

    def source(self, group: Hashable) -> Path:
        """Return the group whose samples decided the threshold, as a path. O(depth)."""
        return self.recommendation(group).source

    def recommendation(self, group: Hashable) -> GroupThreshold:
        """Return the threshold of a group and where it comes from. O(depth).

        For a group that was never seen, that of the next larger one.
        """
        path = path_of(group)
        while path not in self._found:
            path = path[:-1]
        return self._found[path]

    def _threshold(self, path: Path, costs: dict[str, Any]) -> float:
        if costs:
            refuse_costs()
        return self._found[path].threshold

    def __iter__(self) -> Iterator[Path]:
        return iter(self._found)

    def __repr__(self) -> str:
        moved = sum(self.source(path) == path != EVERYTHING for path in self)
        return (
            f"<GroupThresholds(at_least={self.at_least}): {self.count(EVERYTHING):,} samples, "
            f"{len(self._found) - 1:,} groups, {moved:,} of them with a threshold of their own>"
        )


@overload
def by_group(
    groups: Any,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost = ...,
    false_negative: Cost = ...,
    weights: ArrayLike | None = ...,
    unit: Cost | None = ...,
    at_least: int = ...,
    shrink: Literal[False] = ...,
) -> GroupOptima: ...


@overload
def by_group(
    groups: Any,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost = ...,
    false_negative: Cost = ...,
    weights: ArrayLike | None = ...,
    unit: Cost | None = ...,
    at_least: int = ...,
    shrink: Literal[True],
) -> GroupThresholds: ...


def by_group(
    groups: Any,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    at_least: int = 1,
    shrink: bool = False,
) -> GroupOptima | GroupThresholds:
    """Find the cheapest threshold of every group, exactly. O(n) for each depth of the groups.

    Parameters
    ----------
    groups
        The group of each sample: any value, or a tuple that goes from the larger group to the
        smaller one, such as ``("de", "berlin")``. Several columns of a frame do as well.
    scores, labels, false_positive, false_negative, weights, unit
        As for `limen.optimal_threshold`.
    at_least
        How many samples a group needs to be asked itself. For a smaller one the next larger
        group answers: ``("de",)`` for ``("de", "berlin")``, and all samples for ``("de",)``.
    shrink
        True: thresholds for new rows in place of exact optima. All samples are given the threshold
        that `limen.recommend` finds; each group that of the next larger one, moved into the 95 %
        interval of its own samples where it lies outside. Takes no unit.

    Notes
    -----
    The fewer samples, the more a threshold is that of chance. A few hundred of each label is a
    better floor than the default of one sample. ``shrink=True`` serves small groups that differ
    little from one another; where groups differ much, `limen.recommend` for each serves better.

    Examples
    --------
    >>> from limen import by_group
    >>> cities = [("de", "berlin"), ("de", "bonn"), ("de", "bonn"), ("fr", "nice")]
    >>> found = by_group(cities, [0.1, 0.3, 0.7, 0.6], [1, 0, 1, 0], at_least=2)
    >>> found.threshold(("de", "bonn")), found.source(("de", "berlin"))
    (0.5, ('de',))
    >>> found.predict([("de", "bonn"), ("fr", "nice")], [0.6, 0.6])
    array([1, 0])
    """
    _require_count(at_least)
    xs, ys, ws = samples_with_labels(scores, labels, weights)
    costs: dict[str, Any] = {"false_positive": false_positive, "false_negative": false_negative}
    if shrink:
        if unit is not None:
            raise ValueError("shrink takes no unit: an interval knows weights, not their unit.")
        return _shrunk(_rows_by_group(groups, len(xs)), (xs, ys, ws), costs, at_least)
    optima, counts = {}, {}
    for path, rows in _rows_by_group(groups, len(xs)).items():
        chosen = None if ws is None else ws[rows]
        optima[path] = optimal_threshold(xs[rows], ys[rows], weights=chosen, unit=unit, **costs)
        counts[path] = len(rows) if chosen is None else int(np.count_nonzero(chosen))
    return GroupOptima(optima, counts, at_least)


def _shrunk(
    rows_of: dict[Path, NDArray[np.int64]], columns: Any, costs: dict[str, Any], at_least: int
) -> GroupThresholds:
    found: dict[Path, GroupThreshold] = {}
    for path in sorted(rows_of, key=len):  # the larger group first
        parts: list[Any] = [None if each is None else each[rows_of[path]] for each in columns]
        xs, ys, ws = parts
        samples = len(xs) if ws is None else int(np.count_nonzero(ws))
        own: Recommendation | None = None
        try:
            if path == EVERYTHING or samples >= at_least:
                own = recommend(xs, ys, weights=ws, **costs)
        except ValueError:  # too few of a label; all else was found sound with the first group
            if path == EVERYTHING:
                raise
        if own is None:
            above = found[path[:-1]]
            optimum = optimal_threshold(xs, ys, weights=ws, **costs)
            each = GroupThreshold(above.threshold, above.source, None, optimum, samples)
        elif path == EVERYTHING:
            each = GroupThreshold(own.threshold, path, own.interval, own.optimum, samples)
        else:
            above, (low, high) = found[path[:-1]], own.interval
            threshold = sorted([low, above.threshold, high], key=height)[1]
            source = above.source if height(threshold) == height(above.threshold) else path
            each = GroupThreshold(threshold, source, own.interval, own.optimum, samples)
        found[path] = each
    return GroupThresholds(found, at_least)


def _require_count(at_least: int) -> None:
    if isinstance(at_least, bool) or not isinstance(at_least, int | np.integer) or at_least < 1:
        raise ValueError(f"at_least must be a number of samples, 1 or more, got {at_least!r}.")


class Grouped(Storable, _Answers, kind="Grouped"):
    """Keep one model for each group, sample by sample.

    Each sample is held by its group and by every larger group that contains it, up to the one
    of all samples. A group that holds too few is answered for by the next larger one.

    Parameters
    ----------
    model
        An empty model, such as ``OnlineThreshold(false_negative=5)``; every group begins as a
        copy of it. One of your own does as well if it keeps the contract of `limen.model.Model`.
    at_least
        How many samples a group needs to be asked itself.

    Notes
    -----
    Costs one update for each depth: two where groups are single values, as there is always the
    group of all samples. Groups come first in every call; what follows is what the model takes.

    Examples
    --------
    >>> from limen import Grouped, OnlineThreshold
    >>> shops = Grouped(OnlineThreshold(), at_least=2)
    >>> for shop, score, label in [("a", 0.25, 0), ("a", 0.5, 1), ("b", 1.0, 1)]:
    ...     shops.update(shop, score, label)
    >>> shops.threshold("a"), shops.threshold("b")
    (0.375, 0.375)
    >>> shops.update("b", 0.75, 0)
    >>> shops.threshold("b")
    0.875
    """

    __slots__ = ("_empty", "_models", "at_least")

    def __init__(self, model: Any, *, at_least: int = 1) -> None:
        _require_count(at_least)
        if len(model):
            raise ValueError(
                f"model must be empty, got one that holds {len(model):,} samples. Pass a new one "
                "and add the samples with their groups."
            )
        self.at_least = at_least
        self._empty = deepcopy(model)
        self._models: dict[Path, Any] = {EVERYTHING: deepcopy(model)}

    def update(self, group: Hashable, *sample: Any, **named: Any) -> None:
        """Add one sample to its group and to the larger ones.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> grouped.update("a", 0.5, 1, weight=2)
        >>> grouped.count("a")
        1
        """
        self._apply("update", "revert", dict.fromkeys(_nested(group), (sample, named)))

    def revert(self, group: Hashable, *sample: Any, **named: Any) -> None:
        """Take one sample back from its group and the larger ones."""
        self._apply("revert", "update", dict.fromkeys(_nested(group), (sample, named)))

    def update_many(self, groups: Any, *columns: Any, **named: Any) -> None:
        """Add many samples at once: all of them, or on an error none.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> grouped.update_many(["a", "b", "b"], [0.1, 0.25, 0.5], [0, 0, 1])
        >>> grouped.thresholds()
        {(): 0.375, ('a',): inf, ('b',): 0.375}
        """
        self._many("update_many", "revert_many", groups, columns, named)

    def revert_many(self, groups: Any, *columns: Any, **named: Any) -> None:
        """Take back many samples at once: all of them, or on an error none."""
        self._many("revert_many", "update_many", groups, columns, named)

    def model(self, group: Hashable) -> Any:
        """Return the model that answers for a group, seen before or not. O(depth)."""
        return self._models[self.source(group)]

    def optimum(self, group: Hashable, **costs: Cost) -> Any:
        """Return the cut for a group, seen before or not. O(depth) and what the model takes."""
        return asked(self.model(group), "optimum", costs)

    def count(self, group: Hashable) -> int:
        """Return how many samples a group holds. O(1)."""
        model = self._models.get(path_of(group))
        return 0 if model is None else len(model)

    def __len__(self) -> int:
        return len(self._models[EVERYTHING])

    def __iter__(self) -> Iterator[Path]:
        return iter(list(self._models))

    def __repr__(self) -> str:
        groups = len(self._models) - 1
        return (
            f"<Grouped({self._empty!r}, at_least={self.at_least}): {len(self):,} samples, "
            f"{groups:,} groups>"
        )

    def _threshold(self, path: Path, costs: dict[str, Any]) -> float:
        return float(asked(self._models[path], "threshold", costs))

    def snapshot(self) -> dict[str, Any]:
        """Describe the models of all groups, in an order that depends on the groups alone."""
        models = dict(self._models)
        everything = models.pop(EVERYTHING)
        paths = list(models)
        groups, order = id_column(paths)
        return {
            "at_least": self.at_least,
            "empty": self._empty,
            "everything": everything,
            "groups": groups,
            "models": tuple(models[paths[at]] for at in order),
        }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(n)."""
        grouped = cls.__new__(cls)
        at_least = whole_number(snapshot, "at_least", least=1)
        Grouped.__init__(grouped, snapshot["empty"], at_least=at_least)
        paths = [EVERYTHING, *ids_of(snapshot["groups"])]
        models = [snapshot["everything"], *snapshot["models"]]
        if any(type(model) is not type(snapshot["empty"]) for model in models):
            raise ValueError("groups of models that differ")
        grouped._models = dict(zip(paths, models, strict=True))
        for path in paths[1:]:
            if not isinstance(path, tuple) or path[:-1] not in grouped._models:
                raise ValueError(f"the group {path!r} belongs to none")
        if len(grouped._models) != len(paths):
            raise ValueError("a group that is there twice")
        return grouped

    def _many(
        self, do: str, undo: str, groups: Any, columns: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        given = {f"columns[{at}]": column for at, column in enumerate(columns)} | named
        arrays = {name: readable(column, name) for name, column in given.items()}
        require_same_length(**arrays)
        length = next(len(array) for array in arrays.values() if array is not None)

        def part(rows: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            taken = {name: _rows(column, rows) for name, column in arrays.items()}
            return (
                tuple(taken[f"columns[{at}]"] for at in range(len(columns))),
                {name: taken[name] for name in named},
            )

        rows = _rows_by_group(groups, length)
        self._apply(do, undo, {path: part(at) for path, at in rows.items()})

    def _apply(
        self, do: str, undo: str, parts: dict[Path, tuple[tuple[Any, ...], dict[str, Any]]]
    ) -> None:
        """Do it in every group, the one of everything first, or on an error in none."""
        done: list[Path] = []
        try:
            for path, (columns, named) in parts.items():
                if path not in self._models:
                    self._models[path] = deepcopy(self._empty)
                getattr(self._models[path], do)(*columns, **named)
                done.append(path)
        except BaseException:
            for path in done:
                columns, named = parts[path]
                getattr(self._models[path], undo)(*columns, **named)
            raise
        finally:
            for path in parts:
                if path != EVERYTHING and self.count(path) == 0:
                    self._models.pop(path, None)


def _rows(column: Any, rows: NDArray[np.int64]) -> Any:
    """Take rows of a column; what a list holds stays what it is."""
    if isinstance(column, list | tuple):
        return [column[at] for at in rows.tolist()]
    return None if column is None else column[rows]


def _nested(group: Hashable) -> list[Path]:
    """List the groups that contain a sample, the largest first."""
    (path,), _ = _coded([group])
    return [path[:depth] for depth in range(len(path) + 1)]
