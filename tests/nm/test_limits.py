"""Memory limits, disks, the web's view, logs: what keeps a node and its neighbours safe."""

import asyncio
import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.containers.states import ON_THE_WIRE, TRANSITIONS, Event, Stage
from nm.daemon import NodeManager
from nm.resources.directories import delete_tree
from nm.resources.disk_health import check_disks
from nm.resources.memory_limit import MemoryLimits, excess
from nm.resources.process_scan import ProcessReading, ProcessTable, Usage
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from tests.nm.nm_faults import gone
from yaqd.model import ContainerState, ContainerSubState, ExitStatus, Resource

ONE = container_id(1)
MB = 1 << 20


async def test_container_over_its_memory_is_killed_with_the_words_clients_match(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node = await start_node({"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    master = Master(rm, node)
    fill = "python3 -c 'import time; held = bytearray(200 << 20); time.sleep(1000)'"
    await master.run(ONE, launch_context(fill), resource=Resource(50, 1))
    end = await rm.end_of(ONE)
    assert end.exit_status in (ExitStatus.KILLED_EXCEEDED_PMEM, ExitStatus.KILLED_EXCEEDED_VMEM)
    assert f"containerID={ONE}] is running" in end.diagnostics
    assert " memory used. Killing container." in end.diagnostics
    await master.client.close()


@pytest.mark.slow
@pytest.mark.parametrize("as_child", [True, False])
async def test_what_a_container_used_is_told_with_its_end(
    as_child: bool, rm: FakeResourceManager, start_node: Callable[..., Any], tmp_path: Path
) -> None:
    """However short it was: no scan has seen it."""
    rm.capabilities.append("yaq-queue")
    node = await start_node({"yarn.nodemanager.resource-monitor.interval-ms": "60000"})
    master = Master(rm, node)
    script = tmp_path / "work.py"
    script.write_text("import time\nheld = bytearray(100 << 20)\nwhile time.process_time() < 0.3: pass\n")
    program = f"python3 {script}"
    await master.run(ONE, launch_context(f"{program}; true" if as_child else f"exec {program}"))
    end = await rm.end_of(ONE)
    assert 100 * MB < end.yaq_times.peak_memory_bytes < 400 * MB
    assert 300 <= end.yaq_times.cpu_ms < 5000
    await master.client.close()


def reading(
    pid: int, parent: int, session: int, size: int = MB, started: int = 1, mark: int | None = None
) -> ProcessReading:
    return ProcessReading(pid, parent, session, "S", started, size, 2 * size, 1.0, mark)


def test_a_container_is_its_descendants_its_session_and_what_carries_its_mark() -> None:
    table = ProcessTable(
        [
            reading(1, 0, 1),
            reading(10, 1, 10),
            reading(11, 10, 10),
            reading(12, 11, 12),  # left the session, still a descendant
            reading(13, 1, 10),  # lost its parent, still in the session
            reading(14, 1, 14, mark=7),  # lost its parent and left the session
            reading(15, 14, 15),
            reading(20, 1, 20, mark=8),
        ]
    )
    assert table.members(10, 7) == [10, 11, 12, 13, 14, 15]
    assert table.usage(10, 7, None).physical_bytes == 6 * MB


def test_only_processes_that_were_there_before_count_as_aged() -> None:
    before = ProcessTable([reading(10, 1, 10), reading(11, 10, 10, started=5)])
    now = ProcessTable([reading(10, 1, 10), reading(11, 10, 10, started=9), reading(12, 10, 10)])
    assert now.usage(10, 7, before).aged_physical_bytes == MB


@pytest.mark.parametrize(
    ("current", "aged", "status"),
    [
        (100, 100, None),
        (150, 100, None),  # newcomers may be between fork and exec
        (150, 101, ExitStatus.KILLED_EXCEEDED_PMEM),
        (201, 0, ExitStatus.KILLED_EXCEEDED_PMEM),
    ],
)
def test_memory_rules(current: int, aged: int, status: ExitStatus | None) -> None:
    usage = Usage(physical_bytes=current * MB, aged_physical_bytes=aged * MB)
    over = excess(usage, container_id="c", leader=7, memory_mb=100, limits=MemoryLimits(True, True, virtual_ratio=2.1))
    assert (over.status if over else None) == status


def test_disks_above_the_threshold_or_not_writable_are_bad(tmp_path: Path) -> None:
    good, full, blocked = tmp_path / "good", tmp_path / "full", tmp_path / "file" / "below"
    (tmp_path / "file").write_text("a file where a folder should go")
    used = {good: 10.0, full: 95.0}
    report = check_disks([good, full], [blocked], max_percent=90, used_percent=lambda path: used.get(path, 0.0))
    assert report.good_local == (good,) and report.good_log == ()
    health = report.health(3)
    assert not health.is_healthy
    assert "2/3 folders are bad" in health.report
    assert "95.0% is above the threshold of 90.0%, free some space or raise yarn.nodemanager.disk-h" in health.report


def block(folder: Path) -> None:
    """Puts a file where the folder was, against a checker that makes it again."""
    while not folder.is_file():
        delete_tree(folder)
        try:
            folder.write_text("in the way")
        except IsADirectoryError:
            continue


async def test_an_unhealthy_node_says_so_and_refuses(
    rm: FakeResourceManager, start_node: Callable[..., Any], tmp_path: Path
) -> None:
    node = await start_node({"yarn.nodemanager.disk-health-checker.interval-ms": "20"})
    master = Master(rm, node)
    logs = tmp_path / "logs"
    await asyncio.to_thread(block, logs)
    await rm.until(lambda: not rm.heartbeats[-1].node_status.nodeHealthStatus.is_node_healthy)
    assert str(logs) in rm.heartbeats[-1].node_status.nodeHealthStatus.health_report
    response = await master.start(ONE, launch_context("true"))
    assert "the node is unhealthy" in response.failed_requests[0].exception.message
    logs.unlink()
    await rm.until(lambda: rm.heartbeats[-1].node_status.nodeHealthStatus.is_node_healthy)
    await master.run(container_id(2), launch_context("true"))
    assert (await rm.end_of(container_id(2))).exit_status == 0
    await master.client.close()


async def fetch(node: NodeManager, path: str) -> tuple[int, bytes]:
    """Raw, so that no client normalizes the path."""

    def get() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*node.web_address, timeout=10)
        try:
            connection.putrequest("GET", path, skip_accept_encoding=True)
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    return await asyncio.to_thread(get)


async def test_web_shows_node_containers_and_logs(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    big = "head -c 3000000 /dev/zero | tr '\\0' x >\\$LOG_DIRS/big"
    await master.run(ONE, launch_context(f"echo hello 1><LOG_DIR>/stdout; {big}; sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    status, body = await fetch(node, "/ws/v1/node/info")
    assert status == 200 and json.loads(body)["nodeInfo"]["id"] == str(node.node_id)
    async with aiohttp.ClientSession() as session:
        address = "http://{}:{}/ws/v1/node/containers?user.name=alice".format(*node.web_address)
        async with session.options(address) as answer:
            assert (answer.status, await answer.read()) == (200, b"")
    _, body = await fetch(node, "/ws/v1/node/containers")
    (container,) = json.loads(body)["containers"]["container"]
    assert (container["id"], container["state"], container["user"]) == (str(ONE), "RUNNING", "alice")
    _, body = await fetch(node, "/ws/v1/node/apps?state=RUNNING")
    assert json.loads(body)["apps"]["app"][0]["containerids"] == [str(ONE)]
    log = node.settings.log_dirs[0] / str(ONE.application_id) / str(ONE) / "big"
    assert await gone(lambda: not log.exists() or log.stat().st_size < 3_000_000)
    await master.stop(ONE)
    await rm.end_of(ONE)
    _, body = await fetch(node, f"/ws/v1/node/containers/{ONE}/logs")
    names = [entry["fileName"] for entry in json.loads(body)["containerLogsInfo"][0]["containerLogInfo"]]
    assert {"stdout", "big", "prelaunch.out", "launch_container.sh", "directory.info"} <= set(names)
    _, body = await fetch(node, f"/ws/v1/node/containers/{ONE}/logs/stdout")
    assert b"\nLogLength:6\nLogContents:\nhello\nEnd of LogType:stdout." in body
    assert await fetch(node, f"/node/containerlogs/{ONE}/alice/big") == (200, b"x" * 3_000_000)
    assert await fetch(node, f"/node/containerlogs/{ONE}/alice/big?start=-5") == (200, b"xxxxx")
    assert (await fetch(node, f"/node/containerlogs/{ONE}/alice"))[1].count(b"<a href") >= 4


async def test_web_hands_out_nothing_else(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await master.run(ONE, launch_context("ln -s /etc/passwd \\$LOG_DIRS/link; mkfifo \\$LOG_DIRS/pipe"))
    assert (await rm.end_of(ONE)).exit_status == 0
    base = f"/ws/v1/node/containers/{ONE}/logs"
    for name in ("link", "pipe", "..", "%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", "absent", "%00"):
        status, body = await fetch(node, f"{base}/{name}")
        assert status in (400, 404) and b"root:" not in body, name
    assert (await fetch(node, "/ws/v1/node/containers/nonsense/logs"))[0] == 400
    assert (await fetch(node, f"/ws/v1/node/containers/{container_id(99)}/logs"))[0] == 404


def test_every_stage_has_a_wire_state_that_is_no_completion_by_mistake() -> None:
    assert ON_THE_WIRE.keys() == set(Stage)
    for stage, (state, sub_state) in ON_THE_WIRE.items():
        assert (state is ContainerState.COMPLETE) is (stage is Stage.DONE)
        assert (sub_state is ContainerSubState.DONE) is (stage is Stage.DONE)
        assert state is not ContainerState.NEW


def test_every_stage_can_be_left_and_killed() -> None:
    for stage in set(Stage) - {Stage.NEW}:
        assert (stage, Event.KILL) in TRANSITIONS, stage
        assert stage is Stage.DONE or any(f is stage and to is not stage for (f, _), (to, _) in TRANSITIONS.items())


@given(st.lists(st.sampled_from(Event), max_size=20))
def test_no_order_of_events_leaves_done(events: list[Event]) -> None:
    stage = Stage.NEW
    has_process = False
    for event in events:
        following = TRANSITIONS.get((stage, event))
        if following is None:
            continue
        if stage is Stage.DONE:
            assert following[0] is Stage.DONE
        stage = following[0]
        has_process = stage in (Stage.RUNNING, Stage.KILLING)
        assert not has_process or event in (Event.LAUNCHED, Event.KILL)
