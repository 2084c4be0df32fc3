# SPDX-License-Identifier: Apache-2.0
"""The case for a change: a candidate threshold, judged by samples scored after it was chosen.

The native ledger counts the samples between the two thresholds, each at one age whatever its label;
here is what the counts say, and when a candidate begins and ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limen.memory.base import has_groups, innermost, of_all
from limen.model import Labelled
from limen.times import as_period, require_one_kind
from limen.trust.evidence import evidence_of
from limen.trust.ranked import as_threshold, height

if TYPE_CHECKING:
    from limen.memory.ledger import Ledger
    from limen.trust.evidence import Evidence

__all__ = ["Trial", "proposal", "restore_trial", "stored_trial", "trial"]

_TERMS = ("current", "candidate", "age", "confidence", "candidates")


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate threshold, and what samples scored since it was chosen say of it.

    Attributes
    ----------
    current, candidate
        The threshold in use, and the one that may replace it.
    evidence
        A `limen.Evidence` of the samples between the two that have reached the age: wins, losses,
        and those that had no label then.
    waiting
        How many samples between the two are younger.
    candidates
        How many candidates the ledger has tried, this one included. Each spends its own 5 %.
    decided
        Whether the evidence is enough to change.
    reason
        All this in one sentence, which is also what `print` shows.
    """

    current: float
    candidate: float
    evidence: Evidence
    waiting: int
    candidates: int

    @property
    def decided(self) -> bool:
        """Whether the evidence is enough to change."""
        return self.evidence.decided

    @property
    def reason(self) -> str:
        """What to do and why, in one sentence."""
        told = self.evidence
        do = (
            f"Change {self.current:.4g} to {self.candidate:.4g}"
            if self.decided
            else f"Keep {self.current:.4g}, with {self.candidate:.4g} on trial"
        )
        labelled = len(told)
        samples = "sample" if labelled == 1 else "samples"
        missing = f" and {told.missing:,} without a label" if told.missing else ""
        return (
            f"{do}: {labelled:,} {samples} scored since{missing}, {told.wins:,} in favour of it, "
            f"evidence {told.value:.3g} of {told.enough:.3g}; candidate {self.candidates}."
        )

    def __str__(self) -> str:
        return self.reason


def proposal(ledger: Ledger, current: Any, age: Any, confidence: float) -> Trial | None:
    """Look at the candidate on trial, begin or end one; return it where it has won."""
    current = as_threshold(current, "current")
    _require_labels(ledger)
    terms, costs = ledger._trial_terms, _asked_costs(ledger)
    period = _age(ledger, age, terms)
    keeps = ledger.keeps(current, confidence=confidence, **costs)
    running = trial(ledger)
    if running is not None:
        same = height(running.current) == height(current)
        if same and running.decided:
            return running
        if (
            same
            and not _is_lost(ledger)
            and ledger.keeps(running.candidate, confidence=confidence, **costs)
        ):
            return None
        ledger._end_trial()
        ledger._trial_terms = {"candidates": terms["candidates"]}
    if keeps:
        return None
    found = ledger.recommended(**costs) if costs else ledger.recommended
    if height(found) == height(current):
        return None
    lower, upper = sorted((current, found), key=height)
    ledger._trial_terms = {
        "current": current,
        "candidate": found,
        "age": period,
        "confidence": confidence,
        "candidates": terms.get("candidates", 0) + 1,
    }
    ledger._begin_trial(lower, upper, period)
    return None


def trial(ledger: Ledger) -> Trial | None:
    """Return the candidate on trial, if there is one."""
    terms, counts = ledger._trial_terms, ledger._trial_counts()
    if counts is None:
        return None
    zeros, ones, missing, waiting, weighted, _ = counts
    if weighted:
        raise ValueError(
            "some samples between the two thresholds do not weigh 1, and the bound on their losses "
            "is not known. Use limen.Evidence(..., largest_loss=...), and give it the samples."
        )
    evidence = evidence_of(
        {name: terms[name] for name in ("current", "candidate", "age", "confidence")}
        | _costs(ledger),
        ones=ones,
        zeros=zeros,
        missing=missing,
    )
    return Trial(terms["current"], terms["candidate"], evidence, waiting, terms["candidates"])


def stored_trial(ledger: Ledger) -> dict[str, Any]:
    """Describe the trial for a snapshot; nothing before the first candidate."""
    terms = ledger._trial_terms
    if not terms:
        return {}
    return {"trial": ledger._trial_state()} | {
        f"trial_{name}": terms[name] for name in _TERMS if name in terms
    }


def restore_trial(ledger: Ledger, parts: dict[str, Any]) -> None:
    """Go on with the trial of a snapshot."""
    terms = {name: parts[f"trial_{name}"] for name in _TERMS if f"trial_{name}" in parts}
    if not terms:
        return
    candidates = terms["candidates"]
    if type(candidates) is not int or candidates < 1:
        raise ValueError(f"candidates is {candidates!r}")
    if parts["trial"] is not None:
        if set(terms) != set(_TERMS):
            raise ValueError("a trial without its terms")
        ledger._restore_trial(parts["trial"])
    ledger._trial_terms = terms
    trial(ledger)  # raises where the terms make no evidence


def _is_lost(ledger: Ledger) -> bool:
    counts = ledger._trial_counts()
    return counts is not None and counts[5]


def _require_labels(ledger: Ledger) -> None:
    if has_groups(ledger.model):
        raise TypeError(
            "a ledger over groups has a threshold for each of them, and no single one to replace."
        )
    if not isinstance(innermost(ledger.model), Labelled):
        raise TypeError(
            f"a threshold is recommended from labels, and {type(innermost(ledger.model)).__name__} "
            "holds losses."
        )


def _costs(ledger: Ledger) -> dict[str, Any]:
    """Return what mistakes cost, by the model or by the ledger."""
    names = ("false_positive", "false_negative")
    own = innermost(ledger.model).settings
    if names[0] in own:
        return {name: own[name] for name in names}
    given = ledger.settings
    return {name: 1 if given[name] is None else given[name] for name in names}


def _asked_costs(ledger: Ledger) -> dict[str, Any]:
    """Return the same where the model takes them."""
    return _costs(ledger) if ledger.takes_costs else {}


def _age(ledger: Ledger, age: Any, terms: dict[str, Any]) -> Any:
    """Return the one age at which samples enter: that given, the trial's, or the maturity."""
    if age is None:
        age = terms.get("age", ledger.settings["maturity"])
    if age is None:
        raise ValueError(
            "age is missing: how old a sample is when nearly all labels are known, those that come "
            "late and those that come by default. Samples are counted at that age, whatever their "
            "label. Write proposal(current, age=...)."
        )
    period, maturity = as_period(age, "age"), ledger.settings["maturity"]
    from limen.memory.ledger import _own_period

    require_one_kind(age=period, maturity=maturity, period=_own_period(of_all(ledger.model)))
    if maturity is not None and period < maturity:
        raise ValueError(
            f"age={age!r} must not be less than maturity={maturity!r}: before that, a label 0 may "
            "still become a 1."
        )
    return period
