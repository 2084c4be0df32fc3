# SPDX-License-Identifier: Apache-2.0
"""What holds the samples of each group: one model each, changed all or none."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from functools import cache, partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.groups.paths import EVERYTHING, Path, path_of, rows_by_group
from limen.groups.steps import Call, all_or_none
from limen.model import asked
from limen.storage.packing import id_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Models", "key_of", "rows_of"]


def key_of(group: Hashable) -> Hashable:
    """Write a path as a key: as its only part, which takes less memory, unless that is a tuple.

    >>> key_of(("de",)), key_of("de"), key_of(("de", "bonn")), key_of((("a", "b"),))
    ('de', 'de', ('de', 'bonn'), (('a', 'b'),))
    """
    if isinstance(group, tuple) and len(group) == 1 and not isinstance(group[0], tuple):
        return group[0]  # type: ignore[no-any-return]
    return group


class Models:
    """One model for each group, by key; that of all samples is there from the beginning.

    A group that holds nothing is as good as none: it is not counted, stored or asked. So it does
    not matter when it is dropped.
    """

    __slots__ = ("empty", "held")

    nothing: Any = ()  # what a group that is no more may be left with
    newest: Any = None  # the time of the clock, where there is one

    def __init__(self, empty: Any) -> None:
        self.empty = empty
        self.held: dict[Hashable, Any] = {EVERYTHING: deepcopy(empty)}

    # What is asked of them.

    def count(self, key: Hashable) -> int:
        """Return how many samples a group holds. O(1)."""
        held = self.held.get(key)
        return 0 if held is None else len(held)

    def occupied(self) -> list[Hashable]:
        """List the groups that hold something, after that of all samples. O(groups)."""
        return [
            EVERYTHING,
            *(key for key in list(self.held) if key != EVERYTHING and self.count(key)),
        ]

    def model(self, key: Hashable) -> Any:
        """Return the model of a group that holds something; it stays the one of that group."""
        return self.held[key]

    def seen(self, key: Hashable) -> Any:
        """Return a model that holds what a group holds, to read from it once."""
        return self.held[key]

    def ask(self, key: Hashable, question: str, costs: dict[str, Any]) -> Any:
        """Read `threshold` or `optimum` of a group that holds something."""
        return asked(self.held[key], question, costs)

    # What comes in.

    def one(
        self, do: str, undo: str, path: Path, sample: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Add or take back a sample in all groups that contain it, or on an error in none.

        Where it is to be taken back, the smallest group is asked first: what that one holds, all
        others do, so that a refusal comes before any change.
        """
        changes: list[Call] = []
        reversals: list[Call] = []
        after: dict[Hashable, Any] = {}
        keys = [key_of(path[:depth]) for depth in range(len(path) + 1)]
        if do == "revert":
            keys.reverse()
        for key in keys:
            held = self.held[key] if key == EVERYTHING or self.count(key) else self.begun()
            if held is not self.held.get(key):
                after[key] = held
            changes.append(partial(getattr(held, do), *sample, **named))
            reversals.append(self.reversal(held, undo, sample, named))
        return self.commit(changes, reversals, after, keys)

    def many(
        self,
        do: str,
        undo: str,
        groups: tuple[list[Path], NDArray[np.int64]],
        columns: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Add or take back many samples in all groups that contain them, or on an error in none.

        `groups` are the distinct paths, and the place of each row's path among them.
        """
        everything = self.held[EVERYTHING]
        changes: list[Call] = [partial(getattr(everything, do), *columns, **named)]
        reversals = [self.reversal(everything, undo, columns, named)]
        after: dict[Hashable, Any] = {}
        keys = []
        counted = self.counted(len(groups[1]), columns, named)
        clock = cache(partial(self.clock, self.newest, counted, named))
        for path, rows in rows_by_group(*groups):
            rows = rows if counted is None else rows[counted[rows]]
            if len(rows) == 0:
                continue
            key = key_of(path)
            held = self.held[key] if self.count(key) else self.begun()
            if held is not self.held.get(key):
                after[key] = held
            part = tuple(rows_of(column, rows) for column in columns)
            by_name = {name: rows_of(column, rows) for name, column in named.items()}
            changes.append(self.change(held, do, part, by_name, rows, clock))
            reversals.append(self.reversal(held, undo, part, by_name))
            keys.append(key)
        return self.commit(changes, reversals, after, keys)

    def counted(
        self, length: int, columns: tuple[Any, ...], named: dict[str, Any]
    ) -> NDArray[np.bool_] | None:
        """Find which of many samples count at all; None where all do."""
        return None

    def clock(
        self, newest: Any, counted: NDArray[np.bool_] | None, named: dict[str, Any]
    ) -> list[Any]:
        """List the time of the clock before each of many samples, and the time of each."""
        return []

    def change(
        self,
        held: Any,
        do: str,
        part: tuple[Any, ...],
        named: dict[str, Any],
        rows: NDArray[np.int64],
        clock: Callable[[], list[Any]],
    ) -> Call:
        """Return the call that adds or takes back these rows of many in a group."""
        return partial(getattr(held, do), *part, **named)

    def advance(self, time: Any) -> None:
        """Let it be this late in all groups; here there is no clock."""
        raise TypeError(
            f"samples do not leave {type(self.empty).__name__} by their time, so there is no clock "
            "to advance. Make Grouped of a LastPeriod, or of a Fading by time."
        )

    def begun(self) -> Any:
        """Return the model of a new group."""
        return deepcopy(self.empty)

    def reversal(self, held: Any, undo: str, given: tuple[Any, ...], named: dict[str, Any]) -> Call:
        """Return the call that takes back what a model is about to do."""
        return partial(methodcaller(undo, *given, **named), held)

    def commit(
        self,
        changes: list[Call],
        reversals: list[Call],
        after: dict[Hashable, Any],
        touched: list[Hashable],
    ) -> Any:
        """Make the changes, let groups hold what comes after, and drop those that hold nothing.

        Returns what the first change did.
        """
        if after:
            before = {key: self.held.get(key, self.nothing) for key in after}
            changes.append(partial(self.held.update, after))
            reversals.append(partial(self.held.update, before))
        done = all_or_none(changes, reversals)
        for key in touched:
            if key != EVERYTHING and self.count(key) == 0:
                self.held.pop(key, None)
        return done[0]

    # Copies, merging, and what is stored.

    def merge(self, others: list[Models]) -> None:
        """Hold what others hold, too: all of it, or on an error nothing. O(n + m)."""
        parts: dict[Hashable, list[Any]] = {}
        for other in others:
            for key in other.occupied():
                parts.setdefault(key, []).append(other.held[key])
        self.held.update({key: self.merged(key, held) for key, held in parts.items()})

    def merged(self, key: Hashable, parts: list[Any]) -> Any:
        """Return what holds all samples of a group, here and there."""
        model = self.held[key].copy() if self.count(key) or key == EVERYTHING else self.begun()
        model.merge(*parts)
        return model

    def described(self) -> dict[str, Any]:
        """Describe the groups but that of all samples, in an order that depends on them alone."""
        keys = self.occupied()[1:]
        groups, order = id_column([path_of(key) for key in keys])
        return {"groups": groups, "models": tuple(self.held[keys[at]] for at in order)}

    def restored(self, snapshot: dict[str, Any]) -> list[Any]:
        """Return what holds the samples of the groups that `described` described, in order."""
        models = list(snapshot["models"])
        for model in models:
            self.require_alike(model)
        return models

    def require_alike(self, model: Any) -> None:
        """Raise ValueError unless a model that was stored may be that of a group."""
        if type(model) is not type(self.empty) or model.settings != self.empty.settings:
            raise ValueError("groups of models that differ")


def rows_of(column: Any, rows: NDArray[np.int64]) -> Any:
    """Take rows of a column; what a list holds stays what it is."""
    if isinstance(column, list | tuple):
        return [column[at] for at in rows.tolist()]
    return None if column is None else column[rows]
