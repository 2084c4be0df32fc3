# SPDX-License-Identifier: Apache-2.0
"""A real server in a process of its own, on a free port of this machine, for tests."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from streams import PATIENCE

for _need in ("starlette", "uvicorn", "msgspec", "prometheus_client"):
    pytest.importorskip(_need)

HERE = Path(__file__).parent


class Server:
    """A server that can be killed, stopped and started again on the same data."""

    def __init__(self, data: Path, *options: str, fault: str | None = None) -> None:
        self.data, self.options = data, options
        self.process: subprocess.Popen[str] | None = None
        self.lines: list[dict[str, Any]] = []
        self.port = 0
        self.token: str | None = None
        self._drain: threading.Thread | None = None
        self.start(fault)

    def start(self, fault: str | None = None) -> None:
        command = [sys.executable, "-m", "limen"]
        if fault is not None:
            command = [sys.executable, str(HERE / "serve_with_fault.py"), fault]
        command += ["serve", "--data", str(self.data), "--bind", "127.0.0.1:0", *self.options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._keep(line)
            if self.lines[-1].get("message") == "ready":
                self.port = int(self.lines[-1]["address"].rpartition(":")[2])
                self._drain = threading.Thread(target=self._read, daemon=True)
                self._drain.start()
                return
        self.ended()
        raise RuntimeError(f"no server: {self.lines[-3:]}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.ended()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        assert self.process is not None
        assert self.process.stderr is not None
        code = self.process.wait(PATIENCE)
        if self._drain is not None:
            self._drain.join(PATIENCE)
        self.process.stderr.close()
        self._drain = None
        return code

    def _read(self) -> None:
        """Read what it says, or it would wait for a reader."""
        assert self.process is not None
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._keep(line)

    def _keep(self, line: str) -> None:
        try:
            self.lines.append(json.loads(line))
        except ValueError:
            self.lines.append({"message": line.rstrip()})

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        raw: bytes | None = None,
        timeout: float = PATIENCE,
    ) -> tuple[int, Any, dict[str, str]]:
        """Make one request; return status, body and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        given = {"Content-Type": "application/json"}
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        sent = raw if raw is not None else None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, sent, {**given, **(headers or {})})
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        kind = response.headers.get("content-type", "")
        if "ndjson" in kind:
            found: Any = [json.loads(line) for line in text.splitlines()]
        else:
            found = json.loads(text) if "json" in kind and text else text
        return response.status, found, dict(response.headers)

    def batch(self, point: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send scores and labels in one body; return the answers."""
        raw = "".join(json.dumps(row) + "\n" for row in rows).encode()
        kind = {"Content-Type": "application/x-ndjson"}
        status, found, _ = self.ask("POST", f"/v1/points/{point}/events", headers=kind, raw=raw)
        assert status == 200, found
        return found

    def log(self) -> list[dict[str, Any]]:
        """All events."""
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            status, page, _ = self.ask("GET", f"/v1/log?after={after}")
            assert status == 200, page
            if not page:
                return found
            found += page


@contextmanager
def folder() -> Iterator[Path]:
    """A short path: that of a socket must be."""
    made = Path(tempfile.mkdtemp(prefix="limen-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def serving(*options: str, define: dict[str, Any] | None = None) -> Iterator[Server]:
    """A server with one point, `fraud`, which is stopped at the end."""
    with folder() as made:
        server = Server(made / "data", *options)
        try:
            status, found, _ = server.ask("PUT", "/v1/points/fraud", define or {})
            assert status == 201, found
            yield server
        finally:
            if server.process is not None and server.process.poll() is None:
                server.kill()


def limen(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "limen", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def compiled(source: str, folder: Path) -> Path:
    """Compile a library that stands before the calls of a process, or skip."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a C compiler cannot be found")
    made = folder / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", str(HERE / source), "-o", str(made), "-ldl"]
    subprocess.run(command, check=True)
    return made


def until(done: Any, seconds: float = PATIENCE) -> Any:
    """Wait until something holds, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it never came to be")


def problem(found: Any, name: str) -> None:
    """Assert that an answer is a refusal of this name."""
    status, body, headers = found
    assert "application/problem+json" == headers["content-type"], body
    assert f"/problems/{name}" == body["type"]
    assert status == body["status"]
    assert {"title", "detail", "request"} <= set(body)
