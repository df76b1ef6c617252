"""Our RPC, tokens and shuffle files as a stock ResourceManager, NodeManager and ShuffleHandler see them."""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.stock.daemons import StockYarn, current_user
from tests.interop.interop_master import UnmanagedMaster, await_value
from tez_adapter.data import MapOutput, ReduceInput
from tez_adapter.data.fetch import Fetcher, FetchFailure
from tez_adapter.data.fetchplan import MapLocation
from yaqd.ipc import NO_RETRY, BlockingRpcClient, RemoteException, RpcError
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol
from yaqd.security import JOB_TOKEN, Token

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "our parts beside stock YARN"


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


def test_our_reducer_fetches_our_map_outputs_from_a_stock_shuffle(
    stock_yarn: StockYarn, master: UnmanagedMaster, tmp_path: Path
) -> None:
    application = master.application_id
    number = f"{application.cluster_timestamp}_{application.id:04d}"
    job, secret = f"job_{number}", os.urandom(20)
    container = master.get_container()
    service_data = Token(_text(job), secret, JOB_TOKEN, job).to_writable()
    started = master.start(container, "sleep 60", {"mapreduce_shuffle": service_data})
    metadata = {entry.key: entry.value for entry in started.services_meta_data}
    (port,) = struct.unpack(">i", metadata["mapreduce_shuffle"])
    host = container.nodeId.host
    folder = stock_yarn.local_dir(host) / "usercache" / master.user / "appcache" / f"application_{number}"
    await_value("the application's folder", lambda: folder if folder.exists() else None)

    attempts = [f"attempt_{number}_m_{index:06d}_0" for index in range(25)]
    for index, attempt in enumerate(attempts):
        _write_map_output(folder / "output" / attempt, index)
    failures: list[FetchFailure] = []
    for partition in range(2):
        with ReduceInput(tmp_path / "reduce") as collected:
            fetcher = Fetcher(
                collected,
                job_id=job,
                partition=partition,
                maps=len(attempts),
                secret=secret,
                on_failure=failures.append,
            )
            for index, attempt in enumerate(attempts):
                fetcher.add(MapLocation(index, attempt, host, port))
            is_complete = fetcher.wait(30)
            fetcher.close()
            assert (is_complete, failures) == (True, [])
            found = {key: sorted(values) for key, values in collected.groups()}
        assert found == {
            key: sorted(b"map %d" % index for index in range(len(attempts)))
            for key in (b"key %d" % number for number in range(50))
            if zlib.crc32(key) % 2 == partition
        }


def _write_map_output(folder: Path, index: int) -> None:
    output = MapOutput(folder, 2)
    for number in range(50):
        output.collect(b"key %d" % number, b"map %d" % index)
    output.close()


def _text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()
