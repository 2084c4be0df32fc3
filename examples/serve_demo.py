# SPDX-License-Identifier: Apache-2.0
"""A server, a real stream that drifts, and labels that come late: ``make serve-demo``.

A phishing detector gave web sites a score. Twenty days ago one site in seven was phishing; for the
last ten days two in three are, and the threshold of 0.5 has become dear. limen proposes another
one, judges it on the sites that come while you watch, and waits for your approval.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from limen import Client
from limen.demo import load_phishing

NAME = "phishing"
RATE = 40  # sites a second
POINT = {
    "false_negative": 5,
    "start": {"rule": "at_least", "threshold": 0.5},
    "words": {"zero": "let through", "one": "block"},
    "change": {
        "policy": "proposed",
        "age": "5s",  # nearly all labels come within this time
        "at_least": 400,
        "different": 30,
        "shadow": "10s",
        "expires": "30m",
        "at_most_every": "2m",
    },
}


def sites(share_of_0: float, share_of_1: float) -> Iterator[tuple[float, int]]:
    """Yield scores and labels of the real stream over and over, with some left out by label."""
    chance = random.Random(2)
    known = list(zip(*load_phishing(), strict=True))[100:]  # without those it learned from first
    for score, label in itertools.cycle(known):
        if chance.random() < (share_of_1 if label else share_of_0):
            yield score, label


def later(chance: random.Random) -> float:
    """Draw how many seconds a label comes after its score."""
    return min(4.5, chance.expovariate(0.7))


def fill(client: Client, now: datetime) -> None:
    """Send a month of scores and labels: the drift comes after twenty days."""
    chance = random.Random(3)
    early = itertools.islice(sites(1.0, 0.2), 2400)
    late = itertools.islice(sites(0.35, 1.0), 1500)
    spans = ((early, 2400, 30.0, 10.0), (late, 1500, 10.0, 0.001))
    for number, (rows, many, begin, end) in enumerate(spans):
        for at, (score, label) in enumerate(rows):
            moment = now - timedelta(days=begin + (end - begin) * at / many)
            id = f"before-{number}-{at}"
            client.answer(NAME, id, score, time=moment)
            client.label(NAME, id, label, moment + timedelta(seconds=later(chance)))
    client.flush()


def play(client: Client, seconds: float) -> None:
    """Send sites as they come, and each label a little later, until the time is over."""
    chance, begun = random.Random(4), time.monotonic()
    waiting: list[tuple[float, str, int]] = []
    for number, (score, label) in enumerate(sites(0.35, 1.0)):
        now = time.monotonic() - begun
        if now > seconds:
            return
        id = f"site-{number}"
        client.answer(NAME, id, score)
        waiting.append((now + later(chance), id, label))
        for due in [each for each in waiting if each[0] <= now]:
            client.label(NAME, due[1], due[2])
            waiting.remove(due)
        time.sleep(1 / RATE)


def asked(url: str, body: dict | None = None) -> dict:
    """Return what the server says."""
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, sent, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def server(bind: str) -> Iterator[str]:
    """Run a server with the point in an empty directory, and yield its address."""
    with tempfile.TemporaryDirectory(prefix="limen-") as folder:
        command = [sys.executable, "-m", "limen", "serve"]
        where = ["--data", str(Path(folder) / "data")]
        definition = Path(folder) / "point.json"
        definition.write_text(json.dumps(POINT))
        subprocess.run(
            [*command, "point", "add", NAME, "--definition", str(definition), *where],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with subprocess.Popen(
            [*command, *where, "--bind", bind, "--tick", "1s"], stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                first = process.stderr.readline()
                if '"address"' not in first:
                    sys.exit(f"The server did not start: {first}{process.stderr.read()}")
                yield json.loads(first)["address"]
            finally:
                process.send_signal(signal.SIGTERM)


def main(seconds: float, bind: str) -> None:
    """Start a server, and play the stream into it."""
    for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):  # end as tidily as by Ctrl-C
        signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    with server(bind) as url:
        with Client(url, every=0.05, refresh=0.25) as client:
            fill(client, datetime.now(UTC))
            print(f"Open {url} in a browser.\n")
            print(
                f"{RATE} sites a second come in; a missed phishing site costs 5, a false alarm 1."
            )
            print("Half a minute from now a proposal waits for your approval. Ctrl-C ends it.")
            sys.stdout.flush()
            try:
                play(client, seconds)
            except KeyboardInterrupt:
                print()
        tiles = asked(f"{url}/v1/points/{NAME}/overview")["tiles"]
        print(f"The answers cost {tiles['cost']:,.0f} on {tiles['samples']:,} sites; the cheapest")
        print(f"single threshold would have cost {tiles['cheapest']:,.0f}.")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=float("inf"), help="when to end")
    options.add_argument("--bind", default="127.0.0.1:0", help="where to listen")
    given = options.parse_args()
    main(given.seconds, given.bind)
