# SPDX-License-Identifier: Apache-2.0
"""How far from the cheapest cut an interval must reach: quantiles of the laws behind it.

Near its minimum the expected loss of a cut, as a function of how many samples lie between it and
the best cut, is a power of that number, and what chance adds is Brownian motion. Whatever the
data, scaling both axes gives W(t) + |t|**power, and the excess in standard errors does not change
by scaling. With the minimum at m, so that a cut at t costs Z(t) - Z(m) more than the cheapest:

- smooth: power 2 on both sides. An interval holds the best cut, which is at 0, when some cut on
  the other side of 0 is within reach of m.
- end: only one side exists, because the best cut lies at an end, or because the share of ones
  jumps there and the other side is steep. Then 0 itself must be within reach. Powers 1, 2 and 3.
- wall: one side, flat and then a wall: the limit of high powers. Known in closed form.
- named: both sides, and the threshold named is the one at 0.

    python -m benchmarks.trust_constants
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks.machine import write

LEVELS = (0.8, 0.9, 0.95, 0.99)
RESULT = Path(__file__).parent / "results" / "trust" / "constants.json"


def paths(draws: int, step: float, length: float, power: int, rng: np.random.Generator):
    """Times from 0, and draws of W(t) + t**power on them."""
    times = np.arange(round(length / step) + 1, dtype=np.float32) * np.float32(step)
    moved = rng.standard_normal((draws, len(times)), dtype=np.float32)
    moved[:, 0] = 0
    moved *= np.float32(math.sqrt(step))
    return times, np.cumsum(moved, axis=1, out=moved) + times**power


def two_sided(draws: int, step: float, rng: np.random.Generator) -> tuple[list, list]:
    """What an interval must reach, and how far a named threshold is, in a smooth minimum."""
    times, right = paths(draws, step, 4.0, 2, rng)
    _, left = paths(draws, step, 4.0, 2, rng)
    turned = left.min(axis=1) < right.min(axis=1)
    near, far = np.where(turned[:, None], left, right), np.where(turned[:, None], right, left)
    at = near.argmin(axis=1)
    least = near[np.arange(draws), at]
    apart = np.sqrt(times + times[at][:, None])
    with np.errstate(invalid="ignore"):
        reach = ((far - least[:, None]) / apart).min(axis=1)
        named = -least / np.sqrt(times[at])
    return list(np.where(at == 0, 0, reach)), list(np.where(at == 0, 0, named))


def one_sided(draws: int, step: float, power: int, rng: np.random.Generator) -> list:
    """How far the best cut is where only one side exists."""
    times, side = paths(draws, step, 25.0 if power == 1 else 4.0, power, rng)
    at = side.argmin(axis=1)
    with np.errstate(invalid="ignore"):
        reach = -side[np.arange(draws), at] / np.sqrt(times[at])
    return list(np.where(at == 0, 0, reach))


def quantiles(found: list) -> dict[str, list[float]]:
    """Each level's quantile, and its standard error by halves of the draws."""
    values = np.array(found)
    parts = np.array([np.quantile(part, LEVELS) for part in np.array_split(values, 10)])
    error = parts.std(axis=0, ddof=1) / math.sqrt(len(parts))
    return {
        "quantile": np.quantile(values, LEVELS).round(3).tolist(),
        "standard error": error.round(3).tolist(),
    }


def constants(draws: int, step: float = 1e-3, seed: int = 20261116) -> dict[str, dict]:
    rng = np.random.default_rng(seed)
    found: dict[str, list] = {name: [] for name in ("smooth", "named", "end 1", "end 2", "end 3")}
    for _ in range(draws // 500):
        reach, named = two_sided(500, step, rng)
        found["smooth"] += reach
        found["named"] += named
        for power in (1, 2, 3):
            wide = step * 5 if power == 1 else step
            found[f"end {power}"] += one_sided(500, wide, power, rng)
    told = {name: quantiles(values) for name, values in found.items()}
    wall = [round(math.sqrt(-2 * math.log(1 - level)), 3) for level in LEVELS]
    return {**told, "wall": {"quantile": wall, "standard error": [0.0] * len(LEVELS)}}


def main() -> None:
    draws, step, seed = 40_000, 1e-3, 20261116
    found = constants(draws, step, seed)
    raw = {"levels": LEVELS, "draws": draws, "step": step, "seed": seed, "laws": found}
    write(RESULT, raw)
    for name, law in found.items():
        print(f"{name:8}", *law["quantile"], " +-", *law["standard error"])


if __name__ == "__main__":
    main()
