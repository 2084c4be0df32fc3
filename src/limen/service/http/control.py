# SPDX-License-Identifier: Apache-2.0
"""What an operator asks: of the running server by its socket, or without one of the data itself."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from limen.service.problems import TITLES, Refused

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ask"]


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise


def ask(folder: Path, method: str, path: str, body: Any = None) -> Any:
    """Make one request with all rights of the owner of the directory; return the answer."""
    from limen.service.http.server import control_path

    sent = None if body is None else json.dumps(body).encode()
    connection = _Connection(str(control_path(folder)))
    try:
        connection.connect()
    except (TimeoutError, BlockingIOError) as error:
        raise _unanswered(folder, type(error).__name__) from None
    except (FileNotFoundError, ConnectionRefusedError):  # no server runs
        status, answer = asyncio.run(_alone(folder, method, path, sent or b""))
    else:
        try:
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise _unanswered(folder, type(error).__name__) from None
        finally:
            connection.close()
    try:
        found = json.loads(answer)
    except ValueError:
        raise _unanswered(folder, f"status {status}") from None
    if status >= 400:
        name = str(found["type"]).rpartition("/")[2]
        raise Refused(name if name in TITLES else "failed", found["detail"])
    return found


def _unanswered(folder: Path, why: str) -> OSError:
    return OSError(
        f"the server of {folder} did not answer ({why}), so that it is not known whether it did "
        "what was asked. Look (`token list`, `point list`), and try again"
    )


async def _alone(folder: Path, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Be the server for one request: the same code, without a network."""
    from limen.service.http.api import TABLE
    from limen.service.http.app import App
    from limen.service.http.meters import Meters
    from limen.service.log.writer import Writer
    from limen.service.settings import Settings

    writer = Writer(folder, lambda message: None)
    try:
        app = App(writer, Settings(), Meters(), lambda line: None)
        app.routes(TABLE)
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "query_string": b"",
            "server": ("control", None),
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ],
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"], sent[1]["body"]
    finally:
        await writer.close()
