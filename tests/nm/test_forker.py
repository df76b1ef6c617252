"""The bare forker alone: what a command starts with, and what keeps one bad start from harming the others."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from nm.warm.client import ForkerClient, StartRequest

PROBE = """
echo $$ $(cut -d' ' -f5,6,41 /proc/$$/stat) $PWD $WORD $(ls -l /proc/$$/fd | grep -c socket)
grep -E 'SigBlk|SigIgn' /proc/self/status
exit 7
"""
_KNOWN = sum(1 << (number - 1) for number in signal.valid_signals())


@pytest.fixture
async def forker() -> AsyncIterator[ForkerClient]:
    client = ForkerClient("bare")
    client.start()
    await client.ready()
    yield client
    await client.stop()


def request(folder: Path, *argv: str) -> StartRequest:
    return StartRequest(
        entry=None,
        arguments=argv,
        environment={"PATH": os.environ["PATH"], "WORD": "nonsense"},
        work_dir=folder,
        stdout=folder / "out",
        stderr=folder / "err",
        pid_file=folder / "pid",
        is_batch=True,
    )


async def ended(forker: ForkerClient, pid: int) -> int:
    """Returns the exit code."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, over.set)
    async with asyncio.timeout(20):
        await over.wait()
    loop.remove_reader(descriptor)
    os.close(descriptor)
    reaped = await forker.reap(pid)
    assert reaped is not None
    return reaped.exit_code


def read(path: Path) -> str:
    return path.read_text()


async def test_a_command_starts_clean(forker: ForkerClient, tmp_path: Path) -> None:
    pid = await forker.start_process(request(tmp_path, "/bin/bash", "-c", PROBE))
    assert await ended(forker, pid) == 7
    about, blocked, ignored = read(tmp_path / "out").splitlines()
    assert about.split() == [*map(str, (pid, pid, pid, os.SCHED_BATCH)), str(tmp_path), "nonsense", "0"]
    assert [int(line.split()[1], 16) & _KNOWN for line in (blocked, ignored)] == [0, 0]
    assert read(tmp_path / "pid") == f"{pid}\n" and not read(tmp_path / "err")
    assert forker.pid is not None and os.sched_getscheduler(forker.pid) == os.sched_getscheduler(0)


async def test_one_that_cannot_start_says_why_and_harms_no_other(forker: ForkerClient, tmp_path: Path) -> None:
    good = request(tmp_path, "/bin/true")
    os.mkfifo(tmp_path / "pipe")
    bad = {
        "No such device": replace(good, stdout=tmp_path / "pipe"),  # a pipe that nobody reads
        "No such file or directory: '/no/such": replace(good, work_dir=Path("/no/such")),
        "No such file or directory: '/no/program": replace(good, arguments=("/no/program",)),
        "null": replace(good, environment={"A": "b\0c"}),
        "Argument list too long": replace(good, arguments=("/bin/true", "x" * 4_000_000)),
    }
    for words, one in bad.items():
        with pytest.raises(OSError, match=words):
            await forker.start_process(one)
    assert await ended(forker, await forker.start_process(good)) == 0


async def test_the_whole_group_can_be_killed_from_the_first_moment(forker: ForkerClient, tmp_path: Path) -> None:
    pid = await forker.start_process(request(tmp_path, "/bin/sleep", "1000"))
    os.killpg(pid, signal.SIGKILL)
    assert await ended(forker, pid) == 128 + signal.SIGKILL
