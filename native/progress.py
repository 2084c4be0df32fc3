# SPDX-License-Identifier: Apache-2.0
"""Run a command that compiles, and show what it compiles: python native/progress.py LOG COMMAND...

A line for each file that is done, and one every few seconds where none is. All that the command
wrote is in LOG, and is printed when it failed.
"""

import re
import subprocess
import sys
import threading
import time

DONE = re.compile(r"\[(\d+)/(\d+)\] Building .*?([^/ ]+/[^/ ]+)\.(?:o|gch)\b")
SILENT = 4.0  # seconds


def main(log: str, command: list[str]) -> int:
    """Run it, and return its exit code."""
    begin = spoken = time.monotonic()
    done = "nothing yet"
    ended = threading.Event()

    def say(text: str) -> None:
        nonlocal spoken
        spoken = time.monotonic()
        print(f"  {spoken - begin:4.0f} s  {text}", flush=True)

    def wait() -> None:
        while not ended.wait(0.5):
            if time.monotonic() - spoken > SILENT:
                say(f"... {done} done")

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    with open(log, "w", encoding="utf-8") as kept:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        for line in process.stdout:
            kept.write(line)
            if found := DONE.search(line):
                done = f"{found[1]} of {found[2]}"
                say(f"{done}: {found[3]}")
    code = process.wait()
    ended.set()
    waiting.join()
    if code:
        with open(log, encoding="utf-8") as kept:
            sys.stdout.writelines(kept)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
