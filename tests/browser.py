# SPDX-License-Identifier: Apache-2.0
"""A real Chromium, driven over its debugging pipe: mouse, keys, sizes, and what it complains of."""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from streams import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


def needs_chromium(test: Any) -> Any:
    """A test for `make check`, where there is a browser."""
    skipped = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
    return pytest.mark.check(skipped(test))


# The pipe is file descriptors 3 and 4 of the browser, which Popen cannot promise.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
_KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), " ": (" ", 32)}
_KEYS |= {"Home": ("", 36), "End": ("", 35), "ArrowLeft": ("", 37), "ArrowRight": ("", 39)}


class Browser:
    """One process; each tab has cookies of its own, as another person's browser would."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self._folder = tempfile.TemporaryDirectory(prefix="limen-browser-")
        theirs, self._to = os.pipe()
        self._from, ours = os.pipe()
        flags = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
            *("--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run"),
            *("--disable-background-networking", "--force-color-profile=srgb"),
            f"--user-data-dir={self._folder.name}",
        ]
        own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(theirs), str(ours), CHROMIUM, *flags],
            pass_fds=(theirs, ours),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=own,
        )
        os.close(theirs)
        os.close(ours)
        self._number, self._lock = 0, threading.Lock()
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.tabs: dict[str, Tab] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        rest = b""
        while piece := os.read(self._from, 1 << 20):
            *found, rest = (rest + piece).split(b"\0")
            for text in found:
                message = json.loads(text)
                if "id" in message:
                    self._answers.pop(message["id"]).put(message)
                elif tab := self.tabs.get(message.get("sessionId", "")):
                    tab.heard(message["method"], message["params"])
        for waiting in list(self._answers.values()):
            waiting.put({"error": {"message": "the browser has ended"}})

    def send(self, method: str, session: str | None = None, **given: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for it."""
        answer: queue.Queue[dict[str, Any]] = queue.Queue()
        with self._lock:
            self._number += 1
            message: dict[str, Any] = {"id": self._number, "method": method, "params": given}
            if session is not None:
                message["sessionId"] = session
            self._answers[self._number] = answer
            left = json.dumps(message).encode() + b"\0"
            while left:
                left = left[os.write(self._to, left) :]
        found = answer.get(timeout=PATIENCE)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']['message']}")
        result: dict[str, Any] = found["result"]
        return result

    def tab(self, url: str = "about:blank", width: int = 1200, height: int = 900) -> Tab:
        """Open a tab without cookies."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)
        session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        made = Tab(self, session["sessionId"], target["targetId"], context)
        self.tabs[made.session] = made
        for domain in ("Page", "Runtime", "Log", "Network"):
            made.send(f"{domain}.enable")
        made.size(width, height)
        if url != "about:blank":
            made.goto(url)
        return made

    def close(self) -> None:
        """End the process."""
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (RuntimeError, queue.Empty, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        self._reader.join(10)
        os.close(self._from)
        self._folder.cleanup()


class Tab:
    """A tab: what it shows, and hands that click and type."""

    def __init__(self, browser: Browser, session: str, target: str, context: str) -> None:
        self.browser, self.session, self.target, self.context = browser, session, target, context
        self.complaints: list[str] = []  # of the console, of scripts, of the content policy
        self.asked: list[str] = []  # addresses
        self._forgiven: list[str] = []
        self._loaded = threading.Event()

    def heard(self, method: str, given: dict[str, Any]) -> None:
        """Keep what the browser says of this tab."""
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.complaints.append(
                details.get("exception", details).get("description", str(details))
            )
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.complaints.append(str([each.get("value") for each in given["args"]]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            entry = given["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded.set()

    def send(self, method: str, **given: Any) -> dict[str, Any]:
        """Ask for something in this tab."""
        return self.browser.send(method, self.session, **given)

    def goto(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self._loaded.clear()
        self.send("Page.navigate", url=url)
        assert self._loaded.wait(PATIENCE), url

    def size(self, width: int, height: int = 900, *, scale: float = 1, phone: bool = False) -> None:
        """Make the screen so large, in CSS pixels."""
        given = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone}
        self.send("Emulation.setDeviceMetricsOverride", **given)

    def media(self, **features: str) -> None:
        """Let media queries find this: ``color_scheme="dark"``; ``media="print"``."""
        kind = features.pop("media", "")
        named = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        self.send("Emulation.setEmulatedMedia", media=kind, features=named)

    def js(self, expression: str) -> Any:
        """Return what an expression is in the page; promises are waited for."""
        found = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = PATIENCE) -> Any:
        """Wait until an expression is true in the page, and return it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.js(f"((found) => found instanceof Node || found)({expression})"):
                return found
            time.sleep(0.02)
        raise AssertionError(f"never true: {expression}\n{self.text()[:2000]}\n{self.complaints}")

    def text(self, selector: str = "body") -> str:
        """Return what a person reads there."""
        return str(self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def texts(self, selector: str) -> list[str]:
        """Return the text of each element."""
        place = json.dumps(selector)
        found: list[str] = self.js(
            f"[...document.querySelectorAll({place})].map((each) => each.textContent)"
        )
        return found

    def cells(self, selector: str) -> list[list[str]]:
        """Return the text of each cell of rows."""
        place = json.dumps(selector)
        found: list[list[str]] = self.js(
            f"[...document.querySelectorAll({place})]"
            ".map((row) => [...row.children].map((cell) => cell.textContent))"
        )
        return found

    def count(self, selector: str) -> int:
        """Return how many elements there are."""
        return int(self.js(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, selector: str) -> None:
        """Press the mouse on the middle of an element."""
        place = json.dumps(selector)
        box = self.js(f"""(() => {{
          const found = document.querySelector({place});
          found.scrollIntoView({{ block: "center", behavior: "instant" }});
          const {{ left, top, width, height }} = found.getBoundingClientRect();
          return [left + width / 2, top + height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        text, code = _KEYS[key]
        given = {"key": key, "code": "Space" if key == " " else key, "modifiers": 8 * shift}
        given |= {"windowsVirtualKeyCode": code}
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {})
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    def type(self, text: str) -> None:
        """Type where the focus is."""
        self.send("Input.insertText", text=text)

    def tab_to(self, selector: str, most: int = 80) -> None:
        """Press Tab until an element has the focus."""
        place = json.dumps(selector)
        for _ in range(most):
            if self.js(f"document.activeElement?.matches({place}) ?? false"):
                return
            self.press("Tab")
        raise AssertionError(f"the key Tab never comes to {selector}")

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save what the tab looks like, by default down to its end."""
        given: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            sides = {side: size[side] for side in ("width", "height")}
            given["clip"] = {"x": 0, "y": 0, "scale": 1, **sides}
            given["captureBeyondViewport"] = True
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", **given)["data"]))

    def forgive(self, text: str) -> None:
        """Drop complaints that hold a text: browsers write down each answer that refuses."""
        self._forgiven.append(text)

    def wrong(self) -> list[str]:
        """Return the complaints that were not forgiven."""
        return [
            each for each in self.complaints if not any(text in each for text in self._forgiven)
        ]

    def elsewhere(self) -> list[str]:
        """Return the addresses outside this machine that the tab asked for."""
        own = ("http://127.0.0.1:", "about:", "data:")
        return [each for each in self.asked if not each.startswith(own)]

    def close(self) -> None:
        """Close the tab and forget its cookies."""
        del self.browser.tabs[self.session]
        self.browser.send("Target.closeTarget", targetId=self.target)
        self.browser.send("Target.disposeBrowserContext", browserContextId=self.context)
