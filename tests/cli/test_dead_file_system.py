"""Starting a cluster on an HDFS that is not there: said in one line, in time, and nothing is left behind."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import UNREACHABLE
from yaqd.cli.local.file_system import check_file_system
from yaqd.cli.local.site import LocalShape
from yaqd.config import Configuration
from yaqd.ipc import RemoteException, RpcServer
from yaqd.proto import hdfs_pb2 as hdfs
from yaqd.proto.protocols import NamenodeProtocol
from yaqd.storage import StorageUnavailable
from yaqd.storage.hdfs.alive import check_namenode

CONF = Configuration.load(environ={})


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a NameNode that is stopped: the kernel accepts for it, nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def closed(silent: int) -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def start(folder: Path, port: int, *more: str) -> Result:
    words = ["cluster", "start", "--dir", str(folder), "--hdfs", f"hdfs://127.0.0.1:{port}", *more]
    return CliRunner().invoke(yaq, words, env={"HADOOP_CONF_DIR": None})


def assert_refused(result: Result, folder: Path, port: int, why: str) -> None:
    assert result.exit_code == UNREACHABLE, result.output
    assert result.output.count("\n") == 1
    assert f"the file system hdfs://127.0.0.1:{port} does not answer: " in result.output
    assert why in result.output and "start it, or check its address" in result.output
    assert not folder.exists()


def test_a_dead_namenode_is_named(tmp_path: Path, closed: int) -> None:
    assert_refused(start(tmp_path / "c", closed), tmp_path / "c", closed, "Connection refused")


def test_one_that_accepts_and_says_nothing_is_not_waited_for_longer_than_asked(tmp_path: Path, silent: int) -> None:
    began = time.monotonic()
    result = start(tmp_path / "c", silent, "--timeout", "0.5")
    assert time.monotonic() - began < 5
    assert_refused(result, tmp_path / "c", silent, "no answer")


def test_a_cluster_that_was_started_before_keeps_its_folder_as_it_was(tmp_path: Path, closed: int) -> None:
    record = json.dumps({"nodes": 1, "hdfs": f"hdfs://127.0.0.1:{closed}"})
    (tmp_path / "cluster.json").write_text(record)
    result = CliRunner().invoke(yaq, ["cluster", "start", "--dir", str(tmp_path)], env={"HADOOP_CONF_DIR": None})
    assert result.exit_code == UNREACHABLE and f"hdfs://127.0.0.1:{closed} does not answer" in result.output
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("cluster.json", record)]


def test_a_default_file_system_given_as_a_setting_is_asked_too(closed: int) -> None:
    shape = LocalShape(1, None, {"fs.defaultFS": f"hdfs://127.0.0.1:{closed}"})
    with pytest.raises(StorageUnavailable, match="does not answer"):
        check_file_system(shape, 5.0)
    check_file_system(LocalShape(1, None, {}), 0.0)
    with pytest.raises(StorageUnavailable, match="hdfs://h:x is no address"):
        check_file_system(LocalShape(1, None, {"fs.defaultFS": "hdfs://h:x"}), 5.0)


class Namenode:
    """Answers the one question as a NameNode does."""

    def __init__(self, java_class: str, text: str) -> None:
        self._error = RemoteException(java_class, text)
        self.server = RpcServer(name="NameNode", host="127.0.0.1")
        self.server.register(NamenodeProtocol.getBlockLocations, self._locations)

    def _locations(self, _: hdfs.GetBlockLocationsRequest, __: object) -> hdfs.GetBlockLocationsResponse:
        raise self._error


async def test_any_answer_will_do_except_that_of_a_standby() -> None:
    standby = Namenode("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported")
    active = Namenode("java.io.FileNotFoundException", "Path is not a file: /")
    await standby.server.start()
    await active.server.start()
    ports = {"a": standby.server.port, "b": active.server.port}
    try:
        await asyncio.to_thread(check_namenode, f"127.0.0.1:{ports['b']}", CONF, "bob", 5.0)
        with pytest.raises(StorageUnavailable, match="is on standby"):
            await asyncio.to_thread(check_namenode, f"127.0.0.1:{ports['a']}", CONF, "bob", 5.0)
        settings = {f"dfs.namenode.rpc-address.ns.{name}": f"127.0.0.1:{port}" for name, port in ports.items()}
        service = CONF.with_overrides({"dfs.ha.namenodes.ns": "a,b", **settings})
        await asyncio.to_thread(check_namenode, "ns", service, "bob", 5.0)
    finally:
        await standby.server.stop()
        await active.server.stop()
