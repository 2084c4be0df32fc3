# SPDX-License-Identifier: Apache-2.0
"""The names of outcomes, demands and metrics: the one table of them.

Signatures, errors, options of the command line and the reference are made of it or checked against
it. It imports nothing of limen and no NumPy, so that help on the command line comes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

__all__ = [
    "ALIASES",
    "DEMANDS",
    "METRIC_NAMES",
    "OPTION_ALIASES",
    "OUTCOMES",
    "Bound",
    "Outcome",
    "did_you_mean",
    "renaming",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class Outcome(NamedTuple):
    """One of the four things that can happen to a sample."""

    short: str  # as in a confusion matrix
    cost: int  # where none is given
    text: str


OUTCOMES = {
    "false_positive": Outcome("fp", 1, "answering 1 to a 0"),
    "false_negative": Outcome("fn", 1, "answering 0 to a 1"),
    "true_positive": Outcome("tp", 0, "answering 1 to a 1"),
    "true_negative": Outcome("tn", 0, "answering 0 to a 0"),
}


class Bound(NamedTuple):
    """What may be demanded of a cut: a floor under a rate, or a ceiling over it."""

    rate: str  # as `limen.Confusion` has it
    is_floor: bool
    text: str
    counts: bool = False  # the bound is a number of samples, not a share of them


DEMANDS = {
    "min_precision": Bound("precision", True, "share of answers 1 that are right, at least"),
    "min_recall": Bound("recall", True, "share of labels 1 that are answered 1, at least"),
    "max_false_positive_rate": Bound(
        "false_positive_rate", False, "share of labels 0 that are answered 1, at most"
    ),
    "max_positive_rate": Bound(
        "positive_rate", False, "share of all samples that are answered 1, at most"
    ),
    "max_positives": Bound(
        "positive_rate", False, "number of samples that are answered 1, at most", counts=True
    ),
}

# What people type who come from other libraries, and what it is called here.
_COSTS = {
    alias: name
    for name, outcome in OUTCOMES.items()
    for alias in (f"{name}_cost", f"{outcome.short}_cost", f"cost_{outcome.short}", outcome.short)
}
ALIASES = {
    "y_score": "scores",
    "y_true": "labels",
    "sample_weight": "weights",
    "pos_label": "positive",
    "positive": "pos_label",  # where that is the name
    **_COSTS,
}
OPTION_ALIASES = {
    "score": "score-column",
    "label": "label-column",
    "weight": "weight-column",
    "group": "group-column",
    "sample-weight": "weight-column",
    "pos-label": "positive",
    **{alias.replace("_", "-"): name.replace("_", "-") for alias, name in _COSTS.items()},
}

METRIC_NAMES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "jaccard",
    "kappa",
    "mcc",
    "odds_ratio",
    "precision",
    "recall",
    "roc01",
    "specificity",
    "youden",
)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Write the question after an unknown name, with a space before it; "" if none is similar.

    >>> did_you_mean("min_recal", DEMANDS)
    " Did you mean 'min_recall'?"
    >>> did_you_mean("colour", DEMANDS)
    ''
    """
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def renaming(function: Function) -> Function:
    """Let a function take its arguments also by the names of `ALIASES`.

    >>> @renaming
    ... def total(scores, *, weights=1):
    ...     return scores * weights
    >>> total(y_score=2, sample_weight=3)
    6
    >>> total(2, weights=3, sample_weight=3)
    Traceback (most recent call last):
        ...
    TypeError: sample_weight and weights are two names of one argument. Give it once, as weights.
    """
    code = function.__code__
    known = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    aliases = {
        alias: name for alias, name in ALIASES.items() if alias not in known and name in known
    }

    @wraps(function)
    def named(*args: Any, **given: Any) -> Any:
        if not aliases.keys().isdisjoint(given):
            for alias in aliases.keys() & given.keys():
                name = aliases[alias]
                if name in given:
                    raise TypeError(
                        f"{alias} and {name} are two names of one argument. Give it once, as "
                        f"{name}."
                    )
                given[name] = given.pop(alias)
        return function(*args, **given)

    return cast("Function", named)
