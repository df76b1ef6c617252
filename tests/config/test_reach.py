"""Who reaches a daemon: this machine alone unless a host is named, and what is said of it."""

from pathlib import Path

import pytest

from nm.settings import NodeSettings
from rm.settings.daemon import RmSettings
from tez_adapter.client.rm_client import RmClient
from yaqd.cli.rm_web import get_json
from yaqd.config import ConfigError, Configuration
from yaqd.config.reach import is_loopback, reach_line

HOST, BIND, ADDRESS = (f"yarn.nodemanager.{name}" for name in ("hostname", "bind-host", "address"))
RM = "yarn.resourcemanager.hostname"
#: for documentation (RFC 5737): nobody has it
ELSEWHERE = "192.0.2.7"


def conf(**settings: str) -> Configuration:
    folders = {"yarn.nodemanager.local-dirs": "/tmp/l", "yarn.nodemanager.log-dirs": "/tmp/o"}
    return Configuration.load(environ={}, overrides=folders | settings)


@pytest.mark.parametrize(
    ("settings", "host", "bind_host"),
    [
        ({}, "127.0.0.1", "127.0.0.1"),
        ({BIND: "0.0.0.0"}, "this-one", "0.0.0.0"),
        ({HOST: "0.0.0.0"}, "this-one", "0.0.0.0"),
        ({ADDRESS: "0.0.0.0:8041"}, "this-one", "0.0.0.0"),
        ({HOST: "127.0.0.3", BIND: "0.0.0.0"}, "127.0.0.3", "0.0.0.0"),
        ({HOST: ELSEWHERE, RM: ELSEWHERE}, ELSEWHERE, ELSEWHERE),
    ],
)
def test_a_node_listens_to_its_own_machine_unless_a_host_is_named(
    settings: dict[str, str], host: str, bind_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nm.settings.socket.gethostname", lambda: "this-one")
    read = NodeSettings.read(conf(**settings))
    assert (read.host, read.bind_host) == (host, bind_host)


def test_a_node_that_a_distant_resource_manager_could_not_reach_does_not_start() -> None:
    with pytest.raises(ConfigError, match=rf"{HOST}.*{ELSEWHERE}, which could not reach this node; set it to"):
        NodeSettings.read(conf(**{RM: ELSEWHERE}))
    assert NodeSettings.read(conf(**{RM: ELSEWHERE, HOST: "127.0.0.1"})).host == "127.0.0.1"  # a tunnel, say
    assert NodeSettings.read(conf(**{RM: "0.0.0.0"})).tracker == ("0.0.0.0", 8031)


def test_a_resource_manager_serves_its_own_machine_and_the_proxy_for_masters_too() -> None:
    settings = RmSettings.read(conf())
    hosts = {settings.listen_host(address) for address in (settings.addresses.client, settings.addresses.tracker)}
    assert hosts | {settings.web.host} == {"127.0.0.1"}
    assert settings.administrators == ""
    assert conf().get_address("yarn.nodemanager.amrmproxy.address") == ("127.0.0.1", 8049)


def test_what_is_open_is_said_by_address() -> None:
    listening = [("a", "127.0.0.1", 1), ("b", "0.0.0.0", 2), ("c", "127.0.0.1", 0)]
    assert reach_line("X", listening, "Who.") == (
        "X listens on 127.0.0.1, ports 1 (a), any free one (c): reachable from this machine alone; "
        "on 0.0.0.0, ports 2 (b): open to the network. Who."
    )
    assert [is_loopback(host) for host in ("localhost", "::1", "127.9.9.9", "0.0.0.0", ELSEWHERE)] == [True] * 3 + [
        False
    ] * 2


def test_a_client_that_was_told_of_no_cluster_asks_nobody(tmp_path: Path) -> None:
    meant = tmp_path / "conf"
    meant.mkdir()
    (meant / "yarn-site.xml").write_text("<configuration/>")
    for unsaid, why in (
        (Configuration.load(environ={}), "HADOOP_CONF_DIR is not set"),
        (Configuration.load(tmp_path), f"no configuration file in {tmp_path}; did you mean {meant}"),
    ):
        for ask in (RmClient, lambda it: get_json(it, "/ws/v1/yaq/nodes")):
            with pytest.raises(ConfigError, match=f"no cluster is named: {why}.*export HADOOP_CONF_DIR"):
                ask(unsaid)
    RmClient(Configuration.load(meant)).close()
    RmClient(Configuration.load(environ={}, overrides={RM: "127.0.0.1"})).close()
