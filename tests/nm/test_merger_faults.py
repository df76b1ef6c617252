"""The merger killed in the middle, refused by the disk, or left alone by its node: nothing half-made is ever seen."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from nm.shuffle.jobs import job_id
from riffle_merger.service.launch import MergerLaunch
from riffle_merger.service.protocol import MergeFailed
from tests.nm.nm_cluster import USER, FakeResourceManager, application, container_id, launch_context
from tests.nm.nm_faults import NodeProcess, gone
from tests.nm.nm_merger_kept import JOB, MB, SETTINGS, started, verified
from tests.nm.nm_processes import is_over
from tests.riffle_merger.map_outputs import write_output
from yaqd.ipc import RemoteException, RpcError
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text

MAPS = ["attempt_a", "attempt_b"]
#: of a node that merges for unmodified jobs
MERGING = {
    "yaq.riffle.enabled": "true",
    "yaq.riffle.merger.memory": "64m",
    "yaq.riffle.shuffle.policy": "files",
    "yaq.riffle.shuffle.files": "2",
}
#: keeps a merger as a node does, says its process, and waits to be killed
NODE = """
import asyncio
from nm.merger import MergerProcess, MergerProcessSettings as Settings
async def main():
    merger = MergerProcess(Settings(True, "127.0.0.1", 0, 1 << 24, 1, 10, 5, False, 30.0))
    merger.start()
    await merger.ready()
    print(merger.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.slow
async def test_killed_in_mid_merge_it_leaves_nothing_that_anybody_would_read(tmp_path: Path) -> None:
    written = [write_output(tmp_path, name, [os.urandom(MB)] * 48) for name in MAPS]
    merger = await started(tmp_path)
    try:
        pid = merger.pid
        assert pid is not None
        call = asyncio.create_task(merger.merge(JOB, "1", MAPS, timeout_s=30))
        folder = tmp_path / "riffle"
        async with asyncio.timeout(20):
            while not (folder.exists() and any(folder.iterdir())):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RpcError):
            await call
        assert all(path.name.startswith(".") for path in folder.iterdir())
        async with asyncio.timeout(30):
            while merger.pid in (pid, None):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await merger.ready()
        merged = await merger.merge(JOB, "1", MAPS, timeout_s=30)
        verified(tmp_path, merged.name, written)
        assert sorted(path.name for path in folder.iterdir()) == [f"{merged.name}.out", f"{merged.name}.out.index"]
    finally:
        await merger.stop()


async def test_a_disk_that_takes_no_more_fails_one_merge(tmp_path: Path) -> None:
    """The kernel refuses what goes beyond the largest file that the process may write."""
    written = [write_output(tmp_path, name, [os.urandom(MB)]) for name in MAPS]
    merger = await started(tmp_path)
    try:
        assert merger.pid is not None
        _, hard = resource.prlimit(merger.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(merger.pid, resource.RLIMIT_FSIZE, (MB, hard))
        with pytest.raises(RemoteException) as failed:
            await merger.merge(JOB, "1", MAPS, timeout_s=30)
        assert failed.value.class_name == MergeFailed.JAVA_CLASS and "riffle" in failed.value.message
        assert list((tmp_path / "riffle").iterdir()) == []
        resource.prlimit(merger.pid, resource.RLIMIT_FSIZE, (hard, hard))
        merged = await merger.merge(JOB, "1", MAPS, timeout_s=30)
        verified(tmp_path, merged.name, written)
        assert merger.restarts == 0
    finally:
        await merger.stop()


@pytest.mark.slow
def test_a_killed_node_takes_its_merger_with_it() -> None:
    with subprocess.Popen([sys.executable, "-c", NODE], stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        merger = psutil.Process(int(node.stdout.readline()))
        node.kill()
        node.wait()
        merger.wait(20)
    assert not merger.is_running()


@pytest.mark.slow
async def test_half_a_file_of_a_merger_killed_with_its_node_is_gone_when_that_starts_again(
    rm: FakeResourceManager, tmp_path: Path
) -> None:
    """One that the node asked for by itself, since the job is an unmodified one."""
    app_dir = tmp_path / "local/usercache" / USER / "appcache" / str(application())
    job = job_id(application())
    token = Token(encode_text(job), b"secret", JOB_TOKEN, "").to_writable()
    node = await NodeProcess.start(rm, tmp_path, MERGING)
    try:
        master = node.master(rm)
        await master.run(container_id(1), launch_context("sleep 60", service_data={"mapreduce_shuffle": token}))
        await master.client.close()
        assert await gone(lambda: not mergers(node), 30)
        (merger,) = mergers(node)
        half = await asyncio.to_thread(half_written, app_dir, job, merger)
        node.process.kill()
        merger.kill()
        assert await gone(lambda: not is_over(merger), 20)
    finally:
        await ended(node)
    assert half.exists() and any((app_dir / "output").iterdir())
    again = await NodeProcess.start(rm, tmp_path, MERGING)
    try:
        assert not app_dir.exists()  # moved out of the way before the node was ready
        local = tmp_path / "local"
        kept = {"filecache", "nmPrivate", "usercache"}
        assert await gone(lambda: {path.name for path in local.iterdir()} != kept)
    finally:
        await ended(again)


def mergers(node: NodeProcess) -> list[psutil.Process]:
    children = psutil.Process(node.process.pid).children()
    return [child for child in children if "riffle_merger.service" in child.cmdline()]


def half_written(app_dir: Path, job: str, merger: psutil.Process) -> Path:
    """The file that the merger was writing when it was stopped: of the first two map outputs, or of the next."""
    folder = app_dir / "riffle"
    for pair in range(8):
        for number in (2 * pair, 2 * pair + 1):
            write_output(app_dir, f"attempt_{job[4:]}_m_{number:06d}_0", [os.urandom(MB // 2)] * 96)
        deadline = time.monotonic() + 30
        while not any(folder.glob(".*.out")) and len(list(folder.glob("*.out.index"))) == pair:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        merger.suspend()
        while merger.status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        for half in folder.glob(".*.out"):
            return half
        merger.resume()
    raise AssertionError("eight merges were over before the merger could be stopped")


async def ended(node: NodeProcess) -> None:
    if node.process.returncode is None:
        node.process.kill()
    await node.process.communicate()


def test_whose_node_is_gone_before_it_listens_ends_without_a_word() -> None:
    """As when a node finds its port taken while its merger is starting."""
    launch = MergerLaunch(
        host=SETTINGS.bind_host,
        port=SETTINGS.port,
        secret="00" * 32,
        budget_bytes=SETTINGS.budget_bytes,
        running_max=SETTINGS.running_max,
        waiting_max=SETTINGS.waiting_max,
        niceness=SETTINGS.niceness,
        is_idle_io=SETTINGS.is_idle_io,
        disk_max_percent=SETTINGS.disk_max_percent,
        storage={},
    )
    words = [sys.executable, "-m", "riffle_merger.service"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as merger:
        assert merger.stdin is not None and merger.stdout is not None and merger.stderr is not None
        merger.stdout.close()
        merger.stdin.write(launch.to_json().encode("ascii") + b"\n")
        merger.stdin.close()
        assert merger.stderr.read() == b""
    assert merger.returncode == 0
