# SPDX-License-Identifier: Apache-2.0
"""The commands about saved models: what they hold, and one made of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import limen
from limen.cli.journal import has_more
from limen.cli.options import period_text
from limen.cli.outcome import BAD_INPUT, FAILED, NOT_FOUND, Failure
from limen.cli.telling import as_line, plain, require_writable, say

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
        print(as_line({"file": path, **facts(model)}), end="")
        say(f"{path}: {model!r}", quiet=options.quiet)
        if has_more(path):
            say(
                f"limen: {path}.journal holds more rows, which count when limen watch goes on.",
                quiet=options.quiet,
            )
    return 0


def facts(model: Any) -> dict[str, Any]:
    """Tell what a model is, what it holds and what it answers.

    >>> facts(limen.OnlineThreshold(false_negative=5))["kind"]
    'OnlineThreshold'
    """
    told: dict[str, Any] = {"kind": type(model).__name__}
    inner = model
    while inner is not None:
        given = getattr(inner, "_given", {}) | {
            name: getattr(inner, name) for name in ("n", "period") if hasattr(type(inner), name)
        }
        told |= {
            name: number if isinstance(number, int | float) else period_text(number)
            for name, number in given.items()
            if number is not None
        }
        within = getattr(inner, "model", None)
        if within is None:
            break
        inner = within
        told["model"] = type(inner).__name__
    told["samples"] = len(inner)
    optimum = model.optimum() if callable(model.optimum) else model.optimum
    told |= {
        "threshold": optimum.threshold,
        "lower": optimum.lower,
        "upper": optimum.upper,
        "loss": optimum.loss,
    }
    if isinstance(model, limen.Ledger):
        told |= {"ids": len(model), "cost": model.cost, "regret": model.regret}
    return told


def merge(options: Namespace) -> int:
    """Make one model of the samples of many."""
    require_writable(options.output, options.force)
    models = [loaded(path) for path in options.files]
    for path, model in zip(options.files, models, strict=True):
        if not hasattr(model, "merge"):
            raise Failure(
                f"{path} holds a {type(model).__name__}, which cannot be merged: its samples have "
                "an order or ids. Merge plain models.",
                BAD_INPUT,
            )
    try:
        merged = limen.merge(models)
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    merged.save(options.output)
    threshold = merged.optimum() if callable(merged.optimum) else merged.optimum
    say(
        f"{options.output}: {len(merged):,} samples, threshold {plain(threshold.threshold)}",
        quiet=options.quiet,
    )
    return 0
