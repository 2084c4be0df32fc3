# SPDX-License-Identifier: Apache-2.0
"""What thresholds cost on rows that they were not chosen on, and what one saves against another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limen.reporting.findings import judged_at
from limen.trust.new_rows import (
    Saving,
    cost_of_answers,
    cost_of_rows,
    saving,
    saving_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from limen.aim import Aim
    from limen.metrics import Confusion
    from limen.reporting.samples import FileRows
    from limen.samples import Samples
    from limen.trust.cross_fit import CrossFitted

__all__ = ["Candidate", "Checked", "checked", "thresholds_of_groups"]


class Candidate(NamedTuple):
    """A threshold to be checked, or one for each row."""

    key: str  # in JSON
    label: str  # at the start of a line
    name: str  # inside a sentence
    threshold: float | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a candidate costs on rows; by a metric other than cost, its value there alone."""

    candidate: Candidate
    confusion: Confusion
    worth: float
    kind: str  # of worth: "loss", or "value" by a metric or under demands
    cost: CrossFitted | None
    against: Candidate | None  # None for the first candidate, which the others are compared with
    saving: Saving | None

    def facts(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        threshold = self.candidate.threshold
        facts: dict[str, Any] = {
            "threshold": threshold if isinstance(threshold, float) else None,
            self.kind: self.worth,
            "confusion": self.confusion._asdict(),
        }
        if self.cost is not None:
            facts["cost_per_row"] = {
                "mean": self.cost.mean,
                "interval": list(self.cost.interval),
                "errors": self.cost.errors,
            }
            facts["saving"] = self.saving_facts()
        return facts

    def saving_facts(self) -> dict[str, Any] | None:
        """Return what it saves, ready for JSON."""
        if self.saving is None or self.against is None:
            return None
        shares = self.saving.shares
        return {
            "against": self.against.key,
            "per_row": self.saving.per_row,
            "interval": list(self.saving.interval),
            "share": None if shares is None else shares[0],
            "rows": self.saving.rows,
            "distinguishable": self.saving.distinguishable,
        }


def checked(
    rows: Samples, candidates: Sequence[Candidate], aim: Aim, confidence: float
) -> Iterator[Checked]:
    """Yield what each candidate costs on rows, and what it saves against the first. O(n) each."""
    first = candidates[0]
    given: dict[str, Any] = {**aim.mistakes, "confidence": confidence}
    before = rows.answers(first.threshold)
    for candidate in candidates:
        confusion, worth = judged_at(rows, candidate.threshold, aim)
        about = candidate, confusion, worth, "loss" if aim.by_cost else "value"
        if aim.metric is not None:
            yield Checked(*about, None, None, None)
            continue
        answers = rows.answers(candidate.threshold)
        if aim.priced:
            below, above = aim.losses(rows)
            before_cost, cost = (
                np.where(each, above, below).astype(np.float64) for each in (before, answers)
            )
            dearer = np.where(answers, above > below, below > above)  # than the other answer
            price = cost_of_rows(cost, confidence, int(np.count_nonzero(dearer)))
            saved = saving_of_rows(before_cost, cost, before != answers, confidence)
        else:
            price = cost_of_answers(rows.labels, answers, rows.weights, **given)
            saved = saving(rows.labels, before, answers, rows.weights, **given)
        if candidate is first:
            yield Checked(*about, price, None, None)
        else:
            yield Checked(*about, price, first, saved)


def thresholds_of_groups(
    rows: FileRows, thresholds: dict[str, float], otherwise: float
) -> NDArray[np.float64]:
    """Return the threshold for each row by its group; another one for groups never seen."""
    of_names = [thresholds.get(name, otherwise) for name in rows.names]
    return np.asarray(of_names, np.float64)[rows.codes]
