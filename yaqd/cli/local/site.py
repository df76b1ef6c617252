"""The configuration folder of a local cluster: all that a client, ours or stock, needs to use it."""

import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from yaqd.cli.local import machine
from yaqd.config import write_properties

HOST = "127.0.0.1"
#: NodeManagers are called nodemanager-1 and so on
NODE_PREFIX = "nodemanager-"
_COMMENT = "Written by `yaq cluster start`, which writes it anew at every start; give settings with -D key=value."
_RM_PORTS = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_CLIENT_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT = 15000
_PORT_TRIES = 200
_QUEUES = "yarn.scheduler.capacity."
_NODE_FOLDERS = {"yarn.nodemanager.local-dirs": "local", "yarn.nodemanager.log-dirs": "logs"}
_FILE_OF_PREFIX = (
    (_QUEUES, "capacity-scheduler.xml"),
    ("yarn.app.mapreduce.", "mapred-site.xml"),
    ("mapreduce.", "mapred-site.xml"),
    ("mapred.", "mapred-site.xml"),
    ("dfs.", "hdfs-site.xml"),
    ("fs.", "core-site.xml"),
    ("hadoop.", "core-site.xml"),
    ("io.", "core-site.xml"),
    ("ipc.", "core-site.xml"),
    ("net.", "core-site.xml"),
)


@dataclass(frozen=True, slots=True)
class LocalShape:
    """What the user asked for."""

    nodes: int
    #: URI of an existing file system; None: the local one
    hdfs: str | None
    #: `-D` settings
    defines: Mapping[str, str]


def write_conf(directory: Path, shape: LocalShape, ports: list[int]) -> None:
    """Writes `directory/conf`. `ports` are for the ResourceManager's servers, one each."""
    files: dict[str, dict[str, str]] = {
        "core-site.xml": _core(directory, shape),
        "yarn-site.xml": _yarn(directory, shape, ports),
        "mapred-site.xml": _mapred(directory, shape),
        "hdfs-site.xml": {"dfs.replication": "1"} if shape.hdfs else {},
        "capacity-scheduler.xml": _queues(),
    }
    for key, value in shape.defines.items():
        files[_file_of(key)][key] = value
    conf = directory / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name, settings in files.items():
        is_edited = name == "capacity-scheduler.xml" and (conf / name).exists()
        if not is_edited or any(key.startswith(_QUEUES) for key in shape.defines):
            write_properties(conf / name, [(k, v, "") for k, v in settings.items()], _comment(name))


def node_folder(directory: Path, name: str) -> Path:
    """Returns where NodeManager nodemanager-N keeps its containers: nodes/nm-N."""
    return directory / "nodes" / _node(name)


def _node(name: str) -> str:
    return f"nm-{name.removeprefix(NODE_PREFIX)}"


def node_settings(directory: Path, daemon: str, defines: Mapping[str, str]) -> dict[str, str]:
    """Returns what differs from NodeManager to NodeManager: their folders.

    They share the host and take free ports. Folders given with -D get one below for each NodeManager.
    """
    name = _node(daemon)
    own = {key: str(node_folder(directory, daemon) / kind) for key, kind in _NODE_FOLDERS.items()}
    given = {key: defines[key].split(",") for key in own if key in defines}
    return own | {key: ",".join(f"{folder.strip()}/{name}" for folder in folders) for key, folders in given.items()}


def free_ports(wanted: list[int]) -> list[int]:
    """Returns the wanted ports where they are free, others where they are not or are 0. All differ.

    The others lie below those that the kernel hands to connecting clients, so that none is taken before its daemon
    listens on it.
    """
    sockets: list[socket.socket] = []
    try:
        for port in wanted:
            sockets.append((_bound(port) if port else None) or _any_bound())
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()


def rm_port_count() -> int:
    return len(_RM_PORTS)


def _bound(port: int) -> socket.socket | None:
    candidate = socket.socket()
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        candidate.bind((HOST, port))
        candidate.listen(1)  # only a listening socket keeps others with SO_REUSEADDR away
    except OSError:
        candidate.close()
        return None
    return candidate


def _any_bound() -> socket.socket:
    top = _first_client_port()
    chooser = random.SystemRandom()
    tries = (chooser.randrange(_LOWEST_PORT, top) for _ in range(_PORT_TRIES)) if top > _LOWEST_PORT else ()
    found = next((bound for bound in map(_bound, tries) if bound), None) or _bound(0)
    if found is None:
        raise OSError(f"no free port on {HOST}")
    return found


def _first_client_port() -> int:
    """The first port that the kernel hands to a client; 0 where it does not say."""
    try:
        return int(_CLIENT_PORTS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def _file_of(key: str) -> str:
    return next((file for prefix, file in _FILE_OF_PREFIX if key.startswith(prefix)), "yarn-site.xml")


def _comment(name: str) -> str:
    if name == "capacity-scheduler.xml":
        return "The queues. Edit freely: later starts keep this file."
    return _COMMENT


def _core(directory: Path, shape: LocalShape) -> dict[str, str]:
    return {"fs.defaultFS": shape.hdfs or "file:///", "hadoop.tmp.dir": str(directory / "tmp")}


def _yarn(directory: Path, shape: LocalShape, ports: list[int]) -> dict[str, str]:
    memory_mb, vcores = str(machine.node_memory_mb(shape.nodes)), str(machine.node_vcores(shape.nodes))
    addresses = {f"yarn.resourcemanager.{name}": f"{HOST}:{p}" for name, p in zip(_RM_PORTS, ports, strict=True)}
    return addresses | {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.connect.max-wait.ms": "20000",
        "yarn.resourcemanager.connect.retry-interval.ms": "200",
        # On one machine a node that is silent is dead: Hadoop's ten minutes, meant for networks, would hold jobs up.
        # A master need not be: Spark's waits 100 s for the user's program before it registers. Nodes tell of dead ones.
        "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.maximum-allocation-mb": memory_mb,
        "yarn.scheduler.maximum-allocation-vcores": vcores,
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.address": f"{HOST}:0",
        "yarn.nodemanager.webapp.address": f"{HOST}:0",
        # only there with distributed scheduling: a fixed port would let one node start and no second
        "yarn.nodemanager.amrmproxy.address": f"{HOST}:0",
        "yarn.nodemanager.resource.memory-mb": memory_mb,
        "yarn.nodemanager.resource.cpu-vcores": vcores,
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
        # Where all programs look for them, and where they outlive the nodes; on the same disk nobody would gain by it.
        "yarn.log-aggregation-enable": "true" if shape.hdfs else "false",
        "yarn.log.dir": str(directory / "logs"),
        "yaq.log.dir": str(directory / "logs"),
        "yaq.rm.state-store.path": str(directory / "rm" / "state.sqlite"),
    }


def _mapred(directory: Path, shape: LocalShape) -> dict[str, str]:
    # A quarter of a small node each, so that a job manager and its tasks fit; Hadoop's own sizes on a larger one.
    quarter_mb = machine.node_memory_mb(shape.nodes) // 4
    settings = {
        "mapreduce.framework.name": "yarn",
        "mapreduce.shuffle.port": "0",
        "mapreduce.map.memory.mb": str(min(1024, quarter_mb)),
        "mapreduce.reduce.memory.mb": str(min(1024, quarter_mb)),
        "yarn.app.mapreduce.am.resource.mb": str(min(1536, quarter_mb)),
    }
    if not shape.hdfs:
        settings["yarn.app.mapreduce.am.staging-dir"] = str(directory / "staging")
    return settings


def _queues() -> dict[str, str]:
    return {
        f"{_QUEUES}root.queues": "default",
        f"{_QUEUES}root.default.capacity": "100",
        f"{_QUEUES}root.default.maximum-capacity": "100",
        f"{_QUEUES}root.default.user-limit-factor": "100",
        f"{_QUEUES}maximum-am-resource-percent": "0.5",
        f"{_QUEUES}maximum-applications": "10000",
        f"{_QUEUES}resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        f"{_QUEUES}node-locality-delay": "0",
    }
