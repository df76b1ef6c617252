"""Bounds by cgroup v2. Handing controllers down is tried with any that the machine has; `cpu` is here only where it is
v2's. Where nobody may write cgroup v2, little runs."""

import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from nm.resources.groups import ContainerGroups
from nm.throttle import quota_v2
from nm.throttle.quota_v2 import QuotaV2, hand_down
from nm.throttle.start import open_quota
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from tests.nm.nm_faults import gone, processes_of
from tests.nm.throttle.nm_throttled import APP, ONE
from yaqd.proto import yarn_common_pb2 as common

StartNode = Callable[..., Awaitable[NodeManager]]


@pytest.fixture
def controller(groups: ContainerGroups) -> Iterator[str]:
    """One that this machine's cgroup v2 has and does not hand down yet; nor does it afterwards."""
    own = groups.root.parent
    found = set((own / "cgroup.controllers").read_text().split())
    found -= set((own / "cgroup.subtree_control").read_text().split())
    if not found:
        pytest.skip("cgroup v2 has no controller here to try it with")
    yield (name := min(found))
    groups.close()
    groups.root.mkdir()
    quota_v2._write(own / "cgroup.subtree_control", f"-{name}")


@pytest.fixture
def fake(tmp_path: Path) -> ContainerGroups:
    """Folders as the kernel has them, without a kernel."""
    root = tmp_path / "own" / "yaqd-0"
    root.mkdir(parents=True)
    (root.parent / "cgroup.controllers").write_text("cpuset cpu io\n")
    for folder in (root.parent, root):
        (folder / "cgroup.subtree_control").touch()
    return ContainerGroups(root, tmp_path / "record")


def cpu_max(groups: ContainerGroups, application: str) -> str:
    return (groups.root / application / "cpu.max").read_text()


def test_what_is_written_is_what_the_kernel_reads(fake: ContainerGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_files(self: QuotaV2, application: str, cores: float) -> None:
        (self.root / application).mkdir(exist_ok=True)
        (self.root / application / "cpu.max").touch()
        bound(self, application, cores)

    bound = QuotaV2.bound
    monkeypatch.setattr(QuotaV2, "bound", with_files)
    monkeypatch.setattr(Path, "rmdir", lambda self: None)  # the kernel's folders have files of their own
    quota = QuotaV2.open(fake)
    assert fake.by_application
    assert (fake.root.parent / "cgroup.subtree_control").read_text() == "+cpu"
    assert (fake.root / "cgroup.subtree_control").read_text() == "+cpu"
    quota.bound("application_1", 0.2)
    assert cpu_max(fake, "application_1") == "20000 100000"
    quota.put("application_1", [1])
    quota.close()
    assert cpu_max(fake, "application_1").startswith("max") and not fake.bounded


def test_a_controller_that_is_not_there_is_said(fake: ContainerGroups) -> None:
    (fake.root.parent / "cgroup.controllers").write_text("memory\n")
    with pytest.raises(FileNotFoundError, match="cpu of cgroup v2 is not handed down"):
        QuotaV2.open(fake)
    assert not fake.by_application


def test_the_kernel_hands_a_controller_down(groups: ContainerGroups, controller: str) -> None:
    hand_down(controller, groups.root)
    assert controller in (groups.root / "cgroup.subtree_control").read_text().split()


#: in a group of its own with a child, as a unit of a service manager
IN_A_UNIT = """
import os, subprocess, sys
from pathlib import Path
from nm.throttle.quota_v2 import hand_down
own, controller = Path(sys.argv[1]), sys.argv[2]
(own / "cgroup.procs").write_text("0")
child = subprocess.Popen(["sleep", "1000"])
root = own / "yaqd-1"
root.mkdir()
try:
    hand_down(controller, root)
    moved = set((own / "yaqd-1-daemon" / "cgroup.procs").read_text().split())
    assert moved == {str(os.getpid()), str(child.pid)}, moved
    assert controller in (root / "cgroup.subtree_control").read_text().split()
    print("handed down")
except PermissionError as error:
    print(error)
finally:
    child.kill()
    child.wait()
    (own.parent.parent / "cgroup.procs").write_text("0")
"""


@pytest.mark.parametrize("has_stranger", [False, True])
def test_who_is_alone_in_its_group_moves_below_it(has_stranger: bool, groups: ContainerGroups, controller: str) -> None:
    own = groups.root / "unit"
    own.mkdir()
    quota_v2._write(groups.root.parent / "cgroup.subtree_control", f"+{controller}")
    quota_v2._write(groups.root / "cgroup.subtree_control", f"+{controller}")
    stranger = subprocess.Popen(["sleep", "1000"]) if has_stranger else None
    try:
        if stranger is not None:
            quota_v2._write(own / "cgroup.procs", str(stranger.pid))
        done = subprocess.run(
            (sys.executable, "-c", IN_A_UNIT, own, controller), capture_output=True, text=True, check=True, timeout=30
        )
    finally:
        if stranger is not None:
            stranger.kill()
            stranger.wait()
    assert done.stdout.strip() == "handed down" if not has_stranger else "not the NodeManager's" in done.stdout


def test_a_container_s_group_is_in_its_application_s(groups: ContainerGroups) -> None:
    groups.by_application = True
    worker, master = groups.group("container_1", "application_1"), groups.group("container_0")
    assert worker.folder.parent == groups.root / "application_1" and master.folder.parent == groups.root
    worker.folder.mkdir(parents=True)
    (groups.root / "application_1" / "left").mkdir()
    (groups.root / "application_2" / "left").mkdir(parents=True)
    (groups.root / "application_3").mkdir()
    groups.bounded.add("application_3")
    groups.sweep()
    assert sorted(path.name for path in groups.root.iterdir() if path.is_dir()) == ["application_1", "application_3"]
    assert [path for path in (groups.root / "application_1").iterdir() if path.is_dir()] == [worker.folder]


async def test_the_last_container_of_an_application_leaves_nothing(groups: ContainerGroups) -> None:
    groups.by_application = True
    worker = groups.group("container_1", "application_1")
    worker.folder.mkdir(parents=True)
    await worker.remove()
    groups.sweep()
    assert not (groups.root / "application_1").exists()


async def test_containers_start_in_their_application_s_group(
    rm: FakeResourceManager, start_node: StartNode, groups: ContainerGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masters do not: what bounds the application must not bound them."""

    def refuse(local_dir: Path) -> None:
        raise PermissionError("not yours")

    def only_groups(opened: ContainerGroups) -> QuotaV2:
        opened.by_application = True
        return QuotaV2(opened)

    monkeypatch.setattr("nm.throttle.quota.QuotaV1.open", refuse)
    monkeypatch.setattr("nm.throttle.quota_v2.QuotaV2.open", only_groups)
    node = await start_node({"yaq.nm.containers.cgroups": "true"})
    master = Master(rm, node)
    await master.run(ONE, launch_context("exec sleep 1000"))
    await master.run(container_id(2), launch_context("exec sleep 1000"), containerType=common.APPLICATION_MASTER)
    assert await gone(lambda: len(processes_of(ONE) + processes_of(container_id(2))) < 2)

    def places() -> set[str]:
        return {path.parent.name for path in groups.root.rglob("cgroup.procs") if path.read_text()}

    assert await gone(lambda: len(places()) < 2)
    assert {place.rpartition(".")[0] for place in places()} == {str(ONE), str(container_id(2))}
    inside = [path.name for path in (groups.root / str(APP)).iterdir() if path.is_dir()]
    assert [name.rpartition(".")[0] for name in inside] == [str(ONE)]
    await master.client.close()


def test_one_line_says_why_signals_do_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(local_dir: Path) -> None:
        raise PermissionError("not yours")

    caplog.set_level("INFO")
    monkeypatch.setattr("nm.throttle.quota.QuotaV1.open", refuse)
    assert open_quota(tmp_path, None, is_wanted=True) is None
    assert "kept by signals: not yours; containers have no control groups of v2" in caplog.text
