"""TFile and the log records on it: known bytes, round trips, and files that lie."""

import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import Configuration
from yaqd.model import ApplicationId, NodeId
from yaqd.storage import get_filesystem
from yaqd.storage.tfile import (
    AggregatedLogReader,
    AggregatedLogWriter,
    BadTFile,
    LogContent,
    RemoteLogs,
    TFileReader,
    TFileWriter,
)
from yaqd.storage.tfile.layout import node_file, node_of
from yaqd.storage.tfile.primitives import ByteStream, decode_utf, encode_tint, encode_utf


class InMemory:
    """A file of these bytes, read in small pieces; remembers the most that was asked for at once."""

    name = "memory"

    def __init__(self, data: bytes, piece: int = 7) -> None:
        self.data = data
        self.size = len(data)
        self._piece = piece

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        assert offset >= 0
        assert length >= 0
        assert offset + length <= self.size, "a region was read before it was checked"
        for at in range(offset, offset + length, self._piece):
            yield self.data[at : min(at + self._piece, offset + length)]


Records = list[tuple[bytes, list[bytes]]]


def written(records: Records, **options: object) -> bytes:
    out = bytearray()
    writer = TFileWriter(out.extend, **options)  # type: ignore[arg-type]
    for key, value in records:
        writer.append(key, value)
    writer.close()
    return bytes(out)


def read(data: bytes, piece: int = 7) -> list[tuple[bytes, bytes]]:
    return [(key, b"".join(value.rest())) for key, value in TFileReader(InMemory(data, piece)).records()]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, "00"),
        (127, "7f"),
        (-32, "e0"),
        (1000, "cfe8"),
        (-1000, "c818"),
        (-5120, "b800"),
        (5119, "dfff"),
        (5120, "a81400"),
        (-1048576, "980000"),
        (1048575, "b7ffff"),
        (1048576, "90100000"),
        (-(1 << 27), "88000000"),
        (1 << 27, "8308000000"),
        ((1 << 63) - 1, "877fffffffffffffff"),
        (-(1 << 63), "878000000000000000"),
    ],
)
def test_integers_have_hadoops_bytes(value: int, code: str) -> None:
    assert encode_tint(value).hex() == code
    assert ByteStream([bytes.fromhex(code)], "it").tint() == value


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_integers_come_back(value: int) -> None:
    stream = ByteStream([bytes([b]) for b in encode_tint(value)], "it")
    assert stream.tint() == value
    assert stream.is_at_end()


def test_java_texts_have_their_own_nul_and_surrogates() -> None:
    assert encode_utf("a\0\U0001f600").hex() == "0009" + "61" + "c080" + "eda0bd" + "edb880"


@given(st.text())
def test_java_texts_come_back(text: str) -> None:
    data = encode_utf(text)
    assert int.from_bytes(data[:2], "big") == len(data) - 2
    assert decode_utf(data[2:]) == text


def test_a_file_of_one_record_has_hadoops_bytes() -> None:
    """Every byte of it, so that what a stock reader accepted stays what is written."""
    magic = bytes.fromhex("d111d36891b5d7b639df414092bae150")
    data = bytes([1]) + b"k" + bytes([2]) + b"vw"
    meta = bytes.fromhex("00010000" + "01" + "00")
    index = bytes([2, 1]) + b"k" + bytes([3, 1]) + b"k" + bytes([1])
    data_index = b"\4none" + bytes([1, 16, 5, 5])
    regions = [(32 + 1, len(data_index)), (27, len(index)), (21, len(meta))]
    meta_index = bytes([3]) + b"".join(
        bytes([len(name) + 5]) + b"data:" + name + b"\4none" + bytes([offset + (1 if i == 0 else 0), size, size])
        for i, (name, (offset, size)) in enumerate(
            zip((b"BCFile.index", b"TFile.index", b"TFile.meta"), regions, strict=True)
        )
    )
    body = magic + data + meta + index + data_index
    trailer = struct.pack(">qhh", len(body), 1, 0) + magic
    assert written([(b"k", [b"vw"])]) == body + meta_index + trailer


def test_a_file_without_records() -> None:
    assert read(written([])) == []


_records = st.lists(st.tuples(st.binary(max_size=40), st.lists(st.binary(max_size=60), max_size=4)), max_size=12)


@given(_records, st.sampled_from(["none", "gz"]), st.integers(1, 100), st.integers(1, 64))
def test_records_come_back(records: Records, compression: str, block_bytes: int, piece: int) -> None:
    data = written(records, compression=compression, block_bytes=block_bytes)
    assert read(data, piece) == [(key, b"".join(value)) for key, value in records]


def test_a_value_may_be_left_unread() -> None:
    data = written([(b"a", [b"1" * 1000, b"2" * 1000]), (b"b", [b"3"])])
    assert [key for key, _ in TFileReader(InMemory(data)).records()] == [b"a", b"b"]


def test_blocks_end_after_the_record_that_fills_them() -> None:
    data = written([(b"%d" % i, [b"x" * 100]) for i in range(10)], block_bytes=250)
    index = TFileReader(InMemory(data))._data_index
    assert index[0] == 4  # three records a block, the last has one


@given(_records, st.sampled_from(["none", "gz"]), st.data())
def test_a_file_that_lies_raises_the_format_error_and_nothing_else(
    records: Records, compression: str, data: st.DataObject
) -> None:
    good = bytearray(written(records, compression=compression, block_bytes=50))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(good) - 1))
        good[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del good[data.draw(st.integers(0, len(good) - 1)) :]
    try:
        read(bytes(good))
    except BadTFile:
        pass


@given(st.binary(max_size=200))
def test_noise_between_the_magic_numbers_raises_the_format_error(noise: bytes) -> None:
    magic = bytes.fromhex("d111d36891b5d7b639df414092bae150")
    data = magic + noise + struct.pack(">qhh", 16, 1, 0) + magic
    with pytest.raises(BadTFile):
        read(data)


def test_an_index_that_inflates_without_end_is_refused() -> None:
    bomb = zlib.compress(bytes(64 << 20))
    meta = bytes.fromhex("000100000000")
    magic = bytes.fromhex("d111d36891b5d7b639df414092bae150")

    def entry(name: bytes, compression: bytes, offset: int, size: int) -> bytes:
        full = b"data:" + name
        head = encode_tint(len(full)) + full + encode_tint(len(compression)) + compression
        return head + encode_tint(offset) + encode_tint(size) + encode_tint(size)

    index = encode_tint(2) + entry(b"BCFile.index", b"gz", 22, len(bomb)) + entry(b"TFile.meta", b"none", 16, 6)
    data = magic + meta + bomb + index + struct.pack(">qhh", 22 + len(bomb), 1, 0) + magic
    with pytest.raises(BadTFile, match="more than"):
        TFileReader(InMemory(data, 1 << 16))


# Log records ----------------------------------------------------------------------------------------------------------


def logs_of(data: bytes) -> tuple[AggregatedLogReader, list[tuple[str, str, bytes]]]:
    reader = AggregatedLogReader(InMemory(data, 1000))
    return reader, [(file.container, file.name, b"".join(pieces)) for file, pieces in reader.files()]


def log_file(containers: dict[str, dict[str, bytes]], *, owner: str = "alice", compression: str = "none") -> bytes:
    out = bytearray()
    writer = AggregatedLogWriter(out.extend, owner=owner, acls={"VIEW_APP": " "}, compression=compression)
    for container, files in containers.items():
        writer.add_container(container, (LogContent(n, len(text), [text]) for n, text in files.items()))
    writer.close()
    return bytes(out)


_names = st.text(min_size=1, max_size=20)


@given(
    st.dictionaries(
        st.integers(1, 99).map("container_1_0001_01_{:06d}".format),
        st.dictionaries(_names, st.binary(max_size=300), max_size=4),
        max_size=5,
    ),
    st.sampled_from(["none", "gz"]),
)
def test_logs_come_back(containers: dict[str, dict[str, bytes]], compression: str) -> None:
    reader, found = logs_of(log_file(containers, compression=compression))
    assert (reader.owner, reader.acls) == ("alice", {"VIEW_APP": " "})
    assert found == [(c, name, text) for c, files in containers.items() for name, text in files.items()]


def test_a_log_that_grows_or_shrinks_while_it_is_read_keeps_its_length() -> None:
    out = bytearray()
    writer = AggregatedLogWriter(out.extend, owner="alice", acls={})
    writer.add_container("c", [LogContent("grew", 3, [b"ab", b"cd"]), LogContent("shrank", 5, [b"ab"])])
    writer.close()
    assert logs_of(bytes(out))[1] == [("c", "grew", b"abc"), ("c", "shrank", b"ab\0\0\0")]


@given(st.data())
def test_logs_that_lie_raise_the_format_error_and_nothing_else(data: st.DataObject) -> None:
    good = bytearray(log_file({"container_1_0001_01_000001": {"stdout": b"hello" * 20, "stderr": b""}}))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        logs_of(bytes(good))
    except BadTFile:
        pass


def test_a_tfile_without_the_applications_records_is_no_log() -> None:
    with pytest.raises(BadTFile, match="APPLICATION_ACL, APPLICATION_OWNER, VERSION"):
        logs_of(written([]))


# Where the files lie --------------------------------------------------------------------------------------------------


def _layout(**settings: str) -> RemoteLogs:
    overrides = {"yarn.nodemanager.remote-app-log-dir": "file:///logs", **settings}
    return RemoteLogs.read(Configuration.load(environ={}, overrides=overrides))


def test_folders_are_hadoops() -> None:
    folders = _layout().folders("alice", ApplicationId(1700000000000, 120017))
    assert folders == (
        "file:///logs/alice",
        "file:///logs/alice/bucket-logs-tfile",
        "file:///logs/alice/bucket-logs-tfile/0017",
        "file:///logs/alice/bucket-logs-tfile/0017/application_1700000000000_120017",
    )


@pytest.mark.parametrize("user", ["", "..", "a/b", "a\0b"])
def test_no_user_leaves_the_root(user: str) -> None:
    with pytest.raises(ValueError, match="cannot be a folder"):
        _layout().folders(user, ApplicationId(1, 1))


@pytest.mark.parametrize(
    ("name", "node"),
    [("h_45454", "h:45454"), ("my_host_1_1700000000000", "my_host:1"), ("127.0.0.1_80", "127.0.0.1:80"), ("x", "x")],
)
def test_file_names_tell_the_node(name: str, node: str) -> None:
    assert node_of(f"hdfs://h:1/a/{name}") == node
    assert node_file(NodeId("h", 45454)) == "h_45454"


def test_complete_files_of_both_layouts_are_found(tmp_path: object) -> None:
    conf = Configuration.load(environ={}, overrides={"yarn.nodemanager.remote-app-log-dir": f"file://{tmp_path}"})
    logs, app = RemoteLogs.read(conf), ApplicationId(1, 7)
    filesystem = get_filesystem(logs.root, conf)
    new, older = logs.places("alice", app)
    for path in (f"{new}/b_1", f"{new}/a_1.tmp", f"{older}/a_1"):
        filesystem.create(path).close()
    assert [s.path.rpartition("/")[2] for s in logs.find(filesystem, "alice", app)] == ["a_1", "b_1"]
    assert list(logs.owners(filesystem, app)) == ["alice"]
    assert logs.find(filesystem, "bob", app) == []
