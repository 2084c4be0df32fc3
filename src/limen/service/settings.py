# SPDX-License-Identifier: Apache-2.0
"""The settings: one TOML file, which options and LIMEN_* override. Points are history instead."""

from __future__ import annotations

import ipaddress
import tomllib
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from limen.service.log.clock import AT_A_START
from limen.times import length_of

__all__ = ["Settings", "Webhook", "settings_of"]


class Webhook(msgspec.Struct, forbid_unknown_fields=True):
    """Where alerts are posted to, and the secret that signs them."""

    url: str
    secret: str
    points: list[str] | None = None  # None: all

    def __post_init__(self) -> None:
        try:
            address = urlsplit(self.url)
            good = address.scheme in ("http", "https") and bool(address.hostname)
            good = good and address.port != 0  # which raises ValueError where it is no port
        except ValueError:
            good = False
        # Characters that a request cannot hold as they are; others are written as %20 and so on.
        if not good or not all("!" <= each <= "~" for each in self.url):
            raise ValueError(
                "webhooks: url must be an http or https address of ASCII characters without "
                f"spaces, with a port from 1 to 65535 or none; got {self.url!r}."
            )
        if len(self.secret) < 16:
            raise ValueError("webhooks: secret must have at least 16 characters.")


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How the server runs."""

    data: str = "limen-data"
    bind: str = "127.0.0.1:8787"
    hosts: list[str] = []  # besides those of `bind`: what Host may say
    cert: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    retention: str | None = None
    rate: int | None = None  # events a second of one token
    access_log: bool = False
    tick: str = "60s"
    clock_ahead: str = AT_A_START  # how long after the last event a start may be
    session: str = "12h"  # how long a browser stays signed in
    snapshot_events: int = 1_000_000
    snapshot_every: str = "6h"
    most_body: int = 64 * 1024
    most_batch: int = 8 * 1024 * 1024
    most_head: int = 32 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 60.0  # within which an answer is to be read
    keep_alive_seconds: int = 5
    drain_seconds: float = 0.0  # after SIGTERM: /readyz says no, everything else is answered
    stop_seconds: int = 10
    most_connections: int = 2000
    most_listeners: int = 200  # of server-sent events
    webhooks: list[Webhook] = []
    disk_low: float = 0.1  # the share of the disk below which there is an alert

    def __post_init__(self) -> None:
        for name in ("retention", "tick", "clock_ahead", "session", "snapshot_every"):
            if getattr(self, name) is not None:
                length_of(getattr(self, name), name)
        host = self.address[0]
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key go together: give both or none.")
        if not self.loopback and self.cert is None and not self.behind_proxy:
            raise ValueError(
                f"bind={self.bind!r} can be reached from other machines. Give cert and key for "
                "TLS, or behind_proxy where a proxy in front does TLS."
            )
        positive = ("snapshot_events", "most_body", "most_batch", "most_head", "most_connections")
        for name in (*positive, "head_seconds", "body_seconds", "answer_seconds", "rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{name} must be positive, got {value}.")
        for name in ("keep_alive_seconds", "drain_seconds", "stop_seconds", "most_listeners"):
            if not 0 <= getattr(self, name) < inf:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}.")
        if not 0 <= self.disk_low <= 1:
            raise ValueError(f"disk_low must be a share from 0 to 1, got {self.disk_low}.")
        urls = [each.url for each in self.webhooks]
        for url in urls:
            if urls.count(url) > 1:
                raise ValueError(
                    f"webhooks: {url!r} is there more than once. Name each address once, with all "
                    "its points."
                )
        local = ["localhost", "127.0.0.1", "[::1]"] if self.loopback else []
        shown = f"[{host}]" if ":" in host else host
        self.hosts = [*dict.fromkeys(each.lower() for each in (*self.hosts, *local, shown))]

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to listen on."""
        host, _, port = self.bind.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError(
                f"bind must be an address and a port, such as 127.0.0.1:8787; got {self.bind!r}."
            )
        return host.strip("[]"), int(port)

    def shown(self) -> dict[str, Any]:
        """Describe them without secrets."""
        hidden = [msgspec.structs.replace(each, secret="x" * 16) for each in self.webhooks]
        found: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, webhooks=hidden))
        for each in found["webhooks"]:
            each["secret"] = "not shown"
        return found

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        host = self.address[0]
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def open(self) -> bool:
        """Whether callers without a token are trusted as long as there is no token at all."""
        return self.loopback and not self.behind_proxy


def settings_of(path: str | None, given: dict[str, Any]) -> Settings:
    """Read the settings from a file; what is given besides overrides it.

    >>> settings_of(None, {"bind": "127.0.0.1:9000"}).address
    ('127.0.0.1', 9000)
    """
    found: dict[str, Any] = {}
    if path is not None:
        try:
            found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: {error}.") from None
    try:
        return msgspec.convert({**found, **given}, Settings)
    except msgspec.ValidationError as error:
        raise ValueError(f"settings: {error}") from None
