# SPDX-License-Identifier: Apache-2.0
"""Windows, samples that fade and ledgers as version 1 of the format described them."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np

from limen import _core
from limen.model import Labelled
from limen.storage.format import value_bytes
from limen.storage.packing import ids_of, plain_list, times_of, whole_number
from limen.times import as_time
from limen.units import exact_unit

__all__ = ["fading_columns", "ledger_columns", "window_columns"]

_NUMBERS, _NAIVE, _UTC = 1, 2, 3  # calendars
_WHOLE, _REAL, _NONE = 0, 1, 2  # kinds of times
_NO_LABEL = 2


def window_columns(window: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """LastN and LastPeriod were their samples, the oldest first: add them to a new window. O(n)."""
    samples = [column for column in parts["samples"] if column is not None]
    times = [{"time": time} for time in times_of(parts["times"])] if "times" in parts else None
    rows = list(zip(*map(plain_list, samples), strict=True))
    for at, row in enumerate(rows):
        window.update(*row, **({} if times is None else times[at]))
    if parts.get("newest") is not None:
        window.advance(parts["newest"])
    if len(window) != len(rows) or (times is not None and len(times) != len(rows)):
        raise ValueError("a sample that is without loss, or not of this window")
    if times is not None and window.newest != parts["newest"]:
        raise ValueError("an event from the future")
    found: dict[str, Any] = window.snapshot()
    found["refused"] = whole_number(parts, "refused") if "refused" in parts else 0
    return found


def fading_columns(parts: dict[str, Any]) -> dict[str, Any]:
    """Describe samples that fade: what the model holds, and in which terms."""
    base = parts["base"]
    if base is not None and (type(base) is not float or not base.is_integer()):
        raise ValueError("samples that began to fade in the middle of a half-life")
    names = ("count", "newest", "origin", "refused", "spent", "spent_at")
    return {
        **_nothing(),
        **{name: parts[name] for name in ("half_life", "by", *names)},
        "model": parts["model"].empty(),
        "state": parts["model"]._state(),
        "calendar": _calendar(parts["newest"]),
        "bases": (None if base is None else int(base),),
    }


def ledger_columns(parts: dict[str, Any]) -> dict[str, Any]:
    """Describe a ledger: its entries in another order, and what they weigh in whole units. O(n)."""
    window = parts["model"] if hasattr(parts["model"], "model") else None
    inner = parts["model"] if window is None else window.model
    columns, kinds = _ids(ids_of(parts["ids"]))
    order = np.concatenate([columns.pop("order"), np.arange(len(kinds), len(parts["states"]))])
    clock = parts["clock"]
    if clock is not None:
        clock = as_time(clock, isinstance(clock, datetime), "clock")
    names = ("states", "answers", "scores", "places", "turns")
    found = {
        **_nothing(),
        **parts,
        **{name: parts[name][order] for name in names},
        **_outcomes(parts, inner, order),
        **_times(parts, order),
        **columns,
        "newest": clock,
        "calendar": _calendar(clock),
        "model": parts["model"].empty(),
        "state": None,
    }
    kind = None if window is None else window._kind
    ordered = kind == "LastN"
    if window is None:
        found["state"] = inner._state()
    elif kind == "Fading":
        kept, ordered = window.snapshot(), window.settings["by"] == "samples"
        for name in ("state", "bases", "count", "spent", "spent_at", "origin", "refused"):
            found[name] = kept[name]
        found["places"] = found["places"] - 1
    elif kind == "LastPeriod":
        found["refused"] = window.refused
    if not ordered:
        found["places"] = None
    if not ordered or parts["maturity"] is None:
        found["turns"] = None
    return found


def _nothing() -> dict[str, Any]:
    """Return what a memory that knows nothing stores."""
    nothing: dict[str, Any] = dict.fromkeys(
        (
            *("newest", "origin", "dropped", "counts", "states", "answers", "labels", "scores"),
            *("times", "time_kinds", "firsts", "seconds", "bits", "places", "turns"),
            *("as_of", "as_of_kinds", "state", "max_ahead", "horizon"),
        )
    )
    counts = ("expired", "refused", "count", "cost", "ever", "calendar", "as_of_calendar")
    nothing |= dict.fromkeys(counts, 0)
    ids = np.empty(0, np.int64)
    return nothing | {"bases": (), "spent": 0.0, "spent_at": 0.0, "ids": ids}


def _calendar(time: Any) -> int:
    if not isinstance(time, datetime):
        return 0 if time is None else _NUMBERS
    return _NAIVE if time.tzinfo is None else _UTC


def _ids(ids: list[Any]) -> tuple[dict[str, Any], list[int]]:
    """Write ids as bytes, in the order of their kinds and bytes."""
    keys = [_id(id) for id in ids]
    order = sorted(range(len(ids)), key=keys.__getitem__)
    kinds = [keys[at][0] for at in order]
    if not any(kinds):
        return {"ids": np.array(ids, np.int64)[order], "order": np.array(order, int)}, kinds
    numbers = [keys[at][1] if keys[at][0] == 0 else len(keys[at][2]) for at in order]
    joined = b"".join(keys[at][2] for at in order)
    column = (np.array(kinds, np.uint8), np.array(numbers, np.int64), joined)
    return {"ids": column, "order": np.array(order, int)}, kinds


def _id(id: Any) -> tuple[int, int, bytes]:
    """Return the kind of an id, and its number or bytes."""
    if type(id) is int:
        if -(2**63) <= id < 2**63:
            return 0, id, b""
        return 4, 0, id.to_bytes(id.bit_length() // 8 + 1, "little", signed=True)
    if type(id) is str:
        return 1, 0, id.encode("utf-8", "surrogatepass")
    if type(id) is bytes:
        return 2, 0, id
    if type(id) is UUID:
        return 3, 0, id.bytes
    if type(id) is tuple:
        for item in id:
            _id(item)
        return 5, 0, value_bytes(id)[1:]
    raise ValueError(f"{id!r} is no id any more; an id is a str, int, bytes, UUID or tuple")


def _times(parts: dict[str, Any], order: Any) -> dict[str, Any]:
    """Write times as whole numbers or the bits of doubles, with their kinds."""
    rows = len(parts["states"])
    if parts["times"] is None:
        return {"times": np.zeros(rows, np.int64), "time_kinds": np.full(rows, _NONE, np.uint8)}
    kind, column = parts["times"]
    numbers = plain_list(column) if kind == "number" else column.tolist()
    whole = [type(number) is int for number in numbers]
    words = [
        number if w else np.float64(number).view(np.int64)
        for number, w in zip(numbers, whole, strict=True)
    ]
    kinds = [_WHOLE if w else _REAL for w in whole]
    return {
        "times": np.array(words, np.int64)[order],
        "time_kinds": np.array(kinds, np.uint8)[order],
    }


def _outcomes(parts: dict[str, Any], inner: Any, order: Any) -> dict[str, Any]:
    """Write labels, and weights or losses measured in whole units."""
    unit = exact_unit(inner.settings["unit"])
    rows, fading = len(parts["states"]), getattr(parts["model"], "_kind", "") == "Fading"
    if isinstance(inner, Labelled):
        labels = parts["outcomes"][0]
        columns = (plain_list(parts["weights"]), [0] * rows)
    else:
        missing, *losses = (plain_list(column) for column in parts["outcomes"])
        labels = np.where(np.array(missing, bool), np.uint8(_NO_LABEL), np.uint8(0))
        columns = (losses[0], losses[1])
    lows, highs = ([_measured(number, unit, fading) for number in column] for column in columns)
    bits = [max(low[1], high[1]) for low, high in zip(lows, highs, strict=True)]
    firsts, seconds = (
        [units << (most - places) for (units, places), most in zip(side, bits, strict=True)]
        for side in (lows, highs)
    )
    return {
        "labels": labels[order],
        "firsts": np.array(firsts, np.int64)[order],
        "seconds": np.array(seconds, np.int64)[order],
        "bits": np.array(bits, np.uint8)[order],
    }


@lru_cache(maxsize=4096)
def _measured(number: int | float, unit: Fraction | None, fading: bool) -> tuple[int, int]:
    """Measure a number as the model does: whole units, and the binary places they need."""
    if fading:
        return int(np.float64(number).view(np.int64)), 255
    if unit is not None:
        return round(Fraction(number) / unit), 0
    units, bits = round(Fraction(number) * 2**_core.finest_bits), _core.finest_bits
    while bits and units % 2 == 0:
        units, bits = units // 2, bits - 1
    return units, bits
