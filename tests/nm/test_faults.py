"""The daemon as a process: ready line, orderly end, and what kill -9 leaves behind: nothing."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, container_id, launch_context
from tests.nm.nm_faults import NodeProcess, gone, launch_daemon, processes_of
from yaqd.config import ConfigError, Configuration
from yaqd.model import ContainerSubState

ONE = container_id(1)
#: a leader with a child in its group and a grandchild that left it
FAMILY = "sleep 1000 & setsid sleep 1001 & sleep 1002"
StartProcess = Callable[..., Awaitable[NodeProcess]]


async def running_family(rm: FakeResourceManager, node: NodeProcess, command: str = FAMILY) -> None:
    master = node.master(rm)
    await master.run(ONE, launch_context(command))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    assert await gone(lambda: len(processes_of(ONE, "sleep")) < command.count("sleep"))
    await master.client.close()


@pytest.mark.slow
async def test_sigterm_ends_everything_in_time(
    rm: FakeResourceManager, start_process: StartProcess, tmp_path: Path
) -> None:
    node = await start_process({"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    assert "web=127.0.0.1:" in node.ready and "shuffle=" in node.ready
    await running_family(rm, node, "trap '' TERM; sleep 1000 & sleep 1000")
    node.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(5):
        assert await node.process.wait() == 0
    assert rm.unregistered == [node.node_id]
    assert await gone(lambda: processes_of(ONE))


async def test_kill_nine_leaves_no_container(
    rm: FakeResourceManager, start_process: StartProcess, tmp_path: Path
) -> None:
    node = await start_process()
    await running_family(rm, node, "sleep 1000 & sleep 1000")
    assert processes_of(ONE)
    node.process.kill()
    await node.process.wait()
    assert await gone(lambda: processes_of(ONE))


@pytest.mark.slow
async def test_next_start_finds_what_lost_its_forker_too(
    rm: FakeResourceManager, start_process: StartProcess, tmp_path: Path
) -> None:
    node = await start_process()
    await running_family(rm, node, "sleep 1000 & sleep 1000")
    forkers = [pid for pid in node.children() if pid not in processes_of(ONE)]
    os.kill(node.process.pid, signal.SIGSTOP)  # so that it cannot start another forker
    for forker in forkers:
        os.kill(forker, signal.SIGKILL)
    node.process.kill()
    await node.process.wait()
    assert processes_of(ONE)
    again = await start_process()
    assert await gone(lambda: processes_of(ONE))
    assert await gone(lambda: list((tmp_path / "local").glob("*_DEL_*")))
    again.process.terminate()
    assert await again.process.wait() == 0


@pytest.mark.slow
async def test_a_dead_forker_loses_no_container(
    rm: FakeResourceManager, start_process: StartProcess, tmp_path: Path
) -> None:
    node = await start_process()
    await running_family(rm, node, "sleep 1000; exit 6")
    (forker,) = node.children()
    os.kill(forker, signal.SIGKILL)
    assert await gone(lambda: forker in node.children())
    for pid in processes_of(ONE, "sleep"):
        os.kill(pid, signal.SIGTERM)
    assert (await rm.end_of(ONE)).exit_status == 6
    master = node.master(rm)
    await master.run(container_id(2), launch_context("exit 8"))
    assert (await rm.end_of(container_id(2))).exit_status == 8
    node.process.terminate()
    assert await node.process.wait() == 0
    await master.client.close()


@pytest.mark.slow
async def test_what_left_the_group_is_found_when_the_container_ends(
    rm: FakeResourceManager, start_process: StartProcess, tmp_path: Path
) -> None:
    node = await start_process({"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    await running_family(rm, node)
    assert len(processes_of(ONE)) >= 3
    master = node.master(rm)
    await master.stop(ONE)
    await rm.end_of(ONE)
    assert await gone(lambda: processes_of(ONE))
    node.process.terminate()
    assert await node.process.wait() == 0
    await master.client.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"yarn.nodemanager.local-dirs": "relative"}, "not an absolute path"),
        ({"yarn.nodemanager.resource.memory-mb": "many"}, "yarn.nodemanager.resource.memory-mb"),
        ({"yarn.nodemanager.address": "192.0.2.1:0"}, "cannot listen on 192.0.2.1:0"),
        ({"yarn.nodemanager.address": "192.0.2.1:0"}, "yarn.nodemanager.address = "),
        ({"yarn.nodemanager.bind-host": "192.0.2.1"}, "yarn.nodemanager.bind-host = "),
    ],
)
async def test_what_cannot_start_says_why_in_one_line(tmp_path: Path, overrides: dict[str, str], words: str) -> None:
    process = await launch_daemon(1, tmp_path, overrides)
    async with asyncio.timeout(20):
        output, errors = await process.communicate()
    assert process.returncode == 2 and output == b""
    assert words in errors.decode() and "Traceback" not in errors.decode()


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("mapreduce.shuffle.port", "shuffle service"),
        ("yarn.nodemanager.webapp.address", "web server"),
        ("yarn.nodemanager.address", "container service"),
    ],
)
async def test_a_port_that_is_taken_is_named_with_its_key(
    rm: FakeResourceManager, tmp_path: Path, key: str, what: str
) -> None:
    """Where a second node of a host reads the same files."""
    taken = rm.rpc.port
    value = str(taken) if key.endswith("port") else f"127.0.0.1:{taken}"
    folder = tmp_path / "conf"
    folder.mkdir()
    site = folder / "yarn-site.xml"
    entry = f"<property><name>{key}</name><value>{value}</value></property>"
    site.write_text(f"<configuration>\n{entry}\n</configuration>\n")
    others = {"mapreduce.shuffle.port": "0", "yarn.nodemanager.webapp.address": "127.0.0.1:0"}
    others.pop(key, None)
    overrides = {
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.local-dirs": str(tmp_path / "local"),
        "yarn.nodemanager.log-dirs": str(tmp_path / "logs"),
        "yaq.nm.warm-start.enabled": "false",
        "yaq.riffle.enabled": "false",
        **others,
    }
    node = NodeManager(Configuration.load(folder, environ={}, overrides=overrides))
    with pytest.raises(ConfigError) as caught:
        await node.start()
    error = caught.value
    assert (error.file, error.line, error.key, error.value) == (site, 2, key, value)
    assert error.problem == f"{what} cannot listen on 127.0.0.1:{taken}: Address already in use"
    assert error.remedy == "stop what holds the port, or give another one (0: any free one)"
