# SPDX-License-Identifier: Apache-2.0
"""Take the pictures of docs/page.md: docs/pictures/page*.png.

python docs/pictures/page.py, with chromium and Pillow installed. It plays `make serve-demo`, waits
for its proposal, and approves it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser, Tab  # noqa: E402

WAITING = "document.querySelector('.badge')?.textContent === 'waits for approval'"


def take(tab: Tab, name: str, height: int, scale: float = 1) -> None:
    """Save the upper part of the page with few colours, which makes the file small."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.png"
        tab.picture(path)
        picture = Image.open(path)
        shown = picture.crop((0, 0, picture.width, min(picture.height, round(scale * height))))
        few = shown.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(ROOT / "docs" / "pictures" / f"{name}.png", optimize=True)


def main() -> None:
    """Play the demonstration and take pictures on the way."""
    demo = subprocess.Popen(
        [sys.executable, ROOT / "examples" / "serve_demo.py"], stdout=subprocess.PIPE, text=True
    )
    browser = Browser()
    try:
        assert demo.stdout is not None
        url = demo.stdout.readline().split()[1]
        tab, phone = browser.tab(url, width=1040), browser.tab(url, width=390)
        phone.size(390, 844, scale=1, phone=True)
        tab.wait(WAITING, seconds=120)
        take(tab, "page", 2200)
        take(phone, "page_phone", 1500)
        tab.click("#reason")
        tab.type("Phishing has become more frequent")
        tab.click("[data-fill=approve]")
        tab.wait("document.querySelector('#news').textContent")
        tab.wait("document.querySelector('.card.quiet')")
        time.sleep(1)  # until what is new has come into view
        take(tab, "page_approved", 620)
    finally:
        browser.close()
        demo.send_signal(signal.SIGINT)
        demo.wait(20)


if __name__ == "__main__":
    main()
