# SPDX-License-Identifier: Apache-2.0
"""How a command ends: its exit code, and the one sentence that says why it failed."""

from __future__ import annotations

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "INFEASIBLE",
    "INTERRUPTED",
    "NOT_FOUND",
    "PIPE_CLOSED",
    "USAGE",
    "BadRow",
    "Failure",
]

FAILED = 1
USAGE = 2
BAD_INPUT = 3
NOT_FOUND = 4
INFEASIBLE = 5
INTERRUPTED = 130
PIPE_CLOSED = 141


class Failure(Exception):  # noqa: N818 - reads as what happened
    """A command cannot continue; the message names place and value, and the next step.

    >>> Failure("scores.csv is empty.", BAD_INPUT).code
    3
    """

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class BadRow(Failure):
    """One row is malformed; those after it can be read."""
