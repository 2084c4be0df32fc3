# SPDX-License-Identifier: Apache-2.0
"""One page about a threshold: from arrays, from a fitted classifier, from files, in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.arrays import as_array
from limen.best_cut import demands_of
from limen.columns import (
    as_labels,
    as_numbers,
    as_scores,
    ordered_scores,
    require_same_length,
)
from limen.direction import is_falling
from limen.metrics import Metric, as_metric, cost
from limen.reporting.aim import OUTCOMES, Aim
from limen.reporting.origin import Origin, now
from limen.reporting.page import page_of
from limen.reporting.samples import Samples, unit_of, weighted_to
from limen.reporting.study import Question, Study
from limen.reporting.wording import Words
from limen.storage.files import replacing
from limen.units import exact_costs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import ArrayLike, NDArray

    from limen.best_cut import Demands
    from limen.optimum import Direction
    from limen.units import Cost

__all__ = ["Report", "report"]


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A page about a threshold, as `limen.report` returns it. A notebook shows it.

    Examples
    --------
    >>> import limen
    >>> page = limen.report([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> page
    <Report: cheapest threshold 0.6, cost 1 of 4 samples>
    >>> page.html()[:15]
    '<!doctype html>'
    """

    _study: Study
    _title: str
    _origin: Origin

    @property
    def threshold(self) -> float:
        """The threshold of the headline: for new rows, or the best on these where none is known."""
        return self._study.chosen.threshold

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the best threshold for all rows lies, at 95 % confidence; None if not known."""
        advice = self._study.advice
        return None if advice is None else advice.interval

    def messages(self) -> list[str]:
        """Return the findings, one sentence each."""
        return list(self._study.summary())

    def html(self) -> str:
        """Return the page: one file of HTML that needs no network. O(n log n)."""
        return "".join(page_of(self._study, self._title, self._origin))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, completely or not at all. O(n log n)."""
        page = self.html()
        with (
            replacing(path) as handle,
            open(handle, "w", encoding="utf-8", newline="", closefd=False) as file,
        ):
            file.write(page)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own: scripts and styles stay inside."""
        style = "width:100%;height:46rem;border:1px solid #d0d7de;resize:vertical"
        page = escape(self.html())
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def __repr__(self) -> str:
        return f"<Report: {self.messages()[0]}>"


def report(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    false_positive: Cost | ArrayLike = 1,
    false_negative: Cost | ArrayLike = 1,
    true_positive: Cost | ArrayLike = 0,
    true_negative: Cost | ArrayLike = 0,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    unit: Cost | None = None,
    direction: Direction = ">=",
    prevalence: Cost | None = None,
    metric: str | Metric | None = None,
    thresholds: Sequence[float] | None = None,
    asking: Cost | None = None,
    max_questions: int | None = None,
    at_least: int = 1,
    positive: Any = None,
    title: str = "",
    group: str = "group",
    **demands: Unpack[Demands],
) -> Report:
    """Write a page about the best threshold of samples, for people. O(n log n).

    The same page as that of the command ``limen report``: the threshold for new rows and how sure
    it is, the best on these rows, what others cost, three charts, other costs, and groups.

    Parameters
    ----------
    scores, labels, weights, unit, direction, prevalence, metric, demands
        As for `limen.optimal_threshold`; a metric is a name or one of `limen.metrics`. Samples of
        both labels are needed.
    false_positive, false_negative, true_positive, true_negative
        What each outcome costs: one number, or one for each sample, such as the amount of a
        payment. A gain is negative.
    groups
        A key for each sample, for a table of groups; those with fewer than `at_least` samples get
        the threshold of all. `group` is what the groups are called.
    thresholds
        To compare with, such as the one in use; None for 0.5 if all scores lie between 0 and 1.
    asking, max_questions
        Adds a review band, as `limen.review_band` finds it.
    positive
        The label that counts as 1, and the word for it: ``positive="fraud"`` gives "call it fraud
        when the score is at least …". Where labels are 0 and 1 it is the word only.
    title
        What the page is about.

    Examples
    --------
    >>> import limen
    >>> from limen.demo import load_phishing
    >>> scores, labels = load_phishing()
    >>> page = limen.report(scores, labels, false_negative=5, positive="phishing", title="sites")
    >>> page
    <Report: threshold 0.328567 for new rows (95 % interval 0.1971 to 0.4909); cheapest on these \
rows 0.385269, cost 280 of 1,250 samples>
    >>> page.save("report.html")  # doctest: +SKIP
    """
    given = {name: value for name, value in locals().items() if name not in ("scores", "labels")}
    demands_of(**demands)  # refuses what is none
    prices = {outcome: given[outcome] for outcome in OUTCOMES}
    by_row = {outcome: each for outcome, each in prices.items() if np.ndim(each)}
    samples = _samples(scores, labels, weights, groups, direction, positive, by_row)
    if prevalence is not None:
        samples = weighted_to(samples, prevalence)
    question = Question(
        _aim(prices, metric, dict(demands)),
        unit_of(samples, unit),
        thresholds,
        asking,
        max_questions,
        group,
        at_least,
        Words(None if positive is None else str(positive)),
    )
    return Report(Study(samples, question), title, Origin(now(), _call(given)))


def _samples(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    groups: ArrayLike | None,
    direction: Direction,
    positive: Any,
    costs: dict[str, Any],
) -> Samples:
    """Read arrays as samples, or raise ValueError. O(n)."""
    is_falling(direction)  # or raises
    xs = ordered_scores(as_scores(scores))
    ys = _labels(labels, xs, positive)
    ws = None if weights is None else as_numbers(weights, "weights")
    each = {
        outcome: np.asarray(as_numbers(values, outcome), np.float64)
        for outcome, values in costs.items()
    }
    keys = None if groups is None else as_array(groups, "groups")
    require_same_length(scores=xs, labels=ys, weights=ws, groups=keys, **each)
    for outcome, values in each.items():
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{outcome}[{at}] is {values[at]}; a cost must be finite.")
    names: dict[str, int] = {}
    codes = None
    if keys is not None:
        codes = np.array(
            [names.setdefault(str(key), len(names)) for key in keys.tolist()], np.int64
        )
    samples = Samples(xs, ys, ws, codes, tuple(names), direction, costs=each)
    if ws is not None and not np.all(ws):
        samples = samples.rows(np.flatnonzero(ws))  # 0 is the same as no row
    if samples.positives in (0, len(samples)):
        raise ValueError(
            f"every label counts as {int(samples.positives > 0)}. A report needs samples of both "
            "labels."
        )
    return samples


def _labels(labels: ArrayLike, scores: NDArray[np.float64], positive: Any) -> NDArray[np.uint8]:
    """Read labels, of which `positive` may be one, or only the word for label 1. O(n)."""
    if positive is None or positive in as_array(labels, "labels").tolist():
        return as_labels(labels, scores, "labels", positive)
    try:
        return as_labels(labels, scores)
    except ValueError:
        raise ValueError(
            f"positive={positive!r} is none of the labels, and these are not 0 and 1 either."
        ) from None


def _aim(prices: dict[str, Any], metric: str | Metric | None, demands: dict[str, Any]) -> Aim:
    """Read what makes a cut the best one, or raise ValueError."""
    demands = {name: bound for name, bound in demands.items() if bound is not None}
    if any(np.ndim(price) for price in prices.values()):
        costs: dict[str, Any] = {"false_positive": 1, "false_negative": 1}
        priced = {name: name if np.ndim(price) else price for name, price in prices.items()}
    else:
        costs = {
            "false_positive": prices["false_positive"] - prices["true_negative"],
            "false_negative": prices["false_negative"] - prices["true_positive"],
        }
        gains = prices["true_positive"] != 0 or prices["true_negative"] != 0
        priced = prices if gains else {}
    exact_costs(**costs)  # or raises
    if priced and (metric is not None or demands):
        raise ValueError(
            "a metric and demands are known with one false_positive and one false_negative cost. "
            "Leave out costs of right answers and of each sample, or the metric and the demands."
        )
    if metric is None:
        return Aim(costs, cost(**costs), "cost", demands) if demands else Aim(costs, prices=priced)
    if tuple(prices.values()) != (1, 1, 0, 0):
        raise ValueError("a metric and costs are two aims. Give one of them.")
    found = as_metric(metric)
    if not isinstance(found, Metric):
        raise TypeError(f"metric must be a name or one of limen.metrics, got {metric!r}.")
    return Aim(costs, found, found.name, demands)


def _call(given: dict[str, Any]) -> str:
    """Write the call that made a report; arrays by their names."""
    usual = {"direction": ">=", "at_least": 1, "title": "", "group": "group"}
    usual |= {"false_positive": 1, "false_negative": 1, "true_positive": 0, "true_negative": 0}
    words = ["scores", "labels"]
    for name, value in (given | given["demands"]).items():
        if name == "demands" or value is None:
            continue
        if np.ndim(value):
            words.append(f"{name}={value!r}" if name == "thresholds" else f"{name}={name}")
        elif value != usual.get(name):
            words.append(f"{name}={value!r}")
    return f"limen.report({', '.join(words)})"
