# SPDX-License-Identifier: Apache-2.0
"""A small version of benchmarks/trust_study.py, and what its recorded results say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))
pytest.importorskip("sklearn")

from benchmarks import trust_groups, trust_streams
from benchmarks.trust_study import METHODS, cell, stored, table

import limen


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


def test_groups_are_paid_for_by_every_method() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(2_000), np.arange(2_000) % 4
    labels = (rng.random(2_000) < scores).astype(np.uint8)
    found = trust_groups.cell(scores, labels, groups, 100, (1, 5), 1, 0)

    assert found is not None
    assert set(trust_groups.METHODS) == set(found["costs"])
    assert 0 < found["best"] < found["trivial"]
    assert trust_groups.cell(scores, labels, groups, 460, (1, 5), 1, 0) is None


def test_moved_groups_have_moved_scores() -> None:
    scores = np.random.default_rng(0).random(1_000)
    ways = {name: (moved, groups) for name, moved, groups in trust_groups.ways(scores, None)}

    plain, groups = ways["at random"]
    assert np.array_equal(np.argsort(scores), np.argsort(plain))
    assert np.array_equal(groups, ways["moved by up to 1"][1])
    by = ways["moved by up to 1"][0] - plain
    assert np.allclose(by, np.array([-1, -0.5, 0, 0.5, 1])[groups])


def test_the_recorded_gain_of_shrinking_is_where_groups_are_alike() -> None:
    """And its loss where they are not, which docs/trust.md says too."""
    told = trust_groups.table(trust_groups.stored())
    for how in ("as in the file", "at random"):
        for n in (30, 100, 300):
            assert told[how, n]["shrunk"] < told[how, n]["exact"]
    for n in trust_groups.SIZES:
        assert told["moved by up to 1", n]["shrunk"] > told["moved by up to 1", n]["exact"]
        assert told["moved by up to 1", n]["shrunk"] < told["moved by up to 1", n]["one for all"]


def test_the_recipe_for_a_stream_that_changes_gave_what_the_page_says() -> None:
    raw = json.loads(trust_streams.RESULT.read_text())
    page = (Path(__file__).parents[1] / "docs" / "trust.md").read_text(encoding="utf-8")

    assert 45 == len(raw["cost"])
    assert "\n".join(trust_streams.table(raw["cost"])) in page


def test_the_recipe_answers_by_the_memory_whose_answers_cost_least_lately() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(600)
    place = np.where(np.arange(600) < 300, 0.2, 0.8)
    labels = (rng.random(600) < 1 / (1 + np.exp(-20 * (scores - place)))).astype(int)

    def memories() -> list[Any]:
        costs = {"false_negative": 3}
        fading = [limen.Fading(limen.OnlineThreshold(**costs), n) for n in (20, 100)]
        return [limen.OnlineThreshold(**costs), *fading]

    for delay in (1, 30):
        following, members = trust_streams.recipe()(*memories(), half_life=50), memories()
        answers: list[list[int]] = []
        spent, leaders = [0.0] * 3, set()
        for at, score in enumerate(scores.tolist()):
            if at >= delay:
                then, label = at - delay, int(labels[at - delay])
                for one, member in enumerate(members):
                    price = 0 if answers[then][one] == label else 3 if label else 1
                    spent[one] = spent[one] * 2.0 ** (-1 / 50) + price
                    member.update(scores[then], label)
                following.label(then, label)
            answers.append([int(score >= member.threshold) for member in members])
            lead = spent.index(min(spent))
            assert following.score(at, score) == answers[-1][lead]
            assert following.lately == pytest.approx(spent)
            leaders.add(lead)
        assert len(leaders) > 1
