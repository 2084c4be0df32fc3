# SPDX-License-Identifier: Apache-2.0
"""The commands about saved models: what they hold, and one made of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import limen
from limen.cli.aims import aim_of
from limen.cli.exits import BAD_INPUT, FAILED, NOT_FOUND, USAGE, Failure
from limen.cli.option_values import period_text
from limen.cli.output import as_line, print_messages, require_distinct, require_writable
from limen.cli.refusals import as_failure
from limen.digits import within
from limen.errors import Infeasible
from limen.memory.ledger import Ledger
from limen.memory.windows import LastN
from limen.units import exact_costs

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.aim import Aim

__all__ = ["merge", "show"]


def loaded(path: str) -> Any:
    """Bring back what was saved in a file."""
    try:
        return limen.load(path)
    except FileNotFoundError:
        raise Failure(f"{path} does not exist. Check the name.", NOT_FOUND) from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", FAILED) from None
    except ValueError as error:
        raise Failure(str(error), BAD_INPUT) from None


def show(options: Namespace) -> int:
    """Print what saved models hold."""
    aim = aim_of(options)
    costs_given = (options.false_positive, options.false_negative) != (None, None)
    asked = aim if not aim.by_cost or costs_given else None
    for path in options.files:
        model = loaded(path)
        try:
            found = facts(model, asked)
        except Infeasible as infeasible:
            raise as_failure(infeasible, f"{path}: ") from None
        except _OtherCosts:
            raise Failure(
                f"{path} holds a {type(model).__name__} with costs of its own, which answers no "
                "others. Save one that does with: limen fit FILE --metric NAME --save MODEL",
                USAGE,
            ) from None
        print(as_line({"file": path, **found}), end="")
        print_messages(f"{path}: {model!r}", quiet=options.quiet)
        if "threshold" not in found and "decided" not in found:
            print_messages(
                f"limen: {path} holds samples for any aim. Ask with costs, --metric or demands, "
                "such as --false-negative 5.",
                quiet=options.quiet,
            )
    return 0


def _groups_of(model: Any) -> Any:
    """Return the groups of a model or ledger; None where there are none."""
    groups = model.model if isinstance(model, Ledger) else model
    return groups if isinstance(groups, limen.Grouped) else None


class _OtherCosts(Exception):  # noqa: N818 - reads as what happened
    """A model that answers for its own costs was asked about others."""


def facts(model: Any, aim: Aim | None) -> dict[str, Any]:
    """Return what a model is, what it holds, and its best cut by the aim or by its own costs."""
    grouped = _groups_of(model)
    if grouped is not None:
        of_all = facts(grouped.model(()), aim)
        groups = [
            {
                "group": path[0] if len(path) == 1 else list(path),
                "samples": grouped.count(path),
                "own": grouped.source(path) == path,
                **_cut(grouped.model(path), aim),
            }
            for path in grouped
            if path
        ]
        kind = {"kind": "Grouped", "at_least": grouped.at_least, "model": of_all.pop("kind")}
        return kind | of_all | _account(model) | {"groups": groups}
    found: dict[str, Any] = {"kind": type(model).__name__}
    if isinstance(model, limen.Evidence):
        if aim is not None:
            raise _OtherCosts
        names = ("wins", "losses", "missing", "value", "decided")
        return found | _settings(model) | {name: getattr(model, name) for name in names}
    inner = model
    while inner is not None:
        found |= _settings(inner)
        wrapped = getattr(inner, "model", None)
        if wrapped is None:
            break
        inner = wrapped
        found["model"] = type(inner).__name__
    return found | {"samples": len(inner), **_cut(model, aim), **_account(model)}


def _account(model: Any) -> dict[str, Any]:
    """Return what a ledger knows besides its model."""
    if not isinstance(model, Ledger):
        return {}
    return {"ids": len(model), "cost": model.cost, "regret": model.regret}


def _settings(model: Any) -> dict[str, Any]:
    """List what a model was made with, as JSON holds it, without what was left out."""
    return {
        name: value if isinstance(value, int | float | str) else period_text(value)
        for name, value in model.settings.items()
        if value is not None
    }


def _cut(model: Any, aim: Aim | None) -> dict[str, Any]:
    """Return the best cut of a model; nothing where it holds samples for any aim, and has none."""
    found: dict[str, Any] = {}
    if not model.takes_costs:
        if aim is not None and not (aim.by_cost and _has(model, aim.mistakes)):
            raise _OtherCosts
        best = model.optimum
    elif aim is None:
        return found
    else:
        found = aim.facts()
        best = (
            model.optimum(**aim.mistakes) if aim.by_cost else model.best(aim.measure, **aim.demands)
        )
    found |= {"threshold": best.threshold, "lower": best.lower, "upper": best.upper}
    return found | ({"loss": best.loss} if hasattr(best, "loss") else {"value": best.value})


def _has(model: Any, costs: dict[str, Any]) -> bool:
    """Whether these are the costs that a model was made for."""
    while (inner := getattr(model, "model", None)) is not None:
        model = inner
    own = {name: value for name, value in model.settings.items() if name in costs}
    return len(own) == 2 and exact_costs(**own) == exact_costs(**costs)


def merge(options: Namespace) -> int:
    """Make one model of the samples of many."""
    require_writable(options.output, options.force)
    require_distinct(options.files)
    models = [loaded(path) for path in options.files]
    for path, model in zip(options.files, models, strict=True):
        if not hasattr(model, "merge") or isinstance(model, LastN):
            raise Failure(
                f"{path} holds a {type(model).__name__}, which cannot be merged: its samples have "
                "an order. Merge models, groups of them, windows over time, or ledgers.",
                BAD_INPUT,
            )
    try:
        merged = limen.merge(models)
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    merged.save(options.output)
    groups = _groups_of(merged)
    of_all = merged if groups is None else groups.model(())
    if isinstance(of_all, limen.Evidence):
        answer = f"evidence {of_all.value:.4g}"
    elif of_all.takes_costs:
        answer = "for any aim"
    else:
        best = of_all.optimum
        ends = best.threshold, best.lower, best.upper
        answer = f"threshold {within(*ends, direction=best.direction)}"
    samples = len(merged.model if isinstance(merged, Ledger) else merged)
    print_messages(f"{options.output}: {samples:,} samples, {answer}", quiet=options.quiet)
    return 0
