"""The compatibility page: current, complete, and found by looking at the code."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nm.logs.aggregation.settings import LogAggregationSettings
from rm.daemon import ResourceManager
from tez_adapter.output_codec import shuffle_codec
from yaqd.cli.compatibility.differences import DIFFERENCES, FOR_OTHERS, PARTLY
from yaqd.cli.compatibility.hadoop_defaults import HADOOP_DEFAULTS
from yaqd.cli.compatibility.keys import key_uses
from yaqd.cli.compatibility.methods import State, hadoop_protocols, own_protocols
from yaqd.cli.compatibility.reference import reference_markdown
from yaqd.cli.compatibility.web import web_addresses
from yaqd.cli.daemons import prepare
from yaqd.config import ConfigError, Configuration
from yaqd.config.catalogue import documentation
from yaqd.proto import protocols as tables
from yaqd.proto.hadoop_methods import HADOOP_METHODS

ROOT = Path(__file__).parents[2]


def _tables() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for table in vars(tables).values():
        for method in vars(table).values() if isinstance(table, type) else ():
            if isinstance(method, tables.Method):
                found.setdefault(method.protocol, set()).add(method.name)
    return found


def test_page_is_current() -> None:
    assert (ROOT / "docs/compatibility.md").read_text() == reference_markdown(), "run scripts/docs.sh"


def test_our_tables_spell_methods_as_hadoop_does() -> None:
    known = {name: set(methods) for name, methods in HADOOP_METHODS.items()}
    for protocol, methods in _tables().items():
        if protocol != tables.NamenodeProtocol.NAME:
            assert methods <= known[protocol], protocol


def test_every_method_has_one_state() -> None:
    protocols = {protocol.name: protocol for protocol in hadoop_protocols()}
    assert set(HADOOP_METHODS) <= set(protocols)
    for name, names in HADOOP_METHODS.items():
        assert [method.name for method in protocols[name].methods] == list(names)
    for protocol in protocols.values():
        for method in protocol.methods:
            has_exception = method.state in (State.REFUSED, State.UNKNOWN)
            assert bool(method.exception) == has_exception, (protocol.name, method.name)


def test_masters_and_nodes_find_all_they_need() -> None:
    """Protocols without which nothing runs are served whole."""
    counts = {protocol.name: protocol.count(State.SERVED) for protocol in hadoop_protocols()}
    assert counts[tables.ApplicationMasterProtocol.NAME] == counts[tables.ResourceTracker.NAME] == 3
    assert counts[tables.ContainerManagementProtocol.NAME] >= 6
    assert all(method.state is State.SERVED for protocol in own_protocols() for method in protocol.methods)


def test_web_addresses_are_those_that_stock_programs_open() -> None:
    found = web_addresses()
    for path in ("info", "apps/{id}", "apps/{id}/appattempts"):
        assert f"GET, HEAD /ws/v1/cluster/{path}" in found["ResourceManager"]
    assert "GET, HEAD, PUT /proxy/{path}" in found["ResourceManager"]
    assert "GET, HEAD /ws/v1/node/containers/{container}/logs/{file}" in found["NodeManager"]


def test_keys_are_found_where_they_are_read() -> None:
    rooms = {use.name: use.rooms for use in key_uses()}
    assert rooms["yarn.resourcemanager.nodes.exclude-path"] == ("rm",)
    assert rooms["yarn.nodemanager.env-whitelist"] == ("nm",)
    assert rooms["mapreduce.map.cpu.vcores"] == ("tez_adapter",)  # put together in an f-string
    assert rooms["yarn.scheduler.capacity.*.capacity"] == rooms["yarn.scheduler.capacity.root.default.state"] == ("rm",)
    assert rooms["yarn.scheduler.maximum-allocation-mb"][0] == "rm"
    for key in ("seek-ms", "mb-per-second", "cache-mb"):  # by a module of the merger's that only others import
        assert rooms[f"yaq.riffle.disk.{key}"] == ("nm", "tez_adapter")


def test_every_documented_key_is_read() -> None:
    """One that nothing reads is a setting that silently does nothing."""
    unread = [use.name for use in key_uses() if not use.rooms and not use.used_by and use.name not in FOR_OTHERS]
    assert unread == []


#: who reads them
READERS: dict[str, Callable[[Configuration], object]] = {
    "hadoop.security.authentication": lambda conf: prepare(conf, "test"),
    "yarn.resourcemanager.scheduler.class": ResourceManager,
    "yarn.scheduler.capacity.*.capacity": ResourceManager,
    "yarn.nodemanager.log-aggregation.compression-type": LogAggregationSettings.read,
    "mapreduce.map.output.compress.codec": shuffle_codec,
}


@pytest.mark.parametrize("key", PARTLY)
def test_values_said_to_be_refused_are(key: str) -> None:
    assert documentation(key) is not None
    needed = {"yaq.rm.state-store.path": "memory", "yarn.log-aggregation-enable": "true"}
    settings = {key.replace("*", "root.default"): PARTLY[key][1], **needed}
    conf = Configuration.load(overrides=settings, environ={})
    with pytest.raises(ConfigError, match=re.escape(PARTLY[key][1])):
        READERS[key](conf)


def test_keys_for_others_are_read_by_nothing_here() -> None:
    assert [use.name for use in key_uses() if use.name in FOR_OTHERS and use.rooms] == []


def test_defaults_that_differ_from_hadoops_are_shown_with_both() -> None:
    page = reference_markdown()
    assert "| `mapreduce.task.io.sort.mb` | as Hadoop's; the default is `256`, Hadoop's is `100` |" in page
    for key, theirs in HADOOP_DEFAULTS.items():
        ours = documentation(key)
        assert ours is not None and ours.value != theirs, key


def test_differences_say_all_they_should() -> None:
    for difference in DIFFERENCES:
        assert all((difference.area, difference.subject, difference.hadoop, difference.here, difference.why))
    subjects = [(d.area, d.subject) for d in DIFFERENCES]
    assert len(set(subjects)) == len(subjects)
