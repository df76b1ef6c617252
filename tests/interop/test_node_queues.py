"""Unmodified MapReduce on nodes whose queues are filled: its master counts what waits at a node as running."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.ours import OurCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.conf import NodeShape
from benchmarks.stock.processes import LOGGING
from tests.interop.interop_waiting import Waiting

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]
CLIENT = "MapReduce"

#: two nodes of three slots each; whatever nobody knows anything of is thought to end soon, so that all of it may wait
QUEUES = {
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": 6,
    "yaq.queue.default-estimate": "1s",
    "yaq.queue.max-wait-unaware": "2s",
    "yaq.nm.out-of-turn-heartbeats": "false",
    "yarn.scheduler.minimum-allocation-mb": 256,
}


@pytest.fixture
def cluster(tmp_path: Path, hadoop: HadoopJars, quick_tasks: dict[str, object]) -> Iterator[OurCluster]:
    folder = tmp_path / "cluster"
    classes = f"{folder / 'conf'},{LOGGING},{hadoop.directory}/*"
    site = {
        **quick_tasks,
        **QUEUES,
        "yarn.app.mapreduce.am.resource.mb": 256,
        "mapreduce.map.memory.mb": 256,
        "mapreduce.reduce.memory.mb": 256,
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": classes,
        "yarn.application.classpath": classes,
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
    }
    java = {"JAVA_HOME": str(hadoop.java_home)}
    with OurCluster(folder, nodes=2, shape=NodeShape(768, 8), site=site, environment=java) as running:
        yield running


@pytest.mark.full
def test_maps_get_through_a_cluster_full_of_their_own_reducers(
    cluster: OurCluster, hadoop: HadoopJars, tmp_path: Path
) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for number in range(10):
        (inputs / f"{number}.txt").write_text(f"word{number} word\n" * 10)
    clients = StockClients(hadoop, cluster.conf_dir, timeout_s=400)
    options = {
        "mapreduce.job.reduces": 6,
        "mapreduce.job.reduce.slowstart.completedmaps": 0.05,
        "yarn.app.mapreduce.am.job.reduce.rampup.limit": 1.0,
    }
    settings = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    output = tmp_path / "output"
    with Waiting(cluster.conf_dir) as watched:
        run = clients.streaming(
            *settings, "-input", f"file://{inputs}", "-output", f"file://{output}", "-mapper", "sh -c 'sleep 1; cat'"
        ).checked()
    assert watched.most > 0, "nothing waited at a node"
    lines = [line for part in sorted(output.glob("part-*")) for line in part.read_text().splitlines()]
    assert len(lines) == 100
    assert "Failed map tasks" not in run.stderr and "Failed reduce tasks" not in run.stderr, run.stderr[-3000:]
    (application,) = json.loads(cluster.yaq("app", "list", "--all", "--json").stdout)
    assert application["state"] == "FINISHED"
