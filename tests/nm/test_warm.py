"""Warm starts: a Python task forked from the prepared process is a container like any other."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from nm.daemon import NodeManager
from nm.warm.client import ForkerClient
from tests.nm.nm_cluster import FakeResourceManager, Master, application, container_id, launch_context, log_text
from tests.nm.nm_faults import gone
from yaqd.config import Configuration
from yaqd.model import ContainerSubState, ExitStatus, Resource
from yaqd.proto import yarn_common_pb2 as common

PROBE = str(Path(__file__).parent)


@pytest.fixture
async def node(start_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> NodeManager:
    """A node whose prepared process is ready and can import the probe's entries."""
    monkeypatch.syspath_prepend(PROBE)
    overrides = {
        "yaq.nm.warm-start.enabled": "true",
        "yaq.nm.warm-start.preload": "numpy,nm_warm_probe,no_such_module",
        "yarn.nodemanager.resource-monitor.interval-ms": "100",
        "yarn.nodemanager.vmem-check-enabled": "false",
    }
    node: NodeManager = await start_node(overrides)
    assert node.prepared is not None
    await node.prepared.ready()
    return node


@pytest.fixture
async def master(rm: FakeResourceManager, node: NodeManager) -> AsyncIterator[Master]:
    master = Master(rm, node)
    yield master
    await master.client.close()


def warm(entry: str, *arguments: str, cold: str = "exit 77", **environment: str) -> common.ContainerLaunchContext:
    """A launch context that asks for a warm start; its command ends with 77 when it is run after all."""
    asked = {"YAQ_WARM_ENTRY": entry, "YAQ_WARM_ARGS": shlex.join(arguments), **environment}
    return launch_context(cold, environment=asked)


async def test_a_warm_task_sees_what_a_cold_one_would(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    context = warm("tez_adapter.probe:report", "a b", "$HOME", HOME_COPY="${HOME}x", GREETING="hello")
    context.environment.add(key="ARGUMENT", value="{{CONTAINER_ID}}")
    await master.run(container_id(1), context)
    await master.run(container_id(2), warm("tez_adapter.probe:report"))
    ends = [await rm.end_of(container_id(n)) for n in (1, 2)]
    assert [end.exit_status for end in ends] == [0, 0]
    one, two = (json.loads(log_text(node, container_id(n), "stdout")) for n in (1, 2))
    assert one["argv"] == one["sys_argv"] == ["a b", "$HOME"]
    assert one["pid"] == one["pgid"] == one["sid"] == int(one["environment"]["JVM_PID"])
    assert one["cwd"] == one["path0"] == one["environment"]["PWD"]
    assert one["environment"]["ARGUMENT"] == str(container_id(1))
    assert one["environment"]["HOME_COPY"] == one["environment"]["HOME"] + "x"
    assert not [name for name in one["environment"] if name.startswith("YAQ_WARM") or name == "OMP_NUM_THREADS"]
    assert one["descriptors"][:3] == [0, 1, 2] and len(one["descriptors"]) == 4  # and the listing's own
    assert one["sigterm"] and one["main_thread"] and one["preloaded"]
    assert one["random"] != two["random"] and one["numpy_random"] != two["numpy_random"]
    assert log_text(node, container_id(1), "stderr") == "to stderr\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "stdout", "stderr"),
    [
        (("raise",), 1, "", "ValueError: the task's own error"),
        (("exit", "9"), 9, "", ""),
        (("exit-text",), 1, "", "ends with words"),
        (("atexit",), 0, "atexit ran\n", ""),
        (("thread",), 5, "thread ended\n", ""),
    ],
)
async def test_ends_as_an_interpreter_would(
    rm: FakeResourceManager,
    node: NodeManager,
    master: Master,
    arguments: tuple[str, ...],
    code: int,
    stdout: str,
    stderr: str,
) -> None:
    await master.run(container_id(1), warm("tez_adapter.probe:end", *arguments))
    end = await rm.end_of(container_id(1))
    assert end.exit_status == code
    assert log_text(node, container_id(1), "stdout") == stdout
    assert stderr in log_text(node, container_id(1), "stderr")
    if stderr:
        assert stderr in end.diagnostics


async def test_the_prepared_process_has_one_thread(node: NodeManager) -> None:
    assert node.prepared is not None
    status = await asyncio.to_thread(Path(f"/proc/{node.prepared.pid}/status").read_text)
    assert "Threads:\t1\n" in status


@pytest.mark.slow
async def test_everything_that_is_loaded_by_default_keeps_to_one_thread(caplog: pytest.LogCaptureFixture) -> None:
    """HDFS's library, for one, starts threads when it is imported."""
    caplog.set_level("INFO")
    names = Configuration.load(environ={}).get_list("yaq.nm.warm-start.preload")
    forker = ForkerClient("default", preload=names)
    forker.start()
    await forker.ready()
    assert "could not import" not in caplog.text
    await forker.stop()


@pytest.mark.slow
def test_the_daemon_itself_imports_no_heavy_library() -> None:
    code = "import nm.daemon, sys; sys.exit(str({'numpy', 'pyarrow', 'hdfs_native'} & set(sys.modules) or ''))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stderr.strip() == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONPATH": "/somewhere"},
        {"LD_PRELOAD": ""},
        {"OMP_NUM_THREADS": "2"},
        {"MALLOC_ARENA_MAX": "1"},
        {"LANG": "C"},
        {"YAQ_PYTHON": "/opt/other/bin/python"},
        {"COMPUTED": "$(date)"},
    ],
)
async def test_jobs_that_need_their_own_interpreter_start_cold(
    rm: FakeResourceManager, node: NodeManager, master: Master, environment: dict[str, str]
) -> None:
    await master.run(container_id(1), warm("tez_adapter.probe:report", **environment))
    assert (await rm.end_of(container_id(1))).exit_status == 77


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["os:system", "tez_adapter.probe:missing", "tez_adapter.absent:main", "tez_adapter."])
async def test_entries_outside_the_job_manager_are_refused(
    rm: FakeResourceManager, node: NodeManager, master: Master, entry: str
) -> None:
    await master.run(container_id(1), warm(entry, "touch /tmp/never"))
    end = await rm.end_of(container_id(1))
    assert end.exit_status == ExitStatus.INVALID
    assert "could not be launched" in end.diagnostics


async def test_stopping_kills_what_a_warm_task_started(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(container_id(1), warm("tez_adapter.probe:end", "wait"))
    await rm.until(lambda: rm.sub_state(container_id(1)) == ContainerSubState.RUNNING)
    process = node.runtime.containers[container_id(1)].process
    assert process is not None
    await master.stop(container_id(1))
    assert (await rm.end_of(container_id(1))).exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert await gone(lambda: group_members(process.pid))


@pytest.mark.slow
async def test_memory_of_a_warm_task_is_its_own(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    """The shared pages of the prepared process count by share, so a small task lives in a small container."""
    small, large = container_id(1), container_id(2)
    await master.run(small, warm("tez_adapter.probe:end", "wait"), resource=_memory(64))
    await master.run(large, warm("tez_adapter.probe:end", "fill", "300"), resource=_memory(128))
    end = await rm.end_of(large)
    assert end.exit_status == ExitStatus.KILLED_EXCEEDED_PMEM
    assert "physical memory used" in end.diagnostics
    assert not rm.completed.get(small)


@pytest.mark.slow
async def test_running_tasks_survive_the_prepared_process_which_comes_back(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(container_id(1), warm("tez_adapter.probe:end", "wait"))
    await rm.until(lambda: rm.sub_state(container_id(1)) == ContainerSubState.RUNNING)
    assert node.prepared is not None and node.prepared.pid is not None
    first = node.prepared.pid
    os.kill(first, signal.SIGKILL)
    assert await gone(lambda: node.prepared and node.prepared.is_ready and node.prepared.pid == first)
    await master.run(container_id(2), launch_context("exit 3", environment={"YAQ_WARM_ENTRY": "tez_adapter.probe:end"}))
    assert (await rm.end_of(container_id(2))).exit_status in (3, 0)  # cold, unless it is back already
    await node.prepared.ready()
    process = node.runtime.containers[container_id(1)].process
    assert process is not None
    os.kill(process.pid, signal.SIGTERM)
    assert (await rm.end_of(container_id(1))).exit_status == 128 + signal.SIGTERM  # reaped by the node itself
    await master.run(container_id(3), warm("tez_adapter.probe:end", "exit", "4"))
    assert (await rm.end_of(container_id(3))).exit_status == 4


async def test_a_task_waits_for_a_prepared_process_that_is_about_to_be_ready(
    rm: FakeResourceManager, start_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(PROBE)
    overrides = {"yaq.nm.warm-start.enabled": "true", "yaq.nm.warm-start.preload": "numpy,nm_warm_probe"}
    node = await start_node(overrides)
    master = Master(rm, node)
    await master.run(container_id(1), warm("tez_adapter.probe:end", "exit", "4"))
    assert (await rm.end_of(container_id(1))).exit_status == 4
    await master.client.close()


@pytest.mark.slow
async def test_forty_tasks_at_once(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    ids = [container_id(n) for n in range(1, 41)]
    async with asyncio.TaskGroup() as group:
        for number, one in enumerate(ids):
            context = warm("tez_adapter.probe:end", "exit", str(number % 7))
            group.create_task(master.run(one, context, resource=_memory(16)))
    for number, one in enumerate(ids):
        assert (await rm.end_of(one)).exit_status == number % 7
    assert str(application()) in {str(a) for a in node.runtime.applications}


def _memory(megabytes: int) -> Resource:
    return Resource(megabytes, 0)


def group_members(pgid: int) -> list[int]:
    """Live processes of a group, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == pgid and fields[0] != b"Z":
                found.append(int(entry.name))
    return found
