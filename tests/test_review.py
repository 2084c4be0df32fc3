# SPDX-License-Identifier: Apache-2.0
"""Two thresholds and a person in between: the cheapest pair of all."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import limen
from limen import OnlineCalibrator

COSTS = [(1, 1), (2, 5), (7, 3)]


def drawn(seed: int) -> tuple[list[float], list[int], list[float]]:
    source = random.Random(seed)
    scores = [source.choice((0.1, 0.2, 0.3, 0.5, 0.8, 0.9, math.inf)) for _ in range(12)]
    labels = [source.randrange(2) for _ in scores]
    return scores, labels, [source.choice((1, 2, 0.5)) for _ in scores]


def zone(score: float, low: float | None, high: float | None) -> int:
    """The zone by the lowest scores that are asked about and answered 1; None: no score is."""
    if high is not None and score >= high:
        return 1
    return -1 if low is not None and score >= low else 0


def cheapest(rows: Any, asking: Fraction, costs: tuple[int, int], most: Fraction | None) -> Any:
    """Try every pair of cuts; of the cheapest the highest upper one, then the highest lower one."""
    cuts = [*sorted({score for score, _, _ in rows}), None]
    best: Any = None
    for up, high in enumerate(cuts):
        for low in cuts[: up + 1]:
            loss, asked = Fraction(0), Fraction(0)
            for score, label, weight in rows:
                answer, count = zone(score, low, high), Fraction(weight)
                if answer < 0:
                    loss, asked = loss + asking * count, asked + count
                elif answer != label:
                    loss += costs[0 if answer else 1] * count
            if (most is None or asked <= most) and (best is None or loss <= best[0]):
                best = loss, low, high, asked
    return best


@pytest.mark.parametrize("seed", range(90))
def test_the_band_is_the_cheapest_pair_of_all(seed: int) -> None:
    scores, labels, weights = drawn(seed)
    costs = COSTS[seed % 3]
    asking = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(6, 5), Fraction(9))[seed % 5]
    most = (None, Fraction(3), Fraction(0))[seed // 3 % 3]
    rows = list(zip(scores, labels, weights, strict=True))
    given: Any = {"false_positive": costs[0], "false_negative": costs[1], "max_questions": most}
    band = limen.review_band(scores, labels, weights=weights, asking=asking, **given)

    loss, low, high, asked = cheapest(rows, asking, costs, most)

    assert (float(loss), float(asked)) == (band.loss, band.ask)
    zones = [zone(score, low, high) for score in scores]
    assert zones == [band.predict(score) for score in scores] == list(band.predict(scores))
    weight = {
        each: sum(w for z, w in zip(zones, weights, strict=True) if z == each) for each in zones
    }
    found = {0: band.no, -1: band.ask, 1: band.yes}
    assert weight == {each: found[each] for each in weight}
    assert band.confusion.fp == sum(
        w for z, (_, y, w) in zip(zones, rows, strict=True) if z == 1 > y
    )
    turned = limen.review_band(
        [-s for s in scores], labels, weights=weights, asking=asking, direction="<=", **given
    )
    assert zones == list(turned.predict([-s for s in scores]))
    assert (turned.loss, turned.low) == (band.loss, -band.high) or math.isnan(band.high)


@pytest.mark.parametrize(("fp", "fn"), COSTS)
def test_asking_pays_below_the_harmonic_bound_alone(fp: int, fn: int) -> None:
    scores, labels = [1, 2, 3, 4], [0, 1, 0, 1]
    bound = Fraction(fp * fn, fp + fn)
    at: Any = {"false_positive": fp, "false_negative": fn}

    assert 0 == limen.review_band(scores, labels, asking=bound, **at).ask
    single = limen.optimal_threshold(scores, labels, **at)
    assert single.loss == limen.review_band(scores, labels, asking=bound, **at).loss
    mixed = [0] * fn + [1] * fp  # one score whose probability is fp / (fp + fn)
    less = limen.review_band([1] * len(mixed), mixed, asking=bound * Fraction(99, 100), **at)
    assert len(mixed) == less.ask


def test_windows_fading_and_the_other_direction_keep_it() -> None:
    scores, labels = [1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1]
    window = limen.LastN(OnlineCalibrator(), 4)
    window.update_many(scores, labels)
    assert window.review_band(asking=0.25) == limen.review_band(scores[2:], labels[2:], asking=0.25)
    fading = limen.Fading(OnlineCalibrator(), half_life=10**9)
    fading.update_many(scores, labels)
    band = fading.review_band(asking=0.25)
    assert (2.5, 4.5) == (band.low, band.high)
    assert 0.5 == pytest.approx(band.loss)
    turned = OnlineCalibrator(direction="<=")
    turned.update_many([-s for s in scores], labels)
    assert (-4.5, -2.5) == (
        turned.review_band(asking=0.25).low,
        turned.review_band(asking=0.25).high,
    )


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="asking must be a positive"):
        limen.review_band([1], [1], asking=-1)
    with pytest.raises(ValueError, match="false_negative is an array"):
        limen.review_band([1], [1], asking=1, false_negative=[1])
    assert 0 == limen.review_band([], [], asking=1).loss


@pytest.mark.parametrize("direction", ["", "--lower-is-positive"])
def test_files_show_three_zones(run: Any, direction: str) -> None:
    from limen.demo import load_phishing

    scores, labels = load_phishing()
    sign = -1 if direction else 1
    rows = "".join(f"{sign * s!r},{y}\n" for s, y in zip(scores, labels, strict=True))
    Path("rows.csv").write_text("score,label\n" + rows)
    given = ["rows.csv", "--asking", "1", "--false-positive", "5", "--false-negative", "10"]
    given += direction.split()
    code, out, err = run("fit", *given, "--json")
    band = json.loads(out)["band"]
    found = limen.review_band(scores, labels, asking=1, false_positive=5, false_negative=10)

    assert (0, found.loss, found.ask) == (code, band["loss"], band["ask"]), err
    assert sorted([sign * found.low, sign * found.high]) == [band["low"], band["high"]]
    assert f"ask in between: {found.ask:.0f} rows" in err
    assert 0 == run("report", *given, "-o", "page.html")[0]
    page = Path("page.html").read_text()
    assert f'data-low="{band["low"]!r}" data-high="{band["high"]!r}">' in page
    assert "<h2>No, ask a person, yes</h2>" in page
    _, out, _ = run("fit", *given, "--max-questions", "10", "--json")
    assert json.loads(out)["band"]["ask"] <= 10
    assert 2 == run("fit", "rows.csv", "--asking", "1", "--metric", "f1")[0]
