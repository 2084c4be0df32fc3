# SPDX-License-Identifier: Apache-2.0
"""The pages lead where they say, the reference is complete, and the site can be built."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
)
LIBRARIES = {
    "limen.sklearn": "sklearn",
    "limen.river": "river",
    "limen.plots": "matplotlib",
    "limen.spark": "pyspark",
    "limen.spark.ml": "pyspark",
}
MODULES = [
    "limen",
    "limen.columns",
    "limen.losses",
    "limen.metrics",
    "limen.narrowing",
    "limen.paper",
    "limen.trust",
    *LIBRARIES,
]

NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def reference() -> list[str]:
    text = [page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md")]
    return [name for page in text for name in NAMED.findall(page)]


def is_elsewhere(link: str) -> bool:
    return urlsplit(link).scheme in {"http", "https", "mailto"}


@cache
def anchors_of(page: Path) -> set[str]:
    """What a link to a page of Markdown may name: its headings, and what the reference draws."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    slugs = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
    return slugs | set(NAMED.findall(text))


def broken_links_of(page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        aim = (page.parent / path).resolve() if path else page
        if not is_elsewhere(link) and (
            not aim.exists() or (anchor and anchor not in anchors_of(aim))
        ):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    assert [] == broken_links_of(page)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[a](#one-two) [b](#three) [c](page.md#one-two) [d](other.md) `[e](f)`"
    )

    assert ["#three", "other.md"] == broken_links_of(page)


def public_names(module: ModuleType) -> set[str]:
    """What a module promises; of limen also what can be imported and is not in `__all__`."""
    return {*module.__all__, *(module._HOMES if module.__name__ == "limen" else ())}


@pytest.mark.check
@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference_once(module: str) -> None:
    if module in LIBRARIES:
        pytest.importorskip(LIBRARIES[module])
    home = importlib.import_module(module)
    named = Counter(name.rpartition(".") for name in reference())
    for name in public_names(home):
        thing = getattr(home, name)
        if isinstance(thing, ModuleType):
            continue
        places = [
            place
            for place, _, each in named.elements()
            if each == name and getattr(importlib.import_module(place), name) is thing
            if place in MODULES
        ]

        assert 1 == len(places), f"{module}.{name} is in the reference {len(places)} times"


@pytest.mark.check
def test_the_reference_names_public_things_only() -> None:
    for name in reference():
        place, _, last = name.rpartition(".")
        if place in LIBRARIES:
            pytest.importorskip(LIBRARIES[place])

        assert last in public_names(importlib.import_module(place)), name


def test_every_page_is_in_the_navigation_once() -> None:
    nav = re.findall(r": (\S+\.md)$", (ROOT / "docs/site/mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(page.relative_to(ROOT)) for page in PAGES]

    assert sorted(pages) == sorted(nav)


class Links(HTMLParser):
    """What a page of HTML links to, and what can be linked to in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors |= {named.get("id") or "", named.get("name") or ""}
        self.links += [link for link in (named.get("href"), named.get("src")) if link]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for library in ("zensical", "mkdocstrings_handlers"):
        if find_spec(library) is None:
            pytest.skip(f"the site was not built: {library} is missing; make docs installs it")
    place = tmp_path_factory.mktemp("site")
    program = "import sys; from pathlib import Path; import build; build.build(Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(place)],
        cwd=ROOT / "docs" / "site",
        capture_output=True,
        text=True,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    return place / "site"


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    parsed = {page: Links(page) for page in site.rglob("*.html")}
    broken = []
    for page, found in parsed.items():
        for link in found.links:
            if is_elsewhere(link) or link.startswith(("data:", "javascript:")):
                continue
            path, _, anchor = unquote(link).partition("#")
            base = site if page.name == "404.html" else page.parent
            aim = (base / path.lstrip("/")).resolve() if path else page
            aim = aim / "index.html" if aim.is_dir() else aim
            if not aim.exists() or (aim in parsed and anchor not in parsed[aim].anchors):
                broken.append((str(page.relative_to(site)), link))

    assert [] == broken
    assert 25 <= len(parsed)


def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    fetched = re.compile(
        r"""<(?:script|img|iframe)[^>]+src=["']?https?:|<link[^>]+stylesheet"""
        r"""[^>]+href=["']?https?:|@import\s+url\(["']?https?:"""
    )
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text(encoding="utf-8")), page


def test_native_methods_are_drawn_with_their_docstrings(site: Path) -> None:
    text = (site / "docs/reference/models.html").read_text(encoding="utf-8")

    assert 'id="limen.OnlineThreshold.update"' in text
    assert "Add one sample." in text
    assert 'id="limen.OnlineThreshold.threshold"' in text
