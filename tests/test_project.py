# SPDX-License-Identifier: Apache-2.0
"""What a maintainer relies on: one version, and workflows that run what .ci/run runs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from streams import PATIENCE

import limen

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_written_once() -> None:
    assert version("limen") == limen.__version__
    assert "version" not in PROJECT["project"]
    source, _ = PROJECT["tool"]["dynamic-metadata"]

    assert "version" == source["field"]
    assert f'\n__version__ = "{limen.__version__}"\n' in (ROOT / source["input"]).read_text()


def test_what_the_makefile_needs_is_an_extra_or_a_group() -> None:
    lines = re.findall(r"^[\w-]+_NEEDS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {need for line in lines for need in line.split() if "$" not in need}
    extras, groups = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]

    assert named <= {*extras, *groups}
    assert not set(extras) & set(groups)  # the Makefile names both alike
    assert {"test", "check", "docs", "wheels"} <= named


def test_no_extra_installs_what_only_the_project_needs() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    needs = {re.split(r"[^\w-]", need)[0] for each in extras.values() for need in each}

    assert not needs & {"pytest", "hypothesis", "ruff", "mypy", "coverage", "zensical", "ziglang"}
    assert {"scikit-learn", "river", "duckdb", "starlette", "pyspark"} <= needs


def index_page() -> tuple[str, dict[str, str], str]:
    """Return the README and the addresses as the build makes them, and the prefix of links."""
    path = ROOT / "tools" / "index_page.py"
    spec = importlib.util.spec_from_file_location("index_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, given = PROJECT["tool"]["dynamic-metadata"]
    made = module.dynamic_metadata(given, {"version": "1.2.3"})
    assert "text/markdown" == made["readme"]["content-type"]
    return made["readme"]["text"], made["urls"], given["repository"]


def test_links_of_the_index_page_are_absolute_and_lead_to_files_that_exist() -> None:
    text, _, repository = index_page()
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text)

    assert len(links) > 20
    for picture, link in links:
        if link.startswith(repository):
            kind = "raw" if picture else "blob"
            prefix = f"{repository}/{kind}/v1.2.3/"
            assert link.startswith(prefix)
            assert (ROOT / link.removeprefix(prefix).partition("#")[0]).exists(), link
        else:
            assert re.match(r"https?://", link), link


def test_the_first_screen_of_the_index_page_has_a_picture() -> None:
    text, _, _ = index_page()

    assert any(line.startswith("![") for line in text.splitlines()[:12])


def test_the_repository_is_written_once_and_every_address_is_made_of_it() -> None:
    _, urls, repository = index_page()

    assert {"Repository", "Documentation", "Changelog", "Issues"} == set(urls)
    assert all(url.startswith(repository) for url in urls.values())
    assert 1 == (ROOT / "pyproject.toml").read_text(encoding="utf-8").count(repository)


def test_classifiers_name_every_python_that_is_tested() -> None:
    classifiers = PROJECT["project"]["classifiers"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    tested = re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/test.yml").read_text())

    assert set(named) == set(tested)
    assert f">={named[0]}" == PROJECT["project"]["requires-python"]


def test_a_build_without_a_compiler_says_in_its_last_lines_what_to_install(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("nanobind")
    for tool in ("cmake", "ninja"):  # beside Python, or on PATH
        found = shutil.which(tool) or shutil.which(tool, path=str(Path(sys.executable).parent))
        if found is None:
            pytest.skip(f"{tool} cannot be found")
        (tmp_path / tool).symlink_to(found)
    settings = {"build-dir": str(tmp_path / "build")}
    call = f"build_wheel({str(tmp_path)!r}, {settings!r})"
    program = f"from scikit_build_core.build import build_wheel; {call}"
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", program]
    both = subprocess.STDOUT
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=both, text=True
    )
    last = done.stdout.strip()[-900:]

    assert 0 != done.returncode
    assert "limen's core is written in C++20, and it could not be compiled here." in last
    assert "apt-get install g++" in last
    assert "dnf install gcc-c++" in last
    assert "xcode-select --install" in last


def test_what_is_linked_in_has_its_licence() -> None:
    licences = {path.stem for path in (ROOT / "licenses").glob("*.txt")}

    assert {"nanobind", "robin-map"} == licences
    assert "licenses/*.txt" in PROJECT["project"]["license-files"]
    linked = re.findall(r"^  linked\(([\w-]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert licences == set(linked)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_only_and_pins_its_actions_by_hash(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (.+)", text)

    assert "\npermissions: {}\n" in text
    given = re.findall(r"^ +([\w-]+: (?:read|write))\b", text, re.MULTILINE)
    # Publishing proves by a token of GitHub's own who publishes; no job has a secret.
    allowed = {"contents: read"} | ({"id-token: write"} if path.name == "wheels.yml" else set())
    assert allowed == set(given)
    assert "secrets." not in text
    assert actions
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+(\.\d+)*")
    assert all(pinned.fullmatch(action) for action in actions), actions


def test_workflows_run_the_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    run = set(re.findall(r"run: make (?:--[\w-]+(?:=\d+)? )*([a-z][\w-]*)", text))

    assert run <= targets
    assert {"test", "demo", "check", "lowest", "audit", "wheels"} == run


def test_nothing_is_published_but_what_was_built_for_a_tag_of_a_known_repository() -> None:
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    publish = text[text.index("\n  publish:\n") :]

    assert "id-token: write" not in text[: text.index(publish)]
    assert "if: startsWith(github.ref, 'refs/tags/v')" in publish
    assert "needs: [linux, others, source]" in publish
    assert "environment: pypi" in publish
    assert "attestations: true" in publish
    assert "OWNER" in text


def test_the_coverage_that_is_told_is_the_one_that_was_measured() -> None:
    told = re.findall(r"about (\d+)%", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    report = (ROOT / "docs" / "coverage.txt").read_text(encoding="utf-8")

    assert told == re.findall(r"^TOTAL.* (\d+)%$", report, re.MULTILINE)


def test_every_test_has_the_same_name_in_the_next_run(request: pytest.FixtureRequest) -> None:
    """An address in a name is another one in each run, and tests cannot run side by side."""
    assert not [each for each in request.session.items if re.search(r" at 0x", each.nodeid)]


KILLED = """
import os, signal, subprocess, sys
def test_that_is_killed():
    server = [sys.executable, "-c", "import os, time; os.write(1, b'started'); time.sleep(1e6)"]
    child = [sys.executable, "-c", f"import subprocess; subprocess.run({server!r})"]
    read, write = os.pipe()
    subprocess.Popen(child, stdout=write, stderr=2)
    assert b"started" in os.read(read, 100)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is known of processes left behind")
def test_a_test_run_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "test_killed.py").write_text(KILLED)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-s", str(tmp_path)]
    # Its errors are read to the end, which comes when the last process that may write them ends.
    done = subprocess.run(command, stderr=subprocess.PIPE, env=env, timeout=PATIENCE)

    assert (-9, b"") == (done.returncode, done.stderr)
