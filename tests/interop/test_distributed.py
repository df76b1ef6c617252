"""Distributed scheduling with unmodified programs: their masters talk to the proxy at their node and never know."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun
from benchmarks.stock.daemons import StockHdfs
from benchmarks.stock.processes import free_ports
from tests.interop.interop_checks import output_lines
from tests.interop.interop_waiting import asked
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
#: four more than run at once
_SLOW_MAPS = 7
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
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("false", "1.0"), id="lengths", marks=pytest.mark.full),
        pytest.param(("true", "0.05"), id="waits"),
    ],
)
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
    if waits == "true":
        more = {"yarn.nodemanager.resource.memory-mb": 2048, "yarn.scheduler.maximum-allocation-mb": 2048}
        # so that something may wait before anything has ended
        site = {**site, **more, "yaq.queue.default-estimate": "3s"}
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


def _count_slowly(cluster: InteropCluster, folder: Path, *options: str) -> ClientRun:
    """Counts words with maps of three seconds, three at a time at most, while it is watched what their proxy keeps: its
    master takes what waits for running, so that none may wait for long."""
    for number in range(_SLOW_MAPS):
        (folder / f"{number}.txt").write_text("a b\n" * 10)
    cluster.clients.fs("-put", str(folder), "/slow-maps").checked()
    words = ("-input", "/slow-maps", "-output", "/out/slow", "-mapper", "sh -c \"sleep 3; tr ' ' '\\n'\"")
    reduce = ("-D", "mapreduce.job.reduces=1", "-D", "mapreduce.map.speculative=true")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(cluster.clients.streaming, *options, *reduce, *words, "-reducer", "uniq -c")
        kept: set[str] = set()
        while not running.done():
            for application in re.findall(r"application_\d+_\d+", cluster.ours.yaq("app", "list").stdout):
                asks = asked(cluster.ours.conf_dir, f"explain/{application}")["explanation"]["asks"]
                kept |= {ask["why"] for ask in asks if ask["executionType"] == "OPPORTUNISTIC"}
        run = running.result().checked()
    assert any("where they start at once" in why for why in kept), kept
    assert [line.split() for line in output_lines(cluster, "/out/slow")] == [[str(10 * _SLOW_MAPS), w] for w in "ab"]
    ended = asked(cluster.ours.conf_dir, f"explain/{_application(run)}")["explanation"]["ended"]
    waited = [record["waitedS"] for record in ended if record["priority"] == 19]
    assert len(waited) == _SLOW_MAPS and max(waited) <= 3 * 2 + 1, "of those that ended well none waited for long"
    return run


@pytest.mark.full
def test_maps_that_the_proxy_places(small: tuple[InteropCluster, str], tmp_path: Path) -> None:
    cluster, slow_start = small
    options = (
        *("-D", "mapreduce.job.num-opportunistic-maps-percent=100"),
        *("-D", f"mapreduce.job.reduce.slowstart.completedmaps={slow_start}"),
        *("-D", f"yarn.resourcemanager.scheduler.address={_PROXY}"),
    )
    if slow_start == "1.0":
        run = cluster.clients.example("pi", *options, "6", "1000").checked()
        assert "Estimated value of Pi is 3.1" in run.stdout
    else:
        run = _count_slowly(cluster, tmp_path, *options)
    containers = _containers(cluster, _application(run))
    kinds = {c.priority.priority: c.executionType for c in containers}
    assert kinds == {0: common.GUARANTEED, 19: common.OPPORTUNISTIC, 10: common.GUARANTEED}
    maps = sorted((c.container_id.id for c in containers if c.executionType == common.OPPORTUNISTIC), reverse=True)
    assert maps[0] == -1 and len(maps) == len(set(maps)), "counted down from where the ResourceManager's own ids begin"
    if slow_start == "1.0":
        assert maps == list(range(-1, -7, -1))
    else:  # a reduce that starts while maps wait ends one that is in its way, which is run again
        assert len(maps) >= _SLOW_MAPS
        (reduce,) = (c for c in containers if c.priority.priority == 10)
        assert any(reduce.creation_time < c.finish_time for c in containers if c.priority.priority == 19)
        assert "Failed map tasks" not in run.stderr
    assert min(c.container_id.id for c in containers if c.executionType == common.GUARANTEED) == 1
