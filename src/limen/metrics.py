# SPDX-License-Identifier: Apache-2.0
"""What may be maximised besides cost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from limen.names import METRIC_NAMES, did_you_mean
from limen.optimum import Gap
from limen.units import Cost, exact_costs, exact_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "BestCut",
    "Confusion",
    "Metric",
    "accuracy",
    "balanced_accuracy",
    "cost",
    "f1",
    "fbeta",
    "jaccard",
    "kappa",
    "mcc",
    "net_benefit",
    "odds_ratio",
    "precision",
    "recall",
    "roc01",
    "specificity",
    "youden",
]

Ratio: TypeAlias = "Callable[[Any, Any, Any, Any], tuple[Any, Any]]"


class Confusion(NamedTuple):
    """The weights of right and wrong answers; 0 / 0 counts as 0 in every rate.

    >>> Confusion(tp=3.0, fp=1.0, fn=0.0, tn=4.0).precision
    0.75
    """

    tp: float
    fp: float
    fn: float
    tn: float

    @property
    def precision(self) -> float:
        """The share of answers 1 that are right."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """The share of labels 1 that are answered 1."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def false_positive_rate(self) -> float:
        """The share of labels 0 that are answered 1."""
        return _share(self.fp, self.fp + self.tn)

    @property
    def positive_rate(self) -> float:
        """The share of all that is answered 1."""
        return _share(self.tp + self.fp, sum(self))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A number to make as large as possible, or as small, by the choice of the cut.

    Call it with the weights of true and false positives, false and true negatives, as numbers
    or arrays, for its value. 0 / 0 counts as 0.

    Attributes
    ----------
    name
        What it is called.
    ratio
        Its numerator and denominator out of tp, fp, fn, tn. Whole numbers stay whole, so cuts
        are compared without rounding.
    on_hull
        The highest of its best cuts is always a vertex of the ROC hull; no other need be tried.
    lowest
        Less is better.
    signed_root
        The value is the square root of the ratio, with its sign.
    scale
        What a difference of 1 stands for, where weights times costs are added up; else None.
    margin
        Cuts are compared without rounding when their rounded values differ by less: all of
        them by default, which is slow but always right. In terms of the largest value where
        there is a scale.
    unbounded
        The value is infinite where only the denominator is 0; else it is finite everywhere.

    Examples
    --------
    >>> f1(tp=3, fp=1, fn=2, tn=4)
    0.6666666666666666
    >>> mcc([3, 4], [1, 1], [2, 1], [4, 4])
    array([0.40824829, 0.6       ])
    """

    name: str
    ratio: Ratio
    on_hull: bool = False
    lowest: bool = False
    signed_root: bool = False
    scale: Fraction | None = None
    margin: float = math.inf
    unbounded: bool = False
    _made_by: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        # Its functions have no name of their own, so a pickle stores the call that made it.
        if _NAMED.get(self.name) is self:
            return self.name
        return self._made_by or object.__reduce_ex__(self, protocol)

    def __call__(self, tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, tn: ArrayLike) -> Any:
        """Compute the value; an array for arrays, a float for numbers. O(n)."""
        weights = (np.asarray(weight, dtype=np.float64) for weight in (tp, fp, fn, tn))
        values = self.quotients(*self.ratio(*weights))
        if self.scale is not None:
            values = _times(values, self.scale)
        if self.signed_root:
            values = np.sign(values) * np.sqrt(np.abs(values))
        return values if np.ndim(values) else float(values)

    def quotients(self, top: Any, bottom: Any) -> Any:
        """Divide; 0 / 0 is 0, and other fractions of 0 are infinite where values may be."""
        found = quotients(top, bottom)
        if not self.unbounded:
            return found
        return np.where((np.asarray(bottom) == 0) & (np.asarray(top) != 0), np.inf, found)

    def divisor(self, top: Any, bottom: Any) -> Any:
        """Return what to compare quotients by, crosswise: 1 in place of a 0, unless infinite."""
        return bottom + (bottom == 0) * (top == 0) if self.unbounded else or_one(bottom)

    def __repr__(self) -> str:
        return f"limen.metrics.{self.name}"


def quotients(top: Any, bottom: Any) -> Any:
    """Divide, taking 0 / 0 as 0."""
    top, bottom = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    return top / (bottom + (bottom == 0))


def _times(values: Any, scale: Fraction) -> Any:
    """Multiply; rounded once where the values and the parts of the scale are whole doubles.

    >>> 3 * 0.05, _times(3.0, Fraction(1, 20))
    (0.15000000000000002, 0.15)
    """
    if max(scale.numerator, scale.denominator) >= 2**53:
        return values * float(scale)
    return values * scale.numerator / scale.denominator


def or_one(whole: Any) -> Any:
    """Return the whole, or 1 where it is 0 and so its part is."""
    return whole + (whole == 0)


def _balanced(tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any]:
    positives, negatives = or_one(tp + fn), or_one(fp + tn)
    return tp * negatives + tn * positives, 2 * positives * negatives


def _youden(tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any]:
    positives, negatives = or_one(tp + fn), or_one(fp + tn)
    return tp * negatives + tn * positives - positives * negatives, positives * negatives


def _matthews(tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any]:
    agreement = tp * tn - fp * fn
    return agreement * abs(agreement), (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)


def _kappa(tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any]:
    return 2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)


def _corner(tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any]:
    positives, negatives = or_one(tp + fn), or_one(fp + tn)
    return (fn * negatives) ** 2 + (fp * positives) ** 2, (positives * negatives) ** 2


# All lie between -2 and 2, and doubles are accurate to this.
CLOSE = 1e-9

accuracy = Metric(
    "accuracy", lambda tp, fp, fn, tn: (tp + tn, tp + fp + fn + tn), on_hull=True, margin=CLOSE
)
"""The share of right answers."""
balanced_accuracy = Metric("balanced_accuracy", _balanced, on_hull=True, margin=CLOSE)
"""The mean of recall and specificity."""
youden = Metric("youden", _youden, on_hull=True, margin=CLOSE)
"""Youden's J: recall plus specificity minus 1."""
jaccard = Metric("jaccard", lambda tp, fp, fn, tn: (tp, tp + fp + fn), on_hull=True, margin=CLOSE)
"""True positives among all that are 1 or are answered 1."""
mcc = Metric("mcc", _matthews, on_hull=True, signed_root=True, margin=CLOSE)
"""Matthews' correlation of answers and labels."""
kappa = Metric("kappa", _kappa, margin=CLOSE)
"""Cohen's kappa: how much more often answers are right than by chance, as a share of the rest."""
roc01 = Metric("roc01", _corner, lowest=True, signed_root=True, margin=CLOSE)
"""The distance to the corner (0, 1) of the ROC curve, to be as small as possible."""
odds_ratio = Metric(
    "odds_ratio", lambda tp, fp, fn, tn: (tp * tn, fp * fn), margin=CLOSE, unbounded=True
)
"""The diagnostic odds ratio. Infinite at every cut without false positives, or without false
negatives, so that it chooses the highest of these where there are any; ask for a floor too."""
# The steepest edge of the hull may carry cuts of equal precision above its vertex, and the
# others are as good at every cut without further mistakes.
precision = Metric("precision", lambda tp, fp, fn, tn: (tp, tp + fp), margin=CLOSE)
"""The share of answers 1 that are right."""
recall = Metric("recall", lambda tp, fp, fn, tn: (tp, tp + fn), margin=CLOSE)
"""The share of labels 1 that are answered 1."""
specificity = Metric("specificity", lambda tp, fp, fn, tn: (tn, fp + tn), margin=CLOSE)
"""The share of labels 0 that are answered 0."""


def fbeta(beta: Cost) -> Metric:
    """Make the F-beta score: recall counts `beta` times as much as precision.

    >>> fbeta(2)(tp=3, fp=1, fn=2, tn=4)
    0.625
    """
    exact = exact_positive(beta, "beta")
    if not Fraction(1, 10**100) <= exact <= 10**100:
        raise ValueError(f"beta must lie between 1e-100 and 1e100, got {beta!r}.")
    square = exact**2
    one, more = square.denominator, square.numerator

    def ratio(tp: Any, fp: Any, fn: Any, tn: Any) -> tuple[Any, Any]:
        return (one + more) * tp, (one + more) * tp + more * fn + one * fp

    made_by = (fbeta, (beta,))
    return Metric(f"fbeta({beta!r})", ratio, on_hull=True, margin=CLOSE, _made_by=made_by)


f1 = Metric("f1", fbeta(1).ratio, on_hull=True, margin=CLOSE)
"""The harmonic mean of precision and recall."""


def cost(*, false_positive: Cost = 1, false_negative: Cost = 1) -> Metric:
    """Make the total cost of the mistakes, which is to be as low as possible.

    >>> cost(false_negative=5)(tp=3, fp=1, fn=2, tn=4)
    11.0
    """
    positive, negative, scale = exact_costs(false_positive, false_negative)
    return Metric(
        f"cost(false_positive={false_positive!r}, false_negative={false_negative!r})",
        lambda tp, fp, fn, tn: (positive * fp + negative * fn, 1 + 0 * tp),
        on_hull=True,
        lowest=True,
        scale=scale,
        margin=CLOSE,
        _made_by=(
            partial(cost, false_positive=false_positive, false_negative=false_negative),
            (),
        ),
    )


def net_benefit(probability: Cost) -> Metric:
    """Make the net benefit of decision curves, at a threshold probability between 0 and 1.

    True positives per row less what false positives weigh, which is probability / (1 -
    probability): at 0.2, four true positives outweigh sixteen false ones.

    >>> net_benefit(0.2)(tp=3, fp=4, fn=2, tn=1)
    0.2
    """
    share = exact_positive(probability, "probability")
    if share >= 1:
        raise ValueError(f"probability must lie between 0 and 1, got {probability!r}.")
    harm, gain = share.numerator, share.denominator - share.numerator
    return Metric(
        f"net_benefit({probability!r})",
        lambda tp, fp, fn, tn: (gain * tp - harm * fp, gain * (tp + fp + fn + tn)),
        on_hull=True,
        margin=CLOSE * max(1.0, harm / gain),
        _made_by=(net_benefit, (probability,)),
    )


_NAMED: dict[str, Metric] = {name: globals()[name] for name in METRIC_NAMES}


@dataclass(frozen=True, slots=True, repr=False)
class BestCut(Gap):
    """The cut that does best by some metric.

    Attributes
    ----------
    lower
        The highest score below the cut, which is answered 0; None when there is none.
    upper
        The lowest score above the cut, which is answered 1; None when there is none.
    direction
        ``"<="`` where low scores are answered 1, as for `Optimum`.
    value
        The value of the metric there.
    confusion
        The weights of true and false positives, false and true negatives.
    threshold
        The number to publish, as for `Optimum`.
    """

    value: float
    confusion: Confusion


def as_metric(metric: str | Metric | Callable[..., Any]) -> Metric | Callable[..., Any]:
    """Look up a metric by its name; metrics and functions stay what they are."""
    if isinstance(metric, str):
        if metric.lower() not in _NAMED:
            raise ValueError(
                f"metric must be one of {', '.join(map(repr, _NAMED))}, limen.metrics.fbeta(beta), "
                "limen.metrics.net_benefit(p), limen.metrics.cost(...) or a function of "
                f"tp, fp, fn, tn; got {metric!r}.{did_you_mean(metric.lower(), _NAMED)}"
            )
        return _NAMED[metric.lower()]
    if not callable(metric):
        raise TypeError(f"metric must be a name or a function of tp, fp, fn, tn, got {metric!r}.")
    if not isinstance(metric, Metric):
        _require_function_of_four(metric)
    return metric


def from_text(name: str) -> Metric:
    """Return the metric of a name as one types it, which may end in a number, under that name.

    >>> from_text("f1"), from_text("f0.5")(tp=3, fp=1, fn=2, tn=4), from_text("net_benefit=0.2")
    (limen.metrics.f1, 0.7142857142857143, limen.metrics.net_benefit=0.2)
    """
    found = re.fullmatch(r"(f|net_benefit=)(\d{0,99}\.?\d{1,99})", name)
    if found is None or name in _NAMED:
        return _NAMED[name]
    made = (fbeta if found[1] == "f" else net_benefit)(Fraction(found[2]))
    return replace(made, name=name, _made_by=(from_text, (name,)))


def _require_function_of_four(metric: Callable[..., Any]) -> None:
    """Raise TypeError for the metrics and scorers of other libraries, as scikit-learn's."""
    try:
        takes = signature(metric)
    except (TypeError, ValueError):  # some functions have no signature
        return
    if "y_true" not in takes.parameters:
        with suppress(TypeError):
            takes.bind(0, 0, 0, 0)
            return
    raise TypeError(
        f"metric is {metric!r}, a function of {', '.join(takes.parameters)}; limen needs a name or "
        "a function of the weights tp, fp, fn, tn, which stand for all labels and answers. Write "
        f"metric='f1' or one of {', '.join(map(repr, _NAMED))}, limen.metrics.fbeta(2), or "
        "lambda tp, fp, fn, tn: ..."
    )


def __dir__() -> list[str]:
    return __all__
