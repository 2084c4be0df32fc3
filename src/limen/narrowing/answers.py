# SPDX-License-Identifier: Apache-2.0
"""What is asked of a source: the cheapest cut, and the isotonic fit."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from limen import _core
from limen.aim import Aim
from limen.hull import Blocks
from limen.isotonic_fit import isotonic as isotonic_of_arrays
from limen.narrowing.rules import cheapest_cuts, hull_vertices
from limen.narrowing.search import BUCKETS, Source, search
from limen.optimum import Optimum
from limen.samples import Samples
from limen.units import as_weights, exact_costs, unit_parts

if TYPE_CHECKING:
    from limen.narrowing.search import Narrowed
    from limen.units import Cost

__all__ = [
    "LossSource",
    "isotonic",
    "optimal_cut",
    "optimal_threshold",
    "represented",
    "weighing",
    "with_cheapest_cut",
]

_WHOLE = 2**52
_FINEST = 2**20  # buckets that a driver counts in a second or two


def with_cheapest_cut(
    source: Source, *, false_positive: Cost, false_negative: Cost, **tuning: Any
) -> Narrowed:
    """Narrow a source to rows and counts that have its cheapest cut."""
    costs = exact_costs(false_positive, false_negative)[:2]
    return search(source, lambda found: cheapest_cuts(found, *costs), **tuning)


def represented(narrowed: Narrowed) -> Samples:
    """Return few samples of whole weights that have the same cheapest cut.

    A bucket that was not looked into stands at its highest score.
    """
    near, rest = narrowed.near, narrowed.rest
    one, zero = rest.ones > 0, rest.zeros > 0
    labels = np.repeat(np.array([1, 0], np.uint8), [one.sum(), zero.sum()])
    return Samples(
        np.concatenate([near.scores, rest.last[one], rest.last[zero]]),
        np.concatenate([near.labels, labels]),
        np.concatenate([near.zeros + near.ones, rest.ones[one], rest.zeros[zero]]),
    )


def weighing(samples: Samples, unit: Fraction) -> Samples:
    """Return samples with their weights instead of whole units.

    A double holds each weight when it is parted into pieces of less than 2**52 units.
    """
    units: Any = samples.weights
    if unit == 1:
        return samples
    pieces = 1 + units // _WHOLE
    each = np.repeat(units // pieces, pieces)
    each[np.cumsum(pieces) - 1] += units - units // pieces * pieces
    scores, labels = np.repeat(samples.scores, pieces), np.repeat(samples.labels, pieces)
    return Samples(scores, labels, as_weights(each, unit))


def _finer(rows: int) -> int:
    return int(min(_FINEST, max(BUCKETS, 8 * rows ** (2 / 3))))


def optimal_threshold(
    source: Source,
    *,
    false_positive: Cost = 1,
    false_negative: Cost = 1,
    unit: Fraction = Fraction(1),
    **tuning: Any,
) -> Optimum:
    """Find the cheapest threshold of a source, as `limen.optimal_threshold` does of arrays.

    Parameters
    ----------
    source
        The rows, with whole weights.
    false_positive, false_negative
        As for `limen.optimal_threshold`.
    unit
        What a weight of 1 in the source stands for.
    tuning
        As for `search`.
    """
    positive, negative, scale = exact_costs(false_positive, false_negative)
    costs = {"false_positive": positive, "false_negative": negative}
    samples = represented(with_cheapest_cut(source, **costs, **tuning))
    exact: Any = {name: cost * scale * unit for name, cost in costs.items()}
    found: Optimum = Aim.of(**exact).best(samples)
    return found


class LossSource(Source, Protocol):
    """A source of rows with two losses each.

    The label of a row is 0 where its loss below the cut is the smaller one, and the weight is by
    how much; a weight of 0 is a row like others here.
    """

    least: int  # the smaller losses of all rows, added up, once they were counted


def optimal_cut(source: LossSource, *, unit: Fraction = Fraction(1), **tuning: Any) -> Optimum:
    """Find the cheapest cut of a source for any losses, as `limen.optimal_cut` does of arrays.

    Parameters
    ----------
    source
        The rows, with whole losses.
    unit
        What a loss of 1 in the source stands for.
    tuning
        As for `search`.
    """
    narrowed = with_cheapest_cut(source, false_positive=1, false_negative=1, **tuning)
    near, rest = narrowed.near, narrowed.rest
    scores = np.concatenate([near.scores, rest.last])
    below = np.concatenate([near.ones, rest.ones])
    above = np.concatenate([near.zeros, rest.zeros])
    if source.least and len(scores):
        scores = np.append(scores, scores[0])
        below, above = np.append(below, source.least), np.append(above, source.least)
    return Optimum(*_core.select_losses(scores, below, above, *unit_parts(None, unit)))


def isotonic(source: Source, *, unit: Fraction = Fraction(1), **tuning: Any) -> Blocks:
    """Fit the labels of a source to its scores, as `limen.isotonic` does with arrays.

    Parameters are those of `optimal_threshold`. The curve lies about the cube root of n above its
    hull, so that little is dropped before there are 8 n^(2/3) buckets.
    """
    narrowed = search(source, hull_vertices, **{"finer": _finer, **tuning})
    near, rest = narrowed.near, narrowed.rest
    pure = (rest.zeros == 0) | (rest.ones == 0)
    # A dropped bucket of one label may begin or end a block: it stands at both its ends.
    split = (pure & (rest.first < rest.last)).astype(np.int64)
    stands = [
        (near.scores, near.zeros, near.ones),
        (rest.first, rest.zeros - split * (rest.zeros > 0), rest.ones - split * (rest.ones > 0)),
        (rest.last, split * (rest.zeros > 0), split * (rest.ones > 0)),
    ]
    scores, zeros, ones = (np.concatenate(column) for column in zip(*stands, strict=True))
    labels = np.repeat(np.array([0, 1], np.uint8), len(scores))
    held = (units := np.concatenate([zeros, ones])) > 0
    fit = isotonic_of_arrays(np.tile(scores, 2)[held], labels[held], weights=units[held])
    counts = np.zeros(len(fit), np.int64)
    each = np.concatenate([np.ones(len(near.scores), np.int64), rest.n])
    np.add.at(counts, np.searchsorted(fit.last, np.concatenate([near.scores, rest.first])), each)
    sums = fit._positive_units, fit._weight_units
    return Blocks(fit.first, fit.last, counts, fit.probabilities, *sums, unit * fit._unit)
