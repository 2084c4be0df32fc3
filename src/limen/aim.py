# SPDX-License-Identifier: Apache-2.0
"""What is asked for: which cut is the best one, made once at the door and handed down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from limen import _core, losses
from limen.arrays import is_single
from limen.best_cut import Cuts, Demand, best_cut, demands_of, error_of
from limen.calibrator import OnlineCalibrator
from limen.columns import Numbers, as_numbers, require_same_length
from limen.errors import Infeasible
from limen.metrics import BestCut, Metric, as_metric, cost
from limen.names import OUTCOMES
from limen.online import OnlineCut, OnlineThreshold
from limen.optimum import Optimum
from limen.units import (
    Cost,
    cost_parts,
    exact_bound,
    exact_costs,
    exact_number,
    exact_unit,
    unit_parts,
)

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from limen.best_cut import Demands
    from limen.samples import Samples

__all__ = ["Aim"]

# The types of most costs: by these alone a cost is known not to be a column of costs.
_NUMBERS = frozenset({int, float, Fraction, Decimal, type(None)})
_DEFAULT = tuple(outcome.cost for outcome in OUTCOMES.values())


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """What makes a cut the best one: the lowest cost, or a metric, among cuts that meet demands.

    `Aim.of` reads all of it and refuses what does not fit together, so that nothing below needs
    to ask again. `best` finds the cut. A model that is to follow the same aim is made by `model`,
    takes `columns_of` the samples and is asked by `best_of`.

    Attributes
    ----------
    costs
        What each outcome costs, by its name in `limen.names.OUTCOMES`: a number, an array with a
        cost for each sample, or None where `by_row` names a column that has not been read yet.
    metric
        What is made best instead of the cost; None for the lowest cost.
    demands
        The floors and ceilings that a cut must meet, by their names in `limen.names.DEMANDS`.
    prevalence
        The share of label 1 among the rows to come; None for that of the samples.
    confidence
        With demands: how sure it must be that new rows meet them; None where the samples decide.
        For `limen.recommend`: of its interval.
    unit
        What weights, or losses of each sample, are whole multiples of.
    by_row
        The outcomes whose cost differs from sample to sample, and what its column is called.
    name
        What the metric is called; "cost" where there is none.
    parts
        Costs and unit as whole numbers, as the native search takes them, where one cost of each
        mistake is all that is asked for; else None.

    Examples
    --------
    >>> from limen.samples import Samples
    >>> samples = Samples.of([0.1, 0.25, 0.5, 0.75], [0, 1, 0, 1])
    >>> Aim.of(false_negative=5).best(samples)
    <Optimum: threshold 0.175, lower 0.1, upper 0.25, loss 1.0>
    >>> Aim.of(metric="recall", min_precision=0.9).best(samples).threshold
    0.625
    >>> Aim.of(true_positive=-2, false_negative=3).facts()
    {'false_positive': 1.0, 'false_negative': 3.0, 'true_positive': -2.0, 'true_negative': 0.0}
    """

    costs: dict[str, Any]
    metric: Metric | Callable[..., Any] | None = None
    demands: dict[str, Any] = field(default_factory=dict)
    prevalence: Cost | None = None
    confidence: Cost | None = None
    unit: Cost | None = None
    by_row: dict[str, str] = field(default_factory=dict)
    name: str = "cost"
    parts: tuple[int, int, int, int, int, int] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = None
        if self.by_cost and not self.priced and self.prevalence is None:
            parts = cost_parts(unit=self.unit, **self.mistakes)
        object.__setattr__(self, "parts", parts)

    @classmethod
    def of(
        cls,
        *,
        false_positive: Cost | ArrayLike = 1,
        false_negative: Cost | ArrayLike = 1,
        true_positive: Cost | ArrayLike | None = None,
        true_negative: Cost | ArrayLike | None = None,
        by_row: Mapping[str, str] | None = None,
        metric: str | Metric | Callable[..., ArrayLike] | None = None,
        prevalence: Cost | None = None,
        confidence: Cost | None = None,
        unit: Cost | None = None,
        **demands: Unpack[Demands],
    ) -> Aim:
        """Read what is asked for, or raise ValueError or TypeError with what does not fit.

        Once a right answer has a cost too, even 0, costs are any finite numbers, and a gain is
        negative. Else a mistake costs more than 0, or 0 or more where each sample has its own.
        Costs named in `by_row` come later, by `with_rows`. Demands of None are left out.
        """
        numbers: tuple[Any, ...] = false_positive, false_negative, confidence, unit
        if (
            true_positive is None
            and true_negative is None
            and by_row is None
            and metric is None
            and prevalence is None
            and not demands
            and _NUMBERS.issuperset(map(type, numbers))
        ):
            return _of_two_costs(*numbers)
        demands_of(**demands)  # or raises
        limits = {name: bound for name, bound in demands.items() if bound is not None}
        gains = true_positive is not None or true_negative is not None
        named = dict(by_row or {})
        costs: dict[str, Any] = {}
        right = (0 if each is None else each for each in (true_positive, true_negative))
        for outcome, each in zip(OUTCOMES, (false_positive, false_negative, *right), strict=True):
            costs[outcome] = each
            if outcome in named:
                costs[outcome] = None
            elif type(each) not in _NUMBERS and not is_single(each):
                costs[outcome] = _cost_of_rows(each, outcome, gains)
                named[outcome] = outcome
        for outcome in costs.keys() - named.keys() if named else ():
            _cost_of_rows(costs[outcome], outcome, gains)  # or raises
        aimed = None if metric is None else as_metric(metric)
        if aimed is not None and (named or tuple(costs.values()) != _DEFAULT):
            raise ValueError(
                "metric and costs are two aims. Give one of them, or a function of tp, fp, fn, tn."
            )
        if limits and (named or costs["true_positive"] or costs["true_negative"]):
            raise ValueError(
                "demands are known with one false_positive and one false_negative cost. Leave out "
                "costs of right answers and of each sample, or the demands."
            )
        if prevalence is not None:
            if not 0 < exact_bound(prevalence, "prevalence") < 1:
                raise ValueError(f"prevalence must lie between 0 and 1, got {prevalence!r}.")
            if named:
                raise ValueError(
                    "prevalence works only with one cost of each mistake. For costs of each "
                    "sample, multiply them by what limen.losses.at_prevalence returns, and leave "
                    "prevalence out."
                )
        name = "cost" if aimed is None else _called(aimed)
        found = cls(costs, aimed, limits, prevalence, confidence, unit, named, name)
        if found.parts is None:  # else both were read
            exact_unit(unit)
            if aimed is None:
                exact_costs(**found.mistakes)
        return found

    @property
    def by_cost(self) -> bool:
        """Whether the lowest cost alone is the aim, without a metric or demands."""
        return self.metric is None and not self.demands

    @property
    def priced(self) -> bool:
        """Whether there is more to costs than one of each mistake: gains, or costs of each row."""
        return bool(self.by_row or self.costs["true_positive"] or self.costs["true_negative"])

    @property
    def mistakes(self) -> dict[str, Any]:
        """What each mistake costs more than the right answer; 1 where samples have their own."""
        if self.by_row:
            return {"false_positive": 1, "false_negative": 1}
        return {
            wrong: exact_number(self.costs[wrong], wrong) - exact_number(self.costs[right], right)
            if self.costs[right]
            else self.costs[wrong]
            for wrong, right in (
                ("false_positive", "true_negative"),
                ("false_negative", "true_positive"),
            )
        }

    @property
    def exact(self) -> tuple[int, int, Fraction]:
        """Costs of both mistakes as whole numbers, and the cost that 1 stands for."""
        return exact_costs(**self.mistakes)

    @property
    def measure(self) -> Any:
        """The function from right and wrong answers to the value of a cut."""
        return cost(**self.mistakes) if self.metric is None else self.metric

    @property
    def limits(self) -> list[Demand]:
        """The demands, read exactly."""
        return demands_of(**self.demands)

    def facts(self) -> dict[str, Any]:
        """Return the aim, ready for JSON, so that an answer can be read alone."""
        facts: dict[str, Any] = {"metric": self.name}
        if self.metric is None:
            known = self.costs if self.priced else self.mistakes
            facts = {
                outcome: self.by_row[outcome] if outcome in self.by_row else float(each)
                for outcome, each in known.items()
            }
        return facts | {name: float(bound) for name, bound in self.demands.items()}

    def with_rows(self, costs: Mapping[str, ArrayLike]) -> Aim:
        """Return the aim with the columns that `by_row` names, by outcome. O(n)."""
        read = {outcome: _cost_of_rows(costs[outcome], outcome, True) for outcome in self.by_row}
        return replace(self, costs=self.costs | read)

    def rows(self, chosen: Any) -> Aim:
        """Return the aim for some of the samples, as `Samples.rows` takes them."""
        if not self.by_row:
            return self
        read = {outcome: self.costs[outcome][chosen] for outcome in self.by_row}
        return replace(self, costs=self.costs | read)

    def losses(self, samples: Samples) -> tuple[Numbers, Numbers]:
        """Return what each sample costs if it is answered 0, and if it is answered 1. O(n)."""
        read = {outcome: self.costs[outcome] for outcome in self.by_row}
        require_same_length(labels=samples.labels, **read)
        short = {OUTCOMES[outcome].short: each for outcome, each in self.costs.items()}
        below, above = losses.priced(samples.labels, **short)
        return losses.weighed(below, samples.weights), losses.weighed(above, samples.weights)

    def best(self, samples: Samples) -> Any:
        """Find the best cut, in the scores as they were given. O(n), without sorting, for costs.

        An `Optimum` by costs, a `BestCut` by a metric or under demands; raises
        `limen.Infeasible` where no cut meets them.
        """
        if self.parts is not None:
            columns = samples.scores, samples.labels, samples.weights
            found: Any = Optimum(*_core.select_threshold(*columns, *self.parts))
            return found if samples.direction == ">=" else samples.present(found)
        if self.by_cost and self.prevalence is not None:
            return self.on(samples).best(samples)
        if self.priced:
            parts = unit_parts(exact_unit(self.unit), Fraction(1))
            found = _core.select_losses(samples.scores, *self.losses(samples), *parts)
            return samples.present(Optimum(*found))
        try:
            return samples.present(self._best_measured(samples))
        except Infeasible as infeasible:
            raise samples.present(infeasible) from None

    def _best_measured(self, samples: Samples) -> BestCut:
        """Find the best cut by a metric or under demands, in the scores of the core."""
        if self.prevalence is None:
            best: BestCut = self.best_of(self.holding(samples))
            return best
        zero, one, scale = exact_costs(*self._shares(samples))
        counts = losses.weighed(np.where(samples.labels == 1, one, zero), samples.weights)
        model = self.holding(replace(samples, weights=counts))
        cuts, limits = Cuts(*model._cuts()), self.limits
        # Counts are whole numbers of `scale` rows each; functions and max_positives are about rows.
        cuts = cuts._replace(unit=(scale * Fraction(*cuts.unit)).as_integer_ratio())
        error = None
        if self.confidence is not None:
            error = error_of(self.confidence, cuts, samples.held, limits)
        return best_cut(cuts, self.measure, limits, error)

    def on(self, samples: Samples) -> Aim:
        """Return the same aim by costs without a prevalence, for samples like these. O(n).

        To count more and to cost more is the same.
        """
        if self.prevalence is None:
            return self
        zero, one = self._shares(samples)
        counts = {"fp": zero, "tn": zero, "fn": one, "tp": one}
        costs = {
            outcome: each and exact_number(each, outcome) * counts[OUTCOMES[outcome].short]
            for outcome, each in self.costs.items()
        }
        return replace(self, costs=costs, prevalence=None)

    def _shares(self, samples: Samples) -> tuple[Any, Any]:
        """Return how much each label 0 and each label 1 counts at the prevalence. O(n)."""
        return losses.shares_at(samples.labels, self.prevalence, samples.weights)

    def reduced(self, samples: Samples) -> tuple[Samples, Aim]:
        """Put costs of each sample into labels and weights; return both as they are then. O(n).

        A sample costs one thing if it is answered 0 and another if it is answered 1: the cheaper
        answer becomes its label, and the difference its weight. What it costs in any case does not
        move the threshold.
        """
        if not self.by_row:
            return samples, self
        below, above = self.losses(samples)
        labels = (below > above).view(np.uint8)
        return (
            replace(samples, labels=labels, weights=np.abs(below - above)),
            Aim.of(confidence=self.confidence, unit=self.unit),
        )

    def model(self, **settings: Any) -> Any:
        """Make an empty model that follows this aim, with more settings such as a capacity.

        It knows no prevalence: of that, ask `on` samples first.
        """
        if not self.by_cost:
            return OnlineCalibrator(unit=self.unit, **settings)
        if self.priced:
            return OnlineCut(unit=self.unit, **settings)
        return OnlineThreshold(unit=self.unit, **self.mistakes, **settings)

    def holding(self, samples: Samples) -> Any:
        """Make such a model that holds samples, in the scores of the core. O(n)."""
        model = self.model()
        model._many(*self.columns_of(samples), True)  # which were read at the door
        return model

    def columns_of(self, samples: Samples) -> tuple[Any, ...]:
        """Return the columns that such a model takes: with losses where outcomes are priced."""
        return (samples.scores, *self.losses(samples)) if self.priced else samples.columns

    def best_of(self, model: Any) -> Any:
        """Return the best cut of the samples that such a model holds."""
        if self.by_cost:
            return model.optimum
        return model.best(self.measure, **self.demands, confidence=self.confidence)


@lru_cache(maxsize=1024, typed=True)  # typed, because 0.1 is a tenth and the Fraction is not
def _of_two_costs(false_positive: Any, false_negative: Any, confidence: Any, unit: Any) -> Aim:
    given = false_positive, false_negative, *_DEFAULT[2:]
    costs = dict(zip(OUTCOMES, given, strict=True))
    return Aim(costs, confidence=confidence, unit=unit)


def _cost_of_rows(given: Any, outcome: str, gains: bool) -> Numbers:
    """Read the cost of an outcome for each sample, or beside such a column one for all. O(n)."""
    single = is_single(given)
    each = as_numbers([given] if single else given, outcome)
    if not gains and not (each >= 0).all():
        at = int((each >= 0).argmin())
        raise ValueError(
            f"{outcome if single else f'{outcome}[{at}]'} is {each[at]}; a mistake costs 0 or "
            "more. For gains of right answers use limen.optimal_cut with limen.losses.cost_matrix."
        )
    if gains and not np.isfinite(each).all():  # else the search looks, where a cost matters
        at = int(np.isfinite(each).argmin())
        where = outcome if single else f"{outcome}[{at}]"
        raise ValueError(f"{where} is {each[at]}; a cost must be finite.")
    return each


def _called(metric: Metric | Callable[..., Any]) -> str:
    """Return what a metric is called; a function has no better name than its own."""
    return metric.name if isinstance(metric, Metric) else getattr(metric, "__name__", "metric")
