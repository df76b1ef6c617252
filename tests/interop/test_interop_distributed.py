"""Distributed scheduling with unmodified programs: their masters talk to the proxy at their node and never know."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun
from benchmarks.stock.daemons import StockHdfs
from benchmarks.stock.processes import free_ports
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "distributed scheduling"

#: where the nodes' proxy listens: all jobs are told the same port, so there is one node
_PROXY = f"127.0.0.1:{free_ports(1)[0]}"
SITE = {
    "yarn.nodemanager.resource.memory-mb": 1536,
    "yarn.scheduler.maximum-allocation-mb": 1536,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 1.0,
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    "yarn.nodemanager.distributed-scheduling.enabled": "true",
    "yarn.nodemanager.amrmproxy.address": _PROXY,
    "yarn.nodemanager.opportunistic-containers-max-queue-length": 20,
}


#: whether the proxy goes by waits, and the share of maps that must be done before reduces are asked for
@pytest.fixture(scope="module", params=[("false", "1.0"), ("true", "0.05")], ids=["lengths", "waits"])
def small(
    request: pytest.FixtureRequest,
    hadoop: HadoopJars,
    hdfs: StockHdfs,
    quick_tasks: dict[str, object],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[InteropCluster, str]]:
    """A cluster of one small node, where containers have to wait."""
    waits, slow_start = request.param
    site = {**quick_tasks, **SITE, "yaq.queue.enabled": waits}
    with InteropCluster(hadoop, tmp_path_factory.mktemp("distributed"), hdfs, nodes=1, site=site) as running:
        yield running, slow_start


def _application(run: ClientRun) -> ApplicationId:
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None, run.stderr
    return ApplicationId.parse(found[0])


def _containers(cluster: InteropCluster, application: ApplicationId) -> list[common.ContainerReport]:
    """What our ResourceManager knows of the first attempt's containers."""
    conf = Configuration.load(cluster.clients.conf_dir, environ={})
    attempt = ApplicationAttemptId(application, 1)
    request = pb.GetContainersRequest(application_attempt_id=convert.attempt_id_pb(attempt))
    with closing(BlockingRpcClient(*conf.get_address("yarn.resourcemanager.address"), user="test")) as client:
        return list(client.call(Client.getContainers, request).containers)


def test_pi_with_maps_that_the_proxy_places(small: tuple[InteropCluster, str]) -> None:
    cluster, slow_start = small
    run = cluster.clients.example(
        "pi",
        *("-D", "mapreduce.job.num-opportunistic-maps-percent=100"),
        *("-D", f"mapreduce.job.reduce.slowstart.completedmaps={slow_start}"),
        *("-D", f"yarn.resourcemanager.scheduler.address={_PROXY}"),
        *("6", "1000"),
    ).checked()
    assert "Estimated value of Pi is 3.1" in run.stdout
    containers = _containers(cluster, _application(run))
    kinds = {c.priority.priority: c.executionType for c in containers}
    assert kinds == {0: common.GUARANTEED, 19: common.OPPORTUNISTIC, 10: common.GUARANTEED}
    maps = sorted((c.container_id.id for c in containers if c.executionType == common.OPPORTUNISTIC), reverse=True)
    assert maps == list(range(-1, -1 - len(maps), -1)), "counted down from where the ResourceManager's own ids begin"
    if slow_start == "1.0":
        assert len(maps) == 6
    else:  # a reduce that starts while maps wait ends one that is in its way, which is run again
        assert len(maps) >= 6
        (reduce,) = (c for c in containers if c.priority.priority == 10)
        assert any(reduce.creation_time < c.finish_time for c in containers if c.priority.priority == 19)
        assert "Failed map tasks" not in run.stderr
    assert min(c.container_id.id for c in containers if c.executionType == common.GUARANTEED) == 1
