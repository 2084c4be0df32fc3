# SPDX-License-Identifier: Apache-2.0
"""A version: the thresholds of a point in effect from some event on."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from limen.optimum import Direction
from limen.service.points.definitions import as_rules
from limen.service.points.events import as_datetime

__all__ = ["Version", "tag_of"]


class Version(msgspec.Struct):
    """The thresholds in effect from some event on."""

    number: int
    seq: int
    at: int
    thresholds: dict[str, float]  # by segment; "" is for all
    by: str = ""
    reason: str = ""
    proposal: int | None = None  # the one that it was
    back_to: int | None = None  # the earlier version that a person went back to

    def find(self, segment: str | None) -> tuple[float, str]:
        """Return the threshold for a segment and the segment that it comes from. O(depth)."""
        while segment:
            found = self.thresholds.get(segment)
            if found is not None:
                return found, segment
            segment = segment.rpartition("/")[0]
        return self.thresholds[""], ""

    def tag(self, era: bytes) -> bytes:
        """Return the ETag of its thresholds."""
        return tag_of(era, self.seq, sorted(self.thresholds.items()))

    def shown(self, direction: Direction) -> dict[str, Any]:
        """Describe it for JSON."""
        return {
            "version": self.number,
            "since": as_datetime(self.at),
            "seq": self.seq,
            "by": self.by,
            "reason": self.reason,
            "proposal": self.proposal,
            "back_to": self.back_to,
            "direction": direction,
            "thresholds": as_rules(self.thresholds, direction),
        }


def tag_of(era: bytes, *parts: object) -> bytes:
    """Return an ETag: another one where a part differs, and in another era of the data.

    A number alone would not do: after a restore the same one stands for something else.

    >>> tag_of(b"", 2) == tag_of(b"", 2), tag_of(b"", 2) == tag_of(b"restored", 2)
    (True, False)
    """
    digest = blake2b(msgspec.msgpack.encode(parts), key=era, digest_size=12)
    return b'"%b"' % digest.hexdigest().encode()
