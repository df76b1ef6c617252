"""The lists of Hadoop's methods and of its defaults against the stock jars."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree
import zipfile

import pytest

from benchmarks.stock.artifacts import HadoopJars
from tez_adapter.client.harmless_keys import HARMLESS
from tez_adapter.client.job_keys import REFUSED
from yaqd.cli.compatibility.hadoop_defaults import HADOOP_DEFAULTS
from yaqd.config.catalogue import documentation, documented
from yaqd.config.deprecated import CURRENT_NAMES
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


def _texts(data: bytes) -> set[str]:
    """The string constants of a Java class file."""
    sizes = dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4) | {5: 8, 6: 8, 7: 2, 8: 2, 15: 3, 16: 2, 19: 2, 20: 2}
    count, at = int.from_bytes(data[8:10], "big"), 10
    texts: dict[int, str] = {}
    used: list[int] = []
    number = 1
    while number < count:
        tag, head = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        if tag == 1:
            texts[number] = data[at + 3 : at + 3 + head].decode()
        elif tag == 8:
            used.append(head)
        at += 3 + head if tag == 1 else 1 + sizes[tag]
        number += 2 if tag in (5, 6) else 1
    return {texts[index] for index in used}


def test_old_names_are_all_that_stock_programs_take(hadoop: HadoopJars) -> None:
    """What these classes name is an old key, a new one, a file, or a key whose old name is no text of its own."""
    known = CURRENT_NAMES.keys() | set(CURRENT_NAMES.values()) | {"mapreduce.task.combine.progress.records"}
    for artifact, name in (
        ("hadoop-mapreduce-client-core", "org/apache/hadoop/mapreduce/util/ConfigUtil"),
        ("hadoop-hdfs-client", "org/apache/hadoop/hdfs/HdfsConfiguration"),
    ):
        with zipfile.ZipFile(hadoop.jar(artifact)) as jar:
            texts = _texts(jar.read(f"{name}.class"))
        assert len(texts & CURRENT_NAMES.keys()) > 40
        assert {text for text in texts - known if not text.endswith(".xml")} == set()


def test_every_key_of_mapreduce_is_read_refused_or_harmless(hadoop: HadoopJars) -> None:
    with zipfile.ZipFile(hadoop.jar("hadoop-mapreduce-client-core")) as jar:
        root = ElementTree.fromstring(jar.read("mapred-default.xml"))
    names = {found.findtext("name") or "" for found in root.iter("property")}
    harmless = {name for group in HARMLESS.values() for name in group}
    assert len(names) > 200
    assert {name for name in names - harmless - REFUSED.keys() if documentation(name) is None} == set()
    assert harmless <= names and not harmless & REFUSED.keys()
