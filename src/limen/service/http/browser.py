# SPDX-License-Identifier: Apache-2.0
"""What browsers ask besides the API: files from a fixed table, signing in and out."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from limen import __version__, page
from limen.service import SCOPES
from limen.service.bodies import SignIn
from limen.service.http.app import Answer, Call, encode
from limen.service.http.cookies import require_same_origin
from limen.service.http.routes import Route
from limen.service.points.events import as_datetime
from limen.service.points.state import Token
from limen.service.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["SESSIONS", "files"]

_TYPES = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "ico": b"image/x-icon",
    "js": b"text/javascript; charset=utf-8",
    "png": b"image/png",
    "svg": b"image/svg+xml",
    "webmanifest": b"application/manifest+json",
}
_PAGE = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; "
        b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]


async def session(call: Call) -> Answer:
    """Say who asks, and what they may do; nobody is not refused, as a page asks this first."""
    try:
        call.app.require(call, None)
    except Refused as refused:
        if refused.name != "unauthorized":
            raise
        return Answer(encode({**_shown(call, None), "name": None, "scopes": [], "open": False}))
    return Answer(encode(_shown(call, call.token)))


def _shown(call: Call, token: Token | None) -> dict[str, Any]:
    ends = call.ends or (None if token is None else token.expires)
    return {
        "name": call.by if token is None else token.name,
        "scopes": list(SCOPES) if token is None else token.scopes,
        "points": None if token is None else token.points,
        "expires": None if ends is None else as_datetime(ends),
        "open": token is None,
        "server": {"limen": __version__},
    }


async def sign_in(call: Call) -> Answer:
    """Begin a session: a token once, then a cookie."""
    if b"sec-fetch-site" in call.headers or b"origin" in call.headers:
        require_same_origin(call.headers)
    item = await call.read()
    token = call.writer.token_of(item.token.strip())
    if token is None:
        raise Refused("unauthorized", "The token is unknown, revoked or has expired.")
    cookie = call.app.sessions.begun(token)
    return Answer(encode(_shown(call, token)), headers=[cookie])


async def sign_out(call: Call) -> Answer:
    """End the session of this browser."""
    if b"sec-fetch-site" in call.headers or b"origin" in call.headers:
        require_same_origin(call.headers)
    await call.app.sessions.end(call.headers.get(b"cookie", b""))
    return Answer(b"", 204, headers=[call.app.sessions.ended()])


def files() -> list[Route]:
    """Return the routes of the page's files, which are read now and held."""
    folder = resources.files(page)
    kept = {
        path: _file((folder / name).read_bytes(), _TYPES[name.rpartition(".")[2]])
        for path, name in page.SERVED.items()
    }
    return [Route("GET", path, None, act, listed=False) for path, act in kept.items()]


def _file(body: bytes, kind: bytes) -> Callable[[Call], Awaitable[Answer]]:
    tag = b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"'
    headers = [*_PAGE, (b"etag", tag)]

    async def act(call: Call) -> Answer:
        if call.names(b"if-none-match", tag):
            return Answer(b"", 304, kind, headers)
        return Answer(body, 200, kind, headers)

    return act


SESSIONS = (
    Route("GET", "/session", None, session),
    Route("POST", "/session", None, sign_in, body=SignIn),
    Route("DELETE", "/session", None, sign_out, answer=None, statuses=(204,)),
)
