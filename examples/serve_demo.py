# SPDX-License-Identifier: Apache-2.0
"""A server, a real stream, and labels that come late: ``make serve-demo``.

A phishing detector gave web sites a score. They are answered by the threshold in effect; what they
were becomes known 200 sites later. The policy is automatic, so the threshold changes by itself.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from limen import Client
from limen.demo import load_phishing

LATE = 200  # sites between a score and its label
POINT = {
    "false_negative": 5,
    "start": {"rule": "at_least", "threshold": 0.5},
    "change": {
        "policy": "automatic",
        "at_least": 100,
        "least_saving": 0.02,
        "at_most_every": "1s",
    },
}


def main() -> None:
    """Start a server in an empty directory, play the stream, and show the versions."""
    with tempfile.TemporaryDirectory(prefix="limen-") as folder:
        command = [sys.executable, "-m", "limen", "serve"]
        where = ["--data", str(Path(folder) / "data")]
        definition = Path(folder) / "point.json"
        definition.write_text(json.dumps(POINT))
        subprocess.run(
            [*command, "point", "add", "phishing", "--definition", str(definition), *where],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with subprocess.Popen(
            [*command, *where, "--bind", "127.0.0.1:0", "--tick", "1s"],
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stderr is not None
                play(json.loads(server.stderr.readline())["address"])
            finally:
                server.send_signal(signal.SIGTERM)


def play(url: str) -> None:
    """Send the stream, and print what the server makes of it."""
    scores, labels = load_phishing()
    print(f"The server listens on {url} while this runs.")
    print(f"{len(scores):,} sites; a missed phishing site costs 5, a false alarm 1.\n")
    version = 0
    with Client(url, every=0.05, refresh=0.1) as client:
        for at, score in enumerate(scores):
            client.answer("phishing", f"site-{at}", score)
            if at >= LATE:
                client.label("phishing", f"site-{at - LATE}", labels[at - LATE])
            if at % 250 == 249:
                client.flush()
                time.sleep(1.1)  # a tick of the server, at which the policy looks
            version = shown(url, version) if at % 50 == 49 else version
        client.flush()
    state = asked(f"{url}/v1/points/phishing")
    print(f"\nThe answers cost {state['cost']:.0f} on the {state['samples']:,} sites whose labels")
    print(f"are known; the cheapest single threshold would have cost {state['cheapest']:.0f}.")


def shown(url: str, seen: int) -> int:
    """Print the versions after the one that was seen last."""
    for each in asked(f"{url}/v1/points/phishing/history"):
        if each["version"] > seen:
            rule = each["thresholds"][""]
            at = f"{rule['threshold']:.4f}" if "threshold" in rule else rule["rule"]
            print(f"version {each['version']}: threshold {at:8} {each['reason']}")
            seen = each["version"]
    return seen


def asked(url: str) -> object:
    """Return what the server says."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
