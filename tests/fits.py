# SPDX-License-Identifier: Apache-2.0
"""Ways to the same isotonic fit, and what is compared with the oracle."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import isotonic_oracle as oracle
import numpy as np
import streams
from hypothesis import strategies as st
from isotonic_oracle import Point, Pool
from streams import HUGE, INF, TINY, at_the_door

import limen
from limen import OnlineCalibrator


class SmallLeafCalibrator(OnlineCalibrator):
    """With four slots per leaf, splits and merges happen all the time."""

    _capacities = (4, 4)


# Ways to the same fit, and what is compared.


def whole_arrays(scores, labels, weights=None, unit=None):
    return limen.isotonic(scores, labels, weights=weights, unit=unit)


def many_at_once(scores, labels, weights=None, unit=None):
    model = OnlineCalibrator(unit=unit)
    model.update_many(scores, labels, weights)
    model._check()
    return model.blocks()


def many_in_small_leaves(scores, labels, weights=None, unit=None):
    model = SmallLeafCalibrator(unit=unit)
    model.update_many(scores, labels, weights)
    model._check()
    return model.blocks()


def one_by_one(scores, labels, weights=None, unit=None):
    return held_one_by_one(scores, labels, weights, unit).blocks()


def held_one_by_one(scores, labels, weights=None, unit=None):
    model = SmallLeafCalibrator(unit=unit)
    for sample in zip(scores, labels, *([] if weights is None else [weights]), strict=True):
        model.update(*sample)
    model._check()
    return model


WAYS = [whole_arrays, many_at_once, many_in_small_leaves, one_by_one]


def same(expected: float, actual: float) -> bool:
    return expected == actual or (math.isnan(expected) and math.isnan(actual))


def columns(rows) -> tuple[list[Any], list[Any], list[Any]]:
    """Scores, labels and weights of rows, which may be none."""
    scores, labels, weights = ([row[column] for row in rows] for column in range(3))
    return scores, labels, weights


def exactly(rows, unit=None) -> list[tuple[float, int, Fraction]]:
    """Rows with their weights as they are held."""
    return [(score, label, at_the_door(weight, unit)) for score, label, weight in rows]


def assert_fit(fit: list[Pool], blocks: limen.Blocks, grain: Fraction = Fraction(1)) -> None:
    """The blocks are these pools, whose weights are counted in grains."""
    assert [(pool.first, pool.last, pool.count) for pool in fit] == list(
        zip(blocks.first.tolist(), blocks.last.tolist(), blocks.counts.tolist(), strict=True)
    )
    assert [pool.value for pool in fit] == blocks.fractions()
    assert [float(pool.value) for pool in fit] == blocks.probabilities.tolist()
    assert [float(pool.positive * grain) for pool in fit] == blocks.positive.tolist()
    assert [float(pool.weight * grain) for pool in fit] == blocks.weight.tolist()
    assert len(fit) == len(blocks)


def assert_hull(points: list[Point], hull: limen.RocHull, grain: Fraction = Fraction(1)) -> None:
    """The vertices are the cuts between the pools."""
    fit = oracle.pools(points)
    lasts = {None, *(pool.last for pool in fit)}
    vertices = [cut for cut in oracle.cuts(points) if cut.lower in lasts]
    names = ("tp", "fp", "fn", "tn")

    assert len(fit) + 1 == len(vertices)
    assert np.array_equal([cut.threshold for cut in vertices], hull.thresholds, equal_nan=True)
    for name in names:
        sums = [float(getattr(cut, name) * grain) for cut in vertices]
        assert (name, sums) == (name, getattr(hull, name).tolist())


def probes_of(points: list[Point]) -> list[float]:
    """Every score held, its neighbours, every threshold, and the ends of the line but inf."""
    probes = {-INF, -HUGE, -1.0, -TINY, 0.0, TINY, 0.3, 1.0, HUGE}
    for point in points:
        probes |= {math.nextafter(point.score, towards) for towards in (-INF, INF)}
        probes.add(point.score)
    for cut in oracle.cuts(points):
        if math.isfinite(cut.threshold):
            probes |= {cut.threshold, math.nextafter(cut.threshold, -INF)}
    return sorted(probes - {INF})


def assert_probabilities(fit: list[Pool], probes: list[float], answers: Any) -> None:
    """`answers(scores, between)` follows the rule: the step exactly, the line nearly."""
    steps = [float(oracle.probability(fit, score)) for score in probes]
    lines = [oracle.probability(fit, score, "linear") for score in probes]
    found = answers(probes, "linear")

    assert steps == answers(probes, "step").tolist()
    assert np.allclose([float(p) for p in lines], found, rtol=1e-13, atol=1e-15)
    assert (np.diff(found) >= 0).all()
    for pool in fit:
        ends = answers([pool.first, pool.last], "linear").tolist()
        assert [float(pool.value)] * 2 == ends


rows_of_all_kinds = st.lists(
    st.tuples(streams.scores, streams.labels, streams.weights), max_size=40
)
# Few scores and small weights: many equal values, many ties.
crowded_rows = st.lists(
    st.tuples(st.integers(0, 12).map(float), streams.labels, st.integers(1, 3)), max_size=60
)
any_rows = rows_of_all_kinds | crowded_rows
costs = streams.costs | st.tuples(st.integers(1, 40), st.integers(1, 40))


# Sums of up to 62 bits: products of two and three of them decide.

LIMIT = 2**62


def whole_points(sums: list[tuple[int, int]]) -> list[Point]:
    """Points of ascending scores with these weights of label 1 and 0."""
    return [Point(float(at), *both, sum(w > 0 for w in both)) for at, both in enumerate(sums)]


def next_to_a_line(n: int, random: Random) -> list[Point]:
    """The sums lie within a few units of one straight line with coordinates near 2**61."""
    low = 2**30 - random.randrange(1, 2**20) * 2
    part = random.randrange(low // 4, 3 * low // 4)
    sums = []
    for _ in range(n):
        times = random.randrange(2**30 // n, 2**31 // n)
        off = random.choice([-1, 0, 0, 0, 1])
        sums.append((part * times + off, (low - part) * times - off * random.randrange(2)))
    return whole_points(sums)


def an_arc(n: int, random: Random) -> list[Point]:
    """Each share is larger than the one before by the least that can be: a block per score."""
    whole = LIMIT // n - 1
    start = random.randrange(whole // 4, whole // 2)
    return whole_points([(start + at, whole - start - at) for at in range(n)])


def an_arc_with_dents(n: int, random: Random) -> list[Point]:
    points = an_arc(n, random)
    for _ in range(n // 4):
        at = random.randrange(n)
        _, positive, negative, count = points[at]
        off = random.choice([-3, -2, -1, 1, 2, 3])
        points[at] = Point(float(at), positive + off, negative - off, count)
    return points


def convergents(n: int, random: Random) -> list[Point]:
    """Neighbouring fractions of Fibonacci numbers, which differ by 1 over their product."""
    fibonacci = [1, 1]
    while fibonacci[-1] < LIMIT // n // 4:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    chosen = [random.randrange(max(2, len(fibonacci) - 8), len(fibonacci)) for _ in range(n)]
    return whole_points([(fibonacci[k - 1], fibonacci[k - 2]) for k in chosen])


def every_size(n: int, random: Random) -> list[Point]:
    def size():
        return random.getrandbits(random.randrange(1, 60)) // n + 1

    return whole_points([(size(), size()) for _ in range(n)])


def beside(line: tuple[int, int], off: int, about: int) -> tuple[int, int]:
    """A step of about this weight whose end lies `off` units of area beside a line."""
    weight, rise = line
    inverse = pow(rise, -1, weight)
    first = -off * inverse % weight or weight
    step = first + max(0, about - first) // weight * weight
    return step, (step * rise + off) // weight


def two_lines_through_one_point(n: int, random: Random) -> list[Point]:
    """Six scores. The long edges on either side of the third meet next to it, all but exactly.

    On which side of it they meet takes products of three sums, all bits of them.
    """

    def edge(low: int) -> tuple[int, int]:
        while True:
            weight = random.randrange(2**low, 2 ** (low + 1))
            rise = random.randrange(1, weight // 2)
            if math.gcd(weight, rise) == 1:
                return weight, rise

    while True:
        left, right = edge(random.randrange(20, 57)), edge(random.randrange(20, 57))
        right = right[0], right[0] - right[1]
        to_third = beside(left, random.randrange(1, 4), 2 ** random.randrange(2, 57))
        to_fifth = beside(right, random.randrange(-3, 4), 2 ** random.randrange(2, 57))
        whole = random.randrange(1, to_fifth[0] + 1)
        fourth = whole, min(whole, -(-whole * to_fifth[1] // to_fifth[0]) + random.randrange(3))
        fifth = to_fifth[0] - fourth[0], to_fifth[1] - fourth[1]
        steps = [(2 ** random.randrange(56), 0), left, to_third, fourth, fifth, right]
        fits = sum(weight for weight, _ in steps) < LIMIT
        if fits and all(0 <= rise <= weight and weight for weight, rise in steps):
            return whole_points([(rise, weight - rise) for weight, rise in steps])


HARD = [
    two_lines_through_one_point,
    next_to_a_line,
    an_arc,
    an_arc_with_dents,
    convergents,
    every_size,
]


def rows_of(points: list[Point]) -> list[tuple[float, int, int]]:
    return [
        (point.score, label, weight)
        for point in points
        for label, weight in ((1, point.positive), (0, point.negative))
        if weight
    ]
