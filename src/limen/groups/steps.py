# SPDX-License-Identifier: Apache-2.0
"""Several changes that all happen, or none of them: also after an error or an interrupt."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import compress
from operator import call
from typing import Any, TypeAlias

__all__ = ["Call", "all_or_none"]

Call: TypeAlias = Callable[[], Any]


def all_or_none(changes: Sequence[Call], reversals: Sequence[Call]) -> list[Any]:
    """Make all changes, in order, and return what each of them returned.

    On an error those that were made are taken back by their reversals, and the error is raised.
    Python runs signal handlers between its own instructions only, and from the first change to the
    last, or to the last that is taken back, there are none: `map` and `list.extend` call what is
    native one after the other. So an interrupt comes before all changes or after them, unless what
    is called is itself written in Python.

    >>> held = [1]
    >>> all_or_none([lambda: held.append(2), lambda: 1 / 0], [held.pop, held.clear])
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    >>> held
    [1]
    """
    done: list[Any] = []  # one for each change that was made; the type of anything is true
    back = map(call, compress(reversals, map(type, done)))
    try:
        done.extend(map(call, changes))
    except BaseException:
        deque(back, maxlen=0)
        raise
    return done
