# SPDX-License-Identifier: Apache-2.0
"""One threshold for each group of whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from limen.aim import Aim
from limen.batch import warn_of_one_class
from limen.columns import require_same_length
from limen.confidence import LEAST
from limen.direction import mirrored
from limen.groups.paths import (
    EVERYTHING,
    Answers,
    Path,
    coded,
    path_of,
    require_count,
    rows_by_group,
)
from limen.model import refuse_costs
from limen.names import renaming
from limen.optimum import height
from limen.samples import Samples
from limen.trust.recommended import recommended

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limen.optimum import Direction, Optimum
    from limen.score_kind import BatchScoreKind
    from limen.units import Cost

__all__ = ["GroupOptima", "GroupThreshold", "GroupThresholds", "Own", "by_group", "shrunk"]


class GroupOptima(Answers):
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

    __slots__ = ("_counts", "_optima", "at_least", "direction")

    def __init__(
        self,
        optima: dict[Path, Optimum],
        counts: dict[Path, int],
        at_least: int,
        direction: Direction = ">=",
    ) -> None:
        self._optima, self._counts, self.at_least = optima, counts, at_least
        self.direction = direction

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


class GroupThresholds(Answers):
    """A threshold for the new rows of each group, by `by_group` or `Grouped.recommended`.

    Reads as `GroupOptima` does. `recommendation` says where a threshold comes from.

    Attributes
    ----------
    at_least
        A group with fewer samples takes the threshold of the next larger one as it is.
    """

    __slots__ = ("_found", "at_least", "direction")

    def __init__(
        self, found: dict[Path, GroupThreshold], at_least: int, direction: Direction = ">="
    ) -> None:
        self._found, self.at_least, self.direction = found, at_least, direction

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
    false_positive: Cost | ArrayLike = ...,
    false_negative: Cost | ArrayLike = ...,
    weights: ArrayLike | None = ...,
    unit: Cost | None = ...,
    at_least: int = ...,
    shrink: Literal[False] = ...,
    direction: Direction = ...,
    scores_are: BatchScoreKind = ...,
    pos_label: object = ...,
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
    direction: Direction = ...,
    scores_are: BatchScoreKind = ...,
    pos_label: object = ...,
) -> GroupThresholds: ...


@renaming
def by_group(
    groups: Any,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    weights: ArrayLike | None = None,
    unit: Cost | None = None,
    at_least: int = 1,
    shrink: bool = False,
    direction: Direction = ">=",
    scores_are: BatchScoreKind = "auto",
    pos_label: object = None,
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
        interval of its own samples where it lies outside. Takes no unit, and one cost of each
        mistake.
    direction
        ``"<="`` where a lower score means more positive, as for `limen.optimal_threshold`.
    scores_are
        As for `limen.recommend`, which is asked with `shrink`; ``"auto"`` is decided by all scores.
    pos_label
        The label of the positive class, where labels are not 0 and 1.

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
    require_count(at_least)
    aim = Aim.of(false_positive=false_positive, false_negative=false_negative, unit=unit)
    samples = Samples.of(scores, labels, weights, direction, scores_are, pos_label)
    require_same_length(scores=samples.scores, **{name: aim.costs[name] for name in aim.by_row})
    each = dict(rows_by_group(*coded(groups, len(samples))))
    rows_of = {EVERYTHING: np.arange(len(samples)), **each}
    if shrink:
        if unit is not None:
            raise ValueError("shrink takes no unit: an interval knows weights, not their unit.")
        if aim.by_row:
            raise ValueError(
                f"{next(iter(aim.by_row))} is an array, and shrink takes one cost of each mistake. "
                "Give one number, or leave shrink out."
            )
        alike = samples.of_one_kind()

        def own_of(path: Path) -> Own:
            return _own(alike.rows(rows_of[path]), aim, path == EVERYTHING)

        return samples.present(shrunk(rows_of, own_of, at_least))
    optima, counts = {}, {}
    for path, chosen in rows_of.items():
        members = samples.rows(chosen)
        optima[path], counts[path] = aim.rows(chosen).best(members), members.held
    warn_of_one_class(samples)
    return GroupOptima(optima, counts, at_least, direction)


@mirrored.register
def _(found: GroupThresholds) -> GroupThresholds:
    return GroupThresholds(mirrored(found._found), found.at_least, "<=")


@mirrored.register
def _(found: GroupThreshold) -> GroupThreshold:
    interval = None if found.interval is None else mirrored(found.interval)
    threshold, optimum = mirrored(found.threshold), mirrored(found.optimum)
    return replace(found, threshold=threshold, interval=interval, optimum=optimum)


# What the samples of a group say: where they are enough, the threshold to recommend (needed for all
# samples only) and the interval; the cheapest cut; how many samples there are.
Own: TypeAlias = "tuple[tuple[float | None, tuple[float, float]] | None, Optimum, int]"


def shrunk(paths: Iterable[Path], own_of: Callable[[Path], Own], at_least: int) -> GroupThresholds:
    """Move the threshold of each larger group into the interval of each smaller one. O(groups)."""
    found: dict[Path, GroupThreshold] = {}
    for path in sorted(paths, key=len):  # the larger group first
        sure, optimum, samples = own_of(path)
        if path == EVERYTHING:
            assert sure is not None  # else that was refused
            assert sure[0] is not None
            each = GroupThreshold(sure[0], path, sure[1], optimum, samples)
        elif sure is None or samples < at_least:
            above = found[path[:-1]]
            each = GroupThreshold(above.threshold, above.source, None, optimum, samples)
        else:
            above, (low, high) = found[path[:-1]], sure[1]
            threshold = sorted([low, above.threshold, high], key=height)[1]
            source = above.source if height(threshold) == height(above.threshold) else path
            each = GroupThreshold(threshold, source, sure[1], optimum, samples)
        found[path] = each
    return GroupThresholds(found, at_least)


def _own(samples: Samples, aim: Aim, required: bool) -> Own:
    """Return what the samples of a group say, in the scores of the core. O(n log n)."""
    ones = samples.positives
    try:
        if required or min(ones, len(samples) - ones) >= LEAST:
            own = recommended(samples, aim)
            sure = samples.present(own.threshold), samples.present(own.interval)
            return sure, samples.present(own.optimum), samples.held
    except ValueError:  # weights that say too little; all else was found sound with all rows
        if required:
            raise
    return None, samples.present(aim.best(samples)), samples.held
