"""Distributed scheduling with one end of Hadoop's own: our proxy under its ResourceManager, its proxy under ours."""

import re
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.stock import conf
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockYarn
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

#: the first node's address, at both
_HOST = conf.node_hosts(1)[0]
_PATIENCE_S = 60.0


def _await_node(conf_dir: Path) -> None:
    def count() -> int | None:
        with closing(client_of(conf_dir)) as client:
            metrics = client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest()).cluster_metrics
            return metrics.num_active_nms or None

    await_value("the node", count, _PATIENCE_S)


def _pi(jars: HadoopJars, conf_dir: Path, proxy: str) -> list[int]:
    """Runs it through the proxy; the numbers of the maps' ids, in the order of their making."""
    run = StockClients(jars, conf_dir).example(
        "pi",
        *("-D", "mapreduce.job.num-opportunistic-maps-percent=100"),
        # a reduce that starts earlier may end a map that is in its way
        *("-D", "mapreduce.job.reduce.slowstart.completedmaps=1.0"),
        *("-D", f"yarn.resourcemanager.scheduler.address={proxy}"),
        *("4", "1000"),
    )
    printed = run.checked().stdout
    assert "Estimated value of Pi is 3.1" in printed
    found = re.search(r"job_(\d+)_(\d+)", run.stderr)
    assert found is not None
    attempt = ApplicationAttemptId(ApplicationId(int(found[1]), int(found[2])), 1)
    with closing(client_of(conf_dir)) as client:
        request = pb.GetContainersRequest(application_attempt_id=convert.attempt_id_pb(attempt))
        containers = client.call(Client.getContainers, request).containers
    return sorted((c.container_id.id for c in containers if c.executionType == common.OPPORTUNISTIC), reverse=True)


@pytest.mark.full
def test_our_proxy_under_a_stock_resource_manager(
    hadoop: HadoopJars, quick_tasks: dict[str, object], tmp_path: Path
) -> None:
    proxy, *ports = free_ports(4)
    address = f"{_HOST}:{proxy}"
    site = site_of(address, quick_tasks)
    with StockYarn(hadoop, tmp_path, nodes=0, history=False, site=site) as stock:
        folder = tmp_path / "conf-ours"
        rm = Configuration.load(stock.conf_dir, environ={})
        yarn = {key: rm.get(key) for key in keys_told()}
        node = conf.nodemanager_site(0, conf.NodeShape(), tmp_path, (ports[0], ports[1], ports[2]))
        conf.write_conf(
            folder,
            {
                "core": conf.core_site("file:///", tmp_path),
                "yarn": {**yarn, **node, **site, "yaq.nm.warm-start.enabled": "false"},
                "mapred": {"mapreduce.shuffle.port": 0},
            },
        )
        with our_daemon("nm", folder, hadoop.java_home):
            _await_node(stock.conf_dir)
            _pi(hadoop, stock.conf_dir, address)
            log = (folder / "nm.log").read_text()
    placed = set(re.findall(r"container_\d+_\d+_01_(10995116277\d\d) is done with exit status 0", log))
    assert placed == {str((1 << 40) - n) for n in range(1, 5)}


@pytest.mark.full
def test_a_stock_proxy_under_our_resource_manager(
    hadoop: HadoopJars, quick_tasks: dict[str, object], tmp_path: Path
) -> None:
    address = f"{_HOST}:{free_ports(1)[0]}"
    stock = StockNode(hadoop, tmp_path, nodes=1, history=False, site=site_of(address, quick_tasks))
    stock.write()
    folder = tmp_path / "conf-rm"
    rm = Configuration.load(stock.conf_dir, environ={})
    yarn = {key: rm.get(key) for key in keys_told()}
    yarn["yaq.rm.state-store.path"] = "memory"
    queues = {**conf.capacity_site()}
    calculator = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
    queues["yarn.scheduler.capacity.resource-calculator"] = calculator
    conf.write_conf(folder, {"yarn": {**yarn, **site_of(address, quick_tasks)}, "capacity": queues})
    with our_daemon("rm", folder, hadoop.java_home):
        await_value("our ResourceManager", lambda: answers(stock.conf_dir) or None, _PATIENCE_S)
        with stock:
            _await_node(stock.conf_dir)
            assert _pi(hadoop, stock.conf_dir, address) == [-1, -2, -3, -4]
