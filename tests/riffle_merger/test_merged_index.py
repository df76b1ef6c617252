"""The merged file's index against itself, against damage, and against lies that carry a right checksum."""

import contextlib
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.format import CorruptIndex, CorruptSegment, IndexEntry, MergedIndex
from riffle_merger.format.merged import INDEX_BYTES_MAX, MAGIC, check_segments, is_safe_name
from tests.riffle_merger.map_outputs import lines_run

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(is_safe_name)
#: per partition and map: the bytes of a segment before its checksum; None is a segment of no bytes at all
SHAPES = st.integers(1, 5).flatmap(
    lambda maps: st.tuples(
        st.lists(NAMES, min_size=maps, max_size=maps, unique=True),
        st.lists(st.lists(st.none() | st.binary(max_size=40), min_size=maps, max_size=maps), max_size=6),
    )
)


def sealed(body: bytes | None) -> bytes:
    return b"" if body is None else body + struct.pack(">I", zlib.crc32(body))


def merged(names: list[str], bodies: list[list[bytes | None]]) -> tuple[MergedIndex, bytes]:
    rows = [[sealed(body) for body in row] for row in bodies]
    checksums = [[int.from_bytes(segment[-4:], "big") for segment in row] for row in rows]
    lengths = [[(2 * len(segment), len(segment)) for segment in row] for row in rows]
    return MergedIndex.build(names, lengths, checksums), b"".join(segment for row in rows for segment in row)


def signed(body: bytes) -> bytes:
    return body + struct.pack(">I", zlib.crc32(body))


def one_map(*, partitions: list[tuple[int, int]], segments: list[tuple[int, int]], maps: int = 1) -> bytes:
    """An index with a right checksum, whatever it says; raw and part length of each segment."""
    names = b"".join(struct.pack(">H", 2) + b"m%d" % number for number in range(maps))
    body = struct.pack(">4sIII", MAGIC, maps, len(partitions), len(names)) + names
    body += b"".join(struct.pack(">qq", *partition) for partition in partitions)
    return signed(body + b"".join(struct.pack(">qqI", *segment, 0) for segment in segments))


@given(SHAPES)
def test_every_segment_is_found_where_it_was_put(shape: tuple[list[str], list[list[bytes | None]]]) -> None:
    names, bodies = shape
    built, data = merged(names, bodies)
    index = MergedIndex.parse(built.to_bytes())
    assert (index.maps, index.partitions, index.file_bytes) == (tuple(names), len(bodies), len(data))
    index.check()
    index.check_file(len(data))
    for partition, row in enumerate(bodies):
        whole = index.partition(partition)
        index.verify(partition, data[whole.offset : whole.offset + whole.length])
        for name, body in zip(names, row, strict=True):
            number = index.map_number(name)
            assert number is not None
            entry = index.segments(partition)[number]
            assert data[entry.start : entry.start + entry.part_length] == sealed(body)
            assert entry.raw_length == 2 * entry.part_length
    assert index.map_number("another") is None or "another" in names


@given(SHAPES, st.data())
def test_any_flipped_bit_and_any_cut_is_refused(
    shape: tuple[list[str], list[list[bytes | None]]], data: st.DataObject
) -> None:
    index, contents = merged(*shape)
    written = index.to_bytes()
    damaged = bytearray(written)
    damaged[data.draw(st.integers(0, len(written) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptIndex):
        MergedIndex.parse(bytes(damaged))
    with pytest.raises(CorruptIndex):
        MergedIndex.parse(written[: data.draw(st.integers(0, len(written) - 1))])
    with pytest.raises(CorruptIndex):
        index.check_file(len(contents) + data.draw(st.sampled_from([-1, 1, 2**63])))
    if contents:
        at = data.draw(st.integers(0, len(contents) - 1))
        partition = next(
            p for p in range(index.partitions) if at < index.partition(p).offset + index.partition(p).length
        )
        whole = index.partition(partition)
        wrong = bytearray(contents[whole.offset : whole.offset + whole.length])
        wrong[at - whole.offset] ^= 1 << data.draw(st.integers(0, 7))
        with pytest.raises(CorruptSegment):
            index.verify(partition, wrong)


def test_a_whole_segment_of_another_merge_is_noticed() -> None:
    index, data = merged(["a", "b"], [[b"one", b"two"]])
    index.verify(0, data)
    with pytest.raises(CorruptSegment, match="partition 0 of b: is not the segment that was merged"):
        index.verify(0, sealed(b"one") + sealed(b"six"))


@given(SHAPES, st.data())
def test_segments_in_each_others_place_are_noticed_in_any_part_of_a_partition(
    shape: tuple[list[str], list[list[bytes | None]]], data: st.DataObject
) -> None:
    """Of one length, which the index's lengths cannot tell."""
    names, bodies = shape
    index, contents = merged(names, bodies)
    if not bodies:
        return
    partition = data.draw(st.integers(0, len(bodies) - 1))
    starts, _, lengths, checksums = index.columns(partition)
    first = data.draw(st.integers(0, len(names) - 1))
    end = data.draw(st.integers(first + 1, len(names)))
    part = bytearray(contents[starts[first] : starts[end - 1] + lengths[end - 1]])
    check_segments(memoryview(part), lengths[first:end], checksums[first:end], "part")
    number = data.draw(st.integers(first, end - 1))
    own = sealed(bodies[partition][number])
    if len(own) > 4:
        other = sealed(data.draw(st.binary(min_size=len(own) - 4, max_size=len(own) - 4)))
        at = starts[number] - starts[first]
        part[at : at + len(own)] = other
        with contextlib.nullcontext() if other == own else pytest.raises(CorruptSegment, match="not the segment"):
            check_segments(memoryview(part), lengths[first:end], checksums[first:end], "part")


@given(SHAPES)
def test_an_index_has_no_more_than_twenty_bytes_for_a_segment(
    shape: tuple[list[str], list[list[bytes | None]]],
) -> None:
    names, bodies = shape
    data = merged(names, bodies)[0].to_bytes()
    named = sum(2 + len(name.encode()) for name in names)
    assert len(data) == 16 + named + len(bodies) * (16 + 20 * len(names)) + 4


@given(st.binary(max_size=200))
def test_a_stranger_s_bytes_with_a_right_checksum_never_do_more_than_raise(body: bytes) -> None:
    for data in (signed(body), signed(MAGIC + body)):
        try:
            MergedIndex.parse(data).check()
        except CorruptIndex:
            pass


@pytest.mark.parametrize(
    "lie",
    [
        one_map(partitions=[(1, 4)], segments=[(2, 4)]),
        one_map(partitions=[(0, -4)], segments=[(2, 4)]),
        one_map(partitions=[(0, 4), (3, 4)], segments=[(2, 4), (2, 4)]),
        one_map(partitions=[(0, 5)], segments=[(2, 4)]),
        one_map(partitions=[(0, 4)], segments=[(-1, 4)]),
        one_map(partitions=[(0, 2**63 - 1), (2**63 - 1, 1)], segments=[(0, 2**63 - 1), (0, 2)]),
        one_map(partitions=[(0, 8)], segments=[(2, 9), (2, -1)], maps=2),
        one_map(partitions=[(0, 4)], segments=[(2, 4)]).replace(MAGIC, b"YQM\x01"),
        signed(struct.pack(">4sIII", MAGIC, 0, 0, 0)),
        signed(struct.pack(">4sIII", MAGIC, 2**32 - 1, 2**32 - 1, 2**32 - 1)),
        signed(struct.pack(">4sIIIH2s", MAGIC, 1, 0, 4, 2, b"..")),
        signed(struct.pack(">4sIIIH2s", MAGIC, 1, 0, 4, 2, b"a/")),
        signed(struct.pack(">4sIIIH2s", MAGIC, 1, 0, 4, 2, b"\xff\xff")),
        signed(struct.pack(">4sIIIH1sH1s", MAGIC, 2, 0, 6, 1, b"a", 1, b"a")),
        signed(struct.pack(">4sIIIH2s", MAGIC, 1, 0, 4, 9, b"aa")),
    ],
)
def test_lies_are_refused(lie: bytes) -> None:
    with pytest.raises(CorruptIndex):
        MergedIndex.parse(lie).check()


def test_a_lying_row_is_refused_where_it_is_asked_for() -> None:
    index = MergedIndex.parse(one_map(partitions=[(0, 4), (4, 4)], segments=[(2, 4), (2, 5)]))
    assert index.segments(0) == [IndexEntry(0, 2, 4)]
    with pytest.raises(CorruptIndex, match="partition 1 has 4 bytes"):
        index.segments(1)
    for partition in (-1, 2):
        with pytest.raises(IndexError):
            index.segments(partition)


def test_no_python_step_is_taken_for_each_partition() -> None:
    table = b"".join(struct.pack(">qq", 4 * number, 4) for number in range(20_000))
    names = struct.pack(">H1s", 1, b"a")
    data = signed(struct.pack(">4sIII", MAGIC, 1, 20_000, len(names)) + names + table + bytes(20 * 20_000))
    assert lines_run(lambda: MergedIndex.parse(data)) < 200
    assert MergedIndex.parse(data).file_bytes == 80_000


def test_a_file_too_large_and_a_link_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.index"
    with path.open("wb") as file:
        file.truncate(INDEX_BYTES_MAX + 1)
    with pytest.raises(CorruptIndex, match="larger than"):
        MergedIndex.load(path)
    link = tmp_path / "b.index"
    link.symlink_to(path)
    with pytest.raises(OSError):
        MergedIndex.load(link)
    small = tmp_path / "c.index"
    small.write_bytes(merged(["a"], [[b"x"]])[0].to_bytes())
    assert MergedIndex.load(small).maps == ("a",)


def test_node_daemons_get_no_numpy_with_it() -> None:
    code = "import sys, riffle_merger.format.merged; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
