# SPDX-License-Identifier: Apache-2.0
"""Errors of the library, worded for the command line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from limen.cli.exits import BAD_INPUT, INFEASIBLE, USAGE, Failure
from limen.confidence import critical_value
from limen.digits import within
from limen.errors import Infeasible

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from limen.aim import Aim

__all__ = ["as_failure", "failing", "require_confidence", "require_one_aim_for_a_band"]


@contextmanager
def failing() -> Iterator[None]:
    """Turn what the library refuses into a `Failure`."""
    try:
        yield
    except Infeasible as infeasible:
        raise as_failure(infeasible) from None
    except (ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None


def as_failure(infeasible: Infeasible, where: str = "") -> Failure:
    """Word what no cut meets, with the nearest cut, for the command line."""
    near = infeasible.nearest
    text = within(near.threshold, near.lower, near.upper, direction=near.direction)
    return Failure(
        f"{where}{infeasible.problem}. The nearest, at threshold {text}, has {infeasible.rates}. "
        "Ask for less.",
        INFEASIBLE,
    )


def require_confidence(confidence: float) -> None:
    """Refuse a level for which no interval is known, before any work is done."""
    try:
        critical_value(confidence)
    except ValueError as error:
        raise Failure(f"--{error}", USAGE) from None


def require_one_aim_for_a_band(options: Namespace, aim: Aim) -> None:
    """Refuse a review band beside another aim than two costs, before any work is done."""
    asked = options.asking is not None or options.max_questions is not None
    if asked and (not aim.by_cost or aim.priced or (options.asking or 0) < 0):
        raise Failure(
            "--asking and --max-questions go with --false-positive and --false-negative, and are "
            "not negative. Leave out metrics, demands and other costs.",
            USAGE,
        )
