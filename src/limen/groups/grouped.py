# SPDX-License-Identifier: Apache-2.0
"""One model for each group along a stream: stored, merged, and with one clock for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, Self, cast

from limen.arrays import readable
from limen.calibrator import OnlineCalibrator
from limen.columns import require_same_length
from limen.direction import mirrored
from limen.groups.few import FewModels
from limen.groups.models import Models, key_of
from limen.groups.optima import GroupThresholds, Own, shrunk
from limen.groups.paths import (
    EVERYTHING,
    Answers,
    Path,
    coded,
    named_path,
    names_a_group,
    path_of,
    require_count,
)
from limen.groups.windows import Windows, inner_of
from limen.model import M_co, asked, refuse_costs, require_distinct
from limen.online import OnlineCut, OnlineThreshold
from limen.storage import Storable
from limen.storage.packing import ids_of, whole_number
from limen.units import exact_costs

if TYPE_CHECKING:
    from collections.abc import Sized

    from limen.optimum import Direction, Optimum
    from limen.units import Cost

__all__ = ["Grouped"]

_PACKED = (OnlineThreshold, OnlineCut, OnlineCalibrator)  # few samples of these are kept as bytes


class Grouped(Storable, Answers, Generic[M_co], kind="Grouped"):
    """Keep one model for each group, sample by sample.

    Each sample is held by its group and by every larger group that contains it, up to the one
    of all samples. A group that holds too few is answered for by the next larger one.

    Parameters
    ----------
    model
        An empty model, such as ``OnlineThreshold(false_negative=5)``, or an empty window, such as
        ``LastPeriod(OnlineThreshold(), timedelta(days=30))``; every group begins as a copy of it.
        One of your own does as well if it keeps the contract of `limen.model.Model`.
    at_least
        How many samples a group needs to be asked itself.

    Notes
    -----
    Costs one update for each depth: two where groups are single values, as there is always the
    group of all samples. Groups come first in every call; what follows is what the model takes.

    A group of up to 32 samples is kept as bytes and takes no more memory than its samples; a
    larger one takes a model. See docs/groups.md for numbers.

    Where samples leave by their time (`LastPeriod`, `Fading` by time) there is one clock: an event
    of any group moves the time of all, and so does `advance`. A group is brought to that time when
    it is looked at, and each event also looks at some others, so that groups without events do not
    stay in memory.

    An error leaves all groups as they were. So does an interrupt, or it comes after the call, where
    the method of the model is native: all of limen's models, and `update` of its windows. Let one
    thread at a time change it; others may read. With a clock, reading is a change.

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

    __slots__ = ("_models", "at_least")

    def __init__(self, model: M_co, *, at_least: int = 1) -> None:
        require_count(at_least)
        held = len(cast("Sized", model))
        if held:
            raise ValueError(
                f"model must be empty, got one that holds {held:,} samples. Pass a new one "
                "and add the samples with their groups."
            )
        self.at_least = at_least
        if type(model) in _PACKED:
            kind: type[Models] = FewModels
        else:
            kind = Windows if hasattr(model, "model") else Models
        self._models = kind(deepcopy(model))

    # What comes in.

    def update(self, group: Hashable, *sample: Any, **named: Any) -> Any:
        """Add one sample to its group and to the larger ones. O(log n) for each depth.

        Return what the model's `update` does: for a window by time, whether the sample counts.

        >>> from limen import Grouped, LastPeriod, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> grouped.update("a", 0.5, 1, weight=2)
        >>> grouped.count("a")
        1
        >>> recent = Grouped(LastPeriod(OnlineThreshold(), 10))
        >>> recent.update("a", 0.5, 1, time=0), recent.update("b", 0.5, 1, time=10)
        (True, True)
        >>> recent.count("a"), recent.count("b")
        (0, 1)
        """
        return self._models.one("update", "revert", named_path(group), sample, named)

    def revert(self, group: Hashable, *sample: Any, **named: Any) -> None:
        """Take one sample back from its group and the larger ones. O(log n) for each depth.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> grouped.update("a", 0.5, 1)
        >>> grouped.revert("a", 0.5, 1)
        >>> len(grouped)
        0
        """
        self._models.one("revert", "update", named_path(group), sample, named)

    def update_many(self, groups: Any, *columns: Any, **named: Any) -> Any:
        """Add many samples at once: all of them, or on an error none.

        Costs what `update_many` of the model does, for each depth, and O(groups) besides. Returns
        what that of the model does.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> grouped.update_many(["a", "b", "b"], [0.1, 0.25, 0.5], [0, 0, 1])
        >>> grouped.thresholds()
        {(): 0.375, ('a',): inf, ('b',): 0.375}
        """
        return self._many("update_many", "revert_many", groups, columns, named)

    def revert_many(self, groups: Any, *columns: Any, **named: Any) -> None:
        """Take back many samples at once: all of them, or on an error none."""
        self._many("revert_many", "update_many", groups, columns, named)

    def advance(self, time: Any) -> None:
        """Let it be this late in all groups, if it is the latest time so far. O(log n) per leaving.

        >>> from limen import Grouped, LastPeriod, OnlineThreshold
        >>> grouped = Grouped(LastPeriod(OnlineThreshold(), 10))
        >>> grouped.update("a", 0.5, 1, time=0), grouped.update("b", 0.5, 1, time=5)
        (True, True)
        >>> grouped.advance(12)
        >>> grouped.count("a"), grouped.count("b"), len(grouped)
        (0, 1, 1)
        """
        self._models.advance(time)

    def merge(self, *others: Self) -> None:
        """Hold what others hold, besides what is held: all of it, or on an error nothing.

        Groups are united. The samples must be disjoint, `at_least` and the settings of the models
        the same. O(n + m). The others stay as they are. Models that `model` returned before are
        those of before.

        >>> from limen import Grouped, OnlineThreshold
        >>> monday, tuesday = Grouped(OnlineThreshold()), Grouped(OnlineThreshold())
        >>> monday.update_many(["a", "a"], [0.1, 0.5], [0, 0])
        >>> tuesday.update_many(["a", "b"], [0.75, 0.25], [1, 1])
        >>> monday.merge(tuesday)
        >>> monday.thresholds()
        {(): 0.625, ('a',): 0.625, ('b',): -inf}
        """
        require_distinct((self, *others))
        for other in others:
            if not isinstance(other, Grouped):
                raise TypeError(
                    f"cannot merge {type(other).__name__} into {type(self).__name__}; both must "
                    "hold groups. Nothing was changed."
                )
            if other.at_least != self.at_least:
                raise ValueError(
                    f"cannot merge: at_least is {self.at_least} here and {other.at_least} there. "
                    "Nothing was changed."
                )
        empty = self._models.empty
        if not hasattr(empty, "merge"):
            raise TypeError(
                f"cannot merge groups of {type(empty).__name__}, which has no merge(): what it "
                "remembers does not say what both would remember. Nothing was changed."
            )
        self._models.merge([other._models for other in others])

    # What is asked of it.

    def model(self, group: Hashable) -> M_co:
        """Return the model that answers for a group, seen before or not. O(depth).

        Read from it, but leave it as it is: it is a part of this object.
        """
        model: M_co = self._models.model(key_of(self.source(group)))
        return model

    def optimum(self, group: Hashable, **costs: Cost) -> Optimum:
        """Return the cut for a group, seen before or not. O(depth) and what the model takes."""
        optimum: Optimum = self._models.ask(key_of(self.source(group)), "optimum", costs)
        return optimum

    def interval(
        self, group: Hashable, *, confidence: float = 0.95, **costs: Cost
    ) -> tuple[float, float]:
        """Return between which thresholds the best one for a group lies.

        By the samples of the model that answers for the group, at the cost of its `interval`.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> scores = [i / 64 for i in range(64)]
        >>> grouped.update_many(["a", "b"] * 32, scores, [int(i * i % 64 < i) for i in range(64)])
        >>> grouped.interval("a"), grouped.interval(())
        ((-inf, 0.578125), (0.0234375, 0.4921875))
        """
        found: tuple[float, float] = self._asked(group, costs).interval(confidence, **costs)
        return found

    def keeps(
        self, group: Hashable, threshold: float, *, confidence: float = 0.95, **costs: Cost
    ) -> bool:
        """Whether to keep the threshold of a group: it lies inside the `interval`. Cost as there.

        One that gives all samples held the same answers as one inside is kept too.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> scores = [i / 64 for i in range(64)]
        >>> grouped.update_many(["a", "b"] * 32, scores, [int(i * i % 64 < i) for i in range(64)])
        >>> grouped.keeps("a", 0.55), grouped.keeps((), 0.55)
        (True, False)
        """
        model = self._asked(group, costs)
        found: bool = model.keeps(threshold, confidence=confidence, **costs)
        return found

    def recommended(self, **costs: Cost) -> GroupThresholds:
        """Return a threshold for the new rows of each group, from the samples held.

        The same as `by_group` with ``shrink=True``: all samples are given the threshold that
        `limen.recommend` finds, and each group that of the next larger one, moved into the 95 %
        interval of its own samples where it lies outside. Costs are given where the model takes
        them. Takes a read of `recommended` for all samples, and one of `interval` for each group.

        >>> from limen import Grouped, OnlineThreshold
        >>> grouped = Grouped(OnlineThreshold())
        >>> scores = [i / 64 for i in range(64)]
        >>> grouped.update_many(["a", "b"] * 32, scores, [int(i * i % 64 < i) for i in range(64)])
        >>> grouped.recommended().recommendation("a")
        GroupThreshold(threshold=0.3046875, source=(), interval=(-inf, 0.578125), samples=32)
        """
        models = self._models
        inner = inner_of(models.empty)
        if type(inner) not in (OnlineThreshold, OnlineCalibrator):
            raise TypeError(
                f"a threshold is recommended from scores and labels, and {type(inner).__name__} "
                "does not keep these. Use OnlineThreshold or OnlineCalibrator, or "
                "limen.by_group(..., shrink=True) on the samples."
            )
        if not inner.takes_costs:
            if costs:
                refuse_costs()
            whole = (1, 1)  # it knows its own
        else:
            given: dict[str, Any] = {"false_positive": 1, "false_negative": 1, **costs}
            whole = exact_costs(**given)[:2]

        # The nearest threshold of an interval is found as the core has them: with a nan above all.
        def inside(found: Any) -> Any:
            return mirrored(found) if self.direction == "<=" else found

        def own(path: Path) -> Own:
            key = key_of(path)
            samples = models.count(key)  # at the time of the clock
            held = models.seen(key)
            model, optimum = inner_of(held), inside(asked(held, "optimum", dict(costs)))
            if path == EVERYTHING:
                model._require_enough(*whole)
            interval = model._known_interval(0.95, *whole)
            if interval is None:
                return None, optimum, samples
            found = inside(model._recommended(*whole)) if path == EVERYTHING else None
            return (found, inside(interval)), optimum, samples

        found: GroupThresholds = inside(shrunk(self, own, self.at_least))
        return found

    @property
    def direction(self) -> Direction:  # type: ignore[override]
        """That of the model: ``"<="`` where lower scores mean positive."""
        direction: Direction = getattr(self._models.empty, "direction", ">=")
        return direction

    @property
    def newest(self) -> Any:
        """The latest time seen in any group; None before the first, or where there is no clock."""
        return self._models.newest

    def count(self, group: Hashable) -> int:
        """Return how many samples a group holds. O(1)."""
        return self._models.count(key_of(path_of(group)))

    def __len__(self) -> int:
        return len(self._models.held[EVERYTHING])

    def __iter__(self) -> Iterator[Path]:
        return map(path_of, self._models.occupied())

    def __repr__(self) -> str:
        return (
            f"<Grouped({_described(self._models.empty)}, at_least={self.at_least}): "
            f"{len(self):,} samples, {len(self._models.occupied()) - 1:,} groups>"
        )

    def _asked(self, group: Hashable, costs: dict[str, Cost]) -> Any:
        """Return the model that answers for a group, which takes these costs."""
        model: Any = self.model(group)
        if costs and not model.takes_costs:
            refuse_costs()
        return model

    def _threshold(self, path: Path, costs: dict[str, Any]) -> float:
        return float(self._models.ask(key_of(path), "threshold", costs))

    def _many(
        self, do: str, undo: str, groups: Any, columns: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        read = [readable(column, f"columns[{at}]") for at, column in enumerate(columns)]
        by_name = {name: readable(column, name) for name, column in named.items()}
        arrays = {f"columns[{at}]": column for at, column in enumerate(read)} | by_name
        require_same_length(**arrays)
        length = [len(array) for array in arrays.values() if array is not None][0]  # noqa: RUF015
        return self._models.many(do, undo, coded(groups, length), tuple(read), by_name)

    # Copies, and what is stored.

    def snapshot(self) -> dict[str, Any]:
        """Describe what all groups hold, in an order that depends on the groups alone. O(n)."""
        models = self._models
        return {
            "at_least": self.at_least,
            "empty": models.empty,
            "everything": models.held[EVERYTHING],
            **models.described(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Self:
        """Make an object of a `snapshot`. O(n)."""
        grouped = cls.__new__(cls)
        at_least = whole_number(snapshot, "at_least", least=1)
        Grouped.__init__(grouped, snapshot["empty"], at_least=at_least)
        models, everything = grouped._models, snapshot["everything"]
        models.require_alike(everything)
        models.held[EVERYTHING] = everything
        paths = [path_of(key) for key in ids_of(snapshot["groups"])]
        held = dict(zip(map(key_of, paths), models.restored(snapshot), strict=True))
        if len(held) != len(paths) or not all(map(names_a_group, paths)):
            raise ValueError("a group that occurs twice, or has no name")
        models.held |= held
        for path in paths:
            if key_of(path[:-1]) not in models.held:
                raise ValueError(f"the group {path!r} belongs to none")
        return grouped


def _described(model: Any) -> str:
    """Say what kind of model a group has, without what it holds.

    >>> _described(OnlineThreshold(false_negative=5))
    'OnlineThreshold(false_positive=1, false_negative=5)'
    """
    given = ", ".join(
        f"{name}={each!r}" for name, each in model.settings.items() if each is not None
    )
    inner = getattr(model, "model", None)
    return f"{type(model).__name__}({given})" + (
        "" if inner is None else f" of {_described(inner)}"
    )
