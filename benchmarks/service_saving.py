# SPDX-License-Identifier: Apache-2.0
"""How often the interval of a saving misses it at some look, where people look after every sample.

Sites of the demonstration, drawn with replacement and judged by two thresholds, with and without
weights. The saving of one more sample is known exactly, so that each look can be checked. Beside it
the interval for many samples that is usual, looked at from the thirtieth on.

    python -m benchmarks.service_saving [streams]
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import RESULTS, write
from limen.demo import load_phishing
from limen.service.points.saving import _SHARES, bounds

SAMPLES, CONFIDENCE, AT_LEAST = 3000, 0.95, 400
MANY = 30  # from here on the usual interval is looked at
LOOKS = (1, 2, 5, 30, 400, 3000)  # at which `bounds` itself is asked
PAIRS = {
    "a better one, lower": (0.5, 0.3387, 1, 5),
    "a worse one, higher": (0.3387, 0.5, 1, 5),
    "one as good": (0.3387, 0.3858, 1, 5),
    "rarely another answer": (0.3387, 0.3427, 1, 5),
    "equal costs": (0.5, 0.6, 1, 1),
    "a false negative costs 100": (0.5, 0.1, 1, 100),
}


def missed(saved: NDArray[np.float64], mean: float, loss: float, gain: float) -> NDArray[np.bool_]:
    """Return at which looks the mean is ruled out, from the definition of the bounds."""
    enough = math.log(2 / (1 - CONFIDENCE))
    found = np.zeros(len(saved), bool)
    for sign, most in ((1.0, loss + mean), (-1.0, gain - mean)):
        stakes = _SHARES[:, None] * (sign * (saved - mean) / most)
        logs = np.cumsum(np.log1p(stakes), axis=1)
        found |= np.logaddexp.reduce(logs, axis=0) - math.log(len(_SHARES)) >= enough
    return found


def missed_usual(saved: NDArray[np.float64], mean: float) -> NDArray[np.bool_]:
    """Return the same for an interval that holds for many samples only, from 30 on."""
    n, share = np.arange(1, len(saved) + 1), 1 - CONFIDENCE
    found = np.cumsum(saved) / n
    deviation = np.sqrt(np.maximum(np.cumsum(saved * saved) / n - found * found, 0))
    tight = (2 * math.log(1 / share) + math.log(1 + 2 * math.log(1 / share))) / AT_LEAST
    width = np.sqrt(2 * (n * tight + 1) / (n * n * tight) * np.log(np.sqrt(n * tight + 1) / share))
    away: NDArray[np.bool_] = np.abs(found - mean) > width * deviation
    away[: MANY - 1] = False
    return away


def agrees(saved: NDArray[np.float64], mean: float, loss: float, gain: float, out: Any) -> float:
    """Assert that `bounds` says the same at some looks; return the width at the last."""
    wide = 0.0
    for look in LOOKS:
        values, many = np.unique(saved[:look], return_counts=True)
        counts = dict(zip(values.tolist(), many.tolist(), strict=True))
        low, high = bounds(counts, loss, gain, CONFIDENCE)
        assert low is not None
        assert high is not None
        if len(counts) <= 1000:  # beyond, both are a little wider
            assert bool(out[look - 1]) == (not low - 1e-9 <= mean <= high + 1e-9), (low, mean, high)
        wide = high - low
    return wide


def main() -> None:
    """Draw the streams, print how many miss, and keep it."""
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    scores, labels = np.array(load_phishing())
    found: dict[str, Any] = {
        "streams": streams, "samples": SAMPLES, "looks": SAMPLES, "confidence": CONFIDENCE,
    }  # fmt: skip
    for number, (name, (now, then, positive, negative)) in enumerate(PAIRS.items()):
        costs = [
            positive * ((scores >= cut) & (labels == 0))
            + negative * ((scores < cut) & (labels == 1))
            for cut in (now, then)
        ]
        each = (costs[0] - costs[1]).astype(float)
        loss, gain = (positive, negative) if then < now else (negative, positive)
        for weighted in (False, True):
            rng = np.random.default_rng((18, number, weighted))
            misses = usual = 0
            for stream in range(streams):
                saved = each[rng.integers(len(each), size=SAMPLES)]
                if weighted:
                    saved = saved * rng.integers(1, 11, size=SAMPLES) / 10
                mean = float(each.mean()) * (0.55 if weighted else 1.0)
                out = missed(saved, mean, loss, gain)
                misses += bool(out.any())
                usual += bool(missed_usual(saved, mean).any())
                if stream < 20:
                    agrees(saved, mean, loss, gain, out)
            title = f"{name}, weights" if weighted else name
            found[title] = {"missed": misses / streams, "usual_missed_from_30": usual / streams}
            print(title, found[title], flush=True)
    write(RESULTS / "service" / "saving.json", found)


if __name__ == "__main__":
    main()
