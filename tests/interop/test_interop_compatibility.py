"""The list of Hadoop's methods against the stock jars."""

import re
import subprocess

import pytest

from benchmarks.stock.artifacts import HadoopJars
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
