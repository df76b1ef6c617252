"""JSON lines and CSV, in and out: what comes back, what is damaged, what a job may yield."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yaqd.config import Configuration
from yaqd.mapreduce import InputFormat, JobError, OutputKind
from yaqd.mapreduce.formats import csv_columns
from yaqd.mapreduce.text import csv_line_of, json_line_of
from yaqd.storage import compute_splits, get_filesystem, open_reader, open_writer
from yaqd.storage.fields import csv_batches

CONF = Configuration.load(environ={})
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
fields = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def _read(path: Path, name: str, size: int = 1 << 40) -> list[tuple[Any, Any]]:
    conf = CONF.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": str(size)})
    splits = compute_splits([str(path)], InputFormat.parse(name), conf)
    return sorted((record for split in splits for record in open_reader(name, split, conf)), key=lambda r: r[0])


@settings(max_examples=30)
@given(records=st.lists(values, max_size=8), size=st.integers(1, 200))
def test_json_lines_come_back_however_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], size: int
) -> None:
    path = tmp_path_factory.mktemp("j") / "in.json"
    path.write_bytes(b"\n".join(json_line_of(None, record) for record in records))
    assert [value for _, value in _read(path, "json", size)] == records


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"a": 1}\n\n  \n{"a": \n')
    with pytest.raises(JobError, match=r"in\.json: the line at byte 13 is not JSON: "):
        _read(path, "json")
    path.write_text("[" * 200_000)
    with pytest.raises(JobError, match="the line at byte 0 is not JSON"):
        _read(path, "json")


@given(rows=st.lists(st.tuples(fields, fields), max_size=8), size=st.integers(1, 50))
def test_csv_comes_back_whatever_its_fields_hold(rows: list[tuple[str, str]], size: int) -> None:
    data = b"".join(csv_line_of(key, value, ("a b", 'c"')) for key, value in [("a b", 'c"'), *rows])
    assert list(csv.reader(io.StringIO(data.decode(), newline="")))[1:] == [list(row) for row in rows]
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    found = [value for batch in csv_batches(chunks, ",", "p") for value in batch.values()]
    assert found == [{"a b": first, 'c"': second} for first, second in rows]


def test_csv_files_have_a_header_each_and_are_not_cut(tmp_path: Path) -> None:
    text = '\ufeffname;note\r\nann;"x;\ny"\r\n\r\nbob;\udcff\n'.encode("utf-8", "surrogateescape")
    (tmp_path / "a.csv").write_bytes(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"name;note\ncarl;z"))
    wanted = [{"name": "ann", "note": "x;\ny"}, {"name": "bob", "note": "\udcff"}]
    assert _read(tmp_path / "a.csv", "csv:;", 3) == list(enumerate(wanted))
    assert sorted(value["name"] for _, value in _read(tmp_path, "csv:;", 3)) == ["ann", "bob", "carl"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1\n", "record 0 has 1 fields, and its header 2"),
        ("a,a\n1,2\n", "two columns have one name"),
        ('a,b\n1,"2\n', "no CSV near line 2: unexpected end of data"),
        ('a,b\n1,"2"x\n', "no CSV near line 2: "),
    ],
)
def test_damaged_csv_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(JobError, match=problem):
        _read(tmp_path / "in.csv", "csv")


def test_output_of_each_kind(tmp_path: Path) -> None:
    def written(name: str, *pairs: tuple[Any, Any]) -> str:
        writer = open_writer(get_filesystem("/", CONF), str(tmp_path / "f"), name, CONF)
        writer.write_all(pairs)
        writer.close()
        assert writer.records == len(pairs)
        return (tmp_path / "f").read_text()

    assert written("json", (None, {"n": 1}), ("k", (1, b"b")), (3, None)) == '{"n":1}\n["k",[1,"b"]]\n[3,null]\n'
    rows = (("x", 1), (("y", 2), None), (None, ("a,b", True)), (None, {"n": 2.5, "w": "z"}), ("q", (None,)))
    assert written("csv:w, n", *rows) == 'w,n\nx,1\ny,2\n"a,b",true\nz,2.5\nq,\n'
    assert written("csv:w") == "w\n"
    for pair in (("x", (1, 2)), (None, {"w": 1}), ("k", {"w": 1, "n": 2})):
        with pytest.raises(JobError, match="a record of CSV output has"):
            written("csv:w,n", pair)


def test_names_of_formats() -> None:
    assert [str(InputFormat.parse(name)) for name in ("json", "csv", "csv:;", "csv:,", "csv:\t")] == [
        "json",
        "csv",
        "csv:;",
        "csv",
        "csv:\t",
    ]
    assert csv_columns("csv: a ,b") == ("a", "b") and csv_columns("text") == ()
    for name in ("csv:", "csv:ab", 'csv:"', "json:x", "xml"):
        with pytest.raises(JobError, match="unknown input format"):
            InputFormat.parse(name)
    for name in ("csv", "csv:a,,b", "csv:a,a", "json:x", "xml"):
        with pytest.raises(JobError, match="output format"):
            OutputKind.of(name)
    assert json.loads(json_line_of("k", 1)) == ["k", 1]
