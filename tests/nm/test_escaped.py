"""What leaves a container's session, environment and parents is still the container's; and nothing else is."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from nm.daemon import NodeManager
from nm.resources.processes import mark_for
from nm.warm.marks import is_mark, kill_marked, mark_of, marked, signal_marked
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from tests.nm.nm_faults import NodeProcess, gone
from tests.nm.nm_processes import is_over
from yaqd.model import ContainerSubState, ExitStatus, Resource

ONE = container_id(1)
#: the first keeps its number; the second has a parent that ends at once; the third ignores SIGTERM
ESCAPES = """
env -i setsid bash -c 'echo $$ > {folder}/session; exec sleep 1000' &
env -i setsid bash -c '(echo $BASHPID > {folder}/daemon; exec sleep 1000) & exit' &
env -i setsid bash -c '(trap "" TERM; echo $BASHPID > {folder}/deaf; sleep 1000; sleep 1000) & exit' &
"""
StartNode = Callable[..., Awaitable[NodeManager]]


class Escaped:
    """Writes the programs that a container runs, and finds the processes that left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, then: str, before: str = ESCAPES) -> str:
        script = self.folder / "escape.sh"
        script.write_text(before.format(folder=self.folder) + then.format(folder=self.folder) + "\n")
        return f"bash {script}"

    async def running(self, number: int = 3) -> list[psutil.Process]:
        """Once all of them run."""
        assert await gone(lambda: len(self.processes()) < number)
        return self.processes()

    def processes(self) -> list[psutil.Process]:
        """Those that have begun and have not ended."""
        files = [self.folder / name for name in ("session", "daemon", "deaf")]
        numbers = [int(text) for file in files if file.exists() and (text := file.read_text())]
        return [psutil.Process(number) for number in numbers if psutil.pid_exists(number)]


@pytest.fixture
def escaped(tmp_path: Path) -> Iterator[Escaped]:
    """What a test leaves is killed."""
    folder = tmp_path / "escaped"
    folder.mkdir()
    yield (escaped := Escaped(folder))
    for process in escaped.processes():
        for each in (*process.children(), process):
            each.kill()


@pytest.fixture
async def stranger() -> AsyncIterator[psutil.Process]:
    """Nobody's container, though it looks like what has left one."""
    process = await asyncio.create_subprocess_exec("setsid", "sleep", "1000", env={})
    yield psutil.Process(process.pid)
    process.kill()
    await process.wait()


async def test_what_escaped_ends_with_its_container(
    rm: FakeResourceManager, master: Master, escaped: Escaped, stranger: psutil.Process
) -> None:
    await master.run(container_id(2), launch_context("exec sleep 1000"))
    await rm.until(lambda: rm.sub_state(container_id(2)) == ContainerSubState.RUNNING)
    await master.run(ONE, launch_context(escaped.command("until [ -e {folder}/go ]; do sleep 0.01; done")))
    processes = await escaped.running()
    (escaped.folder / "go").touch()
    assert (await rm.end_of(ONE)).exit_status == 0
    assert all(is_over(process) for process in processes), "before its end is told"
    assert not is_over(stranger) and rm.sub_state(container_id(2)) == ContainerSubState.RUNNING


async def test_what_escaped_ends_when_its_container_is_stopped(
    rm: FakeResourceManager, master: Master, escaped: Escaped, stranger: psutil.Process
) -> None:
    await master.run(ONE, launch_context(escaped.command("exec sleep 1000")))
    processes = await escaped.running()
    await master.stop(ONE)
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert all(is_over(process) for process in processes) and not is_over(stranger)


async def test_what_escaped_ends_with_its_node(
    rm: FakeResourceManager, node: NodeManager, master: Master, escaped: Escaped, stranger: psutil.Process
) -> None:
    await master.run(ONE, launch_context(escaped.command("exec sleep 1000")))
    processes = await escaped.running()
    await node.stop()
    assert all(is_over(process) for process in processes) and not is_over(stranger)


@pytest.mark.slow
@pytest.mark.parametrize("with_forkers", [False, True])
async def test_what_escaped_does_not_outlive_a_node_that_is_killed(
    with_forkers: bool,
    rm: FakeResourceManager,
    start_process: Callable[[], Awaitable[NodeProcess]],
    escaped: Escaped,
    stranger: psutil.Process,
) -> None:
    """By its forkers, or where they are killed too by the next node there."""
    node = await start_process()
    master = node.master(rm)
    await master.run(ONE, launch_context(escaped.command("exec sleep 1000")))
    processes = await escaped.running()
    await master.client.close()
    await node.kill(with_forkers=with_forkers)
    if with_forkers:
        assert not any(is_over(process) for process in processes)
        again = await start_process()
        again.process.terminate()
        assert await again.process.wait() == 0
    assert await gone(lambda: not all(is_over(process) for process in processes))
    assert not is_over(stranger)


#: as `su` does it: PAM sets the limits anew, and the environment stays
RESET = """
(ulimit -S -x unlimited; setsid bash -c '(echo $BASHPID > {folder}/daemon; exec sleep 1000) & exit') &
(ulimit -S -x unlimited
setsid bash -c '(trap "" TERM; echo $BASHPID > {folder}/deaf; sleep 1000; sleep 1000) & exit') &
"""
#: and as `su -` does it, which clears the environment too; the parent ends when it is told to
CLEARED = """
env -i bash -c 'ulimit -S -x unlimited; setsid sleep 1000 & echo $! > {folder}/daemon
until [ -e {folder}/alone ]; do sleep 0.01; done' &
"""


@pytest.mark.slow
@pytest.mark.parametrize("stops", [False, True])
async def test_what_lost_its_limits_ends_with_its_container(
    stops: bool, rm: FakeResourceManager, master: Master, escaped: Escaped, stranger: psutil.Process
) -> None:
    await master.run(container_id(2), launch_context("exec sleep 1000"))
    await rm.until(lambda: rm.sub_state(container_id(2)) == ContainerSubState.RUNNING)
    await master.run(ONE, launch_context(escaped.command("until [ -e {folder}/go ]; do sleep 0.01; done", RESET)))
    processes = await escaped.running(2)
    assert not any(is_mark(mark_of(process.pid)) for process in processes)
    if stops:
        await master.stop(ONE)
    (escaped.folder / "go").touch()
    await rm.end_of(ONE)
    assert all(is_over(process) for process in processes), "before its end is told"
    assert not is_over(stranger) and rm.sub_state(container_id(2)) == ContainerSubState.RUNNING


async def test_what_lost_its_environment_too_is_remembered(
    start_node: StartNode, rm: FakeResourceManager, escaped: Escaped
) -> None:
    node = await start_node({"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    master = Master(rm, node)
    await master.run(ONE, launch_context(escaped.command("exec sleep 1000", CLEARED)))
    (process,) = await escaped.running(1)
    held = await rm.until(lambda: node.runtime.containers[ONE].process)
    assert await gone(lambda: process.pid not in dict(held.strays))
    (escaped.folder / "alone").touch()
    assert await gone(lambda: process.ppid() != os.getpid())
    await asyncio.sleep(0.2)  # some looks of the monitor, which sees it without its parent
    assert process.pid in dict(held.strays) and not is_over(process)
    await master.stop(ONE)
    await rm.end_of(ONE)
    assert is_over(process)
    await master.client.close()


@pytest.mark.parametrize(("first", "limit"), [("env -i", ""), ("", "ulimit -S -x unlimited;")])
async def test_memory_of_what_escaped_counts(
    first: str, limit: str, rm: FakeResourceManager, start_node: StartNode, escaped: Escaped
) -> None:
    node = await start_node({"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    master = Master(rm, node)
    hold = "import time; held = bytearray(200 << 20); time.sleep(1000)"
    before = f"({limit} {first} setsid bash -c '(python3 -c \"{hold}\") & exit') &"
    await master.run(ONE, launch_context(escaped.command("exec sleep 1000", before)), resource=Resource(50, 1))
    assert (await rm.end_of(ONE)).exit_status in (ExitStatus.KILLED_EXCEEDED_PMEM, ExitStatus.KILLED_EXCEEDED_VMEM)
    await master.client.close()


#: slow to end when it is asked to
LISTENS = """
trap 'sleep 0.1; echo TERM >> {folder}/got; exit' TERM
echo > {folder}/ready
while true; do sleep 0.01; done
"""


@pytest.mark.parametrize("asks", [True, False])
async def test_a_program_under_a_shell_has_time_to_end(
    asks: bool, start_node: StartNode, rm: FakeResourceManager, escaped: Escaped
) -> None:
    """SIGTERM, asked for or sent to a container that is to stop, ends the shell that waits for the program at once."""
    node = await start_node({"yarn.nodemanager.sleep-delay-before-sigkill.ms": "20000"})
    master = Master(rm, node)
    await master.run(ONE, launch_context(f"{escaped.command('', LISTENS)} 1><LOG_DIR>/stdout"))
    assert await gone(lambda: not (escaped.folder / "ready").exists())
    assert await gone(lambda: node.runtime.containers[ONE].process is None)  # its node may hear of it later
    if asks:
        node.runtime.signal(ONE, signal.SIGTERM)
    else:
        await master.stop(ONE)
    assert (await rm.end_of(ONE)).exit_status == (143 if asks else ExitStatus.KILLED_BY_APPMASTER)
    assert (escaped.folder / "got").read_text().startswith("TERM")
    await master.client.close()


async def test_a_number_that_is_another_process_by_now_is_let_be(stranger: psutil.Process, tmp_path: Path) -> None:
    mark = mark_for(tmp_path / "container.pid")
    signal_marked(stranger.pid, signal.SIGKILL, {mark})
    assert kill_marked({mark}) == set() and marked({mark}) == []
    assert not is_over(stranger)
