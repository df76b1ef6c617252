"""Our RPC, tokens and shuffle files as a stock ResourceManager, NodeManager and ShuffleHandler see them."""

import base64
import hashlib
import hmac
import http.client
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop_master import UnmanagedMaster, await_value

from benchmarks.stock.daemons import StockYarn, current_user
from riffle_merger.format import IndexEntry, SpillIndex
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.ipc.retry import NO_RETRY
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol
from yaqd.security import JOB_TOKEN, Token

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture
def client(stock_yarn: StockYarn) -> Iterator[BlockingRpcClient]:
    with BlockingRpcClient(*stock_yarn.rm_address, user=current_user()) as connected:
        yield connected


@pytest.fixture
def master(stock_yarn: StockYarn) -> Iterator[UnmanagedMaster]:
    with UnmanagedMaster(stock_yarn.rm_address, stock_yarn.scheduler_address, current_user()) as running:
        yield running


def test_stock_nodes_are_listed(client: BlockingRpcClient) -> None:
    request = service.GetClusterNodesRequest(nodeStates=[common.NodeState.NS_RUNNING])
    nodes = client.call(ApplicationClientProtocol.getClusterNodes, request).nodeReports
    assert sorted(node.nodeId.host for node in nodes) == ["127.0.0.2", "127.0.0.3"]
    assert {node.capability.memory for node in nodes} == {4096}


def test_unknown_application_has_hadoops_exception(client: BlockingRpcClient) -> None:
    request = service.GetApplicationReportRequest()
    request.application_id.id, request.application_id.cluster_timestamp = 77, 1
    with pytest.raises(RemoteException) as refused:
        client.call(ApplicationClientProtocol.getApplicationReport, request)
    assert refused.value.class_name == "org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException"


def test_scheduler_port_refuses_a_forged_token(stock_yarn: StockYarn, master: UnmanagedMaster) -> None:
    real = Token.from_pb(master.report().am_rm_token)
    forged = Token(real.identifier, bytes(20), real.kind, real.service)
    with (
        BlockingRpcClient(
            *stock_yarn.scheduler_address, user="anybody", token=forged, connect_retries=NO_RETRY
        ) as stranger,
        pytest.raises(RpcError),  # a stock server closes the connection without a word
    ):
        stranger.call(ApplicationMasterProtocol.allocate, service.AllocateRequest())


def test_container_runs_on_a_stock_node_and_its_end_is_reported(master: UnmanagedMaster, tmp_path: Path) -> None:
    container = master.get_container()
    started = master.start(container, f"echo $CONTAINER_ID > {tmp_path}/said; exit 7")
    assert [tuple(failure.exception.message) for failure in started.failed_requests] == []

    assert master.await_completion(container).exit_status == 7
    assert (tmp_path / "said").read_text().startswith("container_")


def test_stock_shuffle_serves_our_map_output(stock_yarn: StockYarn, master: UnmanagedMaster) -> None:
    application = master.application_id
    job = f"job_{application.cluster_timestamp}_{application.id:04d}"
    attempt = f"attempt_{application.cluster_timestamp}_{application.id:04d}_m_000000_0"
    secret = os.urandom(20)
    token = Token(_text(job), secret, JOB_TOKEN, job)
    container = master.get_container()
    started = master.start(container, "sleep 60", {"mapreduce_shuffle": token.to_writable()})
    (port,) = struct.unpack(
        ">i", next(entry.value for entry in started.services_meta_data if entry.key == "mapreduce_shuffle")
    )
    local = stock_yarn.local_dir(container.nodeId.host) / "usercache" / master.user / "appcache"
    app_dir = local / f"application_{application.cluster_timestamp}_{application.id:04d}"
    await_value("the application's folder", lambda: app_dir if app_dir.exists() else None)
    segments = [_segment(b""), _segment(os.urandom(70_000)), _segment(b"last")]
    _write_map_output(app_dir / "output" / attempt, segments)

    for partition, segment in enumerate(segments):
        body = _fetch(container.nodeId.host, port, job, attempt, partition, secret)
        header = bytes([len(attempt)]) + attempt.encode()
        assert body.startswith(header)
        assert body.endswith(segment)
        assert len(body) - len(header) - len(segment) <= 2 * 9 + 5  # two lengths and a partition number


def _segment(records: bytes) -> bytes:
    return records + struct.pack(">I", zlib.crc32(records))


def _write_map_output(folder: Path, segments: list[bytes]) -> None:
    folder.mkdir(parents=True)
    entries, start = [], 0
    for segment in segments:
        entries.append(IndexEntry(start, len(segment) - 4, len(segment)))
        start += len(segment)
    (folder / "file.out").write_bytes(b"".join(segments))
    (folder / "file.out.index").write_bytes(SpillIndex(entries).to_bytes())


def _fetch(host: str, port: int, job: str, attempt: str, partition: int, secret: bytes) -> bytes:
    path = f"/mapOutput?job={job}&reduce={partition}&map={attempt}"
    signed = base64.b64encode(hmac.digest(secret, f"{port}{path}".encode(), hashlib.sha1))
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("GET", path, headers={"UrlHash": signed.decode(), "name": "mapreduce", "version": "1.0.0"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers["ReplyHash"] == base64.b64encode(hmac.digest(secret, signed, hashlib.sha1)).decode()
        return answer.read()
    finally:
        connection.close()


def _text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()
