# SPDX-License-Identifier: Apache-2.0
"""Columns that are the same for the same numbers and ids, however these were written."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.storage.format import value_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "id_column",
    "ids_of",
    "number_column",
    "plain_list",
    "plain_number",
    "whole_number",
]

_LARGEST = 2**900  # of a count or a sum of units: what is made of it is a double
_MOST_ALIKE = 100  # ids of one hash; a dictionary takes quadratic time for them


def number_column(values: Iterable[Any]) -> Any:
    """Make an array of int64 or of float64, whichever holds all numbers, else a tuple.

    Equal numbers give equal columns, however they were written. O(n).

    >>> number_column([1, 2.0]), number_column([1, 0.5]), number_column([2**53 + 1, 0.5])
    (array([1, 2]), array([1. , 0.5]), (9007199254740993, 0.5))
    """
    numbers = values if isinstance(values, list) else list(values)
    if set(map(type, numbers)) <= {float}:
        reals = np.array(numbers, np.float64)
    else:
        plain = [plain_number(number) for number in numbers]
        nearest = [_nearest(number) for number in plain]
        if plain != nearest:
            whole = all(type(n) is int and -(2**63) <= n < 2**63 for n in plain)
            return np.array(plain, np.int64) if whole else tuple(plain)
        reals = np.array(nearest, np.float64)
    if np.all((np.abs(reals) < 2.0**53) & (reals == np.trunc(reals))):
        return reals.astype(np.int64)
    return reals + 0.0  # one zero


def _nearest(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def plain_list(column: Any) -> list[Any]:
    """Make a list of plain numbers of what `number_column` made. O(n)."""
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def plain_number(number: Any) -> int | float:
    """Turn a whole number into an int, another into a float.

    >>> plain_number(2.0), plain_number(True), plain_number(0.5)
    (2, 1, 0.5)
    """
    if type(number) is int:  # without a look at the class of all whole numbers, which is slow
        return number
    if isinstance(number, Integral):
        return int(number)
    real = float(number)
    return int(real) if real.is_integer() else real


def whole_number(parts: dict[str, Any], name: str, least: int | None = 0) -> int:
    """Read a whole number that is not below the least; raise ValueError if it is none."""
    number = parts[name]
    if type(number) is not int or abs(number) > _LARGEST:
        raise ValueError(f"{name} is no whole number, or beyond all bounds")
    if least is not None and number < least:
        raise ValueError(f"{name} is {number!r}")
    return number


def id_column(ids: list[Any]) -> tuple[Any, list[int]]:
    """Pack ids in an order that depends on nothing but them; return also the order. O(n log n).

    >>> id_column([30, 10, 20])
    (array([10, 20, 30]), [1, 2, 0])
    """
    if all(type(id) is str for id in ids):
        texts = [id.encode("utf-8", "surrogatepass") for id in ids]
        order = sorted(range(len(ids)), key=texts.__getitem__)
        sizes = np.fromiter((len(texts[at]) for at in order), np.int64, len(ids))
        return ("text", sizes, b"".join([texts[at] for at in order])), order
    if all(type(id) is int and -(2**63) <= id < 2**63 for id in ids):
        numbers = np.array(ids, np.int64)
        order = np.argsort(numbers).tolist()
        return numbers[order], order
    try:
        keys = [value_bytes(id) for id in ids]
    except TypeError:  # they can be copied, but not stored
        return ("any", *ids), list(range(len(ids)))
    order = sorted(range(len(ids)), key=keys.__getitem__)
    return ("any", *(ids[at] for at in order)), order


def ids_of(column: Any) -> list[Any]:
    """Bring back the ids that `id_column` packed. O(n)."""
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if column[0] == "any":
        ids = list(column[1:])
        if max(Counter(map(hash, ids)).values(), default=0) > _MOST_ALIKE:
            raise ValueError(f"more than {_MOST_ALIKE} ids of one hash")
        return ids
    _, sizes, texts = column
    ends = [0, *np.cumsum(sizes).tolist()]
    if (sizes < 0).any() or ends[-1] != len(texts):
        raise ValueError("ids that do not fill their place")
    return [texts[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends)]
