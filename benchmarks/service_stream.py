# SPDX-License-Identifier: Apache-2.0
"""What listeners of server-sent events cost: ``python -m benchmarks.service_stream [clients]``.

A server of its own process, a stream of scores that changes every tick, and clients that read. The
CPU time of the server with and without them is compared, and its memory with readers that stall.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from benchmarks.machine import write

HEAD = b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
SECONDS = 10.0
RESULT = Path(__file__).parent / "results" / "service" / "stream.json"


def main() -> None:
    """Measure, print what was found, and keep it."""
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory(prefix="limen-") as folder:
        command = [sys.executable, "-m", "limen", "serve", "--data", f"{folder}/data"]
        with subprocess.Popen(
            [*command, "--bind", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        ) as server:
            try:
                assert server.stderr is not None
                url = json.loads(server.stderr.readline())["address"]
                threading.Thread(target=server.stderr.read, daemon=True).start()
                found = measured(url, server.pid, clients)
                print(json.dumps(found))
                write(RESULT, found)
            finally:
                server.terminate()


def measured(url: str, pid: int, clients: int) -> dict[str, float]:
    """Return CPU seconds a second without and with clients, and megabytes with stalled ones."""
    ask(url, "PUT", "/v1/points/fraud", {})
    port, ended, read = int(url.rpartition(":")[2]), threading.Event(), threading.Event()
    threading.Thread(target=play, args=(url, ended), daemon=True).start()
    time.sleep(1)
    alone = spent(pid)
    readers = [connected(port) for _ in range(clients)]
    ticks = threading.Thread(target=drain, args=(readers, read), daemon=True)
    ticks.start()
    time.sleep(1)
    listened = spent(pid)
    read.set()
    ticks.join()
    for each in readers:
        each.close()
    time.sleep(1)
    before = memory(pid)
    stalled = [connected(port, small=True) for _ in range(clients)]
    time.sleep(SECONDS)
    after = memory(pid)
    ended.set()
    for each in stalled:
        each.close()
    return {
        "clients": clients,
        "ticks_per_second": COUNT[0] / COUNT[1] / clients if COUNT[1] else 0.0,
        "cpu_without": alone,
        "cpu_with": listened,
        "cpu_of_clients": listened - alone,
        "megabytes_of_stalled": after - before,
    }


COUNT = [0, 0.0]


def connected(port: int, small: bool = False) -> socket.socket:
    """Open a connection that listens."""
    made = socket.socket()
    if small:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    made.connect(("127.0.0.1", port))
    made.sendall(HEAD)
    return made


def drain(readers: list[socket.socket], ended: threading.Event) -> None:
    """Read all that comes, and count ticks."""
    chosen, begun = selectors.DefaultSelector(), time.monotonic()
    for each in readers:
        each.setblocking(False)
        chosen.register(each, selectors.EVENT_READ)
    while not ended.is_set():
        try:
            for key, _ in chosen.select(0.1):
                COUNT[0] += key.fileobj.recv(65536).count(b"event: tick")
        except (OSError, ValueError):
            return
        COUNT[1] = time.monotonic() - begun
        time.sleep(0.02)


def play(url: str, ended: threading.Event) -> None:
    """Send some scores before every tick."""
    at = 0
    while not ended.wait(0.1):
        ask(url, "POST", "/v1/points/fraud/scores", {"id": f"i{at}", "score": at % 100 / 100})
        at += 1


def ask(url: str, method: str, path: str, body: object) -> None:
    """Make one request."""
    kind = {"Content-Type": "application/json"}
    sent = urllib.request.Request(url + path, json.dumps(body).encode(), kind, method=method)
    urllib.request.urlopen(sent, timeout=10).read()


def spent(pid: int) -> float:
    """Return the CPU seconds a second of a process over some time."""

    def now() -> float:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / 100

    begun, before = time.monotonic(), now()
    time.sleep(SECONDS)
    return (now() - before) / (time.monotonic() - begun)


def memory(pid: int) -> float:
    """Return the megabytes of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
