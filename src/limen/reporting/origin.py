# SPDX-License-Identifier: Apache-2.0
"""Where a page comes from: when it was made, by which command, out of which files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from limen.reporting.html import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Origin", "now"]


@dataclass(frozen=True, slots=True)
class Origin:
    """What it takes to make a page again."""

    made: datetime
    command: str
    files: Sequence[tuple[str, int | None, str]] = ()  # name, bytes and SHA-256
    skipped: int = 0  # malformed rows that were left out

    @classmethod
    def of_files(cls, command: str, paths: Sequence[str], skipped: int = 0) -> Origin:
        """Note the files that a page is made of, with their hashes. O(bytes)."""
        return cls(now(), command, [_noted(path) for path in paths], skipped)

    def html(self) -> Iterator[str]:
        """Yield it as a part of the page."""
        yield '<h2>How this page was made</h2>\n<p id="made">On '
        yield f'<time datetime="{self.made.isoformat()}">{self.made:%Y-%m-%d at %H:%M} UTC</time>'
        yield f", by:</p>\n<pre><code>{escape(self.command)}</code></pre>\n"
        if self.files:
            rows = (
                (escape(name), "" if size is None else f"{size:,}", f"<code>{digest}</code>")
                for name, size, digest in self.files
            )
            yield from table(["file", "bytes", "SHA-256"], rows)
        if self.skipped:
            yield f'<p class="remark">Malformed rows that were left out: {self.skipped:,}.</p>\n'


def now() -> datetime:
    """Return the time; that of SOURCE_DATE_EPOCH where builds must be the same."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)


def _noted(path: str) -> tuple[str, int | None, str]:
    if path == "-" or not os.path.isfile(path):
        name = "standard input" if path == "-" else path
        return name, None, "a stream, which cannot be read again"
    from hashlib import file_digest

    with open(path, "rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        return os.path.basename(path), os.fstat(file.fileno()).st_size, digest
