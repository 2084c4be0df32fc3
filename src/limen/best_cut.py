# SPDX-License-Identifier: Apache-2.0
"""The cut that does best by a metric, among those that meet every demand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, Unpack, cast

import numpy as np

from limen import _core
from limen.errors import Infeasible
from limen.floors import at_least, how_many, passes, sequences, times_as_many
from limen.metrics import (
    CLOSE,
    BestCut,
    Confusion,
    Metric,
    Ratio,
    or_one,
    precision,
    quotients,
    recall,
)
from limen.names import DEMANDS, did_you_mean
from limen.units import Cost, as_weights, exact_bound, exact_positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "Cuts",
    "Demand",
    "Demands",
    "best_cut",
    "demands_of",
    "error_of",
    "exact_worth",
    "met_at",
    "near_best",
]

Weights: TypeAlias = "tuple[Any, Any, Any, Any]"  # tp, fp, fn, tn


class Cuts(NamedTuple):
    """Cuts in ascending order, the last above all scores, and whole units of weight below them."""

    lower: NDArray[np.float64]  # nan where there is none
    upper: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    positives_below: NDArray[np.int64]
    negatives_below: NDArray[np.int64]
    unit: tuple[int, int]

    def in_units(self, places: Any) -> Weights:
        """tp, fp, fn, tn of some cuts in whole units."""
        fn, tn = self.positives_below, self.negatives_below
        return fn[-1] - fn[places], tn[-1] - tn[places], fn[places], tn[places]

    def in_numbers(self, places: Any) -> Weights:
        """tp, fp, fn, tn of some cuts as the weights they stand for."""
        tp, fp, fn, tn = (as_weights(w, Fraction(*self.unit)) for w in self.in_units(places))
        return tp, fp, fn, tn

    def exactly(self, places: Any) -> Weights:
        """tp, fp, fn, tn of some cuts as integers of any size."""
        tp, fp, fn, tn = (units.astype(object) for units in self.in_units(places))
        return tp, fp, fn, tn


@dataclass(frozen=True, slots=True)
class Demand:
    """A floor under a rate or a ceiling over it."""

    name: str
    bound: Fraction
    ratio: Ratio
    count: Fraction | None = None  # of all rows, where that is demanded; the bound follows from it

    def of(self, total: Fraction) -> Demand:
        """Return the demand for rows of this weight: a count becomes a share of them."""
        if self.count is None:
            return self
        share = min(self.count / total, Fraction(1)) if total else Fraction(1)
        return replace(self, bound=share)

    @property
    def text(self) -> str:
        """The demand as it was given."""
        return f"{self.name}={float(self.bound if self.count is None else self.count)!r}"

    @property
    def is_floor(self) -> bool:
        """Whether the rate must be at least the bound; else it must be at most that."""
        return DEMANDS[self.name].is_floor

    @property
    def rate(self) -> str:
        """The name of the rate, as `Confusion` has it."""
        return DEMANDS[self.name].rate

    def met(self, weights: Weights) -> NDArray[np.bool_]:
        """Where it holds. A floor, even of 0, does not where nothing has a share."""
        part, whole = self.ratio(*weights)
        needed, given = self.bound.numerator * whole, self.bound.denominator * part
        held = (given >= needed) & (whole > 0) if self.is_floor else given <= needed
        return np.asarray(held, dtype=bool)

    def share(self, weights: Weights) -> tuple[Any, Any, float]:
        """Hits, trials and the floor under their share; a ceiling is a floor under the rest."""
        part, whole = self.ratio(*weights)
        if self.is_floor:
            return part, whole, float(self.bound)
        return whole - part, whole, float(1 - self.bound)

    def guaranteed(self, counts: Weights, error: float) -> NDArray[np.bool_]:
        """Where new rows meet it too, of all cuts in ascending order of score. See `floors`."""
        hits, trials, floor = self.share(counts)
        if floor == 0:
            return self.met(counts)
        if self.name == "min_precision":
            return sequences(hits[::-1], trials[::-1], floor, error)[::-1]
        held = at_least(hits, int(trials[0]), floor, error)
        # All predicted positive misses nothing, and none predicted positive raises no alarm.
        held[0 if self.is_floor else -1] |= bool(trials[0])
        return held

    def shortfall(self, weights: Weights) -> tuple[Any, Any]:
        """How far each cut is from it, as a fraction that is not negative."""
        part, whole = self.ratio(*weights)
        whole = or_one(whole)
        top = self.bound.numerator * whole - self.bound.denominator * part
        if not self.is_floor:
            top = -top
        return top * (top > 0), self.bound.denominator * whole


class Demands(TypedDict, total=False):
    """What may be demanded of a cut: the names of `limen.names.DEMANDS`, for signatures."""

    min_precision: Cost | None
    min_recall: Cost | None
    max_false_positive_rate: Cost | None
    max_positive_rate: Cost | None
    max_positives: Cost | None


_RATES: dict[str, Ratio] = {
    "precision": precision.ratio,
    "recall": recall.ratio,
    "false_positive_rate": lambda tp, fp, fn, tn: (fp, fp + tn),
    "positive_rate": lambda tp, fp, fn, tn: (tp + fp, tp + fp + fn + tn),
}


# What other functions take, and what is to be given where a demand would stand.
_MEANT = {
    "sample_weights": "the weights as weights",
    "weight": "the weights as weights",
    "current": "the threshold in use to limen.recommend, or to limen.report in thresholds",
    "threshold": "thresholds to limen.report, as a list",
    "confidence": "it to limen.recommend, or to OnlineCalibrator.best with demands",
}


def demands_of(**bounds: Unpack[Demands]) -> list[Demand]:
    """Read what is demanded of a cut; None demands nothing."""
    for name in bounds:
        if name not in DEMANDS:
            other = _MEANT.get(name)
            raise TypeError(
                f"a demand must be one of {', '.join(DEMANDS)}, got {name!r}."
                f"{did_you_mean(name, DEMANDS)}"
                if other is None
                else f"there is no argument {name!r} here. Give {other}."
            )
    return [
        _demand(name, cast("Cost", bound)) for name, bound in bounds.items() if bound is not None
    ]


def _demand(name: str, bound: Cost) -> Demand:
    ratio = _RATES[DEMANDS[name].rate]
    if not DEMANDS[name].counts:
        return Demand(name, exact_bound(bound, name), ratio)
    count = Fraction(0) if bound == 0 else exact_positive(bound, name)
    return Demand(name, Fraction(1), ratio, count)


def _settled(demands: list[Demand], cuts: Cuts) -> list[Demand]:
    """Return demands on a number of rows as those on a share of the rows held."""
    rows = int(cuts.positives_below[-1]) + int(cuts.negatives_below[-1])
    return [demand.of(rows * Fraction(*cuts.unit)) for demand in demands]


def best_cut(
    cuts: Cuts,
    metric: Metric | Callable[..., Any],
    demands: list[Demand],
    error: float | None = None,
) -> BestCut:
    """Choose the highest of the best cuts that meet every demand. O(n).

    With an error, the chance that new rows do not meet them all is at most that: each cut then
    stands for counts of samples. Raises `limen.Infeasible` when there is no such cut.
    """
    places, demands = np.arange(len(cuts.thresholds)), _settled(demands, cuts)
    if demands:
        met = met_at(cuts, demands)
        if error is not None:
            counts = cuts.in_units(slice(None))
            sure = [demand.guaranteed(counts, error / len(demands)) for demand in demands]
        held = np.logical_and.reduce(met if error is None else sure)
        places = np.flatnonzero(held)
        if error is not None and len(places) == 0 and np.logical_and.reduce(met).any():
            raise _unsure(cuts, metric, demands, error)
        if len(places) == 0:
            missed = [d for d, where in zip(demands, met, strict=True) if not where.any()]
            raise _infeasible(cuts, metric, demands, missed)
    if not isinstance(metric, Metric):
        values = _values_by(metric, cuts)
        if np.isnan(values[places]).all():
            raise ValueError("metric gives nan at every cut; it needs a number at one of them.")
        best = np.flatnonzero(values[places] == np.nanmax(values[places]))[-1]
        return _at(cuts, float(values[places[best]]), places[best])
    sign = -1 if metric.lowest else 1
    rounded = sign * metric.quotients(*metric.ratio(*cuts.in_numbers(places)))

    def exact(near: Any) -> tuple[Any, Any]:
        top, bottom = metric.ratio(*cuts.exactly(places[near]))
        return sign * top, metric.divisor(top, bottom)

    largest = 1.0
    if metric.scale is not None or metric.unbounded:
        largest = float(np.abs(rounded[np.isfinite(rounded)]).max(initial=1.0))
    place = places[_highest_of_best(rounded, metric.margin * largest, exact)]
    return _at(cuts, _worth(cuts, metric, place), place)


def near_best(
    cuts: Cuts, metric: Metric, demands: list[Demand], within: Fraction
) -> list[tuple[float, float]]:
    """Find every threshold whose value is at most this share worse than the best. O(n).

    Return runs of neighbouring cuts as pairs: thresholds above the first number and up to the
    second. Values are compared without rounding.
    """
    best = best_cut(cuts, metric, demands)
    places = np.arange(len(cuts.thresholds))
    if demands:
        places = np.flatnonzero(np.logical_and.reduce(met_at(cuts, demands)))
    every = len(cuts.thresholds) - 1
    at = every if best.upper is None else int(np.searchsorted(cuts.upper[:every], best.upper))
    top, bottom = (part[0] for part in metric.ratio(*cuts.exactly([at])))
    bottom = metric.divisor(top, bottom)
    # A root is this share worse where the ratio below it is so by the square.
    keep = (1 + within if (top < 0) != metric.lowest else 1 - within) ** (
        2 if metric.signed_root else 1
    )
    tops, bottoms = metric.ratio(*cuts.exactly(places))
    bottoms = metric.divisor(tops, bottoms)
    ahead = tops * bottom * keep.denominator - keep.numerator * top * bottoms
    held = places[np.asarray((ahead <= 0) if metric.lowest else (ahead >= 0), dtype=bool)]
    runs = np.split(held, np.flatnonzero(np.diff(held) > 1) + 1)
    lower = np.where(np.isnan(cuts.lower), -math.inf, cuts.lower)
    upper = np.where(np.isnan(cuts.upper), math.inf, cuts.upper)
    return [(float(lower[run[0]]), float(upper[run[-1]])) for run in runs]


def met_at(cuts: Cuts, demands: list[Demand]) -> list[NDArray[np.bool_]]:
    """Return for each demand at which cuts it is met, without rounding. O(n)."""
    demands = _settled(demands, cuts)
    largest = int(cuts.positives_below[-1]) + int(cuts.negatives_below[-1])
    factor = max(max(demand.bound.numerator, demand.bound.denominator) for demand in demands)
    every = slice(None)
    weights = cuts.in_units(every) if largest * factor < _core.most_units else cuts.exactly(every)
    return [demand.met(weights) for demand in demands]


def _highest_of_best(
    rounded: NDArray[np.float64], margin: float, exact: Callable[[Any], tuple[Any, Any]]
) -> int:
    """Find the last of the largest values: by rounded ones first, the nearest of them exactly."""
    near = np.flatnonzero(~(rounded < rounded.max() - margin))
    if len(near) == 1:
        return int(near[0])
    top, bottom = exact(near)
    rivals = np.arange(len(near))
    while True:
        best = rivals[-1]
        ahead = top[rivals] * bottom[best] - top[best] * bottom[rivals]
        larger = rivals[ahead > 0]
        if len(larger) == 0:
            return int(near[rivals[ahead == 0].max()])
        rivals = larger[np.argsort(rounded[near[larger]], kind="stable")]


def _values_by(function: Callable[..., Any], cuts: Cuts) -> NDArray[np.float64]:
    values = np.asarray(function(*cuts.in_numbers(slice(None))), dtype=np.float64)
    if values.shape != cuts.thresholds.shape:
        raise ValueError(
            f"metric must give one number for each of {len(cuts.thresholds)} cuts, got an array "
            f"of shape {values.shape}. It is called with arrays of tp, fp, fn and tn."
        )
    return values


def _at(cuts: Cuts, value: float, place: int) -> BestCut:
    """One of the cuts."""
    ends = (float(ends[place]) for ends in (cuts.lower, cuts.upper))
    lower, upper = (None if math.isnan(end) else end for end in ends)
    confusion = Confusion(*(float(weight[0]) for weight in cuts.in_numbers([place])))
    return BestCut(lower, upper, value, confusion)


def _worth(cuts: Cuts, metric: Metric | Callable[..., Any], place: int) -> float:
    """Return the value of a metric at a cut, rounded once."""
    if not isinstance(metric, Metric):
        return float(_values_by(metric, cuts)[place])
    tp, fp, fn, tn = (int(units[0]) for units in cuts.exactly([place]))
    return exact_worth(metric, (tp, fp, fn, tn), Fraction(*cuts.unit))


def exact_worth(metric: Metric, units: Weights, unit: Fraction) -> float:
    """Return the value of a metric for whole units of tp, fp, fn and tn, rounded once.

    >>> from limen.metrics import cost
    >>> exact_worth(cost(false_positive=0.1), (0, 3, 0, 1), Fraction(1))
    0.3
    """
    top, bottom = metric.ratio(*units)
    if metric.scale is not None:
        scale = metric.scale * unit
        top, bottom = top * scale.numerator, bottom * scale.denominator
    value = top / bottom if bottom else math.inf if top and metric.unbounded else 0.0
    return math.copysign(math.sqrt(abs(value)), value) if metric.signed_root else value


def _infeasible(
    cuts: Cuts, metric: Metric | Callable[..., Any], demands: list[Demand], missed: list[Demand]
) -> Infeasible:
    """Say which demands no cut meets, or that no cut meets all, and find the nearest cut."""
    weights = cuts.in_numbers(slice(None))
    rounded = np.maximum.reduce([quotients(*demand.shortfall(weights)) for demand in demands])

    def exact(near: Any) -> tuple[Any, Any]:
        whole = cuts.exactly(near)
        worst, below = demands[0].shortfall(whole)
        for demand in demands[1:]:
            top, bottom = demand.shortfall(whole)
            worse = (top * below > worst * bottom).astype(bool)
            worst, below = np.where(worse, top, worst), np.where(worse, bottom, below)
        return -worst, below

    place = _highest_of_best(-rounded, CLOSE, exact)
    nearest = _at(cuts, _worth(cuts, metric, place), place)
    demanded = " and ".join(d.text for d in missed or demands)
    rates = ", ".join(
        f"{d.rate.replace('_', ' ')} {getattr(nearest.confusion, d.rate):.6g}" for d in demands
    )
    return Infeasible(
        f"no cut meets {demanded}{'' if missed else ' together'}", nearest, rates=rates
    )


def _unsure(
    cuts: Cuts, metric: Metric | Callable[..., Any], demands: list[Demand], error: float
) -> Infeasible:
    """Say that the demands are met on the samples held only, and how many more might do."""
    nearest = best_cut(cuts, metric, demands)
    counts = cuts.in_units(np.unique(np.linspace(0, len(cuts.thresholds) - 1, 256).astype(int)))
    shares = [demand.share(counts) for demand in demands]

    def met(times: float) -> bool:
        each = []
        for demand, (hits, trials, floor) in zip(demands, shares, strict=True):
            more, misses = np.floor(hits * times), np.ceil((trials - hits) * times)
            share = error / len(demands)
            if demand.name == "min_precision":
                share /= max(1, how_many(floor, share, times * trials[0]))
            each.append(passes(more, more + misses, floor, share))
        return bool(np.logical_and.reduce(each).any())

    samples = int(cuts.positives_below[-1]) + int(cuts.negatives_below[-1])
    times, more = times_as_many(met), None
    if times is not None:
        more = float(f"{samples * (times - 1):.1g}")
    needed = (
        "No number of samples would do, if rates stay as they are"
        if more is None
        else f"About {more:,.0f} more samples might do, if rates stay as they are"
    )
    demanded = " and ".join(d.text for d in demands)
    return Infeasible(
        f"{samples:,} samples are too few to be sure at {100 * (1 - error):.6g} % that new rows "
        f"meet {demanded} at any cut. {needed}",
        nearest,
        more_samples=None if more is None else int(more),
    )


def error_of(confidence: Cost, cuts: Cuts, samples: int, demands: list[Demand]) -> float:
    """Read a confidence in demands, and require that every sample weighs 1."""
    share = exact_bound(confidence, "confidence")
    if share == 1:
        raise ValueError("confidence must be below 1: no number of samples makes us certain.")
    if not demands:
        raise ValueError(
            "confidence is about floors and ceilings, and there is none. Give min_precision, "
            "min_recall, max_false_positive_rate or max_positive_rate, or leave it out."
        )
    total = int(cuts.positives_below[-1]) + int(cuts.negatives_below[-1])
    if cuts.unit != (1, 1) or total != samples:
        raise ValueError(
            "confidence needs samples of weight 1 each, and a model without unit: the exact "
            "bounds are about numbers of samples. Leave confidence out, or hold each row once."
        )
    return float(1 - share)
