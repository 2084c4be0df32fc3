# SPDX-License-Identifier: Apache-2.0
"""The commands about saved models: what they hold, and one made of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import limen
from limen.cli.commands import aim_of, asked, costs_of, unmet
from limen.cli.exits import BAD_INPUT, FAILED, NOT_FOUND, USAGE, Failure
from limen.cli.options import period_text
from limen.cli.output import as_line, require_distinct, require_writable, say
from limen.digits import within
from limen.errors import Infeasible
from limen.storage.journal import Damaged, has_more
from limen.units import exact_costs

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["merge", "show"]


def loaded(path: str) -> Any:
    """Bring back what was saved in a file."""
    try:
        return limen.load(path)
    except FileNotFoundError:
        raise Failure(f"{path} is not there. Check the name.", NOT_FOUND) from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", FAILED) from None
    except ValueError as error:
        raise Failure(str(error), BAD_INPUT) from None


def show(options: Namespace) -> int:
    """Tell what saved models hold."""
    for path in options.files:
        model = loaded(path)
        try:
            told = facts(model, options)
        except Infeasible as infeasible:
            raise unmet(infeasible, f"{path}: ") from None
        except _Settled:
            raise Failure(
                f"{path} holds a {type(model).__name__} with costs of its own, which answers no "
                "others. Save one that does with: limen fit FILE --metric NAME --save MODEL",
                USAGE,
            ) from None
        print(as_line({"file": path, **told}), end="")
        say(f"{path}: {model!r}", quiet=options.quiet)
        if "threshold" not in told:
            say(
                f"limen: {path} holds samples for any aim. Ask with costs, --metric or demands, "
                "such as --false-negative 5.",
                quiet=options.quiet,
            )
        try:
            more = has_more(path)
        except Damaged as error:
            raise Failure(str(error), BAD_INPUT) from None
        if more:
            say(
                f"limen: {path}.journal holds more rows, which count when limen watch goes on.",
                quiet=options.quiet,
            )
    return 0


class _Settled(Exception):  # noqa: N818 - reads as what happened
    """A model has its costs already and was asked about others."""


def facts(model: Any, options: Namespace) -> dict[str, Any]:
    """Tell what a model is, what it holds and what it answers to what is asked."""
    if isinstance(model, limen.Grouped):
        whole = facts(model.model(()), options)
        groups = [
            {
                "group": path[0] if len(path) == 1 else list(path),
                "samples": model.count(path),
                "own": model.source(path) == path,
                **_answer(model.model(path), options),
            }
            for path in model
            if path
        ]
        kind = {"kind": "Grouped", "at_least": model.at_least, "model": whole.pop("kind")}
        return kind | whole | {"groups": groups}
    told: dict[str, Any] = {"kind": type(model).__name__}
    inner = model
    while inner is not None:
        told |= {
            name: value if isinstance(value, int | float | str) else period_text(value)
            for name, value in inner.settings.items()
            if value is not None
        }
        wrapped = getattr(inner, "model", None)
        if wrapped is None:
            break
        inner = wrapped
        told["model"] = type(inner).__name__
    told |= {"samples": len(inner), **_answer(model, options)}
    if isinstance(model, limen.Ledger):
        told |= {"ids": len(model), "cost": model.cost, "regret": model.regret}
    return told


def _answer(model: Any, options: Namespace) -> dict[str, Any]:
    """Tell the cut of a model: its own, or that of what is asked; nothing where nothing is."""
    aim, demands = aim_of(options)
    told: dict[str, Any] = {}
    is_asked = aim is not None or (options.false_positive, options.false_negative) != (None, None)
    if not model.takes_costs:
        if is_asked and (aim is not None or not _has(model, costs_of(options))):
            raise _Settled
        best = model.optimum
    elif not is_asked:
        return told
    else:
        told = asked(options, aim, demands)
        best = model.optimum(**costs_of(options)) if aim is None else model.best(aim, **demands)
    told |= {"threshold": best.threshold, "lower": best.lower, "upper": best.upper}
    return told | ({"loss": best.loss} if hasattr(best, "loss") else {"value": best.value})


def _has(model: Any, costs: dict[str, Any]) -> bool:
    """Tell whether these are the costs that a model was made for."""
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
        if not hasattr(model, "merge"):
            raise Failure(
                f"{path} holds a {type(model).__name__}, which cannot be merged: its samples have "
                "an order, ids or groups. Merge plain models.",
                BAD_INPUT,
            )
    try:
        merged = limen.merge(models)
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    merged.save(options.output)
    shown = "for any aim"
    if not merged.takes_costs:
        best = merged.optimum
        shown = f"threshold {within(best.threshold, best.lower, best.upper)}"
    say(f"{options.output}: {len(merged):,} samples, {shown}", quiet=options.quiet)
    return 0
