"""Running containers that get other files or another process."""

from pathlib import Path
from typing import Any

import pytest

from nm.containers.states import Stage
from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context, local_file, log_text
from yaqd.ipc.errors import YarnError
from yaqd.model import ContainerSubState, ExitStatus
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol as Protocol

ONE = container_id(1)
ID = convert.container_id_pb(ONE)
#: says which process it is, then works
WORKER = "echo %s $$ >><LOG_DIR>/stdout; sleep 1000"


class Life:
    """One running container and short words for what its master asks."""

    def __init__(self, rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
        self.rm, self.node, self.master = rm, node, master

    async def start(self, command: str, **context: Any) -> None:
        await self.master.run(ONE, launch_context(command, **context))
        await self.said(1)

    async def said(self, lines: int) -> list[str]:
        """The first word of each line that the container's processes have written, once there are so many."""

        def words() -> list[str]:
            try:
                found = [line.split()[0] for line in log_text(self.node, ONE, "stdout").splitlines()]
            except FileNotFoundError:
                return []
            container = self.node.runtime.containers[ONE]
            return found if len(found) >= lines and container.stage is Stage.RUNNING else []

        found: list[str] = await self.rm.until(words)
        return found

    async def re_initialize(self, command: str, *, auto_commit: bool, **context: Any) -> None:
        request = service.ReInitializeContainerRequest(container_id=ID, auto_commit=auto_commit)
        request.container_launch_context.CopyFrom(launch_context(command, **context))
        await self.master.client.call(Protocol.reInitializeContainer, request)

    async def localize(self, **files: common.LocalResource) -> None:
        request = service.ResourceLocalizationRequest(container_id=ID)
        for link, resource in files.items():
            request.local_resources.add(key=link, value=resource)
        await self.master.client.call(Protocol.localize, request)

    async def localization(self) -> dict[str, tuple[int, str]]:
        request = service.GetLocalizationStatusesRequest(container_id=[ID])
        answer = await self.master.client.call(Protocol.getLocalizationStatuses, request)
        (entry,) = answer.cntn_localization_statuses
        return {s.resource_key: (int(s.localization_state), s.diagnostics) for s in entry.localization_statuses}


@pytest.fixture
def life(rm: FakeResourceManager, node: NodeManager, master: Master) -> Life:
    return Life(rm, node, master)


async def test_restart_runs_the_same_command_in_the_same_place(life: Life) -> None:
    await life.start(WORKER % "first")
    first = life.node.runtime.containers[ONE].process
    used = life.node.runtime.queue_statistics()
    await life.master.client.call(Protocol.restartContainer, ID)
    assert await life.said(2) == ["first", "first"]
    second = life.node.runtime.containers[ONE].process
    assert first is not None and second is not None and first.pid != second.pid
    assert life.node.runtime.queue_statistics() == used and not life.rm.completed
    await life.master.stop(ONE)
    assert (await life.rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_APPMASTER


async def test_re_initialized_with_other_files_and_committed(life: Life, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("new")
    await life.start(WORKER % "old")
    await life.re_initialize(
        f"cat new.txt >/dev/null && {WORKER % 'new'}",
        auto_commit=False,
        resources={"new.txt": local_file(tmp_path / "new.txt")},
    )
    assert await life.said(2) == ["old", "new"]
    await life.master.client.call(Protocol.commitLastReInitialization, ID)
    for method, words in (
        (Protocol.commitLastReInitialization, "Nothing to Commit !!"),
        (Protocol.rollbackLastReInitialization, "Nothing to rollback to !!"),
    ):
        with pytest.raises(YarnError, match=words):
            await life.master.client.call(method, ID)  # type: ignore[misc]


async def test_rolled_back_on_request_and_by_itself(life: Life) -> None:
    await life.start(WORKER % "old")
    await life.re_initialize(WORKER % "new", auto_commit=False)
    await life.said(2)
    await life.master.client.call(Protocol.rollbackLastReInitialization, ID)
    assert await life.said(3) == ["old", "new", "old"]
    await life.re_initialize("echo broken >><LOG_DIR>/stdout; exit 3", auto_commit=False)
    assert await life.said(5) == ["old", "new", "old", "broken", "old"]
    assert "Auto Rolled-Back" in life.node.runtime.containers[ONE].diagnostics


async def test_a_committed_replacement_that_fails_ends_the_container(life: Life) -> None:
    await life.start(WORKER % "old")
    await life.re_initialize("exit 3", auto_commit=True)
    assert (await life.rm.end_of(ONE)).exit_status == 3


async def test_a_replacement_whose_files_cannot_be_had_changes_nothing(life: Life, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    missing = local_file(tmp_path / "f")
    missing.timestamp += 1
    await life.start(WORKER % "old")
    await life.re_initialize("true", auto_commit=True, resources={"f": missing})
    container = life.node.runtime.containers[ONE]
    await life.rm.until(lambda: "changed on src filesystem" in container.diagnostics)
    assert container.stage is Stage.RUNNING and not container.is_replacing


async def test_files_for_a_running_container(life: Life, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("brought later")
    stale = local_file(tmp_path / "f")
    stale.timestamp += 1
    await life.start(f"{WORKER % 'on'} & until cat dir/late; do sleep 0.05; done 2>/dev/null 1><LOG_DIR>/late; wait")
    await life.localize(**{"dir/late": local_file(tmp_path / "f"), "stale": stale})

    def is_over() -> bool:
        notes = life.node.runtime.containers[ONE].later_resources.values()
        return all(note.state.name != "PENDING" for note in notes)

    await life.rm.until(is_over)
    found = await life.localization()
    assert found["dir/late"] == (2, "") and found["stale"][0] == 3 and "changed on src" in found["stale"][1]
    await life.rm.until(lambda: log_text(life.node, ONE, "late") == "brought later")


async def test_files_do_not_leave_the_folder(life: Life, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    (tmp_path / "outside").mkdir()
    await life.start(f"ln -s {tmp_path}/outside out; {WORKER % 'on'}")
    with pytest.raises(YarnError, match="leaves the container's folder"):
        await life.localize(**{"../x": local_file(tmp_path / "f")})
    await life.localize(**{"out/x": local_file(tmp_path / "f")})
    note = life.node.runtime.containers[ONE].later_resources
    await life.rm.until(lambda: note["out/x"].state.name == "FAILED")
    assert "leads out of the container's" in note["out/x"].diagnostics
    assert not list((tmp_path / "outside").iterdir())


async def test_only_its_own_running_guaranteed_containers(rm: FakeResourceManager, life: Life) -> None:
    with pytest.raises(YarnError, match=f"Specified {ONE} does not exist!"):
        await life.master.client.call(Protocol.restartContainer, ID)
    stranger = Master(rm, life.node, app=2)
    with pytest.raises(YarnError, match=r"not authorized to perform \[RE_INIT\]"):
        await stranger.client.call(Protocol.restartContainer, ID)
    await stranger.client.close()
    await life.start(WORKER % "on")
    life.node.runtime.containers[ONE].is_replacing = True
    with pytest.raises(YarnError, match=r"Current state is \[RUNNING, isReInitializing=true\]"):
        await life.localize()


async def test_statuses_name_the_node(rm: FakeResourceManager, life: Life) -> None:
    await life.start(WORKER % "on")
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    (status,) = (await life.master.statuses(ONE)).status
    assert {e.key: e.value for e in status.container_attributes} == {"HOST": "127.0.0.1", "IPS": "127.0.0.1"}
