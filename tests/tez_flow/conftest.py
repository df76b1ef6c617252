"""One cluster for the end-to-end tests of flows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_cluster import started
from yaqd.config import Configuration

ROOM = ("yarn.nodemanager.resource.memory-mb=4096", "yarn.nodemanager.resource.cpu-vcores=16")
SMALL_TASKS = {
    "mapreduce.map.memory.mb": "256",
    "mapreduce.reduce.memory.mb": "256",
    "mapreduce.input.fileinputformat.split.maxsize": "8",
    "yaq.input.combine-small-files": "false",
}


@pytest.fixture(scope="session")
def flow_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configuration]:
    """A ResourceManager and two nodes; input splits of some bytes."""
    with started(tmp_path_factory.mktemp("flows") / "c", *ROOM, nodes=2) as folder:
        yield Configuration.load(folder / "conf").with_overrides(SMALL_TASKS)


@pytest.fixture
def own_flow_cluster(tmp_path: Path) -> Iterator[Path]:
    """For a test that damages it: the folder of a cluster of three nodes."""
    expiry = "yarn.nm.liveness-monitor.expiry-interval-ms=3000"
    with started(tmp_path / "c", *ROOM, expiry, "yarn.scheduler.minimum-allocation-mb=256", nodes=3) as folder:
        yield folder
