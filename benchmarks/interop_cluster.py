"""Our ResourceManager and NodeManagers, a real HDFS and the stock JobHistoryServer: where unmodified programs run."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from .ours import OurCluster
from .stock import conf
from .stock.artifacts import HadoopJars
from .stock.clients import StockClients
from .stock.daemons import HISTORY_SERVER, StockHdfs, current_user
from .stock.processes import DAEMON_JVM, LOGGING, Daemon, accepts, free_ports, java_command, java_environment

_READY_TIMEOUT_S = 60.0


class InteropCluster:
    """Starts and stops the lot; `clients` runs stock programs on it, `ours` runs `yaq` commands."""

    def __init__(
        self, jars: HadoopJars, directory: Path, hdfs: StockHdfs, *, nodes: int = 2, site: Mapping[str, object] = {}
    ) -> None:
        self.jars = jars
        self.hdfs = hdfs
        self._directory = directory.absolute()
        self._history = free_ports(3)
        self._stack = ExitStack()
        folder = self._directory / "cluster"
        mapred = conf.mapred_site(jars, folder / "conf", (self._history[0], self._history[1], self._history[2]))
        logs = {"yarn.log.server.url": f"http://127.0.0.1:{self._history[1]}/jobhistory/logs"}
        classes = {"yarn.application.classpath": f"{folder / 'conf'},{LOGGING},{jars.directory}/*"}
        # The NodeManagers hand their JAVA_HOME on to the containers.
        environment = {"JAVA_HOME": str(jars.java_home)}
        # Queues as the stock cluster has them: memory alone counts.
        calculator = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
        queues = {**conf.capacity_site(), "yarn.scheduler.capacity.resource-calculator": calculator}
        settings = {**mapred, **logs, **classes, **queues, **site}
        self.ours = OurCluster(folder, hdfs=hdfs.uri, nodes=nodes, site=settings, environment=environment)
        self.clients = StockClients(jars, self.ours.conf_dir)

    @property
    def history_web(self) -> str:
        """Base URL of the JobHistoryServer's pages."""
        return f"http://127.0.0.1:{self._history[1]}"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.ours)
            self._start_history(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start_history(self, stack: ExitStack) -> None:
        command = java_command(self.jars, self.ours.conf_dir, DAEMON_JVM, HISTORY_SERVER, [])
        environment = java_environment(self.jars, self.ours.conf_dir)
        history = Daemon("historyserver", command, environment, self._directory / "logs" / "historyserver.log")
        stack.callback(history.stop)
        history.await_ready(lambda: accepts("127.0.0.1", self._history[0]), _READY_TIMEOUT_S)


def make_hdfs_folders(clients: StockClients) -> None:
    """The folders that every Hadoop cluster has: `/tmp` for all, and the user's own."""
    clients.fs("-mkdir", "-p", "/tmp", f"/user/{current_user()}").checked()
    clients.fs("-chmod", "1777", "/tmp").checked()
