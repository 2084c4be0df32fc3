# SPDX-License-Identifier: Apache-2.0
"""What ``limen serve`` costs: CPU time of the server per event, asked by a process of its own.

    python -m benchmarks.service_load [events]
    python -m benchmarks.service_load recovery [events]
    python -m benchmarks.service_load proposal [samples]
    python -m benchmarks.service_load connections [events]

Loopback only. The server's CPU time is read from /proc; latencies are those of this process, at
about half of the rate that the server reached. Recovery is timed in this process, and so is what
an open proposal adds: scores and labels folded by a point with and without one, in turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.machine import RESULTS, write

_HEAD = "{} /v1/points/fraud/{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\n"
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def request(method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
    head = _HEAD.format(method, path, kind)
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> bytes:
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    at = head.lower().index(b"content-length:") + 15
    return await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))


async def load(
    port: int, requests: list[bytes], connections: int, rest: float = 0.0
) -> list[float]:
    """Send all requests over some connections; return how long each took."""
    waiting, took = iter(requests), []

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        for sent in waiting:
            begun = time.perf_counter()
            await one(reader, writer, sent)
            took.append(time.perf_counter() - begun)
            if rest:
                await asyncio.sleep(rest)
        writer.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return took


def measured(
    name: str, pid: int, port: int, requests: list[bytes], events: int, connections: int
) -> dict[str, object]:
    cpu, wall = cpu_of(pid), time.perf_counter()
    asyncio.run(load(port, requests, connections))
    cpu, wall = cpu_of(pid) - cpu, time.perf_counter() - wall
    row = {
        "what": name,
        "events": events,
        "connections": connections,
        "microseconds_of_cpu_per_event": round(1e6 * cpu / events, 2),
        "events_per_second_of_cpu": round(events / cpu),
        "events_per_second_of_wall": round(events / wall),
    }
    print(json.dumps(row))
    return row


def lines(events: int, prefix: str) -> list[bytes]:
    rows = []
    for at in range(events // 2):
        rows.append(b'{"type":"score","id":"%s-%d","score":0.%06d}' % (prefix.encode(), at, at))
        rows.append(b'{"type":"label","id":"%s-%d","label":%d}' % (prefix.encode(), at, at % 2))
    return rows


def filled(folder: Path, events: int) -> None:
    """Write a log of scores and labels, in groups of a thousand."""
    import msgspec

    from limen.service.log.store import Log
    from limen.service.points.definitions import Definition
    from limen.service.points.events import Event

    log = Log(folder, create=True)
    more = msgspec.to_builtins(Definition(false_negative=5))
    log.append([Event("define", 1, "fraud", more=more)], [None])
    draw = random.Random(1)
    for first in range(0, events, 1000):
        rows: list[Event] = []
        names = [f"order-{at}" for at in range(first // 2, first // 2 + 500) for _ in range(2)]
        for at in range(first, first + 1000, 2):
            rows.append(Event("score", at, "fraud", at, draw.random(), None, 1, None, 1, "bot"))
            rows.append(Event("label", at, "fraud", at, draw.randrange(2), by="bot"))
        log.append(rows, names)
    log.close()


def recovery(folder: Path) -> dict[str, object]:
    from limen.service.log import snapshots
    from limen.service.log.store import Reader

    found: dict[str, object] = {}
    with Reader(folder) as log:
        begun = time.process_time()
        state = snapshots.recovered(log, folder)
        found["from_log_seconds_of_cpu"] = round(time.process_time() - begun, 3)
    snapshots.make(folder)
    with Reader(folder) as log:
        begun = time.process_time()
        assert snapshots.recovered(log, folder).seq == state.seq
        found["from_snapshot_seconds_of_cpu"] = round(time.process_time() - begun, 3)
    found["events"] = state.seq
    found["megabytes_resident"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    found["log_bytes_per_event"] = round((folder / "log.db").stat().st_size / state.seq, 1)
    return found


def large(events: int) -> None:
    """Only the recovery, of many events."""
    with tempfile.TemporaryDirectory(prefix="limen-") as made:
        filled(Path(made) / "large", events)
        found = recovery(Path(made) / "large")
    print(json.dumps(found))
    write(RESULTS / "service" / "large.json", {"rows": [found]})


def folded(samples: int, proposed: bool) -> tuple[float, float, float]:
    """Return microseconds of CPU for a score, a label, and one sample that grows old enough."""
    import msgspec

    from limen.service.points.definitions import Change, Definition, as_rule
    from limen.service.points.events import Event
    from limen.service.points.state import State

    state, draw, second = State(lambda upto: []), random.Random(2), 1_000_000
    change = Change("proposed", age="1h")
    given = Definition(false_negative=5, start=as_rule(0.5, ">="), change=change)
    state.fold(1, Event("define", 0, "p", more=msgspec.to_builtins(given)), None)
    if proposed:
        rule = msgspec.to_builtins(as_rule(0.4, ">="))
        more = {
            "thresholds": {"": rule},
            "age": 3600 * second,
            "expires": 2**60,
            "confidence": 0.95,
        }
        state.fold(2, Event("propose", 0, "p", more=more), None)
    took = []
    ids, scores = [f"id-{at}" for at in range(samples)], [draw.random() for _ in range(samples)]
    events = [
        Event("score", at, "p", at, score, None, int(score >= 0.5), None, 1)
        for at, score in enumerate(scores)
    ]
    labels = [Event("label", samples, "p", value=int(draw.random() < score)) for score in scores]
    advance = Event("advance", 7200 * second, time=7200 * second)
    for happened, names in ((events, ids), (labels, ids), ([advance], [None])):
        begun = time.process_time()
        for event, id in zip(happened, names, strict=True):
            state.fold(state.seq + 1, event, id)
        took.append(1e6 * (time.process_time() - begun) / samples)
    return took[0], took[1], took[2]


def proposal(samples: int) -> None:
    """What an open proposal adds to each event: medians of five runs, in turns."""
    runs = [(folded(samples, False), folded(samples, True)) for _ in range(5)]
    names = ("score", "label", "sample that grows old enough")
    rows = [
        {
            "what": name,
            "microseconds_of_cpu_without": round(statistics.median(r[0][at] for r in runs), 2),
            "microseconds_of_cpu_with_a_proposal": round(
                statistics.median(r[1][at] for r in runs), 2
            ),
        }
        for at, name in enumerate(names)
    ]
    for row in rows:
        print(json.dumps(row))
    write(RESULTS / "service" / "proposal.json", {"samples": samples, "runs": 5, "rows": rows})


@contextmanager
def served(data: Path) -> Iterator[tuple[int, int]]:
    """Run a server with a point; give its process and its port."""
    command = [sys.executable, "-m", "limen", "serve"]
    where = ["--data", str(data)]
    subprocess.run(
        [*command, "point", "add", "fraud", *where], check=True, stdout=subprocess.DEVNULL
    )
    server = subprocess.Popen(
        [*command, *where, "--bind", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    port = int(json.loads(server.stderr.readline())["address"].rpartition(":")[2])
    try:
        yield server.pid, port
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def connected(events: int) -> None:
    """What a single score costs by how many connections ask at a time."""
    with (
        tempfile.TemporaryDirectory(prefix="limen-") as made,
        served(Path(made) / "d") as (
            pid,
            port,
        ),
    ):
        rows = []
        for many in (1, 4, 16, 64):
            bodies = [
                request("POST", "scores", line) for line in lines(2 * events, f"c{many}")[::2]
            ]
            rows.append(measured("single scores", pid, port, bodies, events, many))
    note = "other programs ran beside it: compare the rows with one another"
    write(RESULTS / "service" / "connections.json", {"note": note, "rows": rows})


def main() -> None:
    if sys.argv[1:2] == ["proposal"]:
        return proposal(int(float(sys.argv[2])) if len(sys.argv) > 2 else 200_000)
    if sys.argv[1:2] == ["connections"]:
        return connected(int(float(sys.argv[2])) if len(sys.argv) > 2 else 5_000)
    if sys.argv[1:2] == ["recovery"]:
        return large(int(float(sys.argv[2])) if len(sys.argv) > 2 else 10**7)
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory(prefix="limen-") as made:
        with served(Path(made) / "d") as (pid, port):
            rows = everything(pid, port, events)
        filled(Path(made) / "large", 50 * events)
        rows.append(recovery(Path(made) / "large"))
        print(json.dumps(rows[-1]))
    note = "fsync of a virtual disk; one run"
    write(RESULTS / "service" / "load.json", {"note": note, "rows": rows})


def everything(pid: int, port: int, events: int) -> list[dict[str, object]]:
    singles = lines(events, "s")
    bodies = [request("POST", "scores", line) for line in singles[::2]]
    rows = [measured("single scores", pid, port, bodies, len(bodies), 64)]
    bodies = [request("POST", "labels", line) for line in singles[1::2]]
    rows.append(measured("single labels", pid, port, bodies, len(bodies), 64))
    reads = [request("GET", "threshold")] * events
    rows.append(measured("threshold reads", pid, port, reads, events, 64))
    batch, many = [], lines(10 * events, "b")
    for at in range(0, len(many), 5000):
        body = b"\n".join(many[at : at + 5000])
        batch.append(request("POST", "events", body, "application/x-ndjson"))
    rows.append(measured("batches of 5,000 lines", pid, port, batch, len(many), 2))
    half = 64 / (float(str(rows[0]["events_per_second_of_wall"])) / 2)
    late = [request("POST", "scores", line) for line in lines(events // 2, "l")[::2]]
    took = sorted(asyncio.run(load(port, late, 64, half)))
    rows.append(
        {
            "what": "single scores at about half load",
            "p50_milliseconds": round(1e3 * took[len(took) // 2], 2),
            "p99_milliseconds": round(1e3 * took[len(took) * 99 // 100], 2),
        }
    )
    print(json.dumps(rows[-1]))
    return rows


if __name__ == "__main__":
    main()
