# SPDX-License-Identifier: Apache-2.0
"""A ledger over groups: one memory and one clock for the samples of all of them.

Each group has a model, or a window, of its own for as long as the ledger lives; the native memory
changes all that contain a sample in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from limen.groups.models import Models, key_of
from limen.groups.paths import EVERYTHING, named_path, names_a_group, path_of
from limen.memory.base import innermost
from limen.memory.fading import Fading
from limen.memory.windows import LastN
from limen.storage.format import value_bytes
from limen.storage.packing import ids_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from limen.groups.paths import Path

__all__ = [
    "LedgerGroups",
    "columns_of_groups",
    "join",
    "ordered_paths",
    "places_in",
    "require_clocked",
    "restore_groups",
]


class LedgerGroups(Models):
    """The models of the groups of a ledger, by key: all may read them, the ledger changes them.

    A group stays once it was named. One that holds nothing is not shown, and not stored.
    """

    __slots__ = ()

    def __init__(self, empty: Any, everything: Any) -> None:
        self.empty = empty
        self.held = {EVERYTHING: everything}

    @property
    def newest(self) -> Any:
        """The time of the clock; None where the models know none."""
        return getattr(self.held[EVERYTHING], "newest", None)

    def count(self, key: Hashable) -> int:
        """Return how many samples a group holds at the time of the clock."""
        held = self.held.get(key)
        if held is None:
            return 0
        if isinstance(held, Fading):
            held._refresh()
        return len(held)

    def one(self, *_: Any) -> NoReturn:
        """Refuse a sample that does not come through the ledger."""
        raise TypeError(
            "these groups belong to a Ledger; record scores and labels through it. Nothing was "
            "changed."
        )

    def many(self, *_: Any) -> NoReturn:
        """Refuse the same for many samples."""
        self.one()

    def merge(self, others: list[Models]) -> NoReturn:
        """Refuse the samples of others: ledgers are merged."""
        self.one()

    def advance(self, time: Any) -> NoReturn:
        """Refuse a time: the clock is that of the ledger."""
        self.one()

    def described(self) -> NoReturn:
        """Refuse to be stored without the ledger."""
        raise RuntimeError("these groups belong to a Ledger; copy or save the ledger.")


def require_clocked(model: Any) -> None:
    """Raise unless all groups can lose their samples at the same time: by a clock, or never."""
    by_number = isinstance(model, Fading) and model.settings["by"] == "samples"
    if isinstance(model, LastN) or by_number:
        raise ValueError(
            f"samples leave groups of {type(model).__name__} by their number, in each group at "
            "another time, so that a sample with an id would count in some groups and not in "
            "others. Give a Grouped of a LastPeriod, of a Fading by time, or of a plain model."
        )


def join(ledger: Any, group: Any) -> Any:
    """Return the model of a group, which is made where it is new, with those around it.

    What an interrupt leaves behind is an empty group.
    """
    path, models = named_path(group), ledger.model._models
    inside = models.held[EVERYTHING]
    for depth in range(1, len(path) + 1):
        key = key_of(path[:depth])
        found = models.held.get(key)
        if found is None:
            made = models.empty.empty()
            ledger._add_group(made, innermost(inside)._group)
            found = models.held.setdefault(key, made)  # another thread may have been faster
        inside = found
    return inside


def columns_of_groups(ledger: Any) -> dict[str, Any]:
    """Return the columns of a ledger and those of its groups that are in use. O(n log n).

    Larger groups come first, then they are ordered by their names, whenever they came.
    """
    columns = None
    while columns is None:  # until no new group comes meanwhile
        paths = ordered_paths(ledger)
        columns = ledger._grouped_columns(np.array([*paths], np.uint32))
    used = set(columns.pop("used").tolist())
    named = [path for number, path in paths.items() if number in used]
    columns["paths"] = ("any", *named[1:])
    return columns  # type: ignore[no-any-return]


def ordered_paths(ledger: Any) -> dict[int, Path]:
    """Return the paths of all groups by their numbers: larger groups first, then by name."""
    held = dict(ledger.model._models.held)
    paths = sorted(map(path_of, held), key=_order)
    return {int(innermost(held[key_of(path)])._group): path for path in paths}


def _order(path: Path) -> tuple[int, bytes]:
    try:
        return len(path), value_bytes(path)
    except TypeError:  # it can be copied, but not stored
        return len(path), b""


def restore_groups(ledger: Any, columns: dict[str, Any]) -> None:
    """Make the groups that columns describe, so that they have the numbers of then."""
    for number, path in enumerate(ids_of(columns["paths"]), start=1):
        if not isinstance(path, tuple) or not names_a_group(path):
            raise ValueError("a group that has no name")
        if innermost(join(ledger, path))._group != number:
            raise ValueError("a group that occurs twice, or belongs to none")


def places_in(ledger: Any, other: Any) -> NDArray[np.uint32]:
    """Return the numbers in a ledger of all groups of another, in the order of that one."""
    models = sorted(
        other.model._models.held.items(), key=lambda member: int(innermost(member[1])._group)
    )
    members = [join(ledger, path_of(key)) for key, _ in models[1:]]
    return np.array([0, *(innermost(member)._group for member in members)], np.uint32)
