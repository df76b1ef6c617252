"""The two sides of the interop benchmark: stock daemons and ours, over one HDFS and under the same stock clients."""

import json
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from yaqd.config import Configuration

from .interop_cluster import InteropCluster
from .memory import pss_mb
from .ours import AS_STOCK
from .stock.artifacts import HadoopJars
from .stock.clients import StockClients
from .stock.daemons import StockHdfs, StockYarn
from .stock.processes import DAEMON_JVM

_CLIENT_TIMEOUT_S = 900.0
#: Each side's histories lie below its staging folder: one JobHistoryServer must not file away what the other looks for.
_OUR_STAGING = {"yarn.app.mapreduce.am.staging-dir": "/tmp/hadoop-yarn-ours/staging"}


class Side(Protocol):
    """A running cluster of two nodes."""

    clients: StockClients
    #: everything of the cluster lies below it
    directory: Path

    def rm_memory_mb(self) -> float:
        """PSS of the ResourceManager now."""

    def nm_memory_mb(self) -> list[float]:
        """PSS of each NodeManager now, with the processes it keeps prepared; containers are not counted."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class StockSide:
    """Stock ResourceManager, NodeManagers and JobHistoryServer."""

    def __init__(
        self, jars: HadoopJars, directory: Path, hdfs: StockHdfs, *, jvm: tuple[str, ...] = DAEMON_JVM
    ) -> None:
        """`jvm`: options of the daemons'."""
        self._yarn = StockYarn(jars, directory, hdfs=hdfs, jvm=jvm)
        self.directory = self._yarn.directory
        self.clients = StockClients(jars, self._yarn.conf_dir, timeout_s=_CLIENT_TIMEOUT_S)

    def rm_memory_mb(self) -> float:
        return pss_mb(self._yarn.daemons["resourcemanager"].pid) or 0.0

    def nm_memory_mb(self) -> list[float]:
        nodes = [daemon for name, daemon in self._yarn.daemons.items() if name.startswith("nodemanager")]
        return [pss_mb(node.pid) or 0.0 for node in nodes]

    def __enter__(self) -> Self:
        self._yarn.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._yarn.__exit__(kind, error, trace)


class OurSide:
    """Our ResourceManager and NodeManagers with the stock JobHistoryServer."""

    def __init__(self, jars: HadoopJars, directory: Path, hdfs: StockHdfs) -> None:
        self._cluster = InteropCluster(jars, directory, hdfs, site={**AS_STOCK, **_OUR_STAGING})
        self.directory = directory
        self.clients = StockClients(jars, self._cluster.ours.conf_dir, timeout_s=_CLIENT_TIMEOUT_S)

    def rm_memory_mb(self) -> float:
        (found,) = self._daemons("resourcemanager")
        return found

    def nm_memory_mb(self) -> list[float]:
        return self._daemons("nodemanager")

    def _daemons(self, prefix: str) -> list[float]:
        said = self._cluster.ours.yaq("cluster", "status", "--dir", str(self._cluster.ours.directory), "--json").stdout
        daemons = json.loads(said)["daemons"]
        return [daemon["pss_bytes"] / (1 << 20) for daemon in daemons if daemon["name"].startswith(prefix)]

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.__exit__(kind, error, trace)


def addresses(side: Side) -> tuple[tuple[str, int], tuple[str, int]]:
    """Where clients submit and where masters register, as the side's configuration says."""
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(side.clients.conf_dir)})
    return conf.get_address("yarn.resourcemanager.address"), conf.get_address("yarn.resourcemanager.scheduler.address")
