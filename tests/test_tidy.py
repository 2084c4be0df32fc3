# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING is kept to: its words are written, and the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FOLDERS = ("src/limen", "native")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyi", ".js", ".html", ".css", ".hpp", ".cpp"}
)

# Files whose words have still to be edited. A file that has none any more leaves the list.
NOT_YET: set[str] = set()

# Between two words of a phrase: a line may end there, in a comment or between two strings.
GAP = r"[\s/#*\"'f]+"


def rows_after(heading: str) -> list[list[str]]:
    """The cells of the first table after a heading, without its head."""
    lines = GUIDE.partition(f"\n{heading}\n")[2].splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows[2:]


def banned() -> dict[str, str]:
    """What is never written, and what to write instead."""
    return {
        each.strip().strip("`"): write
        for never, write in rows_after("### Never written")
        for each in never.split(",")
    }


def found_in(text: str, words: dict[str, str]) -> list[tuple[int, str]]:
    """The line of each banned word of a text; after a dot it is a name of some other library."""
    found = []
    for word in words:
        pattern = GAP.join(map(re.escape, word.split()))
        for match in re.finditer(rf"(?<![A-Za-z0-9.]){pattern}(?![A-Za-z0-9])", text, re.I):
            found.append((text.count("\n", 0, match.start()) + 1, word))
    return sorted(found)


def test_no_source_writes_what_is_never_written() -> None:
    words = banned()
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}; write: {words[word]}"
        for path in SOURCES
        if str(path.relative_to(ROOT)) not in NOT_YET
        for line, word in found_in(path.read_text(encoding="utf-8"), words)
    ]

    assert not wrong, "\n" + "\n".join(wrong)


def test_a_file_that_needs_no_editing_is_not_excused() -> None:
    words = banned()
    edited = [
        name
        for name in sorted(NOT_YET)
        if not (ROOT / name).exists()
        or not found_in((ROOT / name).read_text(encoding="utf-8"), words)
    ]

    assert [] == edited


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("They tell it.", [1]),
        ("at = file.tell()", []),
        ("one\nthe foretold teller\n", []),
        ("def tells_more(): ...\n", [1]),
        ("# x is none\n    # of them", [1]),
        ('f"{x!r} is none "\n    f"of {y}"', [1]),
        ("is none\n\noften", []),
    ],
)
def test_banned_words_are_found_as_words_also_across_lines(text: str, lines: list[int]) -> None:
    assert lines == [
        line for line, _ in found_in(text, {"tell": "", "tells": "", "is none of": ""})
    ]


def files_named_in(row: list[str]) -> list[str]:
    """What a row names as files and folders; names with a placeholder are none."""
    return [
        name
        for cell in row[1:]
        for name in re.findall(r"`([^`]+)`", cell)
        if re.fullmatch(r"[\w./*-]+(\.(py|cpp|hpp|md|json|toml|yml)|/|\.\*)", name)
    ]


PLACES = ("", "src/limen", "native", "native/*", "tests", "benchmarks/study")
TABLE = rows_after("## Where does it go?")


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0].replace("`", ""))
def test_every_file_that_the_guide_sends_to_exists(row: list[str]) -> None:
    named = files_named_in(row)
    missing = [
        name
        for name in named
        if not any(list(ROOT.glob(f"{place}/{name}".strip("/"))) for place in PLACES)
    ]

    assert named, "the row names no file"
    assert [] == missing


def test_the_table_of_the_guide_is_read() -> None:
    assert len(TABLE) > 30
    assert len(banned()) > 20


ROOMS = {  # what each room of the service may not know
    "points": r"limen\.service\.(log|http)\b|\b(sqlite3|starlette|asyncio|time|random|os)\b",
    "log": r"limen\.service\.http\b|\b(starlette|uvicorn)\b",
}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_the_service_know_those_before_them_alone(room: str) -> None:
    imports = re.compile(rf"^\s*(?:from|import) .*(?:{ROOMS[room]})", re.MULTILINE)
    found = {
        path.name: imports.findall(path.read_text(encoding="utf-8"))
        for path in (ROOT / "src/limen/service" / room).glob("*.py")
    }

    assert found
    assert {} == {name: each for name, each in found.items() if each}
