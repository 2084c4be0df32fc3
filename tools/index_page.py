# SPDX-License-Identifier: Apache-2.0
"""What an index page shows of limen: the README with links that work there, and its addresses.

scikit-build-core calls dynamic_metadata() when it builds; pyproject.toml has the address of the
repository, once. Links lead to the files of the same version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#|mailto:)([^)\s]+)\)")


def absolute(text: str, repository: str, version: str) -> str:
    """Return Markdown with every relative link made absolute; pictures lead to the file itself."""

    def link(found: re.Match[str]) -> str:
        picture, label, path = found.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}{label}({repository}/{kind}/v{version}/{path})"

    return LINK.sub(link, text)


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `readme` and `urls` of [project]."""
    repository, version = settings["repository"], project["version"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return {
        "readme": {
            "content-type": "text/markdown",
            "text": absolute(text, repository, version),
        },
        "urls": {
            "Repository": repository,
            "Documentation": f"{repository}/blob/v{version}/docs/tutorial.md",
            "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        },
    }
