# SPDX-License-Identifier: Apache-2.0
"""On laws whose truth is known: intervals hold it, and no better candidate is not accepted.

Small versions of benchmarks/trust_coverage.py and benchmarks/trust_false_alarms.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import limen

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from benchmarks.machine import write  # noqa: E402
from benchmarks.trust_coverage import coverage  # noqa: E402
from benchmarks.trust_false_alarms import DELAYS, Labels, alarms  # noqa: E402
from benchmarks.trust_laws import LAWS  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "trust"


@pytest.mark.parametrize("name", LAWS)
def test_the_interval_holds_the_best_threshold(name: str) -> None:
    assert coverage(LAWS[name], 300, 100, seed=1)["0.95"] >= 0.94


@pytest.mark.parametrize("name", ["jump left", "jump right"])
def test_the_reach_of_a_smooth_minimum_is_not_enough_at_a_jump(name: str) -> None:
    assert coverage(LAWS[name], 300, 100, seed=1)["0.95, reach of a smooth minimum"] < 0.92


def test_keep_says_whether_the_interval_holds_a_threshold() -> None:
    law, rng = LAWS["smooth"], np.random.default_rng(2)
    kept = [
        limen.recommend(scores, labels, current=law.best).keep
        for scores, labels, _ in (law.draw(200, rng) for _ in range(60))
    ]

    assert np.mean(kept) >= 0.94


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("candidate", [0.4, 0.6])
def test_no_better_candidate_is_hardly_ever_accepted_at_one_age(
    delay: str, candidate: float
) -> None:
    assert alarms(DELAYS[delay], (1, 1), candidate, 20, one_age=True) <= 0.05


def test_weights_make_no_false_alarms_either() -> None:
    assert alarms(DELAYS["at once"], (1, 1), 0.4, 20, one_age=True, heavy=True) <= 0.05


@pytest.mark.parametrize(
    ("delay", "candidate"), [("ones a day sooner", 0.4), ("zeros a day sooner", 0.6)]
)
def test_without_the_rule_of_one_age_nearly_every_run_is_a_false_alarm(
    delay: str, candidate: float
) -> None:
    """Why the rule matters: the label that comes sooner fills the evidence."""
    assert alarms(DELAYS[delay], (1, 1), candidate, 10, one_age=False) >= 0.9


def test_labels_that_are_missing_by_label_need_the_worst_value() -> None:
    late = Labels(0, 0, 0, late=0.2)

    assert alarms(late, (1, 1), 0.6, 10, one_age=True) >= 0.9
    assert alarms(late, (1, 1), 0.6, 10, one_age=True, worst=True) <= 0.05


def test_the_recorded_coverage_is_at_least_94_of_100_on_every_law() -> None:
    told = json.loads((RESULTS / "coverage.json").read_text())["coverage"]

    assert len(told) == 3 * len(LAWS)
    assert {} == {name: each["0.95"] for name, each in told.items() if each["0.95"] < 0.94}


def test_the_recorded_false_alarms_are_at_most_5_of_100_at_one_age() -> None:
    told = json.loads((RESULTS / "false_alarms.json").read_text())["false alarms"]
    at_one_age = {
        name: share
        for name, share in told.items()
        if name.endswith("one age") and "missing, value" not in name
    }

    assert max(at_one_age.values()) <= 0.05
    assert max(told.values()) >= 0.97


def test_a_result_is_kept_with_the_machine_and_its_processor(tmp_path: Path) -> None:
    write(tmp_path / "new" / "found.json", {"redraws": 7})
    kept = json.loads((tmp_path / "new" / "found.json").read_text())

    assert 7 == kept["redraws"]
    assert {"date", "processor", "cores", "system", "numpy", "limen"} <= set(kept["machine"])
    assert all(kept["machine"].values())


def test_the_machine_is_described_in_one_place() -> None:
    sources = (ROOT / "benchmarks").glob("*.py")

    assert ["machine.py"] == [path.name for path in sources if "platform" in path.read_text()]
