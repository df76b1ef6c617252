"""Codecs of whole files: what comes back, what other programs write and read, what is damaged."""

import bz2
import gzip
import io
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import ConfigError, Configuration
from yaqd.mapreduce import InputFormat
from yaqd.storage import CorruptFile, codec_of, compute_splits, open_reader, output_codec, output_suffix, storage_notes
from yaqd.storage.codecs import CODEC_KEY, COMPRESS_KEY, FILE_CODECS, CompressingWriter

CONF = Configuration.load(environ={})
CODECS = {codec.name: codec for codec in FILE_CODECS}
TEXT = b"".join(b"line %d of some text\n" % number for number in range(60_000))
contents = st.one_of(st.binary(max_size=300), st.binary(max_size=20).map(lambda piece: piece * 3000))


class _File(io.BytesIO):
    def close(self) -> None:
        pass

    def abort(self) -> None:
        raise AssertionError


def _packed(name: str, data: bytes, pieces: int = 3) -> bytes:
    file = _File()
    writer: CompressingWriter = CODECS[name].compressing(file)  # type: ignore[arg-type]
    size = len(data) // pieces + 1
    for at in range(0, len(data), size):
        writer.write(data[at : at + size])
    writer.close()
    return file.getvalue()


def _unpacked(name: str, data: bytes, size: int = 4099) -> bytes:
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(CODECS[name].decompressed(chunks, "p"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CODECS)
@given(data=contents, size=st.integers(1, 5000))
def test_what_was_packed_comes_back(name: str, data: bytes, size: int) -> None:
    assert _unpacked(name, _packed(name, data), max(size, len(data) // 500)) == data


@pytest.mark.parametrize("name", CODECS)
def test_members_and_blocks_that_follow_each_other_are_one_file(name: str) -> None:
    assert _unpacked(name, _packed(name, TEXT) + _packed(name, b"more\n")) == TEXT + b"more\n"


@pytest.mark.parametrize("name", CODECS)
def test_a_file_that_ends_early_is_damaged(name: str) -> None:
    packed = _packed(name, TEXT)
    for cut in (1, 2, len(packed) // 2):
        with pytest.raises(CorruptFile, match=f"p is no whole {name} file"):
            _unpacked(name, packed[:-cut])


@pytest.mark.parametrize("name", CODECS)
@given(junk=st.binary(min_size=5, max_size=60))
def test_junk_never_does_more_than_raise(name: str, junk: bytes) -> None:
    try:
        assert len(_unpacked(name, junk)) < 1 << 20
    except CorruptFile as error:
        assert "\n" not in str(error)


def test_what_other_programs_write_is_read_and_what_is_written_they_read() -> None:
    assert _unpacked("gzip", gzip.compress(TEXT)) == TEXT == gzip.decompress(_packed("gzip", TEXT))
    assert _unpacked("bzip2", bz2.compress(TEXT)) == TEXT == bz2.decompress(_packed("bzip2", TEXT))
    assert _unpacked("deflate", zlib.compress(TEXT)) == TEXT == zlib.decompress(_packed("deflate", TEXT))
    assert _unpacked("lz4", lz4.frame.compress(TEXT) + lz4.frame.compress(b"x")) == TEXT + b"x"
    if shutil.which("zstd"):
        assert subprocess.run(["zstd", "-dc"], input=_packed("zstd", TEXT), capture_output=True).stdout == TEXT
        assert _unpacked("zstd", subprocess.run(["zstd", "-c"], input=TEXT, capture_output=True).stdout) == TEXT


@pytest.mark.parametrize("name", ["lz4", "snappy"])
def test_blocks_fit_hadoops_buffers_and_lengths_that_lie_allocate_nothing(name: str) -> None:
    packed = _packed(name, TEXT)
    raw, stored = struct.unpack(">II", packed[:8])
    assert raw <= 256 << 10 and stored <= 256 << 10
    for lie in (struct.pack(">I", 1 << 31) + packed[4:], packed[:4] + struct.pack(">I", 1 << 31) + packed[8:]):
        with pytest.raises(CorruptFile, match="is beyond"):
            _unpacked(name, lie)
    with pytest.raises(CorruptFile):
        _unpacked(name, struct.pack(">I", 3) + packed[4:])
    with pytest.raises(CorruptFile, match="has frames"):
        _unpacked("snappy", b"\xff\x06\x00\x00sNaPpY")


@pytest.mark.parametrize("behind", [b"garbage", b"\x1f", b"\0\0\0x", b"\n"])
def test_gzip_with_garbage_behind_its_end_is_read_with_one_warning(tmp_path: Path, behind: bytes) -> None:
    file = tmp_path / "in.gz"
    file.write_bytes(gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]) + behind)
    before = storage_notes()
    for _ in range(2):  # a second look at it says nothing new
        (split,) = compute_splits([str(file)], InputFormat.parse("bytes"), CONF)
        assert [line for _, line in open_reader("bytes", split, CONF)] == TEXT.splitlines()
    assert storage_notes()[len(before) :] == (f"file://{file}: decompression OK, trailing garbage ignored",)


def test_zeros_behind_and_between_members_are_padding() -> None:
    before = storage_notes()
    packed = gzip.compress(b"a") + bytes(70_000) + gzip.compress(b"b") + bytes(5000)
    assert _unpacked("gzip", packed) == b"ab"
    assert storage_notes() == before
    with pytest.raises(CorruptFile):
        _unpacked("gzip", gzip.compress(b"a") + gzip.compress(b"b")[:-3])  # a member that is cut is no garbage


def test_names_of_codecs() -> None:
    def codec(name: str) -> str:
        found = output_codec(CONF.with_overrides({COMPRESS_KEY: "true", CODEC_KEY: name}))
        assert found is not None
        return found.name

    hadoops = "org.apache.hadoop.io.compress."
    found = {name: codec(hadoops + name) for name in ("GzipCodec", "BZip2Codec", "ZStandardCodec", "DefaultCodec")}
    assert found == {"GzipCodec": "gzip", "BZip2Codec": "bzip2", "ZStandardCodec": "zstd", "DefaultCodec": "deflate"}
    assert [codec(name) for name in ("lz4", " Snappy ", "bz2", "zst")] == ["lz4", "snappy", "bzip2", "zstd"]
    assert output_suffix(CONF.with_overrides({COMPRESS_KEY: "true"})) == ".gz"
    assert output_codec(CONF.with_overrides({CODEC_KEY: "lzo"})) is None  # nothing is compressed
    for name in ("lzo", "GzipCodec", "com.hadoop.compression.lzo.LzoCodec", f"{hadoops}LzoCodec"):
        with pytest.raises(ConfigError, match=r"is no codec of output files; write one of gzip, bzip2, zstd"):
            codec(name)
    assert codec_of("/a/b.TXT.GZ") is CODECS["gzip"] and codec_of("/a.gz/b") is None


def _lines_by_split(path: Path, size: int) -> list[bytes]:
    """What all splits of the file together read, in the order of the file."""
    conf = CONF.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": str(size)})
    splits = sorted(compute_splits([str(path)], InputFormat.parse("bytes"), conf), key=lambda split: split.start)
    assert len(splits) > 1 or size >= path.stat().st_size
    return [line for split in splits for _, line in open_reader("bytes", split, conf)]


@pytest.mark.parametrize("size", [2500, 40_000])
def test_splits_of_a_bzip2_file_own_each_line_once(tmp_path: Path, size: int) -> None:
    ends = (b"\n", b"\r\n", b"\r")
    lines = [f"{number} {zlib.crc32(bytes([number % 251]) * number):x}".encode() for number in range(12_000)]
    lines[6_000] = b"x" * 250_000  # several blocks long
    text = b"".join(line + ends[number % 3] for number, line in enumerate(lines))
    path = tmp_path / "in.bz2"
    # blocks of 100 KB, in two members, the first of which ends within a line
    path.write_bytes(bz2.compress(text[: len(text) // 2], 1) + bz2.compress(text[len(text) // 2 :], 1))
    assert _lines_by_split(path, size) == lines


def test_a_cut_or_changed_bzip2_file_is_damaged_in_the_split_that_has_the_place(tmp_path: Path) -> None:
    path = tmp_path / "in.bz2"
    packed = bytearray(bz2.compress(TEXT, 1))
    path.write_bytes(packed[:-200])
    with pytest.raises(CorruptFile, match="is no whole bzip2 file"):
        _lines_by_split(path, 5000)
    packed[len(packed) // 2] ^= 1
    path.write_bytes(packed)
    with pytest.raises(CorruptFile, match="is no whole bzip2 file"):
        _lines_by_split(path, 5000)
