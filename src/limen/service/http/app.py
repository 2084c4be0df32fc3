# SPDX-License-Identifier: Apache-2.0
"""HTTP: who may ask for what, what is read of a request, and what is answered."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from starlette import routing
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from limen.service.http.cookies import Sessions, require_same_origin
from limen.service.http.expected import expected
from limen.service.log.account import Accounts
from limen.service.log.store import Damaged
from limen.service.points.definitions import checked_segment
from limen.service.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limen.service.http.meters import Meters
    from limen.service.http.routes import Route
    from limen.service.http.stream import Hub
    from limen.service.log.writer import Writer
    from limen.service.points.point import Point
    from limen.service.points.state import Token
    from limen.service.settings import Settings

__all__ = ["Answer", "App", "Call", "Endpoint", "encode"]

_TAG = rb'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rb"[ \t,]*%b(?:[ \t]*,[ \t,]*%b)*[ \t,]*" % (_TAG, _TAG))

encode = msgspec.json.Encoder().encode

SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
_JSON = b"application/json"


class Answer(NamedTuple):
    """What is sent back."""

    body: bytes
    status: int = 200
    kind: bytes = _JSON
    headers: Sequence[tuple[bytes, bytes]] = ()


class Call:
    """One request, as handlers see it."""

    __slots__ = (
        "_endpoint",
        "_receive",
        "_scope",
        "app",
        "at",
        "by",
        "ends",
        "headers",
        "path",
        "token",
        "writer",
    )

    def __init__(self, endpoint: Endpoint, scope: Any, receive: Any) -> None:
        app = endpoint.app
        self.app, self.writer, self._scope, self._receive = app, app.writer, scope, receive
        self._endpoint = endpoint
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.path: dict[str, Any] = scope["path_params"]
        self.by, self.token, self.ends = app.caller(scope, self.headers)
        if (self.token is not None or app.trusting) and "limen.known" in scope:
            scope["limen.known"]()  # its connection is not the first to go
        self.at = app.writer.now()

    @property
    def method(self) -> str:
        """The method of the request."""
        return str(self._scope["method"])

    @property
    def route(self) -> Route:
        """What the table of routes says of it."""
        return self._endpoint.route

    @property
    def control(self) -> bool:
        """Whether it came by the socket that only the owner of the directory can open."""
        return from_control(self._scope)

    def point(self) -> Point:
        """Return the point that the path names, if the token may see it."""
        name = self.path["point"]
        allowed = None if self.token is None else self.token.points
        if allowed is not None and name not in allowed:
            raise Refused("forbidden", "The token is not for this point.")
        return self.writer.point(name)

    def asked(self, name: str) -> Any:
        """Return a parameter of the query, as the table of routes describes it."""
        known, found = self.route.query[name], {}
        query = self._scope["query_string"]
        try:
            if query:
                given: Any = {"keep_blank_values": True, "strict_parsing": True}  # "" is no number
                found = parse_qs(query.decode("ascii"), max_num_fields=8, **given)
        except ValueError:
            raise Refused("malformed", "The query of the address cannot be read.") from None
        return known.read(name, found[name][-1] if name in found else None)

    def names(self, header: bytes, tag: bytes | None) -> bool:
        """Whether If-Match or If-None-Match names an ETag by RFC 9110; None is no point yet.

        If-Match compares strongly: a weak tag names nothing. Nor does what is no list of tags.
        """
        given = b",".join(value for name, value in self._scope["headers"] if name == header)
        if given.strip() == b"*":
            return tag is not None
        if tag is None or not _TAGS.fullmatch(given):
            return False
        found = re.findall(_TAG, given)
        return tag in found or (header != b"if-match" and b"W/" + tag in found)

    def segment(self) -> str | None:
        """Return the segment of the query."""
        segment = self.asked("segment")
        try:
            return None if segment is None else checked_segment(segment)
        except ValueError as error:
            raise Refused("invalid", f"{error}.") from None

    async def body(self, most: int, kind: bytes = _JSON) -> bytes:
        """Read the body, which is of this content type and at most so long."""
        given = self.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if given != kind:
            raise Refused("unsupported-media-type", f"Send Content-Type: {kind.decode()}.")
        if b"content-encoding" in self.headers:
            raise Refused("unsupported-media-type", "Send the body without Content-Encoding.")
        length = self.headers.get(b"content-length", b"0").lstrip(b"0") or b"0"
        if not length.isdigit() or len(length) > 18 or int(length) > most:
            raise Refused("too-large", f"The body is larger than {most:,} bytes.")
        message = await self._receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            parts, size = [body], len(body)
            while message.get("more_body"):
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise Refused("too-large", f"The body is larger than {most:,} bytes.")
            body = b"".join(parts)
        if message["type"] == "http.disconnect" and not body:
            raise ClientDisconnect
        return body

    async def read(self) -> Any:
        """Read the body as JSON of the type that the table of routes names."""
        return decoded(self._endpoint.decode, await self.body(self.app.settings.most_body))


def decoded(decode: Callable[[bytes], Any], body: bytes) -> Any:
    """Read JSON of a known form, or say which field is wrong."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        field, text = expected(getattr(decode, "__self__").type, error)  # noqa: B009 - of a Decoder
        raise Refused("invalid", f"{text}.", errors=[{"field": field, "detail": text}]) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refused("malformed", f"The body is not valid JSON: {error}.") from None


def from_control(scope: Any) -> bool:
    """Whether a request came by the control socket and not by TCP."""
    return scope.get("server") is not None and scope["server"][1] is None


class Endpoint:
    """An ASGI application for one route."""

    def __init__(self, app: App, route: Route) -> None:
        self.app, self.route = app, route
        if isinstance(route.body, type):
            self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(route.body).decode

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Check the caller and answer."""
        scope["limen.route"] = self.route.path
        call = Call(self, scope, receive)
        scope["by"] = call.by
        if self.route.scope is not None:
            self.app.require(call, self.route.scope)
        answer = await self.route.act(call)
        if isinstance(answer, Answer):
            await reply(scope, send, answer)
        else:  # it goes on answering
            await answer(scope, receive, send)


async def reply(scope: Any, send: Any, answer: Answer) -> None:
    """Send an answer."""
    body, status, kind, headers = answer
    scope["status"] = status
    head = scope["method"] == "HEAD"
    given = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *SAFE]
    if headers:
        replaced = {name for name, _ in headers}
        given = [each for each in given if each[0] not in replaced] + list(headers)
    if status in (204, 304):
        body, given = b"", [each for each in given if each[0] != b"content-length"]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": b"" if head else body})


class App:
    """The outermost application: hosts, tokens, rates, problems, meters and the log."""

    def __init__(
        self,
        writer: Writer,
        settings: Settings,
        meters: Meters,
        write: Callable[[dict[str, Any]], None],
    ) -> None:
        self.writer, self.settings, self.meters, self.write = writer, settings, meters, write
        self.sessions = Sessions(writer, settings)
        self.accounts = Accounts()
        self.hub: Hub | None = None
        self.ready = True
        self._open = settings.open
        self._hosts = {host.encode() for host in settings.hosts}
        self._spent: dict[str, tuple[float, float]] = {}
        self.router = routing.Router()
        self._of_points: dict[tuple[str, str], Endpoint] = {}

    def routes(self, table: Sequence[Route]) -> None:
        """Take the table of routes."""
        by_path: dict[str, dict[str, Endpoint]] = {}
        for route in table:
            by_path.setdefault(route.path, {})[route.method] = Endpoint(self, route)
        prefix = "/v1/points/{point}/"
        self._of_points = {
            (method, path.removeprefix(prefix)): endpoint
            for path, found in by_path.items()
            for method, endpoint in found.items()
            if path.startswith(prefix) and "{" not in path.removeprefix(prefix)
        }
        routes = [
            routing.Route(path, _by_method(found), methods=list(found))
            for path, found in by_path.items()
        ]
        for each in routes:  # an id may hold a line break
            each.path_regex = re.compile(each.path_regex.pattern, re.DOTALL)
        self.router = routing.Router(routes, redirect_slashes=False, default=_nothing_here)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        begun = time.perf_counter()
        scope["app"] = self
        scope["limen.route"], scope["by"], scope["status"] = "-", "-", 500
        try:
            if not from_control(scope):
                self._require_host(scope)
            # Most requests are for a point: they need no search among all routes.
            parts = scope["path"].split("/")
            found = None
            if len(parts) == 5 and parts[1:3] == ["v1", "points"]:
                found = self._of_points.get((scope["method"], parts[4]))
            if found is None:
                await self.router(scope, receive, send)
            else:
                scope["path_params"] = {"point": parts[3]}
                await found(scope, receive, send)
        except Refused as refused:
            await self._refuse(scope, send, refused)
        except HTTPException as error:
            allowed = (error.headers or {}).get("Allow", "")
            wrong = Refused("method-not-allowed", f"Allowed here: {allowed}.")
            await self._refuse(scope, send, wrong, (b"allow", allowed.encode()))
        except ClientDisconnect:
            scope["status"] = 499
        except Exception as error:
            await self._refuse(scope, send, self.failed(scope["limen.route"], error))
        finally:
            seconds = time.perf_counter() - begun
            self.meters.request(scope["limen.route"], scope["status"], seconds)
            if self.settings.access_log or scope["status"] >= 500:
                self._log(scope, seconds)

    def failed(self, route: str, error: Exception) -> Refused:
        """Log where an error arose that nobody expected; return what the caller gets."""
        if isinstance(error, Damaged):
            self.write({"level": "error", "message": f"damaged: {error}", "route": route})
            return Refused("damaged", f"{error} `limen serve verify` checks all of it.")
        self.write({"level": "error", "message": place_of(error), "route": route})
        return Refused("failed", "Something went wrong here. Try again.")

    async def _refuse(
        self, scope: Any, send: Any, refused: Refused, *headers: tuple[bytes, bytes]
    ) -> None:
        request = scope["request"] = secrets.token_hex(8)
        if refused.status in (429, 503):
            headers = (*headers, (b"retry-after", b"1"))
        if refused.status == 401:
            headers = (*headers, (b"www-authenticate", b"Bearer"))
        body = encode(refused.shown(request))
        await reply(scope, send, Answer(body, refused.status, b"application/problem+json", headers))

    def _log(self, scope: Any, seconds: float) -> None:
        traced = dict(scope["headers"]).get(b"traceparent")
        line = {
            "level": "info",
            "route": scope["limen.route"],
            "method": scope["method"],
            "status": scope["status"],
            "seconds": round(seconds, 6),
            "token": scope["by"],
            "request": scope.get("request"),
            "traceparent": None if traced is None else traced.decode("ascii", "replace")[:64],
        }
        self.write({name: value for name, value in line.items() if value is not None})

    # Who asks.

    def _require_host(self, scope: Any) -> None:
        hosts = [value.lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1:  # a proxy in front may have looked at the other one
            raise Refused("malformed", "The request has more than one Host. Send one.")
        for host in hosts:
            if host.rpartition(b":")[2].isdigit():
                host = host.rpartition(b":")[0]
            if host in self._hosts:
                return
        raise Refused(
            "unknown-host",
            "The Host is not one of this server. Name it in `hosts` of the settings.",
        )

    def caller(
        self, scope: Any, headers: dict[bytes, bytes]
    ) -> tuple[str, Token | None, int | None]:
        """Return the name of the caller, the token if there is one, and when its session ends."""
        if from_control(scope):
            return "control", None, None
        given = headers.get(b"authorization")
        if given is None:
            cookies = headers.get(b"cookie")
            found = None if cookies is None else self.sessions.find(cookies)
            return ("anonymous", None, None) if found is None else (found[0].name, *found)
        kind, _, secret = given.partition(b" ")
        token = None
        if kind.lower() == b"bearer":
            token = self.writer.token_of(secret.decode("latin-1").strip())
        if token is None:
            raise Refused("unauthorized", "The token is unknown, revoked or has expired.")
        return token.name, token, None

    @property
    def trusting(self) -> bool:
        """Whether callers need no token: without any, it listens on this machine only."""
        return self._open and not self.writer.state.tokens

    def require(self, call: Call, scope: str | None) -> None:
        """Refuse a caller that may not do this."""
        if call.headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site"):
            raise Refused("forbidden", "Pages of other sites may not call this server.")
        if call.control:
            return
        if call.ends is not None and call.method not in ("GET", "HEAD"):
            require_same_origin(call.headers)
        if call.token is None:
            if not self.trusting:
                raise Refused("unauthorized", "Sign in, or send Authorization: Bearer and a token.")
            return
        if scope is not None and scope not in call.token.scopes:
            raise Refused("forbidden", f"The token lacks the scope {scope!r}.")

    def spend(self, call: Call, events: int) -> None:
        """Take events from the rate of the token, or refuse."""
        rate = self.settings.rate
        if rate is None or call.token is None:
            return
        now = time.monotonic()
        left, then = self._spent.get(call.by, (float(rate), now))
        left = min(float(rate), left + (now - then) * rate)
        if left < min(events, rate):
            raise Refused("too-many", f"The token may send {rate:,} events a second.")
        self._spent[call.by] = left - events, now


def _by_method(found: dict[str, Endpoint]) -> Any:
    class ByMethod:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            await found[method](scope, receive, send)

    return ByMethod()


async def _nothing_here(scope: Any, receive: Any, send: Any) -> None:
    raise Refused("not-found", "There is nothing at this path. /openapi.json lists what there is.")


def place_of(error: BaseException) -> str:
    """Say where an error arose, and never what it says: that could hold an id."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {where.name}, line {where.lineno} of {where.filename}"


def log_line(line: dict[str, Any]) -> str:
    """Write one line of the log: no ids, no scores, no bodies."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    return json.dumps({"time": f"{stamp}Z", **line})


async def yield_to_loop() -> None:
    """Let others have their turn."""
    await asyncio.sleep(0)
