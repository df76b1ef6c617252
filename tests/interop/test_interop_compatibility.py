"""The lists of Hadoop's methods and of its defaults against the stock jars."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree
import zipfile

import pytest

from benchmarks.stock.artifacts import HadoopJars
from yaqd.cli.compatibility.hadoop_defaults import HADOOP_DEFAULTS
from yaqd.config.catalogue import documented
from yaqd.proto.hadoop_methods import HADOOP_METHODS

pytestmark = [pytest.mark.interop]
CLIENT = "compatibility"

_YARN = "org.apache.hadoop.yarn.proto."
#: the generated class that holds a protocol's service
_CLASSES = {"org.apache.hadoop.ha.HAServiceProtocol": "org.apache.hadoop.ha.proto.HAServiceProtocolProtos"}


def test_methods_are_those_of_the_stock_jars(hadoop: HadoopJars) -> None:
    services = []
    for protocol in HADOOP_METHODS:
        name = protocol.rpartition(".")[2].removesuffix("PB")
        services.append(f"{_CLASSES.get(protocol, _YARN + name)}${name}Service$BlockingInterface")
    command = [str(hadoop.java_home / "bin" / "javap"), "-cp", f"{hadoop.directory}/*", *services]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    shown = [part for part in done.stdout.split("Compiled from") if part.strip()]
    found = [tuple(re.findall(r" (\w+)\(", part)) for part in shown]
    assert dict(zip(HADOOP_METHODS, found, strict=True)) == HADOOP_METHODS


#: where Hadoop's defaults lie
_DEFAULTS = {
    "hadoop-common": "core-default.xml",
    "hadoop-yarn-common": "yarn-default.xml",
    "hadoop-mapreduce-client-core": "mapred-default.xml",
    "hadoop-hdfs-client": "hdfs-default.xml",
    "hadoop-hdfs": "hdfs-default.xml",
}


def _stock_defaults(hadoop: HadoopJars) -> dict[str, str]:
    found: dict[str, str] = {}
    for artifact, name in _DEFAULTS.items():
        jar = hadoop.jar(artifact)
        if not jar.exists():
            continue
        with zipfile.ZipFile(jar) as packed:
            if name not in packed.namelist():
                continue
            for entry in ElementTree.fromstring(packed.read(name)).iter("property"):
                found[(entry.findtext("name") or "").strip()] = (entry.findtext("value") or "").strip()
    return found


def test_defaults_that_differ_are_those_that_the_page_shows(hadoop: HadoopJars) -> None:
    stock = _stock_defaults(hadoop)
    assert len(stock) > 1000
    ours = {found.name: (found.value or "").strip() for found in documented()}
    same = {key for key in ours if ours[key] in (stock.get(key), stock.get(key, "").removesuffix("f"))}  # 1.0f is 1.0
    differing = {key: stock[key] for key in ours if key in stock and key not in same}
    assert differing == HADOOP_DEFAULTS
