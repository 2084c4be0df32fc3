# SPDX-License-Identifier: Apache-2.0
"""How many standard errors stand for a confidence, and how few samples are too few.

The numbers are quantiles of the laws that benchmarks/trust_constants.py draws from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

__all__ = ["ENOUGH", "LEAST", "NAMED", "SAFE", "SMOOTH", "critical_value", "too_few"]

# The loss is smooth around its minimum: of use where that is known. Drawn: 1.00 1.29 1.54 2.04.
SMOOTH = {0.8: 1.00, 0.9: 1.29, 0.95: 1.54, 0.99: 2.03}
# Also where the optimum lies at an end, or the share of ones jumps there: what limen uses. Drawn:
# 1.63 1.98 2.28 2.83 where the loss grows as a square, 1.68 2.03 2.32 2.89 where as a cube.
SAFE = {0.8: 1.68, 0.9: 2.03, 0.95: 2.31, 0.99: 2.95}
# One threshold that was named before the samples were seen. Drawn: 1.85 2.18 2.46 3.02.
NAMED = {0.8: 1.9, 0.9: 2.2, 0.95: 2.5, 0.99: 3.05}

LEAST = 5  # samples of either label, below which nothing is recommended
ENOUGH = LEAST * (1 - 1e-9)  # what their weights must be worth: sums of squares are rounded


def critical_value(confidence: Any, table: dict[float, float] = SAFE) -> float:
    """Return how many standard errors more the cuts of an interval may cost.

    >>> critical_value(0.95)
    2.31
    """
    try:
        return table[confidence]
    except (KeyError, TypeError):
        known = ", ".join(str(level) for level in table)
        raise ValueError(
            f"confidence must be one of {known}, got {confidence!r}. The interval exists for "
            "these levels only."
        ) from None


def too_few(
    count: str, label: int, worth: float | None, current: float | None = None
) -> ValueError:
    """Say that a label has too few samples, or weights that are worth too few."""
    weighing = "" if worth is None else f", whose weights are worth {worth:.1f}"
    samples = "sample" if count == "1 " else "samples"
    until = (
        "keep the threshold in use, or take that of a larger group"
        if current is None
        else f"keep the current threshold {current!r}"
    )
    return ValueError(
        f"a threshold cannot be recommended from {count}{samples} of label {label}{weighing}: it "
        f"takes {LEAST} of each label. Until there are more, {until}."
    )
