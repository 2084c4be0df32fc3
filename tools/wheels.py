# SPDX-License-Identifier: Apache-2.0
"""Build limen's wheels for Linux, check them and try them: `make wheels`.

zig is a C++ compiler for every architecture and every glibc, from PyPI; a Debian release has a
Python, its headers and its glibc. Each Debian is unpacked into a folder, not installed, and its
Python is run by its own loader, or by qemu where it is of another architecture: nothing needs a
container.

    cp311         by the Python of Debian 12, for 3.11 alone
    cp312-abi3    by that of Debian 13 (3.13), for 3.12 and later

A wheel is tried in an empty environment of the Debian whose Python it was built for, with nothing
but that environment on PATH. What cannot be tried is named at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

GLIBC = "2.28"  # what NumPy's own wheels need
DEBIANS = {"cp311": "bookworm", "cp312": "trixie"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MEGABYTE = 1_000_000
LARGEST = 3 * MEGABYTE
SLOWEST_IMPORT = 0.060  # seconds more than NumPy
TRIED = ("test_model.py", "test_batch.py")

BESIDE = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # programs of .venv first
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python")


def say(text: str) -> None:
    """Print a line at once, so that it stands before what a command prints."""
    print(f"\n== {text}", flush=True)


def run(*command: object, **options: object) -> str:
    """Run a command and return what it printed; all of it is shown when it fails."""
    parts = [str(part) for part in command]
    done = subprocess.run(
        parts, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed ({done.returncode}): {' '.join(parts)}")
    return str(done.stdout)


def tool(name: str) -> str:
    """Find a program beside this Python or on PATH."""
    found = shutil.which(name, path=BESIDE)
    if found is None:
        sys.exit(f"{name} cannot be found. `make wheels` needs debootstrap, dpkg and qemu-user.")
    return found


def script(path: Path, line: str) -> Path:
    """Write a program of one line that hands its arguments on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    path.chmod(0o755)
    return path


def debian(release: str, architecture: str) -> Path:
    """Unpack a Debian with its Python and return the program that starts that Python."""
    root = WORK / f"{release}-{architecture}"
    python = root / "usr" / "bin" / "python"
    if python.exists():
        return python
    say(f"Debian {release} for {architecture}, with its Python")
    shutil.rmtree(root, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    include = "--include=python3,python3-venv,libpython3-dev"
    options = ("--download-only", "--variant=minbase", f"--arch={ARCHITECTURES[architecture]}")
    rights = () if os.geteuid() == 0 else (tool("fakeroot"),)
    run(*rights, tool("debootstrap"), *options, include, release, root)
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        run(tool("dpkg-deb"), "--extract", package, root)
    (binary,) = (root / "usr" / "bin").glob("python3.[0-9]*[0-9]")
    # Debian's pyconfig.h chooses by architecture among those that are installed: there is one.
    headers = root / "usr" / "include"
    for chosen in headers.glob(f"*-linux-gnu/{binary.name}/pyconfig.h"):
        shutil.copy2(chosen, headers / binary.name)
    # $0 may be the link of an environment: Python must see it, to find what is installed there.
    if architecture == "x86_64":
        libraries = [root / part / f"{architecture}-linux-gnu" for part in ("lib", "usr/lib")]
        loader = libraries[0] / "ld-linux-x86-64.so.2"
        line = f'{loader} --argv0 "$0" --library-path {libraries[0]}:{libraries[1]} {binary}'
    else:
        line = f'{tool(f"qemu-{architecture}")} -0 "$0" -L {root} {binary}'
    return script(python, line)


def environment(python: Path, folder: Path, *needs: str | Path) -> Path:
    """Make an empty environment of a Python, install what is needed, and return its folder."""
    run(python, "-m", "venv", "--clear", "--without-pip", folder)
    run(*PIP, folder / "bin" / "python", "install", "--quiet", *needs)
    return folder


def compiler(architecture: str) -> dict[str, Path]:
    """Write the programs that CMake calls to compile for an architecture."""
    import ziglang

    zig = Path(ziglang.__file__).parent / "zig"
    folder = WORK / "zig"
    target = f"{architecture}-linux-gnu.{GLIBC}"
    return {
        "CMAKE_CXX_COMPILER": script(folder / f"c++-{architecture}", f"{zig} c++ -target {target}"),
        "CMAKE_AR": script(folder / "ar", f"{zig} ar"),
        "CMAKE_RANLIB": script(folder / "ranlib", f"{zig} ranlib"),
    }


def build(version: str, architecture: str) -> Path:
    """Build one wheel and return its path."""
    platform = f"manylinux_{GLIBC.replace('.', '_')}_{architecture}"
    say(f"{version} for {platform}")
    builder = WORK / f"builder-{version}"
    if not (builder / "bin" / "scikit-build").exists():
        # The host's architecture, whatever the wheel's: it runs CMake, and headers are the same.
        python = debian(DEBIANS[version], "x86_64")
        environment(python, builder, *PROJECT["build-system"]["requires"])
    exports = WORK / "exports.map"
    exports.write_text("{ global: PyInit__core; local: *; };\n")
    defines = {
        **compiler(architecture),
        "CMAKE_MODULE_LINKER_FLAGS": f"-Wl,--version-script={exports}",
        "LIMEN_RUNTIME": "libc++",
        # nanobind needs it, and other C++ libraries than libc++ bring it along.
        "CMAKE_CXX_FLAGS": "-include stdio.h",
    }
    suffix = f".cpython-{version.removeprefix('cp')}-{architecture}-linux-gnu.so"
    made = WORK / "made" / f"{version}-{architecture}"
    shutil.rmtree(made, ignore_errors=True)
    run(
        *(*PIP, builder / "bin" / "python", "wheel", "--verbose"),
        *("--no-build-isolation", "--no-deps", "--wheel-dir", made),
        f"-Cbuild-dir={WORK / 'core' / f'{version}-{architecture}'}",
        *(f"-Ccmake.define.{name}={value}" for name, value in defines.items()),
        ROOT,
        env={
            **os.environ,
            "PATH": BESIDE,  # cmake and ninja
            "_PYTHON_HOST_PLATFORM": f"linux-{architecture}",
            "SETUPTOOLS_EXT_SUFFIX": suffix,
        },
    )
    # zig has linked against that glibc and no later one; check() asks auditwheel whether it is so.
    run(
        *(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", platform),
        *made.glob("*.whl"),
    )
    (wheel,) = made.glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy2(wheel, DIST))


def check(wheel: Path) -> None:
    """Refuse a wheel that is not what its name says, or too large."""
    say(f"{wheel.name}: {wheel.stat().st_size / MEGABYTE:.2f} MB")
    assert wheel.stat().st_size <= LARGEST, "a wheel has at most 3 MB"
    shown = run(tool("auditwheel"), "show", wheel)
    promised = re.search(r"manylinux_\d+_(\d+)", wheel.name)
    found = re.search(r'platform tag:\s+"manylinux_\d+_(\d+)', shown)
    assert promised, wheel
    assert found, shown
    assert int(found[1]) <= int(promised[1]), shown
    print(f"auditwheel: {found[0].split()[-1]} suffices", flush=True)
    print(run(tool("check-wheel-contents"), wheel).strip())
    print(run(tool("twine"), "check", "--strict", wheel).strip())
    if "-abi3-" in wheel.name:
        print(run(tool("abi3audit"), "--strict", "--summary", wheel).strip())
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (bill,) = (name for name in names if name.endswith(".dist-info/sboms/limen.cdx.json"))
        (_,) = (name for name in names if re.fullmatch(r"limen/_core\..*so", name))
        linked = [each["name"] for each in json.loads(packed.read(bill))["components"]]
    licences = [Path(name).stem for name in names if "/licenses/" in name]
    print(f"linked in: {', '.join(linked)}; licences: {', '.join(licences)}", flush=True)
    assert {"nanobind", "robin-map"} <= set(licences)


def try_it(wheel: Path, version: str, architecture: str) -> None:
    """Install a wheel where nothing else is, and use it."""
    python = debian(DEBIANS[version], architecture)
    folder = WORK / f"tried-{version}-{architecture}"
    environment(python, folder, wheel)
    # No compiler, no system's Python: the environment alone. The shell is called by its full path.
    env = {"PATH": str(folder / "bin"), "HOME": str(folder), "LANG": "C.UTF-8"}
    limen, python = folder / "bin" / "limen", folder / "bin" / "python"
    about = "import os, platform as p; print(p.python_version(), os.confstr('CS_GNU_LIBC_VERSION'))"
    say(f"{wheel.name} on {run(python, '-c', about, env=env).strip()}, {architecture}")
    assert "threshold" in run(limen, "demo", env=env)
    scores = folder / "scores.csv"
    scores.write_text(run(limen, "demo", "--csv", env=env))
    fitted = run(limen, "fit", scores, "--false-negative", "5", env=env)
    print(fitted.strip().splitlines()[1], flush=True)
    if architecture == "x86_64":
        more = import_time(python, env)
        print(f"import limen: {1000 * more:.0f} ms more than NumPy", flush=True)
        assert more <= SLOWEST_IMPORT
    group = PROJECT["dependency-groups"]["test"]
    needs = [need for need in group if need.startswith(("pytest", "hypothesis"))]
    run(*PIP, python, "install", "--quiet", *needs)
    options = ("-p", "no:cacheprovider", "--numprocesses=2", "-m", "not check")
    tests = [ROOT / "tests" / name for name in TRIED]
    # Away from the sources: what is imported is what was installed.
    print(run(python, "-m", "pytest", *options, *tests, cwd=folder, env=env).splitlines()[-1])


def import_time(python: Path, env: dict[str, str]) -> float:
    """Return by how many seconds of CPU limen, with its core in use, takes longer than NumPy."""
    measure = "import time; import {}; print(time.process_time())"
    programs = [measure.format(each) for each in ("numpy", "limen; limen.OnlineThreshold()")]
    pairs = [[float(run(python, "-c", each, env=env)) for each in programs] for _ in range(15)]
    numpy, limen = (statistics.median(column) for column in zip(*pairs, strict=True))
    return limen - numpy


def main() -> int:
    """Build, check and try what is asked for: everything, unless arguments say otherwise."""
    parser = argparse.ArgumentParser(prog="python tools/wheels.py", description=__doc__)
    parser.add_argument("--only", default="", help="a part of, say, cp312-aarch64")
    parser.add_argument("--untried", action="store_true", help="build and check, but do not try")
    options = parser.parse_args()
    wanted = [
        (version, architecture)
        for architecture in ARCHITECTURES
        for version in DEBIANS
        if options.only in f"{version}-{architecture}"
    ]
    for version, architecture in wanted:
        wheel = build(version, architecture)
        check(wheel)
        if not options.untried:
            try_it(wheel, version, architecture)
    say("Not tried: musllinux (no Python for musl is at hand), macOS, Windows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
