# SPDX-License-Identifier: Apache-2.0
"""Sessions of browsers: a cookie that stands for a token for some hours.

A session is not stored: the cookie names the token and its end, under a keyed hash that covers the
token's digest. So it survives a restart, and ends with the token. What is stored, until they would
have ended anyway, are the hashes of sessions that were signed out.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from typing import TYPE_CHECKING

import msgspec

from limen.service.problems import Refused
from limen.storage.files import replace
from limen.times import length_of

if TYPE_CHECKING:
    from pathlib import Path

    from limen.service.log.writer import Writer
    from limen.service.points.state import Token
    from limen.service.settings import Settings

__all__ = ["Sessions", "require_same_origin"]


class Sessions:
    """Makes cookies of tokens, and finds the token of a cookie."""

    def __init__(self, writer: Writer, settings: Settings) -> None:
        self._writer = writer
        self._path = writer.folder / "signed-out"
        self._ended = _read(self._path)  # hashes of sessions, and when they end anyway
        self._ending = asyncio.Lock()
        self._key = hmac.digest(writer.key, b"session", "sha256")
        self._length = length_of(settings.session, "session")
        secure = settings.cert is not None or settings.behind_proxy
        self._name = b"__Host-limen" if secure else b"limen"
        self._rest = b"; Path=/; HttpOnly; SameSite=Strict" + (b"; Secure" if secure else b"")

    def _mac(self, token: Token, ends: int) -> str:
        signed = f"{token.name} {ends} ".encode() + token.digest
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()

    def begun(self, token: Token) -> tuple[bytes, bytes]:
        """Return the header that begins a session of a token."""
        ends = self._writer.now() + self._length
        value = f"{token.name}.{ends}.{self._mac(token, ends)}".encode()
        age = b"; Max-Age=%d" % (self._length // 1_000_000)
        return b"set-cookie", self._name + b"=" + value + age + self._rest

    def ended(self) -> tuple[bytes, bytes]:
        """Return the header with which a browser deletes its cookie."""
        return b"set-cookie", self._name + b"=; Max-Age=0" + self._rest

    async def end(self, cookies: bytes) -> None:
        """End the session of a cookie, for every copy of it and also after a restart."""
        found, now = self._found(cookies), self._writer.now()
        if found is not None:
            self._ended[found[2]] = found[1]
            async with self._ending:  # so that the later one is not replaced by the earlier one
                self._ended = {each: ends for each, ends in self._ended.items() if ends > now}
                await self._writer.aside(_keep, self._path, dict(self._ended))

    def find(self, cookies: bytes) -> tuple[Token, int] | None:
        """Return the token that a cookie stands for and when the session ends, if it has not."""
        found = self._found(cookies)
        return None if found is None else found[:2]

    def _found(self, cookies: bytes) -> tuple[Token, int, str] | None:
        pairs = (pair.strip().partition(b"=") for pair in cookies.split(b";"))
        value = next((value for name, _, value in pairs if name == self._name), b"")
        parts = value.decode("latin-1").split(".")
        if len(parts) == 3 and parts[1].isascii() and parts[1].isdecimal() and len(parts[1]) < 19:
            token, ends = self._writer.state.tokens.get(parts[0]), int(parts[1])
            if token is not None and hmac.compare_digest(
                self._mac(token, ends).encode(), parts[2].encode()
            ):
                now = self._writer.now()
                expired = token.expires is not None and token.expires <= now
                if now < ends and not expired and parts[2] not in self._ended:
                    return token, ends, parts[2]
        return None


def _read(path: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _keep(path: Path, ended: dict[str, int]) -> None:
    replace(path, msgspec.json.encode(ended))
    os.chmod(path, 0o600)


def require_same_origin(headers: dict[bytes, bytes]) -> None:
    """Refuse what a page of another origin asks a browser to send."""
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin", b"").partition(b"://")[2]
    if site != b"same-origin" and (site is not None or origin != headers.get(b"host")):
        raise Refused("forbidden", "With a session, changes are taken from the server's page only.")
