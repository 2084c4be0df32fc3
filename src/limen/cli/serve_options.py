# SPDX-License-Identifier: Apache-2.0
"""The options of ``serve`` and of what its operator does besides."""

from __future__ import annotations

from typing import Any

from limen.cli.option_values import count, number

__all__ = ["serve_options"]

SCOPES = ("score", "label", "read", "audit", "forget", "approve", "follow", "admin")


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
    command.add_argument("--tick", metavar="PERIOD", help="how often time goes by (60s)")
    command.add_argument(
        "--access-log", action="store_true", default=None, help="a line for every request"
    )
    command.add_argument(
        "--check", action="store_true", help="print the settings that would hold, and end"
    )
    acts = command.add_subparsers(metavar="ACT", title="for operators", dest="act")
    _token(acts)
    _point(acts)
    backup = _act(acts, "backup", "copy the data, while the server runs or not")
    backup.add_argument("to", metavar="FOLDER", help="a new directory")
    restore = _act(acts, "restore", "put a backup where there is no data")
    restore.add_argument("source", metavar="FOLDER", help="the directory of the backup")
    verify = _act(acts, "verify", "fold the log anew and compare every digest and snapshot")
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


def _token(acts: Any) -> None:
    act = _act(acts, "token", "make, list and revoke tokens")
    act.add_argument("do", choices=("add", "list", "revoke"))
    act.add_argument("name", nargs="?", help="of the token: small letters, digits and hyphens")
    act.add_argument(
        "--scope", action="append", choices=SCOPES, default=[], help="what it allows; repeat it"
    )
    act.add_argument(
        "--point", action="append", default=[], metavar="NAME", help="for this point only; repeat"
    )
    act.add_argument("--expires", metavar="TIME", help="such as 2027-01-01T00:00:00Z")


def _point(acts: Any) -> None:
    act = _act(acts, "point", "define and list points")
    act.add_argument("do", choices=("add", "list"))
    act.add_argument("name", nargs="?", help="of the point")
    act.add_argument("--definition", metavar="FILE", help="as JSON; options override it")
    act.add_argument("--false-positive", type=number, metavar="NUMBER", help="cost of a false 1")
    act.add_argument("--false-negative", type=number, metavar="NUMBER", help="cost of a missed 1")
    act.add_argument("--period", metavar="PERIOD", help="count samples of the last 90d only")
    act.add_argument("--half-life", metavar="PERIOD", help="let samples count half after 30d")
    act.add_argument("--time-to-live", metavar="PERIOD", help="how long scores wait for labels")
    act.add_argument("--maturity", metavar="PERIOD", help="how old a label 0 must be to count")
    act.add_argument(
        "--segments-at-least", type=count, metavar="NUMBER", help="samples that a segment needs"
    )
    act.add_argument("--policy", choices=("manual", "automatic"), help="how thresholds change")
