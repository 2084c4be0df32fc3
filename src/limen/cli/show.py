# SPDX-License-Identifier: Apache-2.0
"""``limen show``: what saved models hold, and the rule of one for others to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import limen
from limen.cli.aims import aim_of
from limen.cli.exits import BAD_INPUT, FAILED, NOT_FOUND, USAGE, Failure
from limen.cli.option_values import period_text
from limen.cli.output import as_line, print_messages
from limen.cli.refusals import as_failure
from limen.errors import Infeasible
from limen.export import OtherAim, Rule, best_of, groups_of
from limen.memory.ledger import Ledger

if TYPE_CHECKING:
    from argparse import Namespace

    from limen.aim import Aim

__all__ = ["asked_of", "loaded", "rule_of", "show"]


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
    """Print what saved models hold, or the rule of one for others to run."""
    asked = asked_of(options)
    if options.language is not None:
        return _show_rule(options, asked)
    if options.score_column is not None or options.group_columns is not None:
        raise Failure("--score-column and --group-column go with --as sql.", USAGE)
    for path in options.files:
        model = loaded(path)
        try:
            found = facts(model, asked)
        except Infeasible as infeasible:
            raise as_failure(infeasible, f"{path}: ") from None
        except OtherAim:
            raise _own_costs(path, model) from None
        print(as_line({"file": path, **found}), end="")
        print_messages(f"{path}: {model!r}", quiet=options.quiet)
        if "threshold" not in found and "value" not in found:
            print_messages(
                f"limen: {path} holds samples for any aim. Ask with costs, --metric or demands, "
                "such as --false-negative 5.",
                quiet=options.quiet,
            )
    return 0


def _show_rule(options: Namespace, aim: Aim | None) -> int:
    """Print the rule of a saved model in another language."""
    if len(options.files) > 1:
        raise Failure("--as takes one file at a time.", USAGE)
    sql = options.language == "sql"
    if not sql and (options.score_column is not None or options.group_columns is not None):
        raise Failure("--score-column and --group-column go with --as sql.", USAGE)
    path = options.files[0]
    rule = rule_of(path, aim)
    try:
        if sql:
            written = rule.as_sql(options.score_column or "score", options.group_columns or ())
        else:
            written = rule.as_json() if options.language == "json" else rule.as_python()
    except ValueError as error:
        raise Failure(f"{path}: {error}", USAGE) from None
    print(written.rstrip("\n"))
    return 0


def asked_of(options: Namespace) -> Aim | None:
    """Return the aim that the options ask for; None where they ask for none."""
    aim = aim_of(options)
    costs_given = (options.false_positive, options.false_negative) != (None, None)
    return aim if not aim.by_cost or costs_given else None


def rule_of(path: str, aim: Aim | None) -> Rule:
    """Return the rule by which a saved model answers."""
    model = loaded(path)
    try:
        return Rule.of(model, aim)
    except Infeasible as infeasible:
        raise as_failure(infeasible, f"{path}: ") from None
    except OtherAim:
        if aim is not None:
            raise _own_costs(path, model) from None
        raise Failure(
            f"{path} holds samples for any aim. Ask with costs, --metric or demands, such as "
            "--false-negative 5.",
            USAGE,
        ) from None
    except TypeError as error:
        raise Failure(f"{path}: {error} Name a model.", USAGE) from None


def _own_costs(path: str, model: Any) -> Failure:
    return Failure(
        f"{path} holds a {type(model).__name__} with costs of its own, which answers no others. "
        "Save one that does with: limen fit FILE --metric NAME --save MODEL",
        USAGE,
    )


def facts(model: Any, aim: Aim | None) -> dict[str, Any]:
    """Return what a model is, what it holds, and its best cut by the aim or by its own costs."""
    grouped = groups_of(model)
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
    if isinstance(model, limen.Evidence | limen.Alarm):
        if aim is not None:
            raise OtherAim
        names = ("wins", "losses", "rate", "bound", "missing", "value", "decided", "raised")
        known = {name: getattr(model, name) for name in names if hasattr(model, name)}
        return found | _settings(model) | known
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
    if getattr(model, "takes_costs", False) and aim is None:
        return {}
    best = best_of(model, aim)
    asked = aim.facts() if aim is not None and model.takes_costs else {}
    found = {"threshold": best.threshold, "lower": best.lower, "upper": best.upper}
    worth = {name: getattr(best, name) for name in ("loss", "value") if hasattr(best, name)}
    return asked | found | worth
