# SPDX-License-Identifier: Apache-2.0
"""What thresholds cost on new rows, on real scores: limen's, and what others choose.

python -m benchmarks.trust_study DIRECTORY, or make study-trust. DIRECTORY holds CSV files with the
columns score and label. A cell is a data set, a number of samples and costs; samples are drawn at
random, or, where rows are in order of time, are a block of rows that is paid for on the next ones.
Excess is the cost on new rows, summed over the redraws of a cell, over that of the best threshold:
of all rows of the set where rows are drawn at random, else of the new rows. It is told in per cent
of that cost, and of the cost of the cheaper of the two answers that need no score.

Every finished cell is one line of the results, and a second start goes on where the first ended.
"""

from __future__ import annotations

import csv
import json
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV

import limen
from benchmarks.machine import machine

RESULT = Path(__file__).parent / "results" / "trust" / "study.jsonl"
SIZES = (100, 300, 1_000, 3_000)
COSTS = ((1, 1), (1, 5), (1, 20), (5, 1), (20, 1))
IN_TIME = {"fte_nba_games", "fte_nhl_games", "fte_tennis", "nfl_elo_1920_2021", "occupancy_light"}
# Scores of the classifier's own training rows, its 250 test rows, and rows that are aggregated.
LEFT_OUT = {"german_credit_train_hgb", "german_credit_test_hgb", "fico_transrisk"}
REDRAWS = 20
LEAST_NEW = 200  # rows to pay for


class Sample(NamedTuple):
    """Rows to choose on, and what mistakes cost."""

    scores: np.ndarray
    labels: np.ndarray
    costs: tuple[int, int]

    def cost(self, answers: np.ndarray) -> int:
        wrong = answers != self.labels
        alarms = int(np.count_nonzero(wrong & (self.labels == 0)))
        return self.costs[0] * alarms + self.costs[1] * (int(np.count_nonzero(wrong)) - alarms)

    def named(self) -> dict[str, int]:
        return {"false_positive": self.costs[0], "false_negative": self.costs[1]}


class Given(ClassifierMixin, BaseEstimator):
    """A classifier for scikit-learn whose score is the only column."""

    def fit(self, rows: Any, labels: Any) -> Given:
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, rows: Any) -> np.ndarray:
        return rows[:, 0]


def exact(sample: Sample, _: Any) -> float:
    return limen.optimal_threshold(sample.scores, sample.labels, **sample.named()).threshold


def recommended(sample: Sample, _: Any) -> float:
    return limen.recommend(sample.scores, sample.labels, **sample.named()).threshold


def bootstrap(sample: Sample, rng: np.random.Generator) -> float:
    """The median of the exact thresholds of 100 resamples."""
    n = len(sample.scores)
    draws = (rng.integers(0, n, n) for _ in range(100))
    optima = [exact(Sample(sample.scores[at], sample.labels[at], sample.costs), 0) for at in draws]
    return float(np.sort(optima)[50])


def tuner(sample: Sample, folds: Any) -> float:
    """scikit-learn's tuner with its grid of 100 thresholds."""

    def gain(labels: Any, answers: Any) -> int:
        return -Sample(sample.scores, labels, sample.costs).cost(answers)

    rows, scoring = sample.scores[:, None], make_scorer(gain)
    if folds == "prefit":
        chosen = TunedThresholdClassifierCV(
            Given().fit(None, None), scoring=scoring, cv=folds, refit=False
        )
    else:
        chosen = TunedThresholdClassifierCV(Given(), scoring=scoring, cv=folds)
    return float(chosen.fit(rows, sample.labels).best_threshold_)


def tuner_prefit(sample: Sample, _: Any) -> float:
    return tuner(sample, "prefit")


def tuner_folds(sample: Sample, rng: np.random.Generator) -> float:
    seed = int(rng.integers(2**31))
    return tuner(sample, StratifiedKFold(5, shuffle=True, random_state=seed))


def grid_twice(sample: Sample, _: Any) -> float:
    """Fifty even steps from the lowest to the highest score, then 19 around the best of them."""
    low, high = _range(sample.scores)
    step = (high - low) / 50
    best = _cheapest(sample, low + step * np.arange(51))
    return _cheapest(sample, np.append(best + step * np.linspace(-0.9, 0.9, 19), best))


def _range(scores: np.ndarray) -> tuple[float, float]:
    if scores.min() >= 0 and scores.max() <= 1:
        return 0.0, 1.0
    return float(scores.min()), float(scores.max())


def _cheapest(sample: Sample, thresholds: np.ndarray) -> float:
    return min(thresholds.tolist(), key=lambda each: sample.cost(sample.scores >= each))


def beta_then_bayes(sample: Sample, _: Any) -> float:
    """Beta calibration; where it says that answering 1 pays, as a threshold of the score."""
    low, high = _range(sample.scores)

    def columns(scores: Any) -> np.ndarray:
        share = np.clip((scores - low) / (high - low), 1e-9, 1 - 1e-9)
        return np.stack([np.log(share), -np.log1p(-share)], axis=1)

    used, rows = [0, 1], columns(sample.scores)
    while True:
        fit = LogisticRegression(C=1e8, max_iter=1000).fit(rows[:, used], sample.labels)
        if len(used) == 1 or (fit.coef_ >= 0).all():
            break
        used = [used[int(fit.coef_[0].argmax())]]  # as beta calibration does: no falling part
    positive, negative = sample.costs
    grid = np.unique(sample.scores)
    middle = (grid[1:] + grid[:-1]) / 2
    chances = fit.predict_proba(columns(middle)[:, used])[:, 1]
    pays = np.flatnonzero(chances >= positive / (positive + negative))
    if fit.coef_[0].max() <= 0:
        return -np.inf if len(pays) else np.inf
    return float(middle[pays[0]]) if len(pays) else np.inf


METHODS = {
    "recommended": recommended,
    "exact": exact,
    "median of 100 bootstrapped exact thresholds": bootstrap,
    "scikit-learn's tuner, prefit": tuner_prefit,
    "scikit-learn's tuner, five folds": tuner_folds,
    "two grids, as in AutoGluon": grid_twice,
    "beta calibration, then fp / (fp + fn)": beta_then_bayes,
}


def splits(rows: int, n: int, in_time: bool, redraws: int, rng: np.random.Generator):
    """Rows to choose on and rows to pay for."""
    if in_time:
        new = max(n, 1_000)
        last = rows - n - new
        for start in np.unique(np.linspace(0, max(last, 0), redraws).astype(int)):
            if last >= 0:
                yield np.arange(start, start + n), np.arange(start + n, start + n + new)
    elif rows >= n + LEAST_NEW:
        for _ in range(redraws):
            order = rng.permutation(rows)
            yield order[:n], order[n:]


def cell(scores, labels, n, costs, in_time, redraws, seed) -> dict[str, Any] | None:
    """The cost of each method and of the best on new rows, over all redraws; None if too few."""
    rng = np.random.default_rng(seed)
    totals, best, trivial, used = dict.fromkeys(METHODS, 0), 0, 0, 0
    of_all = exact(Sample(scores, labels, costs), rng)
    for chosen, new in splits(len(scores), n, in_time, redraws, rng):
        sample = Sample(scores[chosen], labels[chosen], costs)
        if not 5 <= sample.labels.sum() <= n - 5:
            continue  # too few of a label for five folds and for a recommendation
        paid = Sample(scores[new], labels[new], costs)
        used += 1
        best += paid.cost(paid.scores >= (exact(paid, rng) if in_time else of_all))
        trivial += min(paid.cost(np.full(len(new), answer)) for answer in (0, 1))
        for name, method in METHODS.items():
            totals[name] += paid.cost(paid.scores >= method(sample, rng))
    told = {"redraws": used, "best": best, "trivial": trivial, "costs": totals}
    return told if used and best else None


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open() as lines:
        rows = [(float(row["score"]), int(row["label"])) for row in csv.DictReader(lines)]
    scores, labels = zip(*rows, strict=True)
    return np.array(scores), np.array(labels, np.uint8)


def excess_of(each: dict[str, Any], name: str, over: str = "best") -> float:
    """How much more a method cost in a cell, in per cent of the best or of the trivial cost."""
    return 100 * (each["costs"][name] - each["best"]) / each[over]


def table(cells: list[dict[str, Any]], over: str) -> dict[str, dict[str, float]]:
    """Mean, median and 95th percentile of the excess over cells, and the mean by size."""
    told = {}
    for name in METHODS:
        excess = np.array([excess_of(each, name, over) for each in cells])
        sizes = np.array([each["n"] for each in cells])
        told[name] = {
            "mean": float(excess.mean()),
            "median": float(np.median(excess)),
            "95th percentile": float(np.quantile(excess, 0.95)),
            **{f"n = {n:,}": float(excess[sizes == n].mean()) for n in np.unique(sizes).tolist()},
        }
    return told


def stored() -> list[dict[str, Any]]:
    lines = RESULT.read_text().splitlines() if RESULT.exists() else []
    return [json.loads(line) for line in lines[1:]]


def report(cells: list[dict[str, Any]]) -> None:
    for how in ("random", "time"):
        some = [each for each in cells if each["split"] == how and each.get("best")]
        for over in ("best", "trivial") if some else ():
            print(f"\nsplit: {how}; {len(some)} cells; excess in per cent of the {over} cost")
            for name, numbers in table(some, over).items():
                shown = "  ".join(f"{key} {value:.1f}" for key, value in numbers.items())
                print(f"{name:45} {shown}")


def main(directory: Path) -> None:
    warnings.filterwarnings("ignore", module="sklearn")
    done = stored()
    if not done:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(
            json.dumps({"machine": machine("scikit-learn"), "redraws": REDRAWS}) + "\n"
        )
    known = {(each["set"], each["split"], each["n"], tuple(each["fp:fn"])) for each in done}
    paths = [path for path in sorted(directory.glob("*.csv")) if path.stem not in LEFT_OUT]
    for place, path in enumerate(paths):
        scores, labels = read(path)
        for how in ("random", "time") if path.stem in IN_TIME else ("random",):
            for n in SIZES:
                for costs in COSTS:
                    if sys.stderr.isatty():
                        place_told = f"{place + 1} of {len(paths)}: {path.stem}, {how}, {n}"
                        print(f"\r\033[K{place_told}", end="", file=sys.stderr)
                    if (path.stem, how, n, costs) in known:
                        continue
                    found = cell(scores, labels, n, costs, how == "time", REDRAWS, seed=n)
                    line = {"set": path.stem, "split": how, "n": n, "fp:fn": costs}
                    with RESULT.open("a") as results:
                        results.write(json.dumps(line | (found or {})) + "\n")
    report(stored())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
