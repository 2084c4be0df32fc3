# SPDX-License-Identifier: Apache-2.0
"""A small version of benchmarks/trust_study.py, and what its recorded results say."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))
pytest.importorskip("sklearn")

from benchmarks.trust_study import METHODS, cell, stored, table


def test_a_cell_is_paid_for_by_every_method() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(1_000)
    labels = (rng.random(1_000) < scores).astype(np.uint8)
    found = cell(scores, labels, 100, (1, 5), False, 1, 0)

    assert found is not None
    assert set(METHODS) == set(found["costs"])
    assert 0 < found["best"] < found["trivial"]


def test_the_recorded_excess_of_recommended_is_the_lowest() -> None:
    for how in ("random", "time"):
        cells = [each for each in stored() if each["split"] == how and each.get("best")]
        told = table(cells, "trivial")
        ours = told.pop("recommended")
        for other in told.values():
            assert ours["mean"] < other["mean"]
            assert ours["95th percentile"] < other["95th percentile"]
