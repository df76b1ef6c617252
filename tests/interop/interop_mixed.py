"""Nodes and a ResourceManager of which some are stock and some ours, with a proxy at each node."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.stock.daemons import _NODEMANAGER, StockYarn
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


def site_of(proxy: str, quick_tasks: dict[str, object]) -> dict[str, object]:
    return {
        **quick_tasks,
        "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
        "yarn.nodemanager.distributed-scheduling.enabled": "true",
        "yarn.nodemanager.amrmproxy.enabled": "true",
        "yarn.nodemanager.amrmproxy.address": proxy,
        "yarn.nodemanager.opportunistic-containers-max-queue-length": 20,
        "yarn.nodemanager.resource.memory-mb": 2048,
    }


class StockNode(StockYarn):
    """Hadoop's NodeManager alone, under whichever ResourceManager listens on this cluster's ports."""

    def start(self) -> None:
        self._write_confs()
        self._start("nodemanager0", _NODEMANAGER, self.directory / "conf-nm0")

    def write(self) -> None:
        self._write_confs()


@contextmanager
def our_daemon(module: str, conf_dir: Path, java_home: Path) -> Iterator[None]:
    """One of our daemons as a process of its own."""
    log = (conf_dir / f"{module}.log").open("wb")
    environment = {**os.environ, "HADOOP_CONF_DIR": str(conf_dir), "JAVA_HOME": str(java_home)}
    with log, subprocess.Popen([sys.executable, "-m", module], env=environment, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()


def client_of(conf_dir: Path) -> BlockingRpcClient:
    address = Configuration.load(conf_dir, environ={}).get_address("yarn.resourcemanager.address")
    return BlockingRpcClient(*address, user="test")


def answers(conf_dir: Path) -> bool:
    try:
        with closing(client_of(conf_dir)) as client:
            client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest())
    except Exception:
        return False
    return True


def keys_told() -> list[str]:
    """What a daemon of ours takes over from the stock cluster: its addresses, and what a node needs."""
    names = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")
    return [f"yarn.resourcemanager{name}.address" for name in names] + [
        "yarn.scheduler.minimum-allocation-mb",
        "yarn.application.classpath",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
        "yarn.nodemanager.vmem-check-enabled",
        "yarn.nodemanager.pmem-check-enabled",
        "yarn.nodemanager.env-whitelist",
    ]
