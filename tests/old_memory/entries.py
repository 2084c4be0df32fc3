# SPDX-License-Identifier: Apache-2.0
"""What a ledger knows of its ids, one entry each, and the same in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limen.storage.packing import number_column, plain_list, time_column, times_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["EMPTY", "GONE", "HELD", "OPEN", "WAITING", "YOUNG", "Entry", "entries_of"]

WAITING = 0  # a label without a score
OPEN = 1  # a score without a label
YOUNG = 2  # both, but a negative that is too young to be trusted
HELD = 3  # both, and the model holds the sample
EMPTY = 4  # both, but the sample costs nothing on either side, and no model holds such
GONE = 5  # nothing any more

_NO_LABEL = 2


class Entry:
    """What is known of one id."""

    __slots__ = (
        "answer",
        "cost",
        "id",
        "known",
        "outcome",
        "place",
        "score",
        "state",
        "time",
        "weight",
    )

    outcome: Any  # (label,) or (below, above)

    def __init__(self, id: Hashable) -> None:
        self.id = id
        self.known = True  # False once labels for this id are not taken any more
        self.clear(WAITING)

    def clear(self, state: int) -> None:
        """Forget all but the id."""
        self.state = state
        self.time: Any = None
        self.score = 0.0
        self.weight: int | float = 1
        self.answer = 0
        self.outcome = None
        self.place = 0  # in a window
        self.cost = 0  # of the answer, in grains, while the model holds the sample

    @property
    def held(self) -> bool:
        """Whether the model holds the sample."""
        return self.state == HELD

    def order(self) -> tuple[Any, ...]:
        """Tell what to sort entries by that have no id."""
        return self.state, self.time, self.score, self.answer, self.outcome, self.weight


def _bytes(numbers: Iterable[int]) -> Any:
    return np.array(list(numbers), np.uint8)


def entry_columns(entries: list[Entry], labelled: bool) -> dict[str, Any]:
    """Make columns of all but the ids. O(n)."""
    outcomes = [entry.outcome for entry in entries]
    if labelled:
        known: tuple[Any, ...] = (_bytes(_NO_LABEL if o is None else o[0] for o in outcomes),)
    else:
        pairs = [(0, 0) if outcome is None else outcome for outcome in outcomes]
        missing = _bytes(outcome is None for outcome in outcomes)
        known = (missing, *(number_column([pair[at] for pair in pairs]) for at in (0, 1)))
    undated = bool(entries) and entries[0].time is None  # then all are
    return {
        "states": _bytes(entry.state for entry in entries),
        "answers": _bytes(entry.answer for entry in entries),
        "scores": np.array([entry.score for entry in entries], np.float64),
        "weights": number_column([entry.weight for entry in entries]),
        "times": None if undated else time_column([entry.time for entry in entries]),
        "outcomes": known,
    }


def _outcomes_of(columns: tuple[Any, ...]) -> list[Any]:
    if len(columns) == 1:
        return [None if label == _NO_LABEL else (label,) for label in columns[0].tolist()]
    missing, below, above = (plain_list(column) for column in columns)
    rows = zip(missing, below, above, strict=True)
    return [None if none else (low, high) for none, low, high in rows]


def entries_of(columns: dict[str, Any], ids: list[Any]) -> list[Entry]:
    """Bring back the entries; those beyond the ids have none. O(n).

    Raises ValueError where no ledger could have such an entry.
    """
    count = len(columns["states"])
    times = [None] * count if columns["times"] is None else times_of(columns["times"])
    rows = zip(
        columns["states"].tolist(),
        columns["answers"].tolist(),
        columns["scores"].tolist(),
        plain_list(columns["weights"]),
        times,
        _outcomes_of(columns["outcomes"]),
        [*ids, *[None] * (count - len(ids))],
        strict=True,
    )
    entries = []
    for at, (state, answer, score, weight, time, outcome, id) in enumerate(rows):
        entry = Entry(id)
        entry.known = at < len(ids)
        entry.state, entry.answer, entry.score, entry.weight = state, answer, score, weight
        entry.time, entry.outcome = time, outcome
        if (
            state not in (WAITING, OPEN, YOUNG, HELD, EMPTY)
            or answer not in (0, 1)
            or (outcome is None) != (state == OPEN)
            or (time is None and state != WAITING)
            or not (entry.known or state in (YOUNG, HELD))
        ):
            raise ValueError("an entry that no ledger has")
        entries.append(entry)
    if len({entry.id for entry in entries if entry.known}) < len(ids):
        raise ValueError("an id that comes twice")
    return entries
