# SPDX-License-Identifier: Apache-2.0
"""CPU time to fit, CPU time to take in one more sample, and memory.

The machine should have nothing else to do; the load is kept with the results.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import limen
from benchmarks.study.methods import MAPS, THRESHOLDS
from benchmarks.study.plan import PLAN
from benchmarks.study.results import lines_of, rounded, run
from benchmarks.study.streams import regression
from benchmarks.trust_study import Sample

RULES = PLAN["work"]
COST = (1, 5)
Fit = Callable[[np.ndarray, np.ndarray], Any]
Take = Callable[[Any, float, int], object]


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([PLAN["seed"], n])
    scores = rng.random(n)
    return scores, (rng.random(n) < scores).astype(np.uint8)


def fit_threshold(scores: np.ndarray, labels: np.ndarray) -> limen.OnlineThreshold:
    model = limen.OnlineThreshold(false_positive=COST[0], false_negative=COST[1])
    model.update_many(scores, labels)
    return model


def take_threshold(model: Any, score: float, label: int) -> object:
    model.update(score, label)
    return model.threshold


def fit_calibrator(scores: np.ndarray, labels: np.ndarray) -> limen.OnlineCalibrator:
    model = limen.OnlineCalibrator()
    model.update_many(scores, labels)
    return model


def take_isotonic(model: Any, score: float, label: int) -> object:
    model.update(score, label)
    return model.probability(score)


def take_interval(model: Any, score: float, label: int) -> object:
    model.update(score, label)
    return model.probability_interval(score)


def fit_regression(scores: np.ndarray, labels: np.ndarray) -> Any:
    model = regression()
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        model.learn_one({"score": score}, bool(label))
    return model


def take_regression(model: Any, score: float, label: int) -> object:
    model.learn_one({"score": score}, bool(label))
    return model.predict_proba_one({"score": score})


def chooser(choose: Callable) -> Fit:
    def fit(scores: np.ndarray, labels: np.ndarray) -> object:
        return choose(Sample(scores, labels, COST), np.random.default_rng(0))

    return fit


# A way to fit, and a way to take in one more sample; None where that is a refit.
METHODS: dict[str, tuple[Fit, Take | None]] = {
    "limen, exact": (fit_threshold, take_threshold),
    "limen, isotonic": (fit_calibrator, take_isotonic),
    "limen, Venn-Abers": (fit_calibrator, take_interval),
    "limen, recommended": (chooser(THRESHOLDS["limen, recommended"]), None),
    "river, logistic regression on the score": (fit_regression, take_regression),
    **{name: (MAPS[name], None) for name in MAPS if name not in ("isotonic", "Venn-Abers")},
    **{name: (chooser(THRESHOLDS[name]), None) for name in THRESHOLDS if "tuner" in name},
}


def isotonic_of_scikit_learn(scores: np.ndarray, labels: np.ndarray) -> object:
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip").fit(scores, labels)


def venn_abers_package(scores: np.ndarray, labels: np.ndarray) -> object:
    """With the answer for one score, without which the package has done nothing yet."""
    from venn_abers import VennAbers

    model = VennAbers()
    model.fit(np.stack([1 - scores, scores], axis=1), labels)
    return model.predict_proba(np.array([[0.5, 0.5]]))


METHODS["scikit-learn's isotonic regression"] = (isotonic_of_scikit_learn, None)
METHODS["package venn-abers"] = (venn_abers_package, None)


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def one_more(take: Take, model: Any, seed: int) -> float:
    """Seconds for one more sample, each of them followed by an answer."""
    scores, labels = rows(RULES["one_more"] + seed)
    pairs = list(zip(scores.tolist(), labels.tolist(), strict=True))[: RULES["one_more"]]
    seconds, _ = spent(lambda: [take(model, score, label) for score, label in pairs])
    return seconds / len(pairs)


def growth(name: str, n: int) -> int:
    """Bytes that a process of its own grows by, at its largest, while a method fits."""
    command = [sys.executable, "-m", "benchmarks.study.work", name, str(n)]
    found = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    return int(found.stdout)


def status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def grown(name: str, n: int) -> int:
    """Measured in a process that has done nothing else; after a small fit that loads modules."""
    fit, take = METHODS[name]
    model = fit(*rows(200))
    if take is not None:
        take(model, 0.5, 1)
    given = rows(n)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = status("VmRSS")
    fit(*given)
    return max(status("VmHWM") - before, 0)


def cell(n: int) -> dict[str, Any]:
    """Medians of every method that can be expected to end in time."""
    methods: dict[str, dict[str, list[float]]] = {}
    load = os.getloadavg()[0]
    given, names = rows(n), affordable(n)
    for turn in range(RULES["rounds"]):
        for name in names:
            fit, take = METHODS[name]
            values = methods.setdefault(name, {"fit": [], "one more": []})
            if turn and values["fit"][0] > RULES["once_above"]:
                continue
            seconds, model = spent(lambda fit=fit: fit(*given))
            values["fit"].append(seconds)
            values["one more"].append(seconds if take is None else one_more(take, model, turn))
    medians = {
        name: {
            **{kind: rounded(statistics.median(each)) for kind, each in values.items()},
            "refit": METHODS[name][1] is None,
            **({"bytes": growth(name, n)} if n >= RULES["memory_from"] else {}),
        }
        for name, values in methods.items()
    }
    return {"load": [rounded(load), rounded(os.getloadavg()[0])], "methods": medians}


def affordable(n: int) -> list[str]:
    """The methods that will end in time, judged by the size before."""
    names = [name for name in METHODS if name != "ABB" or n <= PLAN["methods"]["abb_up_to"]]
    smaller = [size for size in RULES["sizes"] if size < n]
    if not smaller:
        return names
    (last,) = (
        each for each in map(json.loads, lines_of("work")[1:]) if each["key"] == smaller[-1:]
    )
    known = last["methods"]
    return [name for name in names if name in known and known[name]["fit"] * 10 <= RULES["limit"]]


def main() -> None:
    run("work", [(n,) for n in RULES["sizes"]], cell)


if __name__ == "__main__":
    print(grown(sys.argv[1], int(sys.argv[2])))
