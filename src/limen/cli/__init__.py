# SPDX-License-Identifier: Apache-2.0
"""The command ``limen``: from files to a threshold, without a line of Python.

Data goes to standard output, messages to standard error. `limen.cli.exits` lists the exit codes.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from limen.cli.exits import FAILED, INTERRUPTED, PIPE_CLOSED, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    >>> main(["demo", "--csv"])  # doctest: +ELLIPSIS
    score,label
    0.5,1
    ...
    0
    """
    from limen.cli.options import options_of

    _stand_in_for_closed_streams()
    try:
        try:
            given = sys.argv[1:] if arguments is None else arguments
            options = options_of(given)
            if options.command is None:
                return 0
            options.arguments = given
            try:  # the function of its name in the module of its name, imported when it is needed
                module = import_module(f"limen.cli.{options.command}")
            except ModuleNotFoundError as error:
                raise Failure(
                    f"{options.command} needs {error.name}. Install it with: "
                    'pip install "limen[cli]"'
                ) from None
            code: int = getattr(module, options.command)(options)
            return code
        finally:  # also after --help, which ends the process
            sys.stdout.flush()
    except Failure as failure:
        return _failed(str(failure), failure.code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whatever is left in the buffer has no reader; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return _failed(f"{where}{error.strerror or error}.", FAILED)
    except MemoryError as error:
        return _failed(str(error) or "there is not enough memory.", FAILED)


class _Closed(io.TextIOBase):
    """Standard output where there is none: to write to it fails."""

    def write(self, text: str) -> int:
        raise Failure("standard output is closed. Send it to a file, a pipe or /dev/null.")


def _stand_in_for_closed_streams() -> None:
    """Reserve the numbers of closed standard streams, so that no file opened later gets one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = io.StringIO()


def _failed(message: str, code: int) -> int:
    print(f"limen: {message}", file=sys.stderr)
    return code


def run() -> None:
    """Run the command of this process and end it."""
    sys.exit(main())
