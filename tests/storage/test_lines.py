"""However a file is cut into splits, its records are those of the whole file, each once."""

import gzip
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from yaqd.config import Configuration
from yaqd.mapreduce.serde import decode_key, encode_key
from yaqd.storage import CorruptFile, FileRange, InputSplit, open_reader
from yaqd.storage.batches import encode_offsets
from yaqd.storage.lines import owned_blocks

CONF = Configuration.load(environ={})

#: line ends of all kinds, next to each other more often than in any real file
texts = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"", b"a", b"bc\xc3\xa9", b"\xff", b"\xe2\x82"]), st.binary(max_size=5)
    ),
    max_size=40,
).map(b"".join)
cuts = st.lists(st.integers(0, 200), max_size=6)


def naive_lines(data: bytes) -> list[tuple[int, bytes]]:
    """Offset and line, as Hadoop's LineReader defines them; bytes.splitlines has the same three line ends."""
    found, offset = [], 0
    for line in data.splitlines(keepends=True):
        found.append((offset, line.rstrip(b"\r\n")))
        offset += len(line)
    return found


def ranges(length: int, cuts: list[int]) -> list[tuple[int, int]]:
    bounds = sorted({0, length, *(cut for cut in cuts if cut < length)})
    return list(pairwise(bounds))


@given(texts, cuts, st.integers(1, 30))
@example(b"a\r\nb", [2], 1)
@example(b"a\r\nb", [2], 2)
@example(b"a\r\rb\r", [2, 3], 1)
@example(b"\r\n\r\n", [1, 2, 3], 3)
def test_splits_own_each_line_once(data: bytes, cuts: list[int], chunk: int) -> None:
    found = []
    for start, end in ranges(len(data), cuts):
        chunks = (data[at : at + chunk] for at in range(start, len(data), chunk))
        for offset, block in owned_blocks(chunks, start, end):
            assert data[offset : offset + len(block)] == block
            found += [(offset + at, line) for at, line in naive_lines(block)]
    assert found == naive_lines(data)


@given(texts, cuts, st.integers(1, 6), st.integers(1, 30))
def test_long_lines_are_dropped_in_bounded_memory(data: bytes, cuts: list[int], longest: int, chunk: int) -> None:
    """A line is gone only if it is too long, and none of more than a chunk beyond the bound is kept."""
    found = []
    for start, end in ranges(len(data), cuts):
        chunks = (data[at : at + chunk] for at in range(start, len(data), chunk))
        for offset, block in owned_blocks(chunks, start, end, longest):
            found += [(offset + at, line) for at, line in naive_lines(block)]
    everything = naive_lines(data)
    short = [(offset, line) for offset, line in everything if len(line) <= longest - 1]
    assert [pair for pair in found if pair in everything] == found
    assert [pair for pair in found if len(pair[1]) <= longest - 1] == short
    assert all(len(line) <= longest + 2 * chunk for _, line in found)


def read(path: Path, parts: list[tuple[int, int]], kind: str, conf: Configuration = CONF) -> list[tuple[Any, Any]]:
    """All records by all three ways of reading, which must agree."""
    size = path.stat().st_size
    found: list[tuple[Any, Any]] = []
    for start, end in parts:
        split = InputSplit((FileRange(f"file://{path}", start, end - start, size),))
        one_by_one = list(open_reader(kind, split, conf))
        reader = open_reader(kind, split, conf)
        in_batches: list[tuple[Any, Any]] = []
        from_columns: list[tuple[Any, Any]] = []
        for batch in reader.batches():
            records = list(batch)
            assert len(batch) == len(records)
            in_batches += records
            keys, key_offsets, values, value_offsets = batch.columns()
            assert len(key_offsets) == len(value_offsets) == len(records) + 1
            for index in range(len(records)):
                key = keys[key_offsets[index] : key_offsets[index + 1]].tobytes()
                value = values[value_offsets[index] : value_offsets[index + 1]].tobytes()
                from_columns.append((decode_key(key), decode_key(value)))
        assert one_by_one == in_batches == from_columns
        assert 0 <= reader.progress() <= 1
        found += one_by_one
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=texts, cuts=cuts)
def test_text_and_bytes_of_any_file(tmp_path: Path, data: bytes, cuts: list[int]) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    wanted = naive_lines(data)
    parts = ranges(len(data), cuts)
    assert read(path, parts, "bytes") == wanted
    assert [(key, value.encode("utf-8", "surrogateescape")) for key, value in read(path, parts, "text")] == [
        (key, line.removeprefix(b"\xef\xbb\xbf") if key == 0 else line) for key, line in wanted
    ]


def test_lines_longer_than_chunks_and_splits(tmp_path: Path) -> None:
    lines = [b"x" * 3_000_000, b"", b"y" * 1_048_575, b"z" * 2_500_000]
    path = tmp_path / "file"
    path.write_bytes(b"\r\n".join(lines))
    size = path.stat().st_size
    parts = [(start, min(start + 700_000, size)) for start in range(0, size, 700_000)]
    assert [value for _, value in read(path, parts, "bytes")] == lines


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")
    assert read(path, [(0, 12)], "text") == [(0, "one"), (7, "\ufefftwo")]
    assert read(path, [(0, 12)], "bytes")[0] == (0, b"\xef\xbb\xbfone")


def test_longer_lines_than_the_limit_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"short\n" + b"x" * 5000 + b"\nend\n" + b"y" * 4_000_000)
    conf = CONF.with_overrides({"mapreduce.input.linerecordreader.line.maxlength": "100"})
    assert read(path, [(0, path.stat().st_size)], "text", conf) == [(0, "short"), (5007, "end")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=texts, members=st.integers(1, 3))
def test_gzip_is_read_whole_from_any_number_of_members(tmp_path: Path, data: bytes, members: int) -> None:
    path = tmp_path / "file.gz"
    third = len(data) // members
    pieces = [data[index * third : (index + 1) * third] for index in range(members - 1)] + [
        data[(members - 1) * third :]
    ]
    path.write_bytes(b"".join(map(gzip.compress, pieces)))
    assert read(path, [(0, path.stat().st_size)], "bytes") == naive_lines(data)


def test_large_gzip_and_bzip2(tmp_path: Path) -> None:
    import bz2

    lines = [b"line %d" % number for number in range(300_000)]
    for name, pack in (("a.gz", gzip.compress), ("a.bz2", bz2.compress)):
        path = tmp_path / name
        path.write_bytes(pack(b"\n".join(lines)))
        split = InputSplit((FileRange(f"file://{path}", 0, path.stat().st_size, path.stat().st_size),))
        assert [value for _, value in open_reader("bytes", split, CONF)] == lines


@pytest.mark.parametrize("name", ["f.gz", "f.bz2"])
def test_damaged_compressed_files_are_one_line(tmp_path: Path, name: str) -> None:
    import bz2

    packed = (gzip.compress if name.endswith("gz") else bz2.compress)(b"line\n" * 50_000)
    for damaged in (packed[:-9], b"no such format" * 9, packed[:40] + b"\0\xff" + packed[42:]):
        path = tmp_path / name
        path.write_bytes(damaged)
        with pytest.raises(CorruptFile, match=rf"f\.{name[2:]} is no whole") as caught:
            read(path, [(0, len(damaged))], "text")
        assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fixed:7", "fixed:3+4", "fixed:7+0"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_fixed_records(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    records = data.draw(st.lists(st.binary(min_size=7, max_size=7), max_size=20))
    path = tmp_path / "file"
    path.write_bytes(b"".join(records))
    parts = [(start * 7, end * 7) for start, end in ranges(len(records), data.draw(cuts))]
    width = {"fixed:7": 0, "fixed:3+4": 3, "fixed:7+0": 7}[kind]
    keys = [record[:width] for record in records] if width else list(range(0, len(records) * 7, 7))
    assert read(path, parts, kind) == list(zip(keys, (record[width:] for record in records), strict=True))


def test_many_fixed_records_over_chunks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"".join(b"%010d%090d" % (number, number) for number in range(25_000)))
    found = read(path, [(0, 1_250_000), (1_250_000, 2_500_000)], "fixed:10+90")
    assert [int(key) for key, _ in found] == [int(value) for _, value in found] == list(range(25_000))


def test_records_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 20)
    with pytest.raises(CorruptFile, match="cut within a 7-byte record"):
        read(path, [(0, 20)], "fixed:7")
    path.with_suffix(".gz").write_bytes(gzip.compress(b"x" * 20))
    with pytest.raises(CorruptFile, match="ends within a 7-byte record at 14"):
        read(path.with_suffix(".gz"), [(0, path.with_suffix(".gz").stat().st_size)], "fixed:7")


@given(st.lists(st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 70_000)), max_size=20).map(sorted))
def test_offsets_are_encoded_as_integers_are(numbers: list[int]) -> None:
    import numpy as np

    data, offsets = encode_offsets(np.array(numbers, dtype=np.int64))
    codes = [data[offsets[index] : offsets[index + 1]].tobytes() for index in range(len(numbers))]
    assert codes == [encode_key(number) for number in numbers]


def test_small_files_share_a_reader(tmp_path: Path) -> None:
    parts = []
    for name, text in (("a", "1\n2\n"), ("b", "3\n"), ("c", "4")):
        (tmp_path / name).write_text(text)
        parts.append(FileRange(f"file://{tmp_path / name}", 0, len(text), len(text)))
    reader = open_reader("text", InputSplit(tuple(parts)), CONF)
    seen = [(reader.current.path[-1], list(batch)) for batch in reader.batches()]
    assert seen == [("a", [(0, "1"), (2, "2")]), ("b", [(0, "3")]), ("c", [(0, "4")])]
    assert reader.bytes_read == 7 and reader.progress() == 1
