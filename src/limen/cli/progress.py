# SPDX-License-Identifier: Apache-2.0
"""How far long work has come, on a terminal only."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["counting", "on_terminal", "polling"]

_PATIENCE = 0.5  # seconds before the first sign
_WIDTH = 24


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


def _show(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


@contextmanager
def counting(name: str) -> Iterator[Callable[[int], None]]:
    """Give a function that shows how many rows of `name` were read."""
    if not on_terminal():
        yield lambda rows: None
        return
    try:
        yield lambda rows: _show(f"{name}: {rows:,} rows")
    finally:
        _show("")


@contextmanager
def polling(name: str, percent: Callable[[], Any]) -> Iterator[None]:
    """Show a bar of the `percent` done, which another thread asks for, while the work continues."""
    if not on_terminal():
        yield
        return
    done = threading.Event()

    def draw() -> None:
        while not done.wait(_PATIENCE):
            share = min(max(float(percent()), 0.0), 100.0)
            filled = "=" * round(_WIDTH * share / 100)
            _show(f"{name}: [{filled:<{_WIDTH}}] {share:3.0f} %")

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join()
        _show("")
