"""Distributed scheduling over two nodes of ours: unmodified MapReduce through the proxy at its master's node."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from benchmarks.stock import conf
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun, StockClients
from benchmarks.stock.processes import free_ports
from tests.interop.interop_master import await_value
from tests.interop.interop_mixed import StockNode, answers, client_of, keys_told, our_daemon, site_of
from yaqd.config import Configuration
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "distributed scheduling"

_NODES = conf.node_hosts(2)
_PATIENCE_S = 60.0
_MAPS = 8
#: containers that a job may have run and wait at a time
_LIMIT = 3


def _start(stack: ExitStack, hadoop: HadoopJars, tmp_path: Path, quick_tasks: dict[str, object]) -> tuple[Path, str]:
    """Our daemons, and what a job is told: the clients' configuration, and the address of a master's own proxy."""
    proxy = free_ports(1)[0]
    site = {**site_of(f"{_NODES[0]}:{proxy}", quick_tasks), "yaq.distributed.max-tasks-per-job": _LIMIT}
    stock = StockNode(hadoop, tmp_path, nodes=2, history=False, site=site)
    stock.write()
    known = Configuration.load(stock.conf_dir, environ={})
    yarn = {**{key: known.get(key) for key in keys_told()}, **site, "yaq.rm.state-store.path": "memory"}
    calculator = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
    queues = {**conf.capacity_site(), "yarn.scheduler.capacity.resource-calculator": calculator}
    conf.write_conf(tmp_path / "rm", {"yarn": yarn, "capacity": queues})
    stack.enter_context(our_daemon("rm", tmp_path / "rm", hadoop.java_home))
    await_value("our ResourceManager", lambda: answers(stock.conf_dir) or None, _PATIENCE_S)
    for number, host in enumerate(_NODES):
        folder = tmp_path / f"nm{number}"
        ports = free_ports(3)
        node = conf.nodemanager_site(number, conf.NodeShape(), tmp_path, (ports[0], ports[1], ports[2]))
        own = {"yarn.nodemanager.amrmproxy.address": f"{host}:{proxy}", "yaq.nm.warm-start.enabled": "false"}
        conf.write_conf(
            folder,
            {
                "core": conf.core_site("file:///", tmp_path),
                "yarn": {**yarn, **node, **site, **own},
                "mapred": {"mapreduce.shuffle.port": 0},
            },
        )
        stack.enter_context(our_daemon("nm", folder, hadoop.java_home))
    await_value("both nodes", lambda: _nodes(stock.conf_dir) == 2 or None, _PATIENCE_S)
    # each master reads this in its own container
    return stock.conf_dir, f"${{env.NM_HOST}}:{proxy}"


def _nodes(conf_dir: Path) -> int:
    with closing(client_of(conf_dir)) as client:
        return client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest()).cluster_metrics.num_active_nms


def _containers(conf_dir: Path, application: ApplicationId) -> list[common.ContainerReport]:
    request = pb.GetContainersRequest(
        application_attempt_id=convert.attempt_id_pb(ApplicationAttemptId(application, 1))
    )
    with closing(client_of(conf_dir)) as client:
        found = client.call(Client.getContainers, request).containers
    return [c for c in found if c.executionType == common.OPPORTUNISTIC]


def _application(conf_dir: Path) -> ApplicationId | None:
    """Once it has an attempt, whose containers can be asked for."""
    with closing(client_of(conf_dir)) as client:
        found = client.call(Client.getApplications, pb.GetApplicationsRequest()).applications
    begun = (report.applicationId for report in found if report.yarn_application_state >= common.ACCEPTED)
    return next(map(convert.application_id, begun), None)


@pytest.mark.full
def test_maps_run_at_both_nodes_and_no_more_at_a_time_than_a_job_may_have(
    hadoop: HadoopJars, quick_tasks: dict[str, object], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        conf_dir, proxy = _start(stack, hadoop, tmp_path, quick_tasks)

        def run() -> ClientRun:
            return StockClients(hadoop, conf_dir).example(
                "pi",
                *("-D", "mapreduce.job.num-opportunistic-maps-percent=100"),
                *("-D", "mapreduce.job.reduce.slowstart.completedmaps=1.0"),
                *("-D", f"yarn.resourcemanager.scheduler.address={proxy}"),
                *(str(_MAPS), "1000"),
            )

        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(run)
            application = await_value("the application", lambda: _application(conf_dir), _PATIENCE_S)
            most = 0
            while not running.done():
                live = [c for c in _containers(conf_dir, application) if c.container_state != common.C_COMPLETE]
                most = max(most, len(live))
            printed = running.result().checked().stdout
        assert "Estimated value of Pi is 3.1" in printed
        maps = _containers(conf_dir, application)
        logs = [(tmp_path / f"nm{number}" / "nm.log").read_text() for number in range(2)]
    assert sorted((c.container_id.id for c in maps), reverse=True) == list(range(-1, -_MAPS - 1, -1))
    assert {convert.node_id(c.node_id).host for c in maps} == set(_NODES), "no node was left aside"
    assert 2 <= most <= _LIMIT
    done = [set(re.findall(r"(container_\S+_01_\S+) is done with exit status 0", log)) for log in logs]
    assert all(done) and not done[0] & done[1]
