# SPDX-License-Identifier: Apache-2.0
"""One page about a threshold: from arrays, from a fitted classifier, from files, in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from limen.aim import Aim
from limen.arrays import as_array
from limen.columns import as_labels, ordered_scores, require_same_length
from limen.metrics import Metric
from limen.names import OUTCOMES, renaming
from limen.reporting.origin import Origin, now
from limen.reporting.page import page_of
from limen.reporting.samples import FileRows, aim_on, weighted_to
from limen.reporting.study import Question, Study
from limen.reporting.wording import Words
from limen.samples import Samples
from limen.storage.files import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import ArrayLike

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


@renaming
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
        The label of the positive class, and the word for it: ``positive="fraud"`` gives "call it
        fraud when the score is at least …". Where labels are 0 and 1 it is the word only.
    title
        What the page is about.

    Examples
    --------
    >>> import limen
    >>> from limen.demo import load_phishing
    >>> scores, labels = load_phishing()
    >>> page = limen.report(scores, labels, false_negative=5, positive="phishing", title="sites")
    >>> page
    <Report: threshold 0.345809 for new rows (95 % interval 0.1971 to 0.4909); cheapest on these \
rows 0.385269, cost 280 of 1,250 samples>
    >>> page.save("report.html")  # doctest: +SKIP
    """
    given = {name: value for name, value in locals().items() if name not in ("scores", "labels")}
    costs = {outcome: given[outcome] for outcome in OUTCOMES}
    aim = Aim.of(**costs, metric=metric, **demands)
    if not isinstance(aim.measure, Metric):
        raise TypeError(f"metric must be a name or one of limen.metrics, got {metric!r}.")
    rows = _rows(scores, _labels(labels, positive), weights, groups, direction, aim)
    if prevalence is not None:
        rows = weighted_to(rows, prevalence)
    question = Question(
        aim_on(rows, aim, unit),
        thresholds,
        asking,
        max_questions,
        group,
        at_least,
        Words(None if positive is None else str(positive)),
    )
    return Report(Study(rows, question), title, Origin(now(), _call(given)))


def _rows(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    groups: ArrayLike | None,
    direction: Direction,
    aim: Aim,
) -> FileRows:
    """Read arrays as rows, with the costs of each, or raise ValueError. O(n)."""
    samples = Samples.of(scores, labels, weights, direction)
    ordered_scores(samples.scores)  # or raises
    keys = None if groups is None else as_array(groups, "groups")
    each = {outcome: aim.costs[outcome] for outcome in aim.by_row}
    require_same_length(scores=samples.scores, groups=keys, **each)
    names: dict[str, int] = {}
    codes = None
    if keys is not None:
        codes = np.array(
            [names.setdefault(str(key), len(names)) for key in keys.tolist()], np.int64
        )
    rows = FileRows(*samples.columns, direction, codes, tuple(names), costs=each)
    if rows.weights is not None and not rows.weights.all():
        rows = rows.rows(np.flatnonzero(rows.weights))  # 0 is the same as no row
    if rows.positives in (0, len(rows)):
        raise ValueError(
            f"every label counts as {int(rows.positives > 0)}. A report needs samples of both "
            "labels."
        )
    return rows


def _labels(labels: ArrayLike, positive: Any) -> ArrayLike:
    """Read labels where `positive` is one of them, and not only the word for label 1. O(n)."""
    if positive is None:
        return labels
    if positive in as_array(labels, "labels").tolist():
        return as_labels(labels, None, "labels", positive)
    try:
        return as_labels(labels)
    except ValueError:
        raise ValueError(
            f"positive={positive!r} must be one of the labels, or these must be 0 and 1."
        ) from None


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
