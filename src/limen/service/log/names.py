# SPDX-License-Identifier: Apache-2.0
"""Which events had an id: an index that is made in memory when it is asked for.

The log is cut into spans of seqs. Of a complete span, the hashes of its ids are kept sorted, 16
bytes for each event; it is looked at from the newest span backwards, so that what comes again
soon is found soon. Hashes only propose: what is found is compared with the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limen.service.points.events import Event, Ids, single_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limen.service.log.store import Group, Reader

__all__ = ["Names", "with_id"]

_SPAN = 65536


def with_id(event: Event, name: Ids, id: str) -> Event | None:
    """Return an event of this name if it has the id, or the last one of its rows that has it."""
    if not isinstance(name, list):
        return event if name == id else None
    if id not in name:
        return None
    return single_events(event)[len(name) - 1 - name[::-1].index(id)]


class Names:
    """Finds the events of an id in the log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._spans: dict[int, tuple[Any, Any]] = {}
        self._tail: dict[str, list[int]] = {}
        self._tail_span = self._tail_end = 0
        self._group: tuple[Group, dict[int, tuple[Event, Any]]] | None = None

    def find(self, point: str, id: str, last: int) -> Iterator[tuple[int, Event]]:
        """Yield the events of an id up to some seq, the newest first."""
        base = self._reader.base()[0]
        for span in range((last - 1) // _SPAN, base // _SPAN - 1, -1):
            for seq in reversed(self._candidates(span, id, last)):
                event = self._event(seq, id) if base < seq <= last else None
                if event is not None and event.point == point:
                    yield seq, event

    def _candidates(self, span: int, id: str, last: int) -> list[int]:
        if (span + 1) * _SPAN > last:
            return self._in_tail(span, id, last)
        if span not in self._spans:
            found = [(hash(name), seq) for seq, name in self._names(span * _SPAN, span + 1)]
            pairs = np.array(found, np.int64).reshape(-1, 2)
            order = np.argsort(pairs[:, 0], kind="stable")
            self._spans[span] = pairs[order, 0].copy(), pairs[order, 1].copy()
        hashes, seqs = self._spans[span]
        low, high = np.searchsorted(hashes, hash(id)), np.searchsorted(hashes, hash(id), "right")
        return seqs[low:high].tolist()  # type: ignore[no-any-return]

    def _in_tail(self, span: int, id: str, last: int) -> list[int]:
        if span != self._tail_span:
            self._tail, self._tail_span, self._tail_end = {}, span, span * _SPAN
        if self._tail_end < last:
            for seq, name in self._names(self._tail_end, span + 1, last):
                self._tail.setdefault(name, []).append(seq)
            self._tail_end = last
        return self._tail.get(id, [])

    def _names(self, after: int, span: int, last: int = 2**62) -> Iterator[tuple[int, str]]:
        last = min(last, span * _SPAN)
        for group in self._reader.groups(after, last):
            for seq, name in enumerate(group.ids(), group.first):
                if after < seq <= last:
                    for each in name if type(name) is list else [name]:
                        if type(each) is str:
                            yield seq, each

    def _event(self, seq: int, id: str) -> Event | None:
        """Return an event if it has this id; the last group read is remembered."""
        if self._group is None or not self._group[0].first <= seq <= self._group[0].last:
            group = next(self._reader.groups(seq - 1, seq))
            held = {each: (event, name) for each, event, name in group.unpacked()}
            self._group = group, held
        event, name = self._group[1][seq]
        return with_id(event, name, id)

    def clear(self) -> None:
        """Look everything up again: ids were deleted."""
        self._spans, self._tail, self._tail_span, self._tail_end = {}, {}, 0, 0
        self._group = None
