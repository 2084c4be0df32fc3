# SPDX-License-Identifier: Apache-2.0
"""The options of ``serve`` and of what its operator does besides."""

from __future__ import annotations

from typing import Any

from limen.cli.option_values import count, number
from limen.service import SCOPES

__all__ = ["serve_options"]


def serve_options(command: Any) -> None:
    """Add them to the parser of the command."""
    _where(command)
    command.add_argument("--bind", metavar="ADDRESS", help="where to listen (127.0.0.1:8787)")
    command.add_argument("--cert", metavar="FILE", help="the certificate, for TLS")
    command.add_argument("--key", metavar="FILE", help="the key of the certificate")
    command.add_argument(
        "--behind-proxy",
        action="store_true",
        default=None,
        help="a proxy in front does TLS, so that other machines may connect without it",
    )
    command.add_argument(
        "--retention", metavar="PERIOD", help="delete events of this age, such as 365d"
    )
    command.add_argument("--tick", metavar="PERIOD", help="how often expiry and policies run (60s)")
    command.add_argument(
        "--access-log", action="store_true", default=None, help="a line for every request"
    )
    command.add_argument(
        "--check", action="store_true", help="print the settings that would hold, and end"
    )
    acts = command.add_subparsers(metavar="ACT", title="for operators", dest="act")
    _token(acts)
    _point(acts)
    clock = _acts(acts, "clock", "show the time of the service, or confirm the clock")
    _act(clock, "show", "show the time of the service, and what is wrong with the clock")
    _act(clock, "accept", "follow the clock as it is: what is too old by it is then deleted")
    backup = _act(acts, "backup", "copy the data, while the server runs or not")
    backup.add_argument("to", metavar="FOLDER", help="a new directory")
    restore = _act(acts, "restore", "put a backup where there is no data")
    restore.add_argument("source", metavar="FOLDER", help="the directory of the backup")
    verify = _act(acts, "verify", "fold the log again and compare every digest and snapshot")
    verify.add_argument(
        "--accept",
        action="store_true",
        help="go on with a log that lost its end: what it lacks was acknowledged and is lost",
    )
    _act(acts, "snapshot", "make a snapshot now; the server does so by itself")


def _where(command: Any) -> None:
    command.add_argument("--config", metavar="FILE", help="the settings, as TOML")
    command.add_argument("--data", metavar="FOLDER", help="the data directory (limen-data)")


def _act(acts: Any, name: str, help: str) -> Any:
    act = acts.add_parser(name, help=help, description=help, allow_abbrev=False)
    act.set_defaults(command="serve")
    _where(act)
    return act


def _acts(acts: Any, name: str, help: str) -> Any:
    act = acts.add_parser(name, help=help, description=help, allow_abbrev=False)
    act.set_defaults(command="serve")
    return act.add_subparsers(metavar="DO", dest="do", required=True)


def _token(acts: Any) -> None:
    does = _acts(acts, "token", "make, list and revoke tokens")
    add = _act(does, "add", "make a token and print it, once")
    add.add_argument("name", help="of the token: small letters, digits and hyphens")
    add.add_argument(
        "--scope", action="append", choices=SCOPES, required=True, help="what it allows; repeat it"
    )
    add.add_argument("--point", action="append", metavar="NAME", help="for this one only; repeat")
    add.add_argument("--expires", metavar="TIME", help="such as 2027-01-01T00:00:00Z")
    _act(does, "list", "list tokens without their secrets")
    revoke = _act(does, "revoke", "let a token be worth nothing from now on")
    revoke.add_argument("name", help="of the token")


def _point(acts: Any) -> None:
    does = _acts(acts, "point", "define and list points")
    _act(does, "list", "list points and their versions")
    add = _act(does, "add", "define a point, or replace its definition")
    add.add_argument("name", help="of the point")
    add.add_argument("--definition", metavar="FILE", help="as TOML or JSON; options override it")
    add.add_argument("--false-positive", type=number, metavar="NUMBER", help="cost of a false 1")
    add.add_argument("--false-negative", type=number, metavar="NUMBER", help="cost of a missed 1")
    add.add_argument("--lower-is-positive", action="store_true", help="answer 1 to low scores")
    add.add_argument("--zero", metavar="WORDS", help='what answer 0 is called: "let through"')
    add.add_argument("--one", metavar="WORDS", help="what answer 1 is called: block")
    add.add_argument("--period", metavar="PERIOD", help="count samples of the last 90d only")
    add.add_argument("--half-life", metavar="PERIOD", help="let samples count half after 30d")
    add.add_argument("--time-to-live", metavar="PERIOD", help="how long scores wait for labels")
    add.add_argument("--maturity", metavar="PERIOD", help="how old a label 0 must be to count")
    add.add_argument(
        "--segments-at-least", type=count, metavar="NUMBER", help="samples that a segment needs"
    )
    add.add_argument(
        "--policy", choices=("manual", "proposed", "automatic"), help="how thresholds change"
    )
