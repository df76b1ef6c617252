"""Tez programs beside Hadoop's: a configuration folder of their own, and clients that have their classes."""

import shutil
from pathlib import Path

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock import conf
from benchmarks.stock.clients import StockClients
from benchmarks.stock.processes import OPENINGS, class_path

JVM = " ".join(("-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPENINGS))


def tez_clients(cluster: InteropCluster, tez: Path, folder: Path) -> StockClients:
    """Of a cluster that knows nothing of Tez: containers find its jars where they lie on this machine."""
    conf_dir = folder / "tez-conf"
    shutil.copytree(cluster.ours.conf_dir, conf_dir)
    settings = {
        "tez.ignore.lib.uris": "true",
        "tez.cluster.additional.classpath.prefix": class_path(cluster.jars, conf_dir, (tez,)),
        "tez.staging-dir": "/tmp/tez-staging",
        "tez.am.launch.cmd-opts": JVM,
        "tez.am.resource.memory.mb": 512,
        "tez.task.launch.cmd-opts": JVM,
        "tez.task.resource.memory.mb": 512,
        "tez.runtime.io.sort.mb": 20,
        "tez.runtime.unordered.output.buffer.size-mb": 10,
        # so that inputs of a few bytes have several tasks
        "tez.grouping.split-count": 3,
        "tez.grouping.min-size": 1,
    }
    conf.write_site(conf_dir / "tez-site.xml", settings)
    return StockClients(cluster.jars, conf_dir, more=(tez,))
