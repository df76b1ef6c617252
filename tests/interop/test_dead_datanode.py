"""A DataNode that is dead and still listed: what we write goes elsewhere at once, as with Hadoop's own client."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.daemons import StockHdfs
from yaqd.config import Configuration
from yaqd.storage import FileSystem, StorageError, get_filesystem
from yaqd.storage.errors import StorageUnavailable
from yaqd.storage.filesystem import ByteWriter

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "HDFS with a dead DataNode"
#: with as many, one at least would be placed on the dead node alone
FILES = 12
MB = 1 << 20
#: with a write time-out of 2 s; the library alone waits a minute, and then the writing again begins
NO_HANG_S = 60.0


@pytest.fixture(scope="module")
def two_nodes(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockHdfs]:
    with StockHdfs(hadoop, tmp_path_factory.mktemp("half"), datanodes=2) as hdfs:
        yield hdfs


@pytest.fixture
def half_dead(two_nodes: StockHdfs) -> StockHdfs:
    """One of two DataNodes is killed; the NameNode would take ten minutes to see it."""
    two_nodes.daemons["datanode"].kill()
    return two_nodes


def opened(hdfs: StockHdfs, monkeypatch: pytest.MonkeyPatch, folder: str, settings: dict[str, str]) -> FileSystem:
    """The file system, with an empty folder on it."""
    monkeypatch.setattr("yaqd.storage.opening._open_systems", {})
    conf = Configuration.load(hdfs.conf_dir, environ={}).with_overrides(settings)
    files = get_filesystem("hdfs:///", conf)
    files.mkdirs(folder)
    return files


def write(writer: ByteWriter, data: bytes) -> None:
    for at in range(0, len(data), MB):
        writer.write(data[at : at + MB])


def names(files: FileSystem, folder: str) -> list[str]:
    return [status.path.rpartition("/")[2] for status in files.list(folder)]


def whole(files: FileSystem, path: str) -> bytes:
    with closing(files.open(path)) as reader:
        return reader.read()


@pytest.mark.full
def test_a_node_that_takes_connections_and_nothing_more_is_not_waited_for(
    two_nodes: StockHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "/tmp/frozen"
    settings = {"dfs.replication": "1", "dfs.blocksize": str(MB), "yaq.storage.hdfs.write-timeout": "2s"}
    files = opened(two_nodes, monkeypatch, folder, settings)
    data = os.urandom(3 * MB)
    frozen = two_nodes.daemons["datanode"].pid
    os.kill(frozen, signal.SIGSTOP)
    started = time.monotonic()
    writer = files.create(f"{folder}/f")
    try:
        write(writer, data)
        writer.close()
    except StorageError:  # where WebHDFS was given that node alone, again and again
        writer.abort()
    finally:
        seconds = time.monotonic() - started
        os.kill(frozen, signal.SIGCONT)
    assert seconds < NO_HANG_S
    if files.exists(f"{folder}/f"):
        assert whole(files, f"{folder}/f") == data
    else:
        assert names(files, folder) == []


@pytest.mark.full
def test_a_node_dies_while_files_are_written(two_nodes: StockHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies: no byte is lost. One copy: none of those that are said to be written; no block of theirs is whole
    when the node dies, for its only copy would be gone with the node, whoever wrote it."""
    folder = "/tmp/dying"
    files = opened(two_nodes, monkeypatch, folder, {"dfs.replication": "2", "dfs.blocksize": str(8 * MB)})
    data = os.urandom(40 * MB)
    writers = {f"one-{number}": files.create(f"{folder}/one-{number}", replication=1) for number in range(4)}
    writers |= {f"two-{number}": files.create(f"{folder}/two-{number}") for number in range(2)}
    before = {name: 4 * MB if name.startswith("one-") else 20 * MB for name in writers}
    for name, writer in writers.items():
        write(writer, data[: before[name]])
    two_nodes.daemons["datanode"].kill()
    lost = set()
    for name, writer in writers.items():
        try:
            write(writer, data[before[name] :])
            writer.close()
        except StorageUnavailable:
            writer.abort()
            lost.add(name)
    assert {name for name in lost if name.startswith("two-")} == set()
    assert names(files, folder) == sorted(set(writers) - lost)
    for name in set(writers) - lost:
        assert whole(files, f"{folder}/{name}") == data, name


#: length of each file
EMPTY, ONE_PACKET, MANY_PACKETS = 0, 1000, 3 * MB


@pytest.mark.parametrize(
    ("copies", "size"),
    [
        pytest.param(1, EMPTY, marks=pytest.mark.full),
        pytest.param(1, ONE_PACKET, marks=pytest.mark.full),
        pytest.param(1, MANY_PACKETS, marks=pytest.mark.full),
        pytest.param(2, EMPTY, marks=pytest.mark.full),
        pytest.param(2, ONE_PACKET, marks=pytest.mark.full),
        (2, MANY_PACKETS),
    ],
)
def test_what_is_written_goes_to_those_that_live(
    half_dead: StockHdfs, monkeypatch: pytest.MonkeyPatch, copies: int, size: int
) -> None:
    folder = f"/tmp/dead-{copies}-{size}"
    files = opened(half_dead, monkeypatch, folder, {"dfs.replication": str(copies)})
    written = [os.urandom(size) for _ in range(FILES)]
    for number, data in enumerate(written):
        writer = files.create(f"{folder}/{number}")
        write(writer, data)
        writer.close()
    assert names(files, folder) == sorted(map(str, range(FILES)))
    for number, data in enumerate(written):
        assert whole(files, f"{folder}/{number}") == data
    assert half_dead.live_datanodes() == 2


@pytest.mark.parametrize(
    ("copies", "block", "count"),
    [
        pytest.param(1, 8 * MB, 4, id="one-copy"),
        pytest.param(2, 20 * MB, 1, id="two-copies"),
    ],
)
def test_later_blocks_go_to_those_that_live(
    half_dead: StockHdfs, monkeypatch: pytest.MonkeyPatch, copies: int, block: int, count: int
) -> None:
    folder = f"/tmp/blocks-{copies}"
    files = opened(half_dead, monkeypatch, folder, {"dfs.replication": str(copies), "dfs.blocksize": str(block)})
    data = os.urandom(3 * block)
    for number in range(count):
        writer = files.create(f"{folder}/{number}")
        write(writer, data)
        writer.close()
    for number in range(count):
        assert whole(files, f"{folder}/{number}") == data
        assert len(files.block_locations(f"{folder}/{number}", 0, len(data))) == 3


@pytest.mark.parametrize("make_parents", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_folder_that_was_removed_does_not_come_back(
    half_dead: StockHdfs, monkeypatch: pytest.MonkeyPatch, make_parents: bool
) -> None:
    files = opened(half_dead, monkeypatch, "/tmp/removed/staging", {"dfs.replication": "2"})
    writers = [files.create(f"/tmp/removed/staging/{number}", make_parents=make_parents) for number in range(4)]
    for writer in writers:
        write(writer, b"x" * MB)
    files.delete("/tmp/removed/staging", recursive=True)
    for writer in writers:
        with pytest.raises(StorageError):
            writer.close()
    assert names(files, "/tmp/removed") == []
