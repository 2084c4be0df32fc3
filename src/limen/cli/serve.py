# SPDX-License-Identifier: Apache-2.0
"""The command ``serve``: run the service, and what its operator does besides."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from limen.cli.exits import BAD_INPUT, FAILED, USAGE, Failure

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["serve"]

_SETTINGS = ("data", "bind", "cert", "key", "behind_proxy", "retention", "access_log", "tick")


def serve(options: Namespace) -> int:
    """Run the server, or one of the operator's commands."""
    try:
        import msgspec  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise Failure(
            f'serve needs {error.name}. Install it with: pip install "limen[serve]"', FAILED
        ) from None
    import sqlite3

    from limen.service.log.store import Damaged, InUse
    from limen.service.problems import Refused

    acts = {
        None: _run,
        "token": _token,
        "point": _point,
        "clock": _clock,
        "backup": _backup,
        "restore": _restore,
        "verify": _verify,
        "snapshot": _snapshot,
    }
    try:
        return acts[options.act](options)
    except (Damaged, InUse) as error:
        raise Failure(str(error), FAILED) from None
    except sqlite3.OperationalError as error:
        text = f"the log cannot be opened or written: {error}. Is the disk full, or failing?"
        raise Failure(text, FAILED) from None
    except Refused as refused:
        raise Failure(refused.detail, BAD_INPUT) from None
    except ValueError as error:
        raise Failure(str(error), BAD_INPUT) from None


def _settings(options: Namespace) -> Any:
    from limen.service.settings import settings_of

    given = {name: getattr(options, name, None) for name in _SETTINGS}
    return settings_of(
        options.config, {name: value for name, value in given.items() if value is not None}
    )


def _run(options: Namespace) -> int:
    settings = _settings(options)
    if options.check:
        print(json.dumps(settings.shown(), indent=2))
        return 0
    from limen.service.http.server import serve as run

    run(settings)
    return 0


def _folder(options: Namespace) -> Path:
    return Path(_settings(options).data)


def _asked(options: Namespace, method: str, path: str, body: Any = None) -> Any:
    """Ask the running server by its socket; without one, be the server for a moment."""
    from limen.service.http.control import ask

    return ask(_folder(options), method, path, body)


def _token(options: Namespace) -> int:
    if options.do == "add":
        body = {"name": options.name, "scopes": options.scope}
        if options.point:
            body["points"] = options.point
        if options.expires:
            body["expires"] = options.expires
        print(_asked(options, "POST", "/v1/tokens", body)["token"])
        print("limen: keep it: it is not shown again.", file=sys.stderr)
    elif options.do == "revoke":
        _asked(options, "DELETE", f"/v1/tokens/{quote(options.name, safe='')}")
    else:
        for token in _asked(options, "GET", "/v1/tokens"):
            print(json.dumps(token))
    return 0


def _point(options: Namespace) -> int:
    if options.do == "list":
        for point in _asked(options, "GET", "/v1/points"):
            print(json.dumps(point))
        return 0
    definition: dict[str, Any] = {}
    if options.definition is not None:
        from limen.cli.watch_options import definition_in

        definition = definition_in(options.definition)
        definition.pop("watch", None)  # what only a stream has
    if options.zero is not None or options.one is not None:
        if options.zero is None or options.one is None:
            raise Failure("point add takes --zero and --one together, or neither.", USAGE)
        definition["words"] = {"zero": options.zero, "one": options.one}
    for name in ("false_positive", "false_negative"):
        cost = getattr(options, name)
        if cost is not None:
            definition[name] = cost if isinstance(cost, int) else float(cost)
    if options.lower_is_positive:
        definition["direction"] = "<="
    for name in ("time_to_live", "maturity"):
        if getattr(options, name) is not None:
            definition[name] = getattr(options, name)
    if options.period is not None:
        definition["memory"] = {"keep": "period", "length": options.period}
    if options.half_life is not None:
        definition["memory"] = {"keep": "fading", "length": options.half_life}
    if options.segments_at_least is not None:
        definition["segments"] = {"at_least": options.segments_at_least}
    if options.policy is not None:
        definition.setdefault("change", {})["policy"] = options.policy
    found = _asked(options, "PUT", f"/v1/points/{quote(options.name, safe='')}", definition)
    if "number" in found:
        print(
            f"limen: nothing has changed yet: under four eyes this definition is proposal "
            f"{found['number']}, which another person has to approve.",
            file=sys.stderr,
        )
    elif found["warning"]:
        print(f"limen: {found['warning']}", file=sys.stderr)
    print(json.dumps(found["definition"], indent=2))
    return 0


def _clock(options: Namespace) -> int:
    method = "POST" if options.do == "accept" else "GET"
    print(json.dumps(_asked(options, method, "/v1/clock")))
    return 0


def _backup(options: Namespace) -> int:
    from limen.service.log.backup import backup

    last = backup(_folder(options), Path(options.to))
    print(f"limen: events up to {last} are in {options.to}.", file=sys.stderr)
    return 0


def _restore(options: Namespace) -> int:
    from limen.service.log.backup import restore

    restore(Path(options.source), _folder(options))
    print(
        "limen: restored. Tokens that were revoked and ids that were forgotten after the backup "
        "are back: revoke and forget them again.",
        file=sys.stderr,
    )
    return 0


def _verify(options: Namespace) -> int:
    from limen.service.log.snapshots import verified

    print(json.dumps(verified(_folder(options), accept=options.accept)))
    return 0


def _snapshot(options: Namespace) -> int:
    from limen.service.log.snapshots import make

    os.nice(5)
    make(_folder(options))
    return 0
