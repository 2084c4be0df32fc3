# SPDX-License-Identifier: Apache-2.0
"""The case for a change: a candidate threshold, judged by samples scored after it was chosen.

The native ledger counts the samples between the two thresholds, each at one age whatever its label;
here is what the counts say, and when a candidate begins and ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limen.direction import mirrored, setting
from limen.memory.base import has_groups, innermost, of_all
from limen.model import Labelled
from limen.optimum import as_threshold, height
from limen.times import as_period, require_one_kind
from limen.trust.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Hashable

    from limen.memory.ledger import Ledger

__all__ = ["Trial", "proposal", "restore_trials", "stored_trials", "trials"]

_EVIDENCE = ("current", "candidate", "age", "confidence", "largest_loss", "number")
_TERMS = (*_EVIDENCE, "candidates")  # between trials the current threshold and the last two


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate threshold, and what samples scored since it was chosen say of it.

    Attributes
    ----------
    current, candidate
        The threshold in use, and the one that may replace it.
    evidence
        A `limen.Evidence` of the samples between the two that have reached the age: wins, losses,
        and those that had no label then. Its `number` counts the candidates that were judged since
        the threshold in use last changed, which share the 5 %.
    waiting
        How many samples between the two are younger.
    candidates
        How many candidates were ever tried, this one included.
    group
        The group that it is for, over groups; ``()`` for all samples.
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
    group: tuple[Hashable, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether the evidence is enough to change."""
        return self.evidence.decided

    @property
    def reason(self) -> str:
        """What to do and why, in one sentence."""
        found = self.evidence
        do = (
            f"Change {self.current:.4g} to {self.candidate:.4g}"
            if self.decided
            else f"Keep {self.current:.4g}, with {self.candidate:.4g} on trial"
        )
        labelled = len(found)
        samples = "sample" if labelled == 1 else "samples"
        missing = f" and {found.missing:,} without a label" if found.missing else ""
        return (
            f"{do}: {labelled:,} {samples} scored since{missing}, {found.wins:,} in favour of it, "
            f"evidence {found.value:.3g} of {found.enough:.3g}; candidate "
            f"{found.settings['number']} since the last change."
        )

    def __str__(self) -> str:
        return self.reason


def proposal(
    ledger: Ledger, current: Any, group: Any, age: Any, confidence: float, largest_loss: Any
) -> Trial | None:
    """Look at the candidate on trial, begin or end one; return it where it has won."""
    current = as_threshold(current, "current")
    _require_labels(ledger)
    path, model = _member(ledger, group)
    if model is None:
        return None  # a group without samples
    group_number = 0 if path == () else int(innermost(model)._group)
    terms, costs = ledger._trial_terms.get(group_number, {}), _asked_costs(ledger)
    period = _age(ledger, age, terms)
    keeps = model.keeps(current, confidence=confidence, **costs)
    number, candidates = terms.get("number", 1), terms.get("candidates", 0)
    deployed = bool(terms) and height(terms["current"]) != height(current)
    counted = ledger._trial_counts(group_number)
    if counted is not None:
        if not deployed and largest_loss in (None, terms["largest_loss"]):
            running, lost = _trial(ledger, group_number, path), counted[2]
            if running is not None and running.decided:
                return running
            if not lost and model.keeps(terms["candidate"], confidence=confidence, **costs):
                return None
        number += bool(counted[0])  # it was judged, and has spent its share
    if deployed:
        number = 1
    if counted is not None or deployed:
        rest = {"current": current, "number": number, "candidates": candidates}
        ledger._end_trial(group_number, rest)
    if keeps:
        return None
    found = model.recommended(**costs) if costs else model.recommended
    if height(found) == height(current):
        return None
    begun = {
        "current": current,
        "candidate": found,
        "age": period,
        "confidence": confidence,
        "largest_loss": largest_loss,
        "number": number,
        "candidates": candidates + 1,
    }
    _begin(ledger, group_number, begun)
    return None


def _begin(ledger: Ledger, group_number: int, terms: dict[str, Any]) -> None:
    """Let a candidate be judged by what is scored from now on."""
    _evidence(ledger, terms, [])  # raises where the terms make no evidence
    both = (terms["current"], terms["candidate"])
    if ledger.direction == "<=":  # as the core has them
        both = (mirrored(both[0]), mirrored(both[1]))
    ledger._begin_trial(group_number, *both, terms["age"], terms)


def trials(ledger: Ledger) -> dict[Any, Trial]:
    """Return the candidates on trial by their group, that of all samples first."""
    numbers = [number for number, terms in ledger._trial_terms.items() if "candidate" in terms]
    paths = _paths(ledger) if any(numbers) else {0: ()}
    found = {path: _trial(ledger, number, path) for number, path in paths.items()}
    return {path: found[path] for path in sorted(found, key=len) if found[path] is not None}  # type: ignore[misc]


def stored_trials(ledger: Ledger) -> dict[str, Any]:
    """Describe all trials for a snapshot; nothing before the first candidate."""
    terms = ledger._trial_terms
    if not terms:
        return {}
    paths = _paths(ledger) if any(terms) else {0: ()}
    return {
        "trials": tuple(
            (path, ledger._trial_state(number), *(terms[number].get(name) for name in _TERMS))
            for number, path in paths.items()
            if number in terms
        )
    }


def restore_trials(ledger: Ledger, stored: Any) -> None:
    """Go on with the trials of a snapshot."""
    for path, state, *values in stored:
        terms = dict(zip(_TERMS, values, strict=True))
        rest = {name: terms[name] for name in ("current", "number", "candidates")}
        for name in ("number", "candidates"):
            if type(rest[name]) is not int or rest[name] < 1:
                raise ValueError(f"{name} is {rest[name]!r}")
        if path and not has_groups(ledger.model):
            raise ValueError("a trial of a group that does not exist")
        number = ledger._number(path) if path else 0
        if state is None:
            as_threshold(rest["current"], "current")
            ledger._end_trial(number, rest)
            continue
        _begin(ledger, number, terms)
        ledger._restore_trial(number, state)
        _trial(ledger, number, path)


def _trial(ledger: Ledger, number: int, path: Any) -> Trial | None:
    """Return the candidate of a group, if there is one."""
    counts = ledger._trial_counts(number)
    if counts is None:
        return None
    terms, (rows, waiting, _) = ledger._trial_terms[number], counts
    if terms["largest_loss"] is None and any(row[4] not in (0, 1) for row in rows):
        raise ValueError(
            "some samples between the two thresholds do not weigh 1, and the bound on their losses "
            "is not known. Write proposal(..., largest_loss=...) from the first call on: the most "
            "that a candidate may cost more on one sample."
        )
    evidence = _evidence(ledger, terms, rows)
    return Trial(terms["current"], terms["candidate"], evidence, waiting, terms["candidates"], path)


def _evidence(ledger: Ledger, terms: dict[str, Any], rows: list[Any]) -> Evidence:
    given = {name: terms[name] for name in _EVIDENCE} | setting(ledger.direction)
    return Evidence.from_counts(rows, **given, **_costs(ledger))


def _member(ledger: Ledger, group: Any) -> tuple[Any, Any]:
    """Return the path of a group, and what answers for its own samples; None where it has none."""
    if not has_groups(ledger.model):
        if group is not None:
            raise TypeError(f"group is {group!r}, but the model has no groups. Leave it out.")
        return (), ledger
    from limen.groups.models import key_of
    from limen.groups.paths import named_path

    if group is None:
        raise TypeError(
            "group is missing: each group has a threshold of its own. Write proposal(current, "
            "group=...), or group=() for all samples."
        )
    all_of_them = isinstance(group, tuple) and not group  # a number of NumPy is no good for ==
    path, models = () if all_of_them else named_path(group), ledger.model._models
    key = key_of(path)
    return path, models.held[key] if models.count(key) else None


def _paths(ledger: Ledger) -> dict[int, Any]:
    """Return the paths of all groups by their numbers, in an order that depends on them alone."""
    if not has_groups(ledger.model):
        return {0: ()}
    from limen.memory.grouped import ordered_paths

    return ordered_paths(ledger)


def _require_labels(ledger: Ledger) -> None:
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
    return _costs(ledger) if innermost(ledger.model).takes_costs else {}


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
