"""A stock HDFS and a stock YARN cluster on loopback, each started, awaited and stopped as one thing."""

import getpass
import json
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import conf
from .artifacts import HadoopJars
from .conf import NodeShape
from .processes import (
    DAEMON_JVM,
    Daemon,
    StockFailure,
    accepts,
    end_processes_under,
    free_ports,
    java_command,
    java_environment,
    tail,
)

_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_RESOURCEMANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODEMANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
HISTORY_SERVER = "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer"
_READY_TIMEOUT_S = 60.0


class _Cluster:
    """Daemons under one folder, stopped in the reverse order of their start."""

    def __init__(self, jars: HadoopJars, directory: Path, *, survives: bool, jvm: tuple[str, ...]) -> None:
        self.jars = jars
        self.directory = directory
        self.conf_dir = directory / "conf"
        self.daemons: dict[str, Daemon] = {}
        self._survives = survives
        self._jvm = jvm

    def _start(self, name: str, main: str, conf_dir: Path | None = None, args: Sequence[str] = ()) -> Daemon:
        command = java_command(self.jars, conf_dir or self.conf_dir, self._jvm, main, list(args))
        environment = java_environment(self.jars, self.conf_dir)
        log = self.directory / "logs" / f"{name}.log"
        daemon = Daemon(name, command, environment, log, survives=self._survives)
        self.daemons[name] = daemon
        return daemon

    def stop(self) -> None:
        """Ends every daemon and whatever still runs in this folder."""
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in reversed(self.daemons.values()):
            daemon.stop()
        self.daemons.clear()
        end_processes_under(self.directory)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@dataclass(frozen=True, slots=True)
class HdfsPorts:
    """Fixed at creation, so that a restarted daemon is found where it was."""

    namenode: int
    namenode_http: int
    datanode: int
    datanode_http: int
    datanode_ipc: int


class StockHdfs(_Cluster):
    """One NameNode and a DataNode or more; `uri` and `conf_dir` are all that a client needs."""

    def __init__(
        self,
        jars: HadoopJars,
        directory: Path,
        *,
        datanodes: int = 1,
        site: Mapping[str, object] = {},
        survives: bool = False,
        jvm: tuple[str, ...] = DAEMON_JVM,
    ) -> None:
        super().__init__(jars, directory.absolute(), survives=survives, jvm=jvm)
        ports = free_ports(2 + 3 * datanodes)
        self.ports = HdfsPorts(*ports[:5])
        #: data, HTTP and IPC port of the second DataNode and those that follow
        self._others = [(ports[at], ports[at + 1], ports[at + 2]) for at in range(5, len(ports), 3)]
        self.uri = f"hdfs://127.0.0.1:{self.ports.namenode}"
        self._site = dict(site)

    @property
    def data_ports(self) -> list[int]:
        """Of its DataNodes."""
        return [self.ports.datanode, *(data for data, _, _ in self._others)]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def start(self) -> None:
        """Formats the NameNode, starts the daemons and returns once a block can be written."""
        ports = self.ports
        core = conf.core_site(self.uri, self.directory)
        datanode = (ports.datanode, ports.datanode_http, ports.datanode_ipc)
        hdfs = conf.hdfs_site(self.directory, ports.namenode_http, datanode) | self._site
        conf.write_conf(self.conf_dir, {"core": core, "hdfs": hdfs})
        if not (self.directory / "name").exists():
            self._format()
        self.start_namenode()
        for number in range(1 + len(self._others)):
            self.start_datanode(number)
        self.daemons["namenode"].await_ready(self._takes_blocks, _READY_TIMEOUT_S)

    def start_namenode(self) -> None:
        """Starts the NameNode alone (again)."""
        daemon = self._start("namenode", _NAMENODE)
        daemon.await_ready(lambda: accepts("127.0.0.1", self.ports.namenode), _READY_TIMEOUT_S)

    def start_datanode(self, number: int = 0) -> None:
        """Starts one DataNode alone (again)."""
        words: list[str] = []
        ipc = self.ports.datanode_ipc
        if number:
            data, http, ipc = self._others[number - 1]
            settings = {
                "dfs.datanode.data.dir": f"file://{self.directory}/data-{number}",
                "dfs.datanode.address": f"127.0.0.1:{data}",
                "dfs.datanode.http.address": f"127.0.0.1:{http}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
            }
            words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        daemon = self._start(self.datanode_name(number), _DATANODE, args=words)
        daemon.await_ready(lambda: accepts("127.0.0.1", ipc), _READY_TIMEOUT_S)

    @staticmethod
    def datanode_name(number: int) -> str:
        """In `daemons`."""
        return f"datanode-{number}" if number else "datanode"

    def _format(self) -> None:
        args = ["-format", "-force", "-nonInteractive"]
        command = java_command(self.jars, self.conf_dir, self._jvm, _NAMENODE, args)
        log = self.directory / "logs" / "format.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            run = subprocess.run(
                command,
                env=java_environment(self.jars, self.conf_dir),
                stdout=stream,
                stderr=stream,
                timeout=_READY_TIMEOUT_S,
                check=False,
            )
        if run.returncode != 0:
            raise StockFailure(f"formatting the NameNode failed\n{tail(log)}")

    def _takes_blocks(self) -> bool:
        state = self._state()
        return bool(state) and state["FSState"] == "Operational" and state["NumLiveDataNodes"] > len(self._others)

    def live_datanodes(self) -> int:
        """As many as the NameNode takes for alive."""
        return int(self._state()["NumLiveDataNodes"])

    def _state(self) -> dict[str, Any]:
        query = "qry=Hadoop:service=NameNode,name=FSNamesystemState"
        beans: list[dict[str, Any]] = _get_json(f"http://127.0.0.1:{self.ports.namenode_http}/jmx?{query}")["beans"]
        return beans[0] if beans else {}


class StockYarn(_Cluster):
    """A ResourceManager, NodeManagers and a JobHistoryServer; `conf_dir` is all that a client needs."""

    def __init__(
        self,
        jars: HadoopJars,
        directory: Path,
        *,
        hdfs: StockHdfs | None = None,
        nodes: int = 2,
        shape: NodeShape = NodeShape(),
        history: bool = True,
        site: Mapping[str, object] = {},
        queues: Mapping[str, object] = {},
        survives: bool = False,
        jvm: tuple[str, ...] = DAEMON_JVM,
    ) -> None:
        """`site` goes into yarn-site.xml; `queues` into capacity-scheduler.xml, over what is there."""
        super().__init__(jars, directory.absolute(), survives=survives, jvm=jvm)
        self.hdfs = hdfs
        self.nodes = nodes
        self._shape = shape
        self._with_history = history
        self._site = dict(site)
        self._queues = dict(queues)
        ports = free_ports(8 + 4 * nodes)
        self._rm = (ports[0], ports[1], ports[2], ports[3], ports[4])
        self._history = (ports[5], ports[6], ports[7])
        self._nm = [(ports[i], ports[i + 1], ports[i + 2], ports[i + 3]) for i in range(8, len(ports), 4)]

    @property
    def rm_address(self) -> tuple[str, int]:
        """Where clients submit."""
        return ("127.0.0.1", self._rm[0])

    @property
    def scheduler_address(self) -> tuple[str, int]:
        """Where application masters register."""
        return ("127.0.0.1", self._rm[1])

    @property
    def tracker_address(self) -> tuple[str, int]:
        """Where NodeManagers register."""
        return ("127.0.0.1", self._rm[2])

    def local_dir(self, host: str) -> Path:
        """Where the node of that host keeps its applications' files."""
        index = conf.node_hosts(self.nodes).index(host)
        return self.directory / f"nm{index}-local"

    @property
    def web(self) -> str:
        """Base URL of the ResourceManager's REST interface."""
        return f"http://127.0.0.1:{self._rm[4]}/ws/v1/cluster"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def start(self) -> None:
        """Starts all daemons at once and returns when every node is registered."""
        self._write_confs()
        manager = self._start("resourcemanager", _RESOURCEMANAGER)
        for index in range(self.nodes):
            self._start(f"nodemanager{index}", _NODEMANAGER, self.directory / f"conf-nm{index}")
        if self._with_history:
            history = self._start("historyserver", HISTORY_SERVER)
            history.await_ready(lambda: accepts("127.0.0.1", self._history[0]), _READY_TIMEOUT_S)
        manager.await_ready(self._has_all_nodes, _READY_TIMEOUT_S)

    def _write_confs(self) -> None:
        default_fs = self.hdfs.uri if self.hdfs else "file:///"
        yarn = conf.yarn_site(self.jars, self.conf_dir, self.directory, self._rm)
        sites: dict[str, Mapping[str, object]] = {
            "core": conf.core_site(default_fs, self.directory),
            "hdfs": {"dfs.replication": 1},
            "mapred": conf.mapred_site(self.jars, self.conf_dir, self._history)
            | {"yarn.app.mapreduce.am.staging-dir": self._staging()},
            "capacity": conf.capacity_site() | self._queues,
        }
        conf.write_conf(self.conf_dir, sites | {"yarn": yarn | self._site})
        for index, (rpc, localizer, web, shuffle) in enumerate(self._nm):
            node = conf.nodemanager_site(index, self._shape, self.directory, (rpc, localizer, web))
            mapred = {**sites["mapred"], "mapreduce.shuffle.port": shuffle}
            own = sites | {"yarn": yarn | node | self._site, "mapred": mapred}
            conf.write_conf(self.directory / f"conf-nm{index}", own)

    def _staging(self) -> str:
        return "/tmp/hadoop-yarn/staging" if self.hdfs else str(self.directory / "staging")

    def _has_all_nodes(self) -> bool:
        for daemon in self.daemons.values():
            daemon.check_alive()
        return int(_get_json(f"{self.web}/metrics")["clusterMetrics"]["activeNodes"]) == self.nodes


def current_user() -> str:
    """The user whose name stock daemons and clients carry."""
    return getpass.getuser()


def _get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5.0) as answer:
        return json.load(answer)
