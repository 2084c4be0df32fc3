# SPDX-License-Identifier: Apache-2.0
"""Files as people have them: packed, with decimal commas, Arrow, and with malformed rows."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import Terminal, limen_process

import limen
from limen.cli import line_reader, main
from limen.cli import rows as rows_module
from limen.demo import load_phishing, phishing_csv

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
ipc = pytest.importorskip("pyarrow.ipc")
zstandard = pytest.importorskip("zstandard")

SCORES, LABELS = load_phishing()
BEST = limen.optimal_threshold(SCORES, LABELS, false_negative=5)
COSTS = ["--false-negative", "5"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fitted(capsys: pytest.CaptureFixture[str]):
    def call(*arguments: str) -> tuple[int, dict[str, Any], str]:
        code = main(["fit", *arguments, "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out or "{}"), captured.err

    return call


PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


@pytest.mark.parametrize("by", ["lines", "blocks", "pipe"])
@pytest.mark.parametrize("suffix", PACK)
def test_packed_text_is_read_by_its_first_bytes(fitted, monkeypatch, suffix, by) -> None:
    packed = PACK[suffix](phishing_csv().encode())
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    if by == "pipe":
        done = limen_process("fit", "-", *COSTS, "-q", input=packed)
        assert repr(BEST.threshold) == done.stdout.decode().strip()
        return
    for name in (f"scores.csv.{suffix}", "scores"):
        Path(name).write_bytes(packed)
        code, found, _ = fitted(name, *COSTS)

        assert (0, BEST.threshold, BEST.loss) == (code, found["threshold"], found["loss"])


@pytest.mark.parametrize("suffix", PACK)
def test_packed_tabs_are_known_by_the_name_within(fitted, suffix) -> None:
    text = phishing_csv().replace(",", "\t").replace("score\tlabel", "score,x\tlabel")
    Path(f"s.tsv.{suffix}").write_bytes(PACK[suffix](text.encode()))

    assert BEST.loss == fitted(f"s.tsv.{suffix}", *COSTS, "--score-column", "score,x")[1]["loss"]


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize("wrong", ["cut short", "damaged", "not packed"])
@pytest.mark.parametrize("suffix", PACK)
def test_packed_text_that_ends_too_early_is_never_read_as_all(
    fitted, monkeypatch, suffix, wrong, by
) -> None:
    packed = PACK[suffix](phishing_csv().encode())
    middle = len(packed) // 2
    content = {
        "cut short": packed[:-20],
        "damaged": packed[:middle]
        + bytes(byte ^ 255 for byte in packed[middle : middle + 40])
        + packed[middle + 40 :],
        "not packed": phishing_csv().encode(),
    }[wrong]
    Path(f"bad.csv.{suffix}").write_bytes(content)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    code, found, err = fitted(f"bad.csv.{suffix}", *COSTS)

    assert (3, {}) == (code, found)
    assert f"bad.csv.{suffix}" in err
    assert 1 == err.count("\n")


def test_a_long_frame_of_zstd_that_is_cut_short_is_never_read_as_all(fitted) -> None:
    """Its first blocks are rows like any other; the reader of zstandard would end after them."""
    scores = np.random.default_rng(0).random(40_000)
    lines = "".join(f"{score!r},{place % 2}\n" for place, score in enumerate(scores.tolist()))
    Path("s.csv.zst").write_bytes(zstandard.compress(f"score,label\n{lines}".encode())[:-30])
    code, found, err = fitted("s.csv.zst")

    assert (3, {}) == (code, found)
    assert "the zstd data ends or is damaged (a frame is cut short). Fetch the file again." in err


def test_frames_of_zstd_follow_one_another(fitted) -> None:
    text = phishing_csv().encode()
    parts = text[:5000], text[5000:5001], b"", text[5001:]
    Path("s.csv.zst").write_bytes(b"".join(map(zstandard.compress, parts)))

    assert (BEST.loss, len(SCORES)) == tuple(
        fitted("s.csv.zst", *COSTS)[1][name] for name in ("loss", "samples")
    )


def test_without_zstandard_the_way_to_it_is_said(fitted, monkeypatch) -> None:
    Path("s.csv.zst").write_bytes(zstandard.compress(phishing_csv().encode()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    code, _, err = fitted("s.csv.zst")

    assert 1 == code
    assert "zstd -dc FILE | limen" in err


def table(**more: Any) -> Any:
    return pa.table({"score": SCORES, "label": np.asarray(LABELS, np.int8), **more})


def write_arrow(rows: Any, kind: str) -> str:
    if kind == "stream":
        with ipc.new_stream("s.arrows", rows.schema) as writer:
            writer.write_table(rows)
        return "s.arrows"
    feather.write_feather(rows, "s.feather", compression=kind)
    return "s.feather"


@pytest.mark.parametrize("kind", ["uncompressed", "lz4", "zstd", "stream"])
def test_arrow_and_feather_files_are_read(fitted, kind) -> None:
    teams = pa.array(["ab"[place % 2] for place in range(len(SCORES))]).dictionary_encode()
    weights = [1 + place % 3 for place in range(len(SCORES))]
    name = write_arrow(table(team=teams, w=weights, other=[{"a": 1}] * len(SCORES)), kind)
    code, found, _ = fitted(name, *COSTS, "--weight-column", "w", "--group-column", "team")
    best = limen.optimal_threshold(SCORES, LABELS, weights=weights, false_negative=5)
    first = limen.optimal_threshold(
        *(SCORES[::2], LABELS[::2]), weights=weights[::2], false_negative=5
    )

    assert (0, best.threshold, best.loss) == (code, found["threshold"], found["loss"])
    assert ("a", first.threshold) == (found["groups"][0]["group"], found["groups"][0]["threshold"])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"p": [1.0], "label": [0]}, "s.feather: it has no column 'score' for the score"),
        ({"score": ["a"], "label": [0]}, "column score: it holds VARCHAR, not numbers"),
        ({"score": [1.0, None], "label": [0, 1]}, "row 2, column score: the score is missing"),
        ({"score": [1.0, 2.0], "label": ["a", "b"]}, "the label is a, not 0 or 1. There are 'a'"),
    ],
)
def test_malformed_arrow_is_named_with_its_row(fitted, rows, told) -> None:
    feather.write_feather(pa.table(rows), "s.feather")
    code, _, err = fitted("s.feather")

    assert 3 == code
    assert told in err


def test_arrow_that_is_cut_short_or_comes_by_a_pipe_is_refused(fitted) -> None:
    content = Path(write_arrow(table(), "uncompressed")).read_bytes()
    Path("cut.feather").write_bytes(content[:-100])
    code, _, err = fitted("cut.feather")
    done = limen_process("fit", "-", input=content)

    assert 3 == code
    assert "cut.feather" in err
    assert 3 == done.returncode
    assert b"standard input is an Arrow file, not text. It is read from its end" in done.stderr


def test_without_pyarrow_the_way_to_it_is_said(fitted, monkeypatch) -> None:
    name = write_arrow(table(), "uncompressed")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = fitted(name)

    assert 1 == code
    assert 'pip install "limen[cli]"' in err


@pytest.mark.parametrize("by", ["lines", "blocks"])
def test_numbers_with_a_decimal_comma_are_those_with_a_point(fitted, monkeypatch, by) -> None:
    """Also weights, costs, exponents, infinities and whole numbers; labels stay texts."""
    rows = [
        (score, label, 0.5 + place % 3, 10 * score + 0.125)
        for place, (score, label) in enumerate(zip(SCORES, LABELS, strict=True))
    ]
    rows += [(float("inf"), 1, 2.0, 1e-5), (-3.0, 0, 0.25, 1e20)]
    lines = ["score;label;w;cost", *(";".join(map(repr, row)) for row in rows)]
    Path("point.csv").write_text("\n".join(lines) + "\n")
    Path("comma.csv").write_text("\n".join(lines).replace(".", ",") + "\n")
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    given = ["--weight-column", "w", "--false-negative-column", "cost", "--unit", "1e-6"]

    expected = fitted("point.csv", *given)
    assert expected == fitted("comma.csv", *given, "--decimal-comma")
    assert 0 == expected[0]


@pytest.mark.parametrize("by", ["lines", "blocks"])
@pytest.mark.parametrize(
    ("rows", "given", "told"),
    [
        ("0,1;0\n0,9;1\n", [], "'0,1' is not a number. Is that a decimal comma? Files are read"),
        ("0,1;0\n1.234,5;1\n", ["--decimal-comma"], "line 3, column score: '1.234,5' has a point"),
        (
            "0,1;0\n1.5;1\n",
            ["--decimal-comma"],
            "line 3, column score: '1.5' has a point",
        ),
        ("0,1;0\n0,,5;1\n", ["--decimal-comma"], "line 3, column score: '0..5' is not a number"),
    ],
)
def test_a_comma_and_a_point_are_never_taken_for_one_another(
    fitted, monkeypatch, rows, given, told, by
) -> None:
    Path("s.csv").write_text("score;label\n" + rows)
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    code, _, err = fitted("s.csv", *given)

    assert 3 == code
    assert told in err


def with_malformed_rows() -> str:
    """The demonstration stream with five rows of different faults."""
    lines = phishing_csv().splitlines()
    lines[100:100] = ["high,1", ",0", "0.5", "nan,1", "0.5,"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("by", ["lines", "blocks", "pipe"])
def test_all_malformed_rows_are_counted_and_the_first_three_shown(monkeypatch, fitted, by) -> None:
    Path("s.csv").write_text(with_malformed_rows())
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    if by == "pipe":
        done = limen_process("fit", "-", input=with_malformed_rows().encode())
        code, err = done.returncode, done.stderr.decode()
    else:
        code, _, err = fitted("s.csv")
    lines = err.splitlines()
    name = "standard input" if by == "pipe" else "s.csv"

    assert 3 == code
    assert [f"limen: {name}, line {line}" for line in (101, 102, 103)] == [
        line.split(":")[0] + ":" + line.split(":")[1].split(", column")[0] for line in lines[:3]
    ]
    assert "limen: 5 rows are malformed; these are the first 3. Correct them, or" in lines[3]
    assert 4 == len(lines)


@pytest.mark.parametrize("by", ["lines", "blocks", "pipe"])
def test_malformed_rows_are_left_out_when_asked_for(monkeypatch, fitted, by) -> None:
    Path("s.csv").write_text(with_malformed_rows())
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if by == "lines" else 2**20)
    given = [*COSTS, "--skip-malformed"]
    if by == "pipe":
        done = limen_process("fit", "-", *given, "--json", input=with_malformed_rows().encode())
        code, found, err = done.returncode, json.loads(done.stdout), done.stderr.decode()
    else:
        code, found, err = fitted("s.csv", *given)

    assert (0, BEST.threshold, BEST.loss, 5, 1250) == (
        code,
        *(found[name] for name in ("threshold", "loss", "skipped", "samples")),
    )
    assert "limen: 5 malformed rows were left out of 1,255" in err
    assert 3 == err.count(", line 10")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_malformed_rows_of_columns_are_counted_and_left_out(fitted, kind) -> None:
    """Of each part: score, label, weight, cost and group."""
    rows = [(score, str(label), 1.0, 2.0, "a") for score, label in zip(SCORES, LABELS, strict=True)]
    bad = [
        (None, "1", 1.0, 2.0, "a"),
        (float("nan"), "0", 1.0, 2.0, "a"),
        (0.5, None, 1.0, 2.0, "a"),
        (0.5, "1", -1.0, 2.0, "a"),
        (0.5, "1", 1.0, float("inf"), "a"),
        (0.5, "1", 1.0, 2.0, ""),
        (None, None, None, None, None),
    ]
    rows[7:7] = bad
    names = ("score", "label", "w", "cost", "team")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    feather.write_feather(pa.table(columns), "s.arrow")
    arrow = pa.table(columns)  # noqa: F841 - duckdb finds it by its name
    duckdb.sql("COPY (FROM arrow) TO 's.parquet' (FORMAT parquet)")
    given = [f"s.{kind}", "--weight-column", "w", "--group-column", "team"]
    given += ["--false-negative-column", "cost"]
    code, _, err = fitted(*given)

    assert 3 == code
    assert "row 8, column score: the score is missing" in err.splitlines()[0]
    assert "row 9, column score: the score is nan" in err.splitlines()[1]
    assert "row 10, column label: the label is missing" in err.splitlines()[2]
    assert "7 rows are malformed; these are the first 3" in err.splitlines()[3]
    code, found, err = fitted(*given, "--skip-malformed")
    best = limen.optimal_threshold(SCORES, LABELS, false_negative=2)

    assert (0, 7, best.threshold) == (code, found["skipped"], found["threshold"])
    assert "limen: 7 malformed rows were left out of 1,257" in err


def test_other_labels_are_a_question_and_with_skip_malformed_rows(fitted) -> None:
    Path("s.csv").write_text("score,label\n0.1,0\n0.2,maybe\n0.3,1\n")

    assert "Choose the positive one: --positive VALUE" in fitted("s.csv")[2]
    code, found, _ = fitted("s.csv", "--skip-malformed")
    assert (0, 1, 2) == (code, found["skipped"], found["samples"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'score,label\n0.1,0\n"0.2,1\n0.3,1\n0.4,0\n', "Check the quotes"),
        (b"p,label\n0.1,0\n0.3,1\n", "no column 'score'"),
        (b"score,label\n0.1,x\n0.3,y\n", "no rows"),
        (b"score,label\n0.1,0\r0.3,1\n", "a CR"),
    ],
)
def test_what_spoils_more_than_a_row_is_never_skipped(fitted, content, told) -> None:
    """An open quote swallows the rows after it, so that they would be lost without a word."""
    Path("s.csv").write_bytes(content)
    code, found, err = fitted("s.csv", "--skip-malformed")

    assert (3, {}) == (code, found)
    assert told in err


def test_bytes_that_are_no_text_spoil_one_row(fitted) -> None:
    Path("s.csv").write_bytes(b"score,label\n0.1,0\n0.2,\xff\n0.3,1\n")

    assert (0, 1) == (
        fitted("s.csv", "--skip-malformed")[0],
        fitted("s.csv", "--skip-malformed")[1]["skipped"],
    )


def test_a_file_of_nothing_but_malformed_rows_is_left_early(fitted, monkeypatch) -> None:
    monkeypatch.setattr(rows_module, "COUNTED", 10)
    Path("s.csv").write_text("score,label\n" + "a,1\n" * 100)

    assert "more than 11 rows are malformed; these are the first 3" in fitted("s.csv")[2]


@pytest.mark.parametrize("command", ["curve", "compare", "report"])
def test_every_command_over_files_says_how_many_rows_it_left_out(capsys, command) -> None:
    Path("s.csv").write_text(with_malformed_rows())
    more = {"curve": [], "compare": ["-t", "0.5"], "report": ["-o", "r.html"]}[command]

    assert 0 == main([command, "s.csv", "--skip-malformed", *more])
    assert "limen: 5 malformed rows were left out of 1,255" in capsys.readouterr().err
    if command == "report":
        assert "Malformed rows that were left out: 5." in Path("r.html").read_text()


@pytest.mark.parametrize("watched", [True, False])
def test_a_curve_shows_how_far_it_is_written(monkeypatch, watched) -> None:
    scores = "".join(f"{place},{place % 2}\n" for place in range(70_000))
    Path("many.csv").write_text("score,label\n" + scores)
    monkeypatch.setattr(sys, "stderr", Terminal() if watched else io.StringIO())
    main(["curve", "many.csv", "-o", "curve.csv", "-q"])

    assert watched == ("curve.csv: 65,536 rows" in sys.stderr.getvalue())
    assert 70_002 == len(Path("curve.csv").read_text().splitlines())


def test_a_curve_on_the_terminal_is_not_disturbed(monkeypatch) -> None:
    scores = "".join(f"{place},{place % 2}\n" for place in range(70_000))
    Path("many.csv").write_text("score,label\n" + scores)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    main(["curve", "many.csv", "-q"])

    assert "standard output" not in sys.stderr.getvalue()


@pytest.mark.parametrize("direction", [">=", "<="])
@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow", "csv by lines"])
def test_a_budget_needs_scores_alone(capsys, monkeypatch, kind, direction) -> None:
    """Against every threshold there is, with ties: the one that flags most within the budget."""
    scores = np.round(np.asarray(SCORES), 2)
    lines = "".join(f"{score!r}\n" for score in scores.tolist())
    Path("s.csv").write_text("p,note\n" + lines.replace("\n", ",x\n"))
    objects = "".join(json.dumps({"p": score}) + "\n" for score in scores.tolist())
    Path("s.ndjson").write_text(objects)
    arrow = pa.table({"p": scores})
    feather.write_feather(arrow, "s.arrow")
    duckdb.sql("COPY (FROM arrow) TO 's.parquet' (FORMAT parquet)")
    monkeypatch.setattr(line_reader, "_BLOCK", 1 if "lines" in kind else 2**20)
    turned = ["--lower-is-positive"] if direction == "<=" else []
    for demand, most in ((["--max-positives", "70"], 70), (["--max-positive-rate", "0.1"], 125)):
        given = [f"s.{kind.split()[0]}", "--score-column", "p", *demand, *turned]
        assert 0 == main(["budget", *given, "--json", "-q"])
        found = json.loads(capsys.readouterr().out)
        signed = scores if direction == ">=" else -scores
        best = max(n for n in (int((signed >= at).sum()) for at in [*signed, np.inf]) if n <= most)
        at = found["threshold"]
        flagged = (scores >= at) if direction == ">=" else (scores <= at)

        assert (best, best, most, 1250) == (
            int(flagged.sum()),
            *(found[name] for name in ("flagged", "allowed", "samples")),
        )


@pytest.mark.parametrize("given", [[], ["--max-positives", "5", "--max-positive-rate", "0.1"]])
def test_a_budget_is_a_number_or_a_share(capsys, given) -> None:
    Path("s.csv").write_text("score\n0.5\n")

    assert 2 == main(["budget", "s.csv", *given])
    assert "give --max-positives or --max-positive-rate, one of them." in capsys.readouterr().err
    assert 0 == main(["budget", "s.csv", "--max-positives", "5", "-q"])
    assert "-inf\n" == capsys.readouterr().out
