# SPDX-License-Identifier: Apache-2.0
"""A file of text means the same read natively, a block at once, and line by line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from limen.cli import inputs, line_reader
from limen.cli.exits import Failure
from limen.cli.rows import Columns

duckdb = pytest.importorskip("duckdb")

HEAD = "score,label,note\n"
CSV: dict[str, str | bytes] = {
    "an empty field too many": HEAD + "0.2,0,a\n0.5,1,b,\n0.7,1,c\n",
    "two empty fields too many": HEAD + "0.2,0,a\n0.5,1,b,,\n0.7,1,c\n",
    "a quoted empty field too many": HEAD + '0.2,0,a\n0.5,1,b,""\n0.7,1,c\n',
    "an empty field too many in each row": HEAD + "0.2,0,a,\n0.5,1,b,\n0.7,1,c,\n",
    "an empty field too many at the end": HEAD + "0.2,0,a\n0.5,1,b,",
    "an empty field too many, CRLF": (HEAD + "0.2,0,a\n0.5,1,b,\n").replace("\n", "\r\n"),
    "an empty field too many, tabs": "score\tlabel\n0.5\t1\t\n0.1\t0\n",
    "a field too many": HEAD + "0.2,0,a\n0.5,1,b,x\n0.7,1,c\n",
    "a field too few": HEAD + "0.2,0,a\n0.5,1\n0.7,1,c\n",
    "a last field that is empty": HEAD + "0.2,0,\n0.5,1,b\n0.7,1,\n",
    "a space before a quote": HEAD + '0.2,0, "a,b"\n0.5,1,b\n',
    "a space before a quoted score": HEAD + ' "0.2",0,b\n0.5,1,b\n',
    "a space before a quoted label": HEAD + '0.2, "0",b\n0.5,1,b\n0.1,0,c\n',
    "a space after a quote": HEAD + '0.2,0,"b" \n"0.5" ,1,b\n',
    "a tab before a quote": 'score;label\n0.2;\t"0"\n0.5;1\n',
    "tabs and quotes": 'note\tscore\tlabel\n\t0.2\t"0"\n"x"\t"0.5"\t1\n',
    "text after a quote": HEAD + '0.2,0,"a"b\n0.5,1,b\n',
    "a quote inside": HEAD + '0.2,0,a"b\n0.5,1,b\n',
    "an open quote": HEAD + '0.2,0,"a\n0.5,1,b\n',
    "lines inside quotes": HEAD + '0.2,0,"a\n0.5,1,b"\n0.7,1,"c"\n',
    "a backslash": HEAD + '0.2,0,"a\\"b"\n0.5,1,b\n',
    "a comment": HEAD + "# x\n0.5,1,b\n0.1,0,b\n",
    "a CR inside": HEAD + "0.5,1,b\r0.6,0,c\n0.1,0,b\n",
    "a NUL": HEAD + "0.5,1,b\0\n0.1,0,b\n",
    "a blank line of other blanks": HEAD + "0.5,1,b\n\xa0\n0.1,0,b\n",
    "other ends of lines": HEAD + "0.5,1,b\u2028c\x0cd\n0.1,0,b\n",
    "the header twice": HEAD + "0.5,1,b\n" + HEAD + "0.1,0,b\n",
    "bytes that are not UTF-8": (HEAD + "0.5,1,caf").encode() + b"\xe9\n0.1,0,b\n",
}
JSON = {
    "a comma at the end": '{"score":0.7,"label":1,"group":"a",}',
    "a comma at the end of a list": '{"score":0.7,"label":1,"group":"a","x":[1, ]}',
    "a list as the group": '{"score":0.7,"label":1,"group":["a","é"]}',
    "an object as the group": '{"score":0.7,"label":1,"group":{"a":1}}',
    "a bracket in the group": '{"score":0.7,"label":1,"group":"[a"}',
    "a number as the group": '{"score":0.7,"label":1,"group":1.50}',
    "a large number as the group": '{"score":0.7,"label":1,"group":1e22}',
    "an infinite number as the group": '{"score":0.7,"label":1,"group":1e400}',
    "a truth as the group": '{"score":0.7,"label":1,"group":true}',
    "null as the group": '{"score":0.7,"label":1,"group":null}',
    "an escape": '{"score":0.7,"label":1,"group":"\\u00e9\\"\\u0000"}',
    "half a character": '{"score":0.7,"label":1,"group":"\\ud800"}',
    "a list as the label": '{"score":0.7,"label":[1, 2],"group":"a"}',
    "a text as the score": '{"score":" \uff10.7 ","label":1,"group":"a"}',
    "a truth as the score": '{"score":true,"label":1,"group":"a"}',
    "infinity": '{"score":-Infinity,"label":1,"group":"a"}',
    "nan": '{"score":NaN,"label":1,"group":"a"}',
    "a number of other digits as the label": '{"score":0.7,"label":"\uff11","group":"a"}',
    "a key twice": '{"score":0.7,"label":1,"group":"a","score":0.1}',
    "a key in capitals": '{"Score":0.7,"score":0.1,"label":1,"group":"a"}',
    "two objects": '{"score":0.7,"label":1,"group":"a"} {"score":0.8,"label":1,"group":"a"}',
    "an object over two lines": '{"score":0.7,\n"label":1,"group":"a"}',
    "no object": '[{"score":0.7,"label":1,"group":"a"}]',
    "a number of no JSON": '{"score":.7,"label":1,"group":"a"}',
    "a whole number no double holds": '{"score":9007199254740993,"label":1,"group":"a"}',
    "text after the object": '{"score":0.7,"label":1,"group":"a"} // x',
    "a missing key": '{"score":0.7,"label":1}',
}
VALUES = (
    *(
        "\uff11",
        "\u0661",
        "\xa01",
        "\u30001",
        "\x851",
        "1\u200b",
        " 1 ",
        "\t1",
        "\x0b1",
        "1_0",
        "1__0",
    ),
    *("+1", "1.", "1e1", "1d1", "0x1", "1/2", "½", "inf", "Infinity", "nan", "NaN", "-nan"),
    *(
        "TRUE",
        " true",
        "\xa0true",
        "\uff34\uff32\uff35\uff25",
        "t",
        "yes",
        "",
        "null",
        "1e400",
        "1e-400",
    ),
    *("9007199254740993", '"1"', '" 1"', ' "1"', '"1" ', '1"', '"a""b"', "01", "\ufeff1"),
)


def read(path: Path, block: int, columns: Columns, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return all rows of a file that is read in blocks of so many bytes, or the error."""
    monkeypatch.setattr(line_reader, "_BLOCK", block)
    try:
        samples = inputs.read([str(path)], None, columns, one_class=True)
    except Failure as failure:
        return str(failure), failure.code
    weights = [1.0] * len(samples) if samples.weights is None else samples.weights.tolist()
    codes = [] if samples.codes is None else samples.codes.tolist()
    groups = [samples.names[code] for code in codes] or [""] * len(samples)
    rows = zip(samples.scores.tolist(), samples.labels.tolist(), weights, groups, strict=True)
    return sorted(rows), samples.skipped, samples.examples


def differing(
    contents: dict[str, Any], suffix: str, asked: list[Columns], folder: Path, patch: Any
) -> set[str]:
    """Name the contents that are not the same read at once, in pieces and line by line."""
    pack = gzip.compress if suffix.endswith(".gz") else bytes
    found = set()
    for name, content in contents.items():
        path = folder / f"odd.{suffix}"
        path.write_bytes(pack(content if isinstance(content, bytes) else content.encode()))
        for columns in asked:
            known = read(path, 1, columns, patch)
            if any(read(path, block, columns, patch) != known for block in (17, 64, 2**20)):
                found.add(name)
    return found


OF_CSV = [Columns(), Columns(positive="1"), Columns(skip=True)]
OF_JSON = [
    *(Columns(group="group"), Columns(positive="1"), Columns(positive="[1, 2]")),
    Columns(group="group", skip=True),
]
ROWS_OF_JSON = {
    name: f'{{"score":0.5,"label":1,"group":"a"}}\n{row}\n{{"score":0.2,"label":0,"group":"b"}}\n'
    for name, row in JSON.items()
}


def test_odd_csv_means_the_same_in_blocks_and_in_lines(tmp_path, monkeypatch) -> None:
    assert set() == differing(CSV, "csv", OF_CSV, tmp_path, monkeypatch)


def test_odd_json_means_the_same_in_blocks_and_in_lines(tmp_path, monkeypatch) -> None:
    assert set() == differing(ROWS_OF_JSON, "ndjson", OF_JSON, tmp_path, monkeypatch)


def test_packed_text_means_the_same_too(tmp_path, monkeypatch) -> None:
    assert set() == differing(CSV, "csv.gz", OF_CSV, tmp_path, monkeypatch)
    assert set() == differing(ROWS_OF_JSON, "ndjson.gz", OF_JSON, tmp_path, monkeypatch)


@pytest.mark.parametrize("part", ["score", "label", "weight", "group"])
def test_odd_values_mean_the_same_in_blocks_and_in_lines(tmp_path, monkeypatch, part) -> None:
    positives = [None, "1", "nan"] if part == "label" else [None]
    usual = {"score": "0.5", "label": "1", "weight": "2", "group": "a"}
    contents = {
        value: f"{','.join(usual)}\n0.2,0,1,b\n{','.join((usual | {part: value}).values())}\n"
        for value in VALUES
    }
    asked = [Columns(weight="weight", group="group", positive=each) for each in positives]

    assert set() == differing(contents, "csv", asked, tmp_path, monkeypatch)
