# SPDX-License-Identifier: Apache-2.0
"""Falling fits and bounds, against scikit-learn's IsotonicRegression and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import limen


def samples(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 60, n) / 8
    labels = (rng.uniform(size=n) < 1 / (1 + np.exp(scores - 4))).astype(int)
    return scores, labels if seed % 2 else 1 - labels, rng.integers(0, 4, n)


@pytest.mark.parametrize(
    "bounds", [{}, {"y_min": 0.2}, {"y_max": 0.7}, {"y_min": 0.1, "y_max": 0.4}]
)
@pytest.mark.parametrize("increasing", [True, False, "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_a_fit_is_that_of_scikit_learn_in_either_direction_and_within_bounds(
    seed, increasing, bounds
) -> None:
    regression = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    scores, labels, weights = samples(seed)
    theirs = regression(increasing=increasing, out_of_bounds="clip", **bounds)
    theirs.fit(scores, labels, weights)
    ours = limen.isotonic(scores, labels, weights=weights, increasing=increasing, **bounds)
    asked = np.linspace(-1, 9, 333)

    assert np.allclose(theirs.predict(asked), ours.probability(asked, between="linear"))
    held = scores[weights > 0]
    assert np.allclose(theirs.predict(held), ours.probability(held))


@pytest.mark.parametrize("seed", range(4))
def test_a_falling_fit_is_a_rising_one_of_the_scores_turned_round(seed) -> None:
    scores, labels, weights = samples(seed)
    falling = limen.isotonic(scores, labels, weights=weights, increasing=False)
    turned = limen.isotonic(-scores, labels, weights=weights)

    assert turned.fractions()[::-1] == falling.fractions()
    assert turned.probabilities[::-1].tolist() == falling.probabilities.tolist()
    assert (-turned.last[::-1]).tolist() == falling.first.tolist()
    assert turned.positive[::-1].tolist() == falling.positive.tolist()
    assert turned.counts[::-1].tolist() == falling.counts.tolist()
    assert all(a > b for a, b in zip(falling.fractions(), falling.fractions()[1:], strict=False))


def test_bounds_change_probabilities_and_not_what_the_samples_say() -> None:
    fit = limen.isotonic([1, 2, 3], [0, 0, 1], y_min=0.1, y_max=0.9)

    assert [0.1, 0.9] == fit.probabilities.tolist()
    assert [0, Fraction(1)] == fit.fractions()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"y_min": 0.6, "y_max": 0.4}, "y_min must not be above y_max, got 0.6 and 0.4"),
        ({"y_min": -1}, "y_min must be a share from 0 to 1, got -1"),
        ({"y_max": 2}, "y_max must be a share from 0 to 1, got 2"),
        ({"increasing": "down"}, "increasing must be True, False or \"auto\", got 'down'"),
    ],
)
def test_bounds_and_directions_that_are_none_are_told(given, told) -> None:
    with pytest.raises(ValueError, match=told):
        limen.isotonic([0.1, 0.2], [0, 1], **given)


@pytest.mark.parametrize("increasing", [True, False, "auto"])
def test_nothing_fits_nothing(increasing) -> None:
    assert 0 == len(limen.isotonic([], [], increasing=increasing, y_min=0.5))
