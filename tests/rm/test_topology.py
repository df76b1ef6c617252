"""Which rack a host stands in."""

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from rm.nodes.topology import Topology
from tests.rm.rm_harness import ask, cluster, configuration
from yaqd.config import ConfigError
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

SCRIPT = "net.topology.script.file.name"
TABLE = "net.topology.table.file.name"
MAPPING = "net.topology.node.switch.mapping.impl"


def program(folder: Path, body: str) -> str:
    script = folder / "where.sh"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


async def test_table_then_program_then_default_rack(tmp_path: Path) -> None:
    table = tmp_path / "racks"
    table.write_text("# host rack\nh1 /r1\nh2\tr2\n127.0.0.7 /r7\nbroken line here\n")
    script = program(tmp_path, "case $1 in 127.0.0.3) echo /r3;; 127.0.0.4) exit 1;; *) echo /a /b;; esac")
    topology = Topology.read(configuration({TABLE: str(table), SCRIPT: script}))
    hosts = ("h1", "h2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.7")
    for host in hosts:
        await topology.resolve(host)
    racks = [topology.rack_of(host) for host in hosts]
    assert racks == ["/r1", "/r2", "/r3", "/default-rack", "/default-rack", "/r7"]


async def test_names_are_known_by_their_addresses(tmp_path: Path) -> None:
    table = tmp_path / "racks"
    table.write_text("127.0.0.1 /here\n")
    for settings in ({TABLE: str(table)}, {SCRIPT: program(tmp_path, 'test "$1" = 127.0.0.1 && echo /here')}):
        topology = Topology.read(configuration(settings))
        await topology.resolve("localhost")
        assert topology.rack_of("localhost") == "/here"


async def test_named_mapping_leaves_the_other_one_out(tmp_path: Path) -> None:
    table = tmp_path / "racks"
    table.write_text("127.0.0.1 /table\n")
    both = {TABLE: str(table), SCRIPT: program(tmp_path, "echo /script")}
    for name, racks in (("TableMapping", ["/table", "/default-rack"]), ("ScriptBasedMapping", ["/script", "/script"])):
        topology = Topology.read(configuration({**both, MAPPING: f"org.apache.hadoop.net.{name}"}))
        for host in ("127.0.0.1", "127.0.0.2"):
            await topology.resolve(host)
        assert [topology.rack_of(host) for host in ("127.0.0.1", "127.0.0.2")] == racks
    with pytest.raises(ConfigError, match=r"switch\.mapping\.impl.*not supported"):
        Topology.read(configuration({MAPPING: "com.example.Mine"}))


@pytest.mark.parametrize(
    "body",
    [
        "exit 3",
        "echo",
        "head -c 100000000 /dev/zero",
        "echo /a; echo /b",
        "printf '\\377\\376 x'",
        f"echo /{'r' * 300}",
    ],
)
async def test_program_that_fails_leaves_the_default_rack_and_one_line(
    tmp_path: Path, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    topology = Topology({}, program(tmp_path, body))
    with caplog.at_level(logging.WARNING, "rm.nodes.topology"):
        await topology.resolve("127.0.0.1")
        await topology.resolve("127.0.0.1")
    assert topology.rack_of("127.0.0.1") == "/default-rack"
    (record,) = caplog.records
    assert "no rack for 127.0.0.1" in record.getMessage()


@pytest.mark.slow
async def test_program_whose_child_left_with_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = f"setsid sh -c 'echo $$ > {pid_file}; exec sleep 600' & until [ -s {pid_file} ]; do :; done; echo /r1"
    topology = Topology({}, program(tmp_path, body), timeout_s=1)
    try:
        await topology.resolve("127.0.0.1")
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
    assert topology.rack_of("127.0.0.1") == "/default-rack"


async def test_program_that_hangs_is_killed_with_all_it_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pid_file = tmp_path / "pid"
    topology = Topology({}, program(tmp_path, f"sleep 600 & echo $! > {pid_file}; wait"), timeout_s=0.3)
    await topology.resolve("127.0.0.1")
    assert topology.rack_of("127.0.0.1") == "/default-rack"
    assert "no answer within 0.3 s" in caplog.text
    async with asyncio.timeout(5):
        while _is_alive(int(pid_file.read_text())):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_all_who_ask_about_a_host_wait_for_one_answer(tmp_path: Path) -> None:
    count = tmp_path / "count"
    topology = Topology({}, program(tmp_path, f"echo x >> {count}; echo /r"))
    await asyncio.gather(*(topology.resolve("127.0.0.1") for _ in range(5)))
    assert topology.rack_of("127.0.0.1") == "/r"
    assert count.read_text().split() == ["x"]


async def test_program_that_is_not_there_leaves_the_default_rack() -> None:
    topology = Topology({}, "/does/not/exist")
    await topology.resolve("h")
    assert topology.rack_of("h") == "/default-rack"


def test_missing_table_names_key_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"net\.topology\.table\.file\.name"):
        Topology.read(configuration({TABLE: str(tmp_path / "none")}))


async def test_racks_are_reported_and_preferred(tmp_path: Path) -> None:
    """A container for a busy node goes to another one of its rack, not to the emptier one elsewhere."""
    script = program(tmp_path, "case $1 in 127.0.0.3) echo /far;; *) echo /near;; esac")
    async with cluster({SCRIPT: script, "yarn.scheduler.capacity.node-locality-delay": "0"}) as rm:
        busy = await rm.node(memory_mb=1024, host="127.0.0.1")
        _, master = await rm.running(busy)
        await rm.node(memory_mb=2048, host="127.0.0.2")
        await rm.node(memory_mb=8192, host="127.0.0.3")
        reports = (await rm.client.call(Client.getClusterNodes, pb.GetClusterNodesRequest())).nodeReports
        racks = {r.nodeId.host: r.rackName for r in reports}
        assert racks == {"127.0.0.1": "/near", "127.0.0.2": "/near", "127.0.0.3": "/far"}
        response = await master.allocate(ask(1, name="127.0.0.1"), ask(1, name="/near"), ask(1))
        assert [c.nodeId.host for c in response.allocated_containers] == ["127.0.0.2"]
        strict = [ask(1, name=n, priority=2) for n in ("127.0.0.1", "/near", "*")]
        for row in strict[1:]:
            row.relax_locality = False
        assert not (await master.allocate(*strict)).allocated_containers, "that node or none"
