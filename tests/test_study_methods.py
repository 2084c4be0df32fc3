# SPDX-License-Identifier: Apache-2.0
"""Every method of the study gives the numbers of its authors, or of another program."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))
pytest.importorskip("betacal")
pytest.importorskip("sklearn")

from benchmarks.study import measures
from benchmarks.study.methods import (
    MAPS,
    abb,
    acp,
    bbq,
    beta,
    enir,
    histogram,
    isotonic,
    platt,
    temperature,
    venn_abers,
)

pytestmark = pytest.mark.check

REFERENCE = Path(__file__).parents[2] / "shared" / "data" / "reference"
SCORES = np.array([0.05, 0.1, 0.2, 0.25, 0.35, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9])
LABELS = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1])
NEW = np.array([0.1, 0.45, 0.65, 0.95])


def drawn(n: int, seed: int = 0, levels: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random(n) if levels is None else rng.integers(1, levels, n) / levels
    return scores, (rng.random(n) < scores**2).astype(np.uint8)


def reference(*names: str) -> list[np.ndarray]:
    paths = [REFERENCE / f"{name}.csv" for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("the authors' data may not be copied, and is not beside this repository")
    return [np.loadtxt(path, delimiter=",") for path in paths]


@pytest.fixture(scope="module")
def classifier():
    """scikit-learn's, whose score is its only column."""
    from benchmarks.trust_study import Given

    class Answering(Given):
        def predict(self, rows):
            return rows[:, 0] >= 0.5

    return Answering


def calibrated(classifier, method: str, scores, labels, new) -> np.ndarray:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    frozen = FrozenEstimator(classifier().fit(None, None))
    fitted = CalibratedClassifierCV(frozen, method=method).fit(scores[:, None], labels)
    return fitted.predict_proba(new[:, None])[:, 1]


def test_platt_gives_the_numbers_of_libsvm() -> None:
    a, b = platt.coefficients(np.array([5.0, -4, 1]), np.array([1, 0, 0]))

    assert a == pytest.approx(-0.202614, abs=2e-5)
    assert b == pytest.approx(0.652363, abs=2e-5)


def test_platt_is_scikit_learns_sigmoid(classifier) -> None:
    scores, labels = drawn(500)
    for factor in (1, 700, 1e-3):
        theirs = calibrated(classifier, "sigmoid", scores * factor, labels, NEW * factor)
        assert platt.fit(scores * factor, labels)(NEW * factor) == pytest.approx(theirs, abs=2e-4)


def test_platt_stays_finite_where_a_score_separates() -> None:
    a, b = platt.coefficients(np.arange(100.0), np.arange(100) >= 50)

    assert math.isfinite(a)
    assert 49 < -b / a < 50


def test_histogram_bins_hold_as_many_samples_each() -> None:
    thirds = histogram.fit(SCORES, LABELS, 4)(NEW)
    scores, labels = drawn(1_000)
    chances = histogram.fit(scores, labels)(scores)

    assert thirds == pytest.approx([1 / 3, 2 / 3, 2 / 3, 2 / 3])
    assert [100] * 10 == np.unique(chances, return_counts=True)[1].tolist()


def test_histogram_keeps_equal_scores_together() -> None:
    scores = np.repeat([0.2, 0.4, 0.6], [50, 45, 5])
    labels = np.repeat([0, 1, 0, 1], [40, 10, 45, 5])

    assert histogram.fit(scores, labels)(np.array([0.2, 0.4, 0.6])) == pytest.approx([0.2, 0, 1])


def test_acp_is_the_share_inside_the_interval_of_the_prediction() -> None:
    """Against scikit-learn's logistic regression, its covariance, and a look at every sample."""
    from sklearn.linear_model import LogisticRegression

    scores, labels = drawn(300)
    odds = np.log(scores / (1 - scores))
    model = LogisticRegression(C=1e9, tol=1e-10, max_iter=1_000).fit(odds[:, None], labels)
    rows = np.stack([np.ones(300), odds], axis=1)
    chance = model.predict_proba(odds[:, None])[:, 1]
    covariance = np.linalg.inv(rows.T @ np.diag(chance * (1 - chance)) @ rows)
    fitted = model.decision_function(odds[:, None])
    for one, found in zip(NEW, acp.fit(scores, labels)(NEW), strict=True):
        row = np.array([1, math.log(one / (1 - one))])
        middle = float(model.decision_function(row[1:, None])[0])
        half = 1.959963984540054 * math.sqrt(row @ covariance @ row)
        inside = np.abs(fitted - middle) <= half
        assert labels[inside].mean() == pytest.approx(found, abs=0.03)  # one sample at an end

    assert acp.fit(SCORES, LABELS)(NEW) == pytest.approx([4 / 9, 5 / 10, 5 / 9, 6 / 10])


def test_bbq_reproduces_the_five_published_figures_of_its_authors() -> None:
    from sklearn.metrics import roc_auc_score

    train, train_labels, test, labels = reference(
        "bbq/train_data_y", "bbq/train_data_z", "bbq/test_data_y", "bbq/test_data_z"
    )
    expected, largest = measures.ten_groups(chances := bbq.fit(train, train_labels)(test), labels)
    found = (
        math.sqrt(measures.brier(chances, labels)),
        roc_auc_score(labels, chances),
        float(((chances >= 0.5) == labels).mean()),
        largest,
        expected,
    )

    assert (0.0716, 0.9999, 0.9930, 0.0491, 0.0090) == tuple(round(each, 4) for each in found)
    assert measures.ten_groups(test, labels) == pytest.approx((0.0495, 0.2463), abs=1e-4)


def test_bbq_on_a_dozen_samples() -> None:
    expected = [0.41892133361754635, 0.5855578185341005, 0.5855578185341005, 0.5855578185341005]

    assert bbq.fit(SCORES, LABELS)(NEW) == pytest.approx(expected)


def every_binning(scores, labels, rate: float) -> np.ndarray:
    """The average over all binnings, one after the other."""
    distinct = np.unique(scores)
    far = np.diff(distinct) / (distinct[-1] - distinct[0])
    total, mean = 0.0, np.zeros(len(distinct))
    for parts in itertools.product((False, True), repeat=len(far)):
        place = np.append(0, np.cumsum(parts))
        weight = math.prod(
            1 - math.exp(-rate * d) if part else math.exp(-rate * d)
            for part, d in zip(parts, far, strict=True)
        )
        value = np.empty(len(distinct))
        for each in range(place[-1] + 1):
            inside = np.isin(scores, distinct[place == each])
            n, n1 = int(inside.sum()), int(labels[inside].sum())
            weight *= math.factorial(n1) * math.factorial(n - n1) / math.factorial(n + 1)
            value[place == each] = (n1 + 1) / (n + 2)
        total, mean = total + weight, mean + weight * value
    return mean / total


def test_abb_equals_the_average_over_every_binning() -> None:
    for seed, n in enumerate((2, 5, 9, 12)):
        scores, labels = drawn(n, seed, levels=11)
        if len(np.unique(scores)) < 2:
            continue
        for rate in (0.5, 4.0):
            found = abb.fit(scores, labels, rate)(np.unique(scores))
            assert found == pytest.approx(every_binning(scores, labels, rate), rel=1e-13)

    expected = [0.3227046178211641, 0.505399578719903, 0.5638195251822753, 0.6819190151330531]
    assert abb.fit(SCORES, LABELS)(NEW) == pytest.approx(expected)


def test_abb_refuses_what_would_take_hours() -> None:
    with pytest.raises(ValueError, match="2,001 distinct scores are too many"):
        abb.fit(np.arange(2_001.0), np.arange(2_001) % 2)


def test_isotonic_is_scikit_learns_map(classifier) -> None:
    for levels in (None, 40):
        scores, labels = drawn(500, levels=levels)
        new = np.linspace(-0.1, 1.1, 999)
        theirs = calibrated(classifier, "isotonic", scores, labels, new)
        assert isotonic.fit(scores, labels)(new) == pytest.approx(theirs, abs=1e-12)


def test_the_near_isotonic_path_is_that_of_the_authors_of_enir() -> None:
    labels, penalties, coefficients = reference("enir/data_z", "enir/data_lambda", "enir/data_beta")
    fits = list(enir.path(labels, np.ones(len(labels))))

    assert [one.penalty for one in fits] == pytest.approx(penalties.tolist(), abs=1e-12)
    for one, theirs in zip(fits, coefficients.T, strict=True):
        ours = np.repeat(one.value, np.diff(np.append(one.start, len(labels))))
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_near_isotonic_fits_are_the_cheapest_there_are() -> None:
    """Against a general minimiser, with ties and unequal counts."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    target, count = rng.random(8).round(1), rng.integers(1, 4, 8)
    for one in list(enir.path(target, count))[1:]:
        # b, then how far each neighbour falls: a problem with smooth sides
        def loss(x, penalty=one.penalty):
            return (count * (target - x[:8]) ** 2).sum() / 2 + penalty * x[8:].sum()

        sides = [
            {"type": "ineq", "fun": lambda x: x[8:] - (x[:7] - x[1:8])},
            {"type": "ineq", "fun": lambda x: x[8:]},
        ]
        start = np.append(target, np.ones(7))
        best = minimize(loss, start, constraints=sides, options={"ftol": 1e-14}).x[:8]
        ours = np.repeat(one.value, np.diff(np.append(one.start, 8)))
        assert ours == pytest.approx(best, abs=1e-5)


def test_enir_on_a_dozen_samples() -> None:
    expected = [0.023717948717948727, 0.4838983050847457, 0.6534505258263477, 0.9552631578947368]

    assert enir.fit(SCORES, LABELS)(NEW) == pytest.approx(expected)
    assert [0, 0.5, 2 / 3] == [one.penalty for one in enir.path(LABELS, np.ones(12))]


def test_enir_of_one_score_and_of_rising_labels_is_finite() -> None:
    alone = enir.fit(np.full(5, 0.5), np.array([0, 1, 1, 0, 1]))(NEW)
    rising = enir.fit(SCORES, SCORES > 0.5)(NEW)

    assert ((0 <= alone) & (alone <= 1)).all()
    assert ((0 <= rising) & (rising <= 1)).all()


def test_temperature_is_scikit_learns(classifier) -> None:
    scores, labels = drawn(500)
    theirs = calibrated(
        classifier, "temperature", temperature.odds(scores), labels, temperature.odds(NEW)
    )

    assert temperature.fit(scores, labels)(NEW) == pytest.approx(theirs, abs=1e-5)


def test_beta_is_the_likeliest_of_its_family() -> None:
    """The package minimises with a penalty next to nothing; here is none."""
    from scipy.optimize import minimize

    scores, labels = drawn(500)

    def chances(at, given):
        return 1 / (1 + np.exp(-(at[0] * np.log(given) - at[1] * np.log1p(-given) + at[2])))

    best = minimize(lambda at: measures.log_loss(chances(at, scores), labels), [1.0, 1, 0])

    assert beta.fit(scores, labels)(NEW) == pytest.approx(chances(best.x, NEW), abs=2e-3)


def test_venn_abers_is_that_of_the_package() -> None:
    package = pytest.importorskip("venn_abers")
    scores, labels = drawn(300)
    theirs = package.VennAbers()
    theirs.fit(np.stack([1 - scores, scores], axis=1), labels)
    chance, _ = theirs.predict_proba(np.stack([1 - NEW, NEW], axis=1))

    assert venn_abers.fit(scores, labels)(NEW) == pytest.approx(np.asarray(chance)[:, 1], abs=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_every_map_gives_probabilities_with_many_ties_and_at_the_ends(name: str) -> None:
    scores, labels = drawn(200, levels=7)
    scores[:20], labels[:20] = 0, 0
    scores[-20:], labels[-20:] = 1, 1
    chances = MAPS[name](scores, labels)(np.linspace(0, 1, 101))

    assert ((0 <= chances) & (chances <= 1)).all()
    assert chances[-1] > chances[0]


def test_the_measures_of_a_chance_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import brier_score_loss, log_loss

    scores, labels = drawn(1_000)

    assert measures.log_loss(scores, labels) == pytest.approx(log_loss(labels, scores))
    assert measures.brier(scores, labels) == pytest.approx(brier_score_loss(labels, scores))


def test_measures_of_a_law_are_the_mean_over_its_labels() -> None:
    scores, chance = np.array([0.2, 0.7]), np.array([0.3, 0.6])
    for measure in (measures.log_loss, measures.brier):
        mean = sum(
            (0.3 if first else 0.7)
            * (0.6 if second else 0.4)
            * measure(scores, np.array([first, second]))
            for first, second in itertools.product((0, 1), repeat=2)
        )
        assert measure(scores, chance) == pytest.approx(mean)
    assert measures.cost(np.array([True, False]), chance, 2, 5) == pytest.approx(2 * 0.7 + 5 * 0.6)


def test_calibration_error_keeps_equal_chances_in_one_group() -> None:
    chance, labels = np.repeat([0.2, 0.8], 50), np.tile([0, 0, 0, 0, 1], 20)

    assert measures.calibration_error(chance, labels) == pytest.approx(0.3)
    assert measures.calibration_error(np.repeat([0.2, 0.2], 50), labels) == pytest.approx(
        0, abs=1e-12
    )
