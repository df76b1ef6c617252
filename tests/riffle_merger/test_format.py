"""Shuffle file formats against known bytes, against themselves, and against lies."""

import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riffle_merger.format import CorruptIndex, CorruptSegment, IndexEntry, SpillIndex
from riffle_merger.format.codec import codec_by_name
from riffle_merger.format.columns import Columns
from riffle_merger.format.ifile import read_ifile, write_ifile
from riffle_merger.format.index import PARTITIONS_MAX
from riffle_merger.format.output import SegmentFileWriter, WriteFailed, publish
from riffle_merger.format.segment import MemorySource, block_bounds, find_runs, seal, verify
from riffle_merger.format.vint import read_vint, write_vint
from tests.examples import examples
from tests.riffle_merger.map_outputs import lines_run

CODECS = ["lz4", "snappy", "zstd", "none"]
PAIRS = st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=300)), min_size=1, max_size=60)


def reader(data: bytes) -> Callable[[int], bytes]:
    position = 0

    def read(length: int) -> bytes:
        nonlocal position
        position += length
        return data[position - length : position]

    return read


# Index


def test_index_bytes_are_hadoops() -> None:
    """Two partitions of 2 raw and 6 stored bytes, as a stock map without output writes them."""
    index = SpillIndex([IndexEntry(0, 2, 6), IndexEntry(6, 2, 6)])
    body = bytes.fromhex(
        "0000000000000000 0000000000000002 0000000000000006 0000000000000006 0000000000000002 0000000000000006"
    )
    assert index.to_bytes() == body + b"\0\0\0\0" + struct.pack(">I", zlib.crc32(body))
    assert SpillIndex.parse(index.to_bytes()) == index
    assert list(index) == [IndexEntry(0, 2, 6), IndexEntry(6, 2, 6)]


@given(st.lists(st.tuples(*[st.integers(0, 2**63 - 1)] * 3), max_size=20), st.data())
def test_index_round_trip_and_any_flipped_bit(entries: list[tuple[int, int, int]], data: st.DataObject) -> None:
    written = SpillIndex(IndexEntry(*entry) for entry in entries).to_bytes()
    assert [(e.start, e.raw_length, e.part_length) for e in SpillIndex.parse(written)] == entries
    damaged = bytearray(written)
    damaged[data.draw(st.integers(0, len(written) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptIndex):
        SpillIndex.parse(bytes(damaged))
    with pytest.raises(CorruptIndex):
        SpillIndex.parse(written[: data.draw(st.integers(0, len(written) - 1))])


def test_index_that_reaches_past_its_file_is_refused() -> None:
    with pytest.raises(CorruptIndex, match="partition 1 ends at 12"):
        SpillIndex([IndexEntry(0, 2, 6), IndexEntry(6, 2, 6)]).check_file(11)
    with pytest.raises(CorruptIndex, match="negative"):
        SpillIndex([IndexEntry(0, -1, 6)])


def test_no_python_step_is_taken_for_each_entry() -> None:
    """Anything may stand in a container's file, and the server's only thread reads it."""
    body = struct.pack(">qqq", 0, 2, 6) * 200_000
    data = body + struct.pack(">Q", zlib.crc32(body))
    index = SpillIndex.parse(data)
    assert lines_run(lambda: SpillIndex.parse(data)) < 100
    assert lines_run(lambda: index.check_file(6)) < 100
    assert lines_run(lambda: index.stored_bytes) < 100
    assert (len(index), index.stored_bytes) == (200_000, 1_200_000)
    last = body[:-8] + struct.pack(">q", 7)
    with pytest.raises(CorruptIndex, match="partition 199999 ends at 7, the file has 6 bytes"):
        SpillIndex.parse(last + struct.pack(">Q", zlib.crc32(last))).check_file(6)
    ends = SpillIndex([IndexEntry(2**63 - 1, 0, 2**63 - 1)] * 2)
    assert ends.stored_bytes == 2**64 - 2
    with pytest.raises(CorruptIndex, match=f"partition 0 ends at {2**64 - 2}"):
        ends.check_file(2**63 - 1)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_negative_number_is_named(number: int) -> None:
    numbers = [0, 2, 6] * 3
    numbers[3 + number] = -(2**63)
    with pytest.raises(CorruptIndex, match=r"partition 1 has a negative number: .*-9223372036854775808"):
        SpillIndex(IndexEntry(*numbers[at : at + 3]) for at in (0, 3, 6))


def test_a_million_partitions_are_read_and_one_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file.out.index"
    body = bytes(24 * PARTITIONS_MAX)
    path.write_bytes(body + struct.pack(">Q", zlib.crc32(body)))
    assert len(SpillIndex.load(path)) == 1_000_000
    os.truncate(path, 24 * PARTITIONS_MAX + 32)
    with pytest.raises(CorruptIndex, match="of 24000032 bytes is refused, at most 24000008 are read"):
        SpillIndex.load(path)


# Variable-length integers and IFile


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, "00"),
        (127, "7f"),
        (-112, "90"),
        (-1, "ff"),
        (128, "8f80"),
        (-113, "8770"),
        (300, "8e012c"),
        (-300, "86012b"),
    ],
)
def test_vint_bytes_are_hadoops(value: int, code: str) -> None:
    assert write_vint(value).hex() == code
    assert read_vint(reader(bytes.fromhex(code))) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_vint_round_trip(value: int) -> None:
    assert read_vint(reader(write_vint(value))) == value


@given(st.lists(st.tuples(st.binary(max_size=200), st.binary(max_size=200)), max_size=20), st.data())
def test_ifile_round_trip_and_damage(pairs: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    segment, raw_length = write_ifile(pairs)
    assert len(segment) == raw_length + 4
    assert list(read_ifile(segment)) == pairs
    with pytest.raises(CorruptSegment):
        list(read_ifile(segment[: data.draw(st.integers(0, len(segment) - 1))]))


def test_an_empty_ifile_is_six_bytes() -> None:
    assert write_ifile([])[0][:2] == b"\xff\xff"
    assert len(write_ifile([])[0]) == 6


@pytest.mark.parametrize("body", [b"\x05\x05ab", b"\xff\xff\x00", b"\x85\x00\x00\xff\xff", b"\xfe\x00\xff\xff"])
def test_an_ifile_that_lies_about_lengths_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptSegment):
        list(read_ifile(body + struct.pack(">I", zlib.crc32(body))))


# Our segments


def write_segment(
    path: Path, runs: list[list[tuple[bytes, bytes]]], codec: str = "lz4", block_bytes: int = 100
) -> bytes:
    writer = SegmentFileWriter(path, codec_by_name(codec))
    for run in runs:
        columns = Columns.from_pairs(sorted(run))
        sizes = np.diff(columns.key_offsets) + np.diff(columns.value_offsets)
        writer.write_run(columns.slice(*bounds) for bounds in block_bounds(sizes, block_bytes))
    entry = writer.end_partition()
    assert len(writer.finish()) == 1
    assert entry.part_length == path.stat().st_size
    return path.read_bytes()


def read_runs(segment: bytes) -> list[list[tuple[bytes, bytes]]]:
    source = MemorySource(segment)
    verify(source)
    return [[pair for block in run.blocks() for pair in block.pairs()] for run in find_runs(source)]


@settings(max_examples=examples(50), deadline=None)
@given(runs=st.lists(PAIRS, max_size=3), codec=st.sampled_from(CODECS))
def test_segment_round_trip(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[tuple[bytes, bytes]]], codec: str
) -> None:
    segment = write_segment(tmp_path_factory.mktemp("s") / "out", runs, codec)
    assert read_runs(segment) == [sorted(run) for run in runs]
    assert [run.records for run in find_runs(MemorySource(segment))] == [len(run) for run in runs]


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(pairs=PAIRS, codec=st.sampled_from(CODECS), data=st.data())
def test_any_changed_byte_behind_a_right_checksum_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes, bytes]], codec: str, data: st.DataObject
) -> None:
    """A peer that computes checksums over nonsense: the decoder raises nothing but CorruptSegment."""
    pairs = [(key, value * 4) for key, value in pairs]  # so that there is something to compress
    body = bytearray(write_segment(tmp_path_factory.mktemp("s") / "out", [pairs], codec)[:-4])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(len(body) - 8, len(body)))
    try:
        read_runs(seal([bytes(body[:cut])]))
    except CorruptSegment as error:
        assert str(error).startswith("segment")


HEADER = struct.Struct(">IIIIBBBB")


@pytest.mark.parametrize(
    ("header", "payload", "message"),
    [
        ((1, 2**31, 2**31, 10, 1, 0, 0, 0), b"x" * 10, "10 bytes cannot hold 4294967296"),
        ((2**32 - 1, 0, 0, 0, 0, 0, 0, 0), b"", "4294967295 records without bytes"),
        ((1, 1, 1, 2**31, 0, 0, 0, 0), b"xx", "reach past the segment's end"),
        ((3, 4, 3, 7, 0, 0, 0, 0), b"x" * 7, "not 3 items of one width"),
        ((2, 4, 2, 8, 0, 1, 0, 0), b"\x01\x09xxxxyy", "lengths add up to 10"),
        ((1, 1, 1, 2, 0, 3, 0, 0), b"xx", "width 3"),
        ((1, 1, 1, 2, 9, 0, 0, 0), b"xx", "unknown codec number 9"),
        ((1, 1, 1, 2, 0, 0, 0, 7), b"xx", "reserved byte 7"),
        ((1, 1, 1, 3, 0, 0, 0, 0), b"xxx", "decodes to 3 bytes instead of 2"),
    ],
)
def test_each_lie_of_a_header_has_its_line(header: tuple[int, ...], payload: bytes, message: str) -> None:
    segment = seal([b"YQR\x01", HEADER.pack(*header), payload, b"\0\0\0\0"])
    with pytest.raises(CorruptSegment, match=message):
        read_runs(segment)


@pytest.mark.parametrize("value_bytes", [200, 900], ids=["further", "less far"])
@pytest.mark.parametrize("name", ["lz4", "snappy", "zstd"])
def test_a_block_that_expands_further_than_its_header_says_or_less_is_refused(name: str, value_bytes: int) -> None:
    codec = codec_by_name(name)
    number, stored = codec.compress(b"a" * 1000)
    header = HEADER.pack(1, 300, value_bytes, len(stored), number, 0, 0, 0)
    with pytest.raises(CorruptSegment, match=f"{name} block"):
        read_runs(seal([b"YQR\x01", header, stored, b"\0\0\0\0"]))


@pytest.mark.parametrize("name", ["lz4", "snappy", "zstd"])
def test_junk_and_a_block_with_more_behind_it_are_refused(name: str) -> None:
    codec = codec_by_name(name)
    number, stored = codec.compress(b"ab" * 500)
    assert number == codec.number
    for wrong in (b"junk" * 10, stored[:-1], stored + b"junk", stored + stored):
        header = HEADER.pack(1, 300, 700, len(wrong), number, 0, 0, 0)
        with pytest.raises(CorruptSegment, match=f"{name} block of {len(wrong)} bytes does not decode"):
            read_runs(seal([b"YQR\x01", header, wrong, b"\0\0\0\0"]))


@pytest.mark.parametrize("name", CODECS)
def test_what_compresses_very_far_is_no_lie_to_its_reader(tmp_path: Path, name: str) -> None:
    """Zstandard makes 60 bytes of a megabyte of zeros, more than a reader believes of any block."""
    pairs = [(b"key", bytes(1 << 20)), (b"key2", bytes(1 << 18))]
    assert read_runs(write_segment(tmp_path / "out", [pairs], name, block_bytes=1 << 18)) == [pairs]


def test_block_bounds_cover_all_records_and_stay_small() -> None:
    sizes = np.array([10, 10, 500, 0, 0, 90, 90], dtype=np.int64)
    bounds = list(block_bounds(sizes, 100))
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(7))
    assert all(stop - start == 1 or sizes[start:stop].sum() <= 100 for start, stop in bounds)


def test_a_full_disk_leaves_no_file_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    link = tmp_path / "file.out.tmp"
    link.symlink_to("/dev/full")
    writer = SegmentFileWriter(link, codec_by_name("none"))
    with pytest.raises(WriteFailed, match="No space left on device; free space there"):
        writer.write_run([Columns.from_pairs([(b"k", b"v" * 3_000_000)])])
    assert list(tmp_path.iterdir()) == []


def test_publish_shows_the_index_last_and_nothing_else(tmp_path: Path) -> None:
    temporary = tmp_path / "x.tmp"
    temporary.write_bytes(b"123456")
    publish(tmp_path, temporary, SpillIndex([IndexEntry(0, 2, 6)]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.out", "file.out.index"]
    assert (tmp_path / "file.out").read_bytes() == b"123456"


def test_unknown_codec_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown map output codec 'lzma'; known: none, lz4, snappy, zstd"):
        codec_by_name("lzma")


@given(PAIRS, st.data())
def test_columns_take_slice_concat(pairs: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    columns = Columns.from_pairs(pairs)
    start = data.draw(st.integers(0, len(pairs)))
    stop = data.draw(st.integers(start, len(pairs)))
    part = columns.slice(start, stop)
    assert list(part.pairs()) == pairs[start:stop]
    order = np.array(data.draw(st.permutations(range(stop - start))), dtype=np.int64)
    assert list(part.take(order).pairs()) == [pairs[start + int(i)] for i in order]
    assert list(Columns.concat([part, columns, part]).pairs()) == pairs[start:stop] + pairs + pairs[start:stop]


def test_a_node_daemon_gets_the_index_without_numpy() -> None:
    code = "import sys, riffle_merger.format, riffle_merger.format.vint; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
