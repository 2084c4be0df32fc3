# SPDX-License-Identifier: Apache-2.0
"""How a command line is read: errors in the words of limen, and defaults from the environment."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from limen.cli.exits import USAGE
from limen.names import OPTION_ALIASES

__all__ = ["Alone", "Parser", "command", "filled", "option_name"]

_NEGATIVE = re.compile(r"-((\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[-+]?\d+)?|inf|infinity|nan)$", re.I)


class Parser(argparse.ArgumentParser):
    """Words errors as the rest of limen does, and takes defaults from the environment."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        # argparse takes -4e-05 and -inf for options, and fit prints such thresholds.
        self._negative_number_matcher = _NEGATIVE

    def error(self, message: str) -> Any:
        """End with a message and the way to help."""
        self.exit(USAGE, f"limen: {message}\nTry: {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read options as typed, or else by the environment."""
        kept = {}
        for name in [name for name in os.environ if name.startswith("LIMEN_")]:
            option = f"--{name.removeprefix('LIMEN_').replace('_', '-')}".swapcase()
            action = self._option_string_actions.get(option)
            if action is not None and action.nargs is None and (typed := os.environ[name]):
                kept[action.dest] = self._from_environment(action, name, typed)
                action.default, action.required = None, False
        found, rest = super().parse_known_args(self._renamed(args), namespace)
        for dest, value in kept.items():
            if getattr(found, dest) is None:
                setattr(found, dest, value)
        if rest and self.get_default("command") is not None:
            self._refuse(rest[0])
        return found, rest

    def _renamed(self, args: Any) -> Any:
        """Write options by their own names, where others were typed that mean the same."""
        words = list(sys.argv[1:] if args is None else args)
        for at, word in enumerate(words):
            if word == "--":
                break
            if word.startswith("--") and word.split("=")[0] not in self._option_string_actions:
                name, *value = word[2:].split("=", 1)
                own = f"--{OPTION_ALIASES.get(name, '')}"
                if own in self._option_string_actions:
                    words[at] = "=".join([own, *value])
        return words

    def _from_environment(self, action: argparse.Action, name: str, typed: str) -> Any:
        """Read a variable as its option would be; of one that may be repeated, several values."""
        several = isinstance(action, argparse._AppendAction)
        try:
            texts = (several and typed.split()) or [typed]
            values = [self._get_value(action, text) for text in texts]
            for value in values:
                self._check_value(action, value)
        except argparse.ArgumentError as error:
            self.error(f"{name}: {error.message}")
        return values if several else values[0]

    def _refuse(self, word: str) -> None:
        """Refuse a word that this command does not know."""
        command = self.get_default("command")
        if not word.startswith("-"):
            self._refuse_word(command, word)
        from difflib import get_close_matches

        known = [_long(action) for action in self._actions if action.option_strings]
        typed = word.split("=")[0].lstrip("-")
        # The beginning of one name, such as --score of --score-column, is nearer than any other.
        longer = [name for name in known if name.startswith(f"{typed}-")]
        near = longer if len(longer) == 1 else get_close_matches(typed, known, 1)
        hint = f" Did you mean --{near[0]}?" if near else ""
        self.error(f"{command} has no option {word}.{hint}")

    def _refuse_word(self, command: str, word: str) -> None:
        """Refuse a word that is no option: a file, or a second value of an option."""
        if command == "watch":
            self.error(
                "watch takes no file: it reads standard input, row by row as they come. For a file "
                f"that is complete: limen watch < {word}"
            )
        again = next((each for each in self._actions if each.dest == "thresholds"), None)
        if again is not None and _NEGATIVE.match(f"-{word}"):
            self.error(
                f"{command} takes one number after each {again.option_strings[0]}. Write "
                f"{again.option_strings[0]} {word} for one more."
            )
        self.error(f"{command} does not expect the word {word!r}. Name all files in one place.")


class Alone:
    """In the place of the commands of a parser: makes the parser of one of them alone."""

    made: Parser

    def __init__(self, prog: str) -> None:
        self.prog = prog

    def add_parser(self, name: str, *, help: str, **given: Any) -> Parser:
        """Make the parser of a command."""
        self.made = Parser(prog=f"{self.prog} {name}", **given)
        return self.made


def _long(action: argparse.Action) -> str:
    """Name an option without its dashes."""
    return action.option_strings[-1].lstrip("-") if action.option_strings else ""


def option_name(name: str) -> str:
    """Write the name of an option as it is typed.

    >>> option_name("min_recall")
    '--min-recall'
    """
    return f"--{name.replace('_', '-')}"


def filled(text: str) -> str:
    """Break a text into lines for help."""
    from textwrap import fill  # argparse loads it too, but only to show help

    return fill(text, 79)


def command(commands: Any, name: str, description: str, example: str) -> Parser:
    """Add a command, whose help is the first sentence of its description."""
    made: Parser = commands.add_parser(
        name,
        help=description[0].lower() + description[1:].split(".")[0],
        description=filled(description),
        epilog="\n  ".join(["example:", *example.splitlines()]) + "\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.set_defaults(command=name)
    return made
