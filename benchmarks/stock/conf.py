"""Hadoop configuration folders for one small machine: what a stock cluster needs to run on loopback beside us."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from .artifacts import HadoopJars


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What one NodeManager offers."""

    memory_mb: int = 4096
    vcores: int = 4


def write_site(path: Path, properties: Mapping[str, object]) -> None:
    """Writes one Hadoop XML file."""
    rows = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(str(value))}</value></property>\n"
        for key, value in properties.items()
    )
    path.write_text(f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n')


def write_conf(directory: Path, sites: Mapping[str, Mapping[str, object]]) -> Path:
    """Makes a configuration folder: `sites` maps `core` to the content of core-site.xml, and so on."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, properties in sites.items():
        file = "capacity-scheduler.xml" if name == "capacity" else f"{name}-site.xml"
        write_site(directory / file, properties)
    for page in ("hdfs", "datanode", "static"):  # the HDFS jars carry no web pages, and its servers insist on them
        (directory / "webapps" / page).mkdir(parents=True, exist_ok=True)
    return directory


def core_site(default_fs: str, work: Path) -> dict[str, object]:
    """Client side of every daemon: the file system and where to put temporary files."""
    return {
        "fs.defaultFS": default_fs,
        "hadoop.tmp.dir": work / "tmp",
        "hadoop.http.staticuser.user": "hadoop",
        "ipc.client.connect.max.retries": 3,
    }


def hdfs_site(work: Path, http: int, datanode: tuple[int, int, int]) -> dict[str, object]:
    """One NameNode and one DataNode on loopback; `datanode` is its data, HTTP and IPC port."""
    return {
        "dfs.replication": 1,
        "dfs.namenode.name.dir": f"file://{work}/name",
        "dfs.datanode.data.dir": f"file://{work}/data",
        "dfs.namenode.http-address": f"127.0.0.1:{http}",
        "dfs.datanode.address": f"127.0.0.1:{datanode[0]}",
        "dfs.datanode.http.address": f"127.0.0.1:{datanode[1]}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{datanode[2]}",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.safemode.extension": 0,
        "dfs.namenode.secondary.http-address": "127.0.0.1:0",
        "dfs.datanode.du.reserved": 0,
        "dfs.namenode.fs-limits.min-block-size": 1024,
    }


def yarn_site(
    jars: HadoopJars, conf_dir: Path, work: Path, rm_ports: tuple[int, int, int, int, int]
) -> dict[str, object]:
    """The ResourceManager's and its clients' side; ports: client, scheduler, tracker, admin, web."""
    names = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")
    addresses = {
        f"yarn.resourcemanager{name}.address": f"127.0.0.1:{port}" for name, port in zip(names, rm_ports, strict=True)
    }
    return addresses | {
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.connect.max-wait.ms": 20000,
        "yarn.resourcemanager.connect.retry-interval.ms": 500,
        "yarn.scheduler.minimum-allocation-mb": 128,
        "yarn.scheduler.maximum-allocation-mb": 8192,
        "yarn.application.classpath": f"{conf_dir},{jars.directory}/*",
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.aux-services.mapreduce_shuffle.class": "org.apache.hadoop.mapred.ShuffleHandler",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99.5,
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ",
        "yarn.nodemanager.delete.debug-delay-sec": 0,
        "yarn.nodemanager.local-dirs": work / "nm-local",
        "yarn.nodemanager.log-dirs": work / "nm-logs",
    }


def node_hosts(nodes: int) -> list[str]:
    """Loopback addresses of nodes; not 127.0.0.1, which has a name: nodes must not mix names and addresses."""
    return [f"127.0.0.{index + 2}" for index in range(nodes)]


def nodemanager_site(index: int, shape: NodeShape, work: Path, ports: tuple[int, int, int]) -> dict[str, object]:
    """What differs from node to node; each has a loopback address of its own. Ports: RPC, localizer, web.

    The shuffle's port belongs into mapred-site.xml: in yarn-site.xml, mapred-default.xml would win over it.
    """
    host = node_hosts(index + 1)[index]
    return {
        "yarn.nodemanager.hostname": host,
        "yarn.nodemanager.bind-host": host,
        "yarn.nodemanager.address": f"{host}:{ports[0]}",
        "yarn.nodemanager.localizer.address": f"{host}:{ports[1]}",
        "yarn.nodemanager.webapp.address": f"{host}:{ports[2]}",
        "yarn.nodemanager.local-dirs": work / f"nm{index}-local",
        "yarn.nodemanager.log-dirs": work / f"nm{index}-logs",
        "yarn.nodemanager.resource.memory-mb": shape.memory_mb,
        "yarn.nodemanager.resource.cpu-vcores": shape.vcores,
    }


def mapred_site(jars: HadoopJars, conf_dir: Path, history: tuple[int, int, int]) -> dict[str, object]:
    """Clients, masters and tasks of MapReduce; heaps as a small cluster sets them. Ports: history RPC, web, admin."""
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": f"{conf_dir},{jars.directory}/*",
        "mapreduce.jobhistory.address": f"127.0.0.1:{history[0]}",
        "mapreduce.jobhistory.webapp.address": f"127.0.0.1:{history[1]}",
        "mapreduce.jobhistory.admin.address": f"127.0.0.1:{history[2]}",
        "yarn.app.mapreduce.am.resource.mb": 1024,
        "yarn.app.mapreduce.am.command-opts": "-Xmx768m",
        "mapreduce.map.memory.mb": 1024,
        "mapreduce.reduce.memory.mb": 1024,
        "mapreduce.map.java.opts": "-Xmx820m",
        "mapreduce.reduce.java.opts": "-Xmx820m",
    }


def capacity_site() -> dict[str, object]:
    """One queue that may use the whole cluster, application masters included."""
    prefix = "yarn.scheduler.capacity"
    return {
        f"{prefix}.root.queues": "default",
        f"{prefix}.root.default.capacity": 100,
        f"{prefix}.root.default.maximum-capacity": 100,
        f"{prefix}.root.default.user-limit-factor": 100,
        f"{prefix}.maximum-am-resource-percent": 1.0,
        f"{prefix}.maximum-applications": 10000,
        f"{prefix}.node-locality-delay": 0,
    }
