"""The HDFS client library and our own RPC client against a real NameNode and DataNode."""

import os
from pathlib import Path

import pytest
from hdfs_native import Client

from benchmarks.stock.daemons import StockHdfs, current_user
from yaqd.ipc import BlockingRpcClient, RemoteException
from yaqd.proto import hdfs_pb2 as pb
from yaqd.proto.protocols import NamenodeProtocol

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "HDFS"


@pytest.fixture
def client(hdfs: StockHdfs, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client that knows the file system from the configuration folder alone."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs.conf_dir))
    return Client()


def _write(client: Client, path: str, data: bytes) -> None:
    with client.create(path) as stream:
        stream.write(data)


def test_files_written_are_read_back_and_renamed_once(client: Client) -> None:
    data = os.urandom(3_000_000)
    client.mkdirs("/tmp/interop/a", 0o755, True)
    _write(client, "/tmp/interop/a/one", data)

    assert b"".join(client.read("/tmp/interop/a/one").read_range_stream(0, len(data))) == data
    client.rename("/tmp/interop/a/one", "/tmp/interop/a/two")
    assert [Path(status.path).name for status in client.list_status("/tmp/interop/a")] == ["two"]
    _write(client, "/tmp/interop/a/one", b"")
    with pytest.raises(Exception, match="exist"):
        client.rename("/tmp/interop/a/one", "/tmp/interop/a/two")


def test_namenode_tells_our_rpc_client_where_blocks_are(hdfs: StockHdfs, client: Client) -> None:
    _write(client, "/tmp/interop-blocks", b"x" * 2_500_000)
    request = pb.GetBlockLocationsRequest(src="/tmp/interop-blocks", offset=0, length=1 << 40)

    with BlockingRpcClient("127.0.0.1", hdfs.ports.namenode, user=current_user()) as namenode:
        located = namenode.call(NamenodeProtocol.getBlockLocations, request).locations

    assert located.fileLength == 2_500_000
    assert sum(block.b.numBytes for block in located.blocks) == 2_500_000
    assert [(place.id.ipAddr, place.id.xferPort) for place in located.blocks[0].locs] == [
        ("127.0.0.1", hdfs.ports.datanode)
    ]


def test_namenode_error_reaches_our_rpc_client_with_its_class(hdfs: StockHdfs) -> None:
    request = pb.GetBlockLocationsRequest(src="/tmp/not-there", offset=0, length=1)
    with (
        BlockingRpcClient("127.0.0.1", hdfs.ports.namenode, user=current_user()) as namenode,
        pytest.raises(RemoteException) as refused,
    ):
        namenode.call(NamenodeProtocol.getBlockLocations, request)
    assert refused.value.class_name == "java.io.FileNotFoundException"
