# SPDX-License-Identifier: Apache-2.0
"""The command ``limen``: from files to a threshold, without a line of Python.

Data goes to standard output, talk to standard error. `limen.cli.outcome` lists the exit codes.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from limen.cli.outcome import FAILED, INTERRUPTED, PIPE_CLOSED, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

# A command is the function of its name in its module, which is imported when it is needed.
_HOMES = {
    "fit": "commands",
    "curve": "commands",
    "compare": "commands",
    "watch": "watch",
    "report": "report",
    "merge": "models",
    "show": "models",
    "demo": "commands",
    "completion": "completion",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    >>> main(["demo", "--csv"])  # doctest: +ELLIPSIS
    score,label
    0.5,1
    ...
    0
    """
    from limen.cli.options import parser

    try:
        try:
            whole = parser()
            options = whole.parse_args(arguments)
            if options.command is None:
                whole.print_help()
                return 0
            module = import_module(f"limen.cli.{_HOMES[options.command]}")
            code: int = getattr(module, options.command)(options)
            return code
        finally:  # also after --help, which ends the process
            sys.stdout.flush()
    except Failure as failure:
        return _told(str(failure), failure.code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whatever is left in the buffer has no reader; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (MemoryError, OSError) as error:
        return _told(str(error) or type(error).__name__, FAILED)


def _told(message: str, code: int) -> int:
    print(f"limen: {message}", file=sys.stderr)
    return code


def run() -> None:
    """Run the command of this process and end it."""
    sys.exit(main())
