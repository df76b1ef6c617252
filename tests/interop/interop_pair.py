"""Two clusters of one node, ours and a stock one, in the same state: one application over, one running."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.ours import OurCluster
from benchmarks.stock import conf
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun, StockClients
from benchmarks.stock.daemons import StockYarn, current_user
from benchmarks.stock.processes import LOGGING
from tests.interop.interop_checks import application_of
from tests.interop.interop_compared import Side
from tests.interop.interop_master import await_value
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol as Client

_PATIENCE_S = 120.0
_SIZES = ("-container_memory", "128", "-master_memory", "256", "-num_containers", "1")
#: says something, then waits for the file that lets it end; its id goes to a file
_SCRIPT = """echo said
echo $CONTAINER_ID > {folder}/started
while [ ! -e {folder}/release ]; do sleep 0.1; done
"""


class PairedCluster:
    """One of the two: its clients, its exclude file, and its applications once `fill` has run."""

    def __init__(self, clients: StockClients, folder: Path, pool: ThreadPoolExecutor) -> None:
        """`pool` waits for clients."""
        self._pool = pool
        self._folder = folder
        self._clients = clients
        self.conf = Configuration.load(clients.conf_dir)
        self.exclude = folder / "exclude"
        self._release = folder / "release"
        self._running: Future[ClientRun] | None = None

    def fill(self) -> Side:
        """One application to its end, its logs uploaded; then one that runs until `release`."""
        script = self._folder / "wait.sh"
        script.write_text(_SCRIPT.format(folder=self._folder))
        words = ("-appname", "paired", "-shell_command", "bash", "-shell_args", str(script), *_SIZES)
        self._release.touch()
        finished = application_of(self._clients.distributed_shell(*words).checked())
        over = self._started()
        self._release.unlink()
        self._running = self._pool.submit(self._clients.distributed_shell, *words)
        running = self._started()
        attempt = ContainerId.parse(running).attempt_id
        with self._manager() as manager:
            await_value("the logs", lambda: _has_logs(manager, finished) or None, _PATIENCE_S)
            node = await_value("the containers", lambda: _node_of_two(manager, attempt), _PATIENCE_S)
        names = {"FINISHED": finished, "OVER": over, "RUNNING": str(attempt.application_id), "CONTAINER": running}
        return Side(
            self._clients, names | {"ATTEMPT": str(attempt), "MASTER": str(ContainerId(attempt, 1)), "NODE": node}
        )

    def _started(self) -> str:
        """The next container that the script says it runs in."""
        file = self._folder / "started"
        found = await_value("a container", lambda: (file.exists() and file.read_text().strip()) or None, _PATIENCE_S)
        file.unlink()
        return found

    def _manager(self) -> BlockingRpcClient:
        return BlockingRpcClient(*self.conf.get_address("yarn.resourcemanager.address"), user=current_user())

    def release(self) -> None:
        """Lets the running application end, and waits for its client."""
        self._release.touch()
        if self._running is not None:
            self._running.result(_PATIENCE_S)


def _has_logs(manager: BlockingRpcClient, application: str) -> bool:
    request = service.GetApplicationReportRequest(
        application_id=convert.application_id_pb(ApplicationId.parse(application))
    )
    report = manager.call(Client.getApplicationReport, request).application_report
    return report.log_aggregation_status == common.LOG_SUCCEEDED


def _node_of_two(manager: BlockingRpcClient, attempt: ApplicationAttemptId) -> str | None:
    """Where both containers run, once they do."""
    request = service.GetContainersRequest(application_attempt_id=convert.attempt_id_pb(attempt))
    containers = manager.call(Client.getContainers, request).containers
    nodes = {str(convert.node_id(c.node_id)) for c in containers if c.container_state == common.C_RUNNING}
    return nodes.pop() if len(containers) == 2 and len(nodes) == 1 else None


@contextmanager
def paired(jars: HadoopJars, folder: Path) -> Iterator[tuple[PairedCluster, PairedCluster]]:
    """Ours and the stock one, each on the local file system, with logs uploaded when an application is over."""
    ours, stock = folder / "ours", folder / "stock"
    for side in (ours, stock):
        side.mkdir()
        (side / "exclude").touch()
    calculator = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
    site = {
        **conf.capacity_site(),
        "yarn.scheduler.capacity.resource-calculator": calculator,
        "yarn.application.classpath": f"{ours / 'cluster' / 'conf'},{LOGGING},{jars.directory}/*",
        **_settings(ours),
    }
    our_cluster = OurCluster(ours / "cluster", nodes=1, site=site, environment={"JAVA_HOME": str(jars.java_home)})
    stock_cluster = StockYarn(jars, stock / "cluster", nodes=1, history=False, site=_settings(stock))
    with ExitStack() as stack:
        stack.enter_context(our_cluster)
        stack.enter_context(stock_cluster)
        pool = stack.enter_context(ThreadPoolExecutor(2))
        first = PairedCluster(StockClients(jars, our_cluster.conf_dir), ours, pool)
        second = PairedCluster(StockClients(jars, stock_cluster.conf_dir), stock, pool)
        try:
            yield first, second
        finally:
            first.release()
            second.release()


def _settings(folder: Path) -> dict[str, object]:
    return {
        "yarn.resourcemanager.nodes.exclude-path": folder / "exclude",
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.remote-app-log-dir": folder / "app-logs",
        "yarn.nodemanager.log-aggregation.compression-type": "gz",
    }
