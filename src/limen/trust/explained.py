# SPDX-License-Identifier: Apache-2.0
"""Which calibration maps carry the weight of a recommendation, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from limen import _core
    from limen.optimum import Direction

__all__ = ["explained"]

# By kind, in the order of the core: how many maps are stiff, and how many follow the scores.
_STIFF = {"probabilities": 2, "raw": 1, "ranks": 1}
_BY_SCORE = {"probabilities": 4, "raw": 3, "ranks": 0}


def explained(ranked: _core.Ranked, direction: Direction) -> str:
    """Say what the maps behind a recommendation make of the scores. O(n)."""
    held = ranked.__getstate__()[0]
    ends = held[[len(held) // 10, len(held) - 1 - len(held) // 10]]
    chances, shares = ranked.maps(ends)
    stiff, by_score = _STIFF[ranked.kind], _BY_SCORE[ranked.kind]
    known = float(shares[:by_score].sum())
    if ranked.kind != "ranks" and known < 0.5:
        return f"The scores are used by their order alone (weight {1 - known:.2f})."
    even = float(shares[:stiff].sum())
    if ranked.kind == "probabilities":
        said = _confidence(ends if direction == ">=" else 1 + ends, chances)
        if even >= 0.5 or said:
            return f"The scores are close to probabilities{said} (weight {known:.2f})."
        return f"The scores are probabilities up to a curve (weight {known:.2f})."
    along = "score" if ranked.kind == "raw" else "rank of the score"
    if even >= 0.5:
        return f"The log odds of label 1 rise evenly with the {along} (weight {even:.2f})."
    return f"The log odds of label 1 follow a curve along the {along} (weight {1 - even:.2f})."


def _confidence(scores: np.ndarray, chances: np.ndarray) -> str:
    """Say how the chances at a low and a high score differ from these scores."""
    said, meant = (np.log(each / (1 - each)) for each in (np.clip(scores, 1e-6, 1 - 1e-6), chances))
    if said[1] - said[0] < 0.1:
        return ""
    slope = (meant[1] - meant[0]) / (said[1] - said[0])
    much = "" if not 0.5 < slope < 2 else " a little"
    if slope < 0.8:
        return f"; they are{much} overconfident"
    if slope > 1.25:
        return f"; they are{much} too cautious"
    level = (meant - said).mean()
    if abs(level) < 0.3:
        return ""
    return f"; they are{'' if abs(level) > 1 else ' a little'} too {'low' if level > 0 else 'high'}"
