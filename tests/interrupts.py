# SPDX-License-Identifier: Apache-2.0
"""An exception at every place where a signal handler may raise one, one place after the other.

Python runs signal handlers when a function begins, after a call that returns, and when a loop jumps
back.
`left_halfway` raises KeyboardInterrupt at the first of these places that a call passes inside
limen, then, on a new object, at the second, and so on until the call comes to its end. Each time
the object must be as it was before the call, or as it is after the whole of it. Nothing depends
on time or chance.

`at_random_moments` is for what these places leave out: a real signal, which arrives in native code
too.
"""

from __future__ import annotations

import dis
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import limen

PACKAGE = str(Path(limen.__file__).parent)


class HalfwayError(AssertionError):
    """An interrupt left an object neither as it was before nor as it is after."""


@cache
def _handled_after(code: CodeType) -> set[int]:
    """Where the instructions stand right after which handlers may run."""
    return {
        instruction.offset
        for instruction in dis.get_instructions(code)
        if instruction.opname.startswith("CALL") or "JUMP_BACKWARD" in instruction.opname
    }


def _raise() -> None:
    raise KeyboardInterrupt


class _Interrupt:
    """A trace function that raises KeyboardInterrupt at the nth place that is passed.

    Or that does something else there, as a signal handler or a finaliser may.
    """

    def __init__(self, place: int, handler: Callable[[], Any] = _raise) -> None:
        self.left = place
        self._handler = handler
        self.where: str | None = None  # None: the call came to its end before
        self._last: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "call":  # also when a generator goes on
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            self._last.pop(frame, None)
            self._pass(frame)
        elif event == "opcode":
            if self._last.get(frame) in _handled_after(frame.f_code):
                self._pass(frame)
            self._last[frame] = frame.f_lasti
        elif event == "exception":  # no handler runs between a call that raises and its except
            self._last.pop(frame, None)
        return self

    def _pass(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left == 0:
            path = Path(frame.f_code.co_filename).relative_to(PACKAGE)
            self.where = f"{path}:{frame.f_lineno} in {frame.f_code.co_name}"
            self._handler()


def visited(call: Callable[[], Any], place: int, handler: Callable[[], Any]) -> str | None:
    """Call, and run a handler at the nth place: where that was, or None if it was not reached."""
    interrupt, before = _Interrupt(place, handler), sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    finally:
        sys.settrace(before)
    return interrupt.where


def interrupted(call: Callable[[], Any], place: int) -> tuple[str | None, bool]:
    """Call, and interrupt at the nth place: where that was, and whether the caller was told."""
    interrupt, told, before = _Interrupt(place), False, sys.gettrace()
    sys.settrace(interrupt)
    try:
        call()
    except BaseException as error:
        told = isinstance(error, KeyboardInterrupt)
    finally:
        sys.settrace(before)  # so that coverage goes on
    return interrupt.where, told


def require_whole(
    make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any], step: int = 1
) -> None:
    """Raise HalfwayError at the first place that `left_halfway` finds."""
    for where in left_halfway(make, act, look, step):
        raise HalfwayError(where)


def left_halfway(
    make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any], step: int = 1
) -> Iterator[str]:
    """Find the places at which an interrupt leaves neither what was before nor what is after.

    `make` returns a new object, always the same; `act` calls it once; `look` tells all about it
    that can be compared, and may change it: how it goes on counts as well. Where `look` fails,
    or `act` ends in anything but the interrupt, that is a place too. `step` leaves some out.
    """
    before, done = look(make()), make()
    act(done)
    after = look(done)
    assert before != after, "the call changes nothing that can be seen"
    for place in count(1, step):
        subject = make()
        where, told = interrupted(lambda: act(subject), place)  # noqa: B023 - called at once
        if where is None:
            return
        try:
            if not told or look(subject) not in (before, after):
                yield where
        except Exception as error:
            yield f"{where}: {error!r}"


@contextmanager
def at_random_moments(handler: Callable[[], Any], longest: float = 1e-3) -> Iterator[None]:
    """Let a signal call a handler again and again, at random moments at most `longest` apart.

    Every timer goes off once, and the next one is set when the handler has returned. A timer with
    an interval would interrupt a handler that takes longer than it, on a busy machine without end.
    """
    draw, going = Random(0), True

    def run(*_: Any) -> None:
        handler()
        if going:
            begin()

    def begin() -> None:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, longest))

    before = signal.signal(signal.SIGALRM, run)
    begin()
    try:
        yield
    finally:
        going = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
