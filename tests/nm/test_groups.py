"""Containers in control groups: nothing leaves one unnoticed. Where this machine lets nobody make groups, nothing here
runs."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from nm.resources.groups import ContainerGroups, open_groups
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context, log_text
from tests.nm.nm_faults import NodeProcess, gone
from tests.nm.nm_processes import is_over
from tests.nm.nm_survivors import Survivors
from yaqd.model import ContainerSubState, ExitStatus, Resource

ONE, TWO = container_id(1), container_id(2)
GROUPS = {"yaq.nm.containers.cgroups": "true"}
StartNode = Callable[..., Awaitable[NodeManager]]
StartProcess = Callable[..., Awaitable[NodeProcess]]


@pytest.fixture(autouse=True)
def usable(groups: ContainerGroups) -> Path:
    """The folder that a node with this test's local folder uses as well."""
    return groups.root


def holders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir()]


@pytest.mark.slow
async def test_all_ends_with_its_container_and_nothing_else_does(
    rm: FakeResourceManager, start_node: StartNode, survivors: Survivors, usable: Path
) -> None:
    node = await start_node(GROUPS)
    master = Master(rm, node)
    await master.run(TWO, launch_context("env -i setsid sleep 1001 & exec sleep 1000"))
    await rm.until(lambda: rm.sub_state(TWO) == ContainerSubState.RUNNING)
    await master.run(ONE, launch_context(survivors.command()))
    assert (await rm.end_of(ONE)).exit_status == 0
    assert all(is_over(process) for process in await survivors.processes()), "before its end is told"
    (left,) = [path for path in holders(usable) if TWO.__str__() in path.name]
    assert len((left / "cgroup.procs").read_text().split()) == 2
    assert await gone(lambda: len(holders(usable)) > 1)
    await master.stop(TWO)
    await rm.end_of(TWO)
    assert await gone(lambda: holders(usable))
    await master.client.close()
    await node.stop()
    assert usable not in holders(usable.parent)


async def test_a_container_is_in_its_group_before_its_command_runs(
    rm: FakeResourceManager, start_node: StartNode, tmp_path: Path
) -> None:
    node = await start_node(GROUPS)
    master = Master(rm, node)
    await master.run(ONE, launch_context(f"cat /proc/self/cgroup > {tmp_path}/told; echo $0 >> {tmp_path}/told"))
    assert (await rm.end_of(ONE)).exit_status == 0
    assert f"/{ONE}." in (tmp_path / "told").read_text()
    await master.client.close()


async def test_memory_of_all_counts(rm: FakeResourceManager, start_node: StartNode) -> None:
    node = await start_node({**GROUPS, "yarn.nodemanager.resource-monitor.interval-ms": "50"})
    master = Master(rm, node)
    hold = "import time; held = bytearray(200 << 20); time.sleep(1000)"
    lost = f"(setsid env -i /usr/bin/prlimit --locks=unlimited:unlimited $(which python3) -c '{hold}' &) &"
    await master.run(ONE, launch_context(f"{lost} exec sleep 1000"), resource=Resource(50, 1))
    assert (await rm.end_of(ONE)).exit_status in (ExitStatus.KILLED_EXCEEDED_PMEM, ExitStatus.KILLED_EXCEEDED_VMEM)
    await master.client.close()


async def test_a_warm_task_is_in_its_group_too(
    rm: FakeResourceManager, start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    warm = {"yaq.nm.warm-start.enabled": "true", "yaq.nm.warm-start.preload": "nm_warm_probe"}
    node = await start_node({**GROUPS, **warm})
    assert node.prepared is not None
    await node.prepared.ready()
    master = Master(rm, node)
    asked = {"YAQ_WARM_ENTRY": "tez_adapter.probe:report"}
    await master.run(ONE, launch_context("exit 77", environment=asked))
    assert (await rm.end_of(ONE)).exit_status == 0
    assert f"/{ONE}." in json.loads(log_text(node, ONE, "stdout"))["groups"]
    await master.client.close()


@pytest.mark.slow
@pytest.mark.parametrize("with_forkers", [False, True])
async def test_nothing_is_left_of_a_node_that_is_killed(
    with_forkers: bool, rm: FakeResourceManager, start_process: StartProcess, survivors: Survivors, usable: Path
) -> None:
    node = await start_process(GROUPS)
    master = node.master(rm)
    await master.run(ONE, launch_context(f"{survivors.command()}; exec sleep 1000"))
    processes = await survivors.processes()
    await master.client.close()
    await node.kill(with_forkers=with_forkers)
    if with_forkers:
        assert not any(is_over(process) for process in processes)
        again = await start_process(GROUPS)
        assert holders(usable) == []
        again.process.terminate()
        assert await again.process.wait() == 0
        assert usable not in holders(usable.parent)
    assert await gone(lambda: not all(is_over(process) for process in processes))


async def test_where_a_group_cannot_be_made_the_container_runs_all_the_same(
    rm: FakeResourceManager, start_node: StartNode, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = await start_node({**GROUPS, "yarn.nodemanager.resource-monitor.interval-ms": "50"})
    assert node._groups is not None
    node._groups.root, kept = tmp_path / "nothing" / "here", node._groups.root
    master = Master(rm, node)
    for one in (ONE, TWO):
        await master.run(one, launch_context("env -i setsid sleep 1000 & sleep 0.5; exit 3"))
    for one in (ONE, TWO):
        assert (await rm.end_of(one)).exit_status == 3
    assert caplog.text.count("is not in its control group") == 1
    node._groups.root = kept
    await master.client.close()


def test_what_is_nobodys_is_swept_and_what_is_somebodys_is_not(groups: ContainerGroups) -> None:
    (groups.root / "old" / "inner").mkdir(parents=True)
    own = groups.group("container")
    own.folder.mkdir()
    groups.sweep()
    assert holders(groups.root) == [own.folder]
    asyncio.run(own.remove())
    assert holders(groups.root) == []


def test_groups_that_are_recorded_elsewhere_are_cleared(groups: ContainerGroups, tmp_path: Path) -> None:
    elsewhere = groups.root / "session" / groups.root.name
    (elsewhere / "container").mkdir(parents=True)
    (tmp_path / "local" / "nmPrivate").mkdir(parents=True)
    (tmp_path / "local" / "nmPrivate" / "cgroup").write_text(f"{elsewhere}\n")
    assert ContainerGroups.open(tmp_path / "local").root == groups.root and not elsewhere.exists()


def test_it_is_said_which_way_is_used(
    groups: ContainerGroups, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    opened = open_groups(tmp_path / "other", is_wanted=True)
    assert opened is not None and f"below {opened.root}" in caplog.text
    opened.close()
    assert open_groups(tmp_path / "other", is_wanted=False) is None
    assert "no control groups (yaq.nm.containers.cgroups)" in caplog.text
    monkeypatch.setattr("nm.resources.groups._own_group", lambda: (tmp_path, tmp_path))
    assert open_groups(tmp_path / "other", is_wanted=True) is None
    assert "no control groups (no cgroup.kill, which Linux has since 5.14)" in caplog.text
