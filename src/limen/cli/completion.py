# SPDX-License-Identifier: Apache-2.0
"""The scripts that complete commands, options and their values, written from the parser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from limen.cli.options import METRICS, parser

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["completion"]


def completion(options: argparse.Namespace) -> int:
    """Write the script for a shell."""
    commands = _commands()
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    print("\n".join(write(commands)))
    return 0


def _commands() -> dict[str, tuple[str, list[Any]]]:
    """Help and actions of every command."""
    actions = parser()._actions
    (found,) = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    said = {choice.dest: choice.help or "" for choice in found._choices_actions}
    return {name: (said[name], command._actions) for name, command in found.choices.items()}


def _values(action: Any) -> list[str]:
    """List the words that may follow an option."""
    if action.dest == "metric":
        return list(METRICS)
    return [str(choice) for choice in action.choices or ()]


def _long(action: Any) -> str:
    return str(action.option_strings[-1])


def _bash(commands: dict[str, tuple[str, list[Any]]]) -> Iterator[str]:
    yield "_limen() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield "    COMPREPLY=()"
    yield "    if (( COMP_CWORD == 1 )); then"
    words = " ".join([*commands, "--help", "--version"])
    yield f'        COMPREPLY=($(compgen -W "{words}" -- "$word"))'
    yield "        return"
    yield "    fi"
    yield '    case "${COMP_WORDS[1]} $before" in'
    for name, (_, actions) in commands.items():
        for action in actions:
            if action.option_strings and _values(action):
                names = "|".join(f'"{name} {option}"' for option in action.option_strings)
                words = " ".join(_values(action))
                yield f'        {names}) COMPREPLY=($(compgen -W "{words}" -- "$word")); return ;;'
    yield "    esac"
    yield '    case "${COMP_WORDS[1]}" in'
    for name, (_, actions) in commands.items():
        words = " ".join(
            word
            for action in actions
            for word in ([_long(action)] if action.option_strings else _values(action))
        )
        yield f'        {name}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;'
    yield "    esac"
    yield '    [[ $word != -* ]] && COMPREPLY+=($(compgen -f -- "$word"))'
    yield "}"
    yield "complete -o filenames -F _limen limen"


def _zsh(commands: dict[str, tuple[str, list[Any]]]) -> Iterator[str]:
    yield "#compdef limen"
    yield "_limen() {"
    yield "    local -a commands=("
    for name, (said, _) in commands.items():
        yield f"        {_single(f'{name}:{said}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then"
    yield "        _describe command commands"
    yield "        return"
    yield "    fi"
    yield '    case "$words[2]" in'
    for name, (_, actions) in commands.items():
        yield f"        {name})"
        yield "            _arguments \\"
        for action in actions:
            if action.option_strings:
                yield f"                {_zsh_option(action)} \\"
        rest = [action for action in actions if not action.option_strings]
        values = [value for action in rest for value in _values(action)]
        last = f"*:value:({' '.join(values)})" if values else "*:file:_files"
        yield f"                {_single(last)}"
        yield "            ;;"
    yield "    esac"
    yield "}"
    yield '[[ $zsh_eval_context[-1] == loadautofunc ]] && _limen "$@" || compdef _limen limen'


def _zsh_option(action: Any) -> str:
    said = (action.help or "").replace("[", "(").replace("]", ")").replace("%%", "%")
    text = f"*{_long(action)}[{said}]"
    if action.nargs != 0:
        values = " ".join(_values(action))
        where = f"({values})" if values else "_files" if action.metavar == "FILE" else ""
        text += f":{action.dest.replace('_', ' ')}:{where}"
    return _single(text)


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(commands: dict[str, tuple[str, list[Any]]]) -> Iterator[str]:
    none = "__fish_use_subcommand"
    for name, (said, actions) in commands.items():
        yield f"complete -c limen -f -n {none} -a {name} -d {_fish_text(said)}"
        seen = _single(f"__fish_seen_subcommand_from {name}")
        for action in actions:
            if not action.option_strings:
                for value in _values(action):
                    yield f"complete -c limen -f -n {seen} -a {value}"
                continue
            line = f"complete -c limen -n {seen} -l {_long(action).lstrip('-')}"
            line += "".join(f" -s {short[1]}" for short in action.option_strings if short[1] != "-")
            if action.nargs != 0:
                line += " -r"
                if _values(action):
                    line += f" -f -a {_single(' '.join(_values(action)))}"
            yield f"{line} -d {_fish_text((action.help or '').replace('%%', '%'))}"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
