"""Kinds of containers as unmodified programs ask for them: opportunistic ones, further resource types."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun
from benchmarks.stock.daemons import StockHdfs
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.ipc.errors import ApplicationAttemptNotFound
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "kinds of containers"

_JVM = "-Xmx300m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
#: One node with room for a master and two other containers, and two GPUs.
SITE = {
    "yarn.nodemanager.resource.memory-mb": 1536,
    "yarn.scheduler.maximum-allocation-mb": 1536,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 1.0,
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    "yarn.nodemanager.opportunistic-containers-max-queue-length": 20,
    "yarn.scheduler.capacity.resource-calculator": ("org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"),
    "yarn.resource-types": "yarn.io/gpu",
    "yarn.nodemanager.resource-type.yarn.io/gpu": 2,
    "yarn.app.mapreduce.am.resource.mb": 512,
    "yarn.app.mapreduce.am.command-opts": _JVM,
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": 200,
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.map.java.opts": _JVM,
    "mapreduce.reduce.java.opts": _JVM,
    "mapreduce.task.io.sort.mb": 20,
    "mapreduce.client.progressmonitor.pollinterval": 200,
}


@pytest.fixture(scope="module")
def small(hadoop: HadoopJars, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteropCluster]:
    """A cluster of one small node, where containers have to wait."""
    with InteropCluster(hadoop, tmp_path_factory.mktemp("small"), hdfs, nodes=1, site=SITE) as running:
        yield running


def _application(run: ClientRun) -> ApplicationId:
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None, run.stderr
    return ApplicationId.parse(found[0])


def _resource_manager(cluster: InteropCluster) -> "closing[BlockingRpcClient]":
    conf = Configuration.load(cluster.clients.conf_dir, environ={})
    return closing(BlockingRpcClient(*conf.get_address("yarn.resourcemanager.address"), user="test"))


def _containers(cluster: InteropCluster, application: ApplicationId) -> list[common.ContainerReport]:
    """What our ResourceManager knows of the first attempt's containers, the master's first."""
    attempt = ApplicationAttemptId(application, 1)
    request = pb.GetContainersRequest(application_attempt_id=convert.attempt_id_pb(attempt))
    with _resource_manager(cluster) as client:
        reports = client.call(Client.getContainers, request).containers
    return sorted(reports, key=lambda report: report.container_id.id)


def _at_once(folder: Path) -> int:
    """The most containers that ran at one time, by the start and end that each wrote down, in ms."""
    moments = []
    for file in folder.iterdir():
        began, ended = map(int, file.read_text().split())
        moments += [(began, 1), (ended, -1)]
    most = running = 0
    for _, change in sorted(moments):
        running += change
        most = max(most, running)
    return most


def test_distributed_shell_in_opportunistic_containers_that_queue(small: InteropCluster, tmp_path: Path) -> None:
    script = tmp_path / "note.sh"
    notes = tmp_path / "notes"
    notes.mkdir()
    script.write_text(f"b=$(date +%s%3N); sleep 1; echo $b $(date +%s%3N) > {notes}/$CONTAINER_ID\n")
    run = small.clients.distributed_shell(
        *("-shell_script", str(script), "-num_containers", "6", "-container_type", "OPPORTUNISTIC"),
        *("-master_memory", "256", "-container_memory", "512"),
    ).checked()
    assert "Application completed successfully" in run.stdout + run.stderr
    master, *others = _containers(small, _application(run))
    assert master.executionType == common.GUARANTEED
    assert len(others) >= 6 and {c.executionType for c in others} == {common.OPPORTUNISTIC}
    assert len(list(notes.iterdir())) == 6
    assert _at_once(notes) == 2, "the others waited on the node"


@pytest.mark.full
def test_guaranteed_containers_end_opportunistic_ones_that_are_in_the_way(small: InteropCluster) -> None:
    sizes = ("-num_containers", "2", "-master_memory", "256", "-container_memory", "512")
    with ThreadPoolExecutor(1) as background:
        long = ("-shell_command", "sleep 100", "-container_type", "OPPORTUNISTIC", *sizes)
        other = background.submit(small.clients.distributed_shell, *long)
        application = _await_running(small, 3)
        small.clients.distributed_shell("-shell_command", "true", *sizes).checked()
        run = other.result()
    assert _application(run) == application and run.exit_code != 0
    _, *others = _containers(small, application)
    assert {c.executionType for c in others} == {common.OPPORTUNISTIC}
    ended = [c for c in others if c.container_exit_status == -108]
    assert ended and "Container Killed to make room for Guaranteed Container." in ended[0].diagnostics_info


def _await_running(cluster: InteropCluster, containers: int) -> ApplicationId:
    """The newest application, once its first attempt has so many containers that their node has started."""
    deadline = time.monotonic() + 60
    with _resource_manager(cluster) as client:
        while True:
            applications = client.call(Client.getApplications, pb.GetApplicationsRequest()).applications
            if applications:
                newest = max((convert.application_id(a.applicationId) for a in applications), key=lambda a: a.id)
                with suppress(ApplicationAttemptNotFound):
                    running = [c for c in _containers(cluster, newest) if c.container_state == common.C_RUNNING]
                    if len(running) == containers:
                        return newest
            assert time.monotonic() < deadline, "the containers did not start"
            time.sleep(0.1)


@pytest.mark.full
def test_distributed_shell_promotes_its_opportunistic_containers(small: InteropCluster) -> None:
    run = small.clients.distributed_shell(
        *("-shell_command", "sleep 4", "-num_containers", "2", "-container_type", "OPPORTUNISTIC"),
        *("-promote_opportunistic_after_start", "-master_memory", "256", "-container_memory", "512"),
    ).checked()
    _, *others = _containers(small, _application(run))
    assert [(c.executionType, c.container_exit_status) for c in others] == [(common.GUARANTEED, 0)] * 2


@pytest.mark.full
def test_pi_with_opportunistic_maps(small: InteropCluster) -> None:
    run = small.clients.example("pi", "-D", "mapreduce.job.num-opportunistic-maps-percent=100", "4", "1000").checked()
    assert "Estimated value of Pi is 3.14" in run.stdout
    kinds = {c.priority.priority: c.executionType for c in _containers(small, _application(run))}
    assert kinds == {0: common.GUARANTEED, 19: common.OPPORTUNISTIC, 10: common.GUARANTEED}


@pytest.mark.full
def test_gpus_are_handed_out_counted_and_shown(small: InteropCluster, tmp_path: Path) -> None:
    script = tmp_path / "note.sh"
    notes = tmp_path / "notes"
    notes.mkdir()
    script.write_text(f"b=$(date +%s%3N); sleep 1; echo $b $(date +%s%3N) > {notes}/$CONTAINER_ID\n")
    run = small.clients.distributed_shell(
        *("-shell_script", str(script), "-num_containers", "2", "-master_memory", "256"),
        *("-container_resources", "memory-mb=256,vcores=1,yarn.io/gpu=2"),
    ).checked()
    application = _application(run)
    assert [convert.resource(c.resource).extras.get("yarn.io/gpu", 0) for c in _containers(small, application)] == [
        *(0, 2, 2)
    ]
    assert _at_once(notes) == 1, "the second waited for the first one's GPUs"
    status = small.clients.yarn("application", "-status", str(application)).checked().stdout
    assert re.search(r"Aggregate Resource Allocation : .*[1-9]\d* yarn.io/gpu-seconds", status), status
    node = small.clients.yarn("node", "-list", "-showDetails").checked().stdout
    assert "yarn.io/gpu" in node, node


def test_each_container_of_a_stock_program_sees_a_gpu_of_its_own(small: InteropCluster, tmp_path: Path) -> None:
    script = tmp_path / "note.sh"
    script.write_text(f"echo $CUDA_VISIBLE_DEVICES > {tmp_path}/$CONTAINER_ID\nsleep 1\n")
    run = small.clients.distributed_shell(
        *("-shell_script", str(script), "-num_containers", "2", "-master_memory", "256"),
        *("-container_resources", "memory-mb=256,vcores=1,yarn.io/gpu=1"),
    ).checked()
    ids = [str(convert.container_id(c.container_id)) for c in _containers(small, _application(run))[1:]]
    assert sorted((tmp_path / name).read_text().strip() for name in ids) == ["0", "1"]


@pytest.mark.full
def test_more_gpus_than_any_node_has_are_refused(small: InteropCluster) -> None:
    run = small.clients.distributed_shell(
        *("-shell_command", "true", "-container_resources", "memory-mb=256,vcores=1,yarn.io/gpu=3"),
        *("-master_memory", "256"),
    )
    assert run.exit_code != 0
    conclusion = small.clients.yarn("application", "-status", str(_application(run))).checked().stdout
    assert "FAILED" in conclusion
