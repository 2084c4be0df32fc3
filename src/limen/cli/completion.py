# SPDX-License-Identifier: Apache-2.0
"""The script that completes commands, options and their values in a shell; shtab writes it."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from typing import TYPE_CHECKING, Any, cast

from limen.cli.exits import FAILED, Failure
from limen.cli.options import parser
from limen.names import METRIC_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["completion"]


def completion(options: Namespace) -> int:
    """Write the script for a shell."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise Failure(
            'completion needs shtab. Install it with: pip install "limen[cli]"', FAILED
        ) from None
    limen = parser()
    for action in _actions(limen):
        if action.metavar in ("FILE", "MODEL"):
            cast(Any, action).complete = shtab.FILE
        elif action.dest == "metric":
            cast(Any, action).complete = shtab.cmd(f"echo {' '.join(METRIC_NAMES)}")
    print(shtab.complete(limen, options.shell))
    return 0


def _actions(command: ArgumentParser) -> Iterator[Action]:
    """Every argument and option, also those of the commands."""
    for action in command._actions:
        yield action
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
