"""Containers as processes: waiting by pidfd on the event loop, signals to whole groups, parents and orphans.

A process is a group leader and, since the NodeManager is a child subreaper, its child whoever forked it. Its group
is killed before it is reaped: until then the kernel gives its number to nobody else, so no stranger can be hit.
"""

import asyncio
import ctypes
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process. Raises OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class ChildProcess:
    """A container's process group leader. `exited` resolves once, to the exit code (128 + signal for a killed one)."""

    def __init__(self, pid: int, on_reaped: Callable[[int], None]) -> None:
        """Raises ProcessLookupError when there is no such child. `on_reaped` hears of the end before the waiters."""
        self.pid = pid
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._on_reaped = on_reaped
        self._pidfd = os.pidfd_open(pid)
        os.set_blocking(self._pidfd, False)
        self._loop.add_reader(self._pidfd, self._reap)

    def signal_group(self, number: int) -> None:
        """To every process of the group; nothing when the leader was reaped."""
        if self.exited.done():
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            log.warning("not permitted to send signal %d to process group %d", number, self.pid)

    async def terminate(self, delay_s: float) -> None:
        """SIGTERM to the group, SIGKILL when the leader still lives `delay_s` later; returns when it has ended."""
        self.signal_group(signal.SIGTERM)
        try:
            async with asyncio.timeout(delay_s):
                await asyncio.shield(self.exited)
        except TimeoutError:
            self.signal_group(signal.SIGKILL)
            await asyncio.shield(self.exited)

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.signal_group(signal.SIGKILL)  # what the leader left behind
        try:
            found = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            found = None  # reaped by somebody else: its code is lost
        finally:
            os.close(self._pidfd)
        self._on_reaped(self.pid)
        self.exited.set_result(_exit_code(found))


def _exit_code(found: os.waitid_result | None) -> int:
    if found is None:
        return LOST
    return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status


#: Hadoop's code of a container whose end nobody saw
LOST = 154


def environment_of(pid: int, name: str) -> str | None:
    """One variable of the environment that a process was started with; None when unreadable or unset."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = name.encode() + b"="
    for entry in text.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode("utf-8", "replace")
    return None


def kill_leftover(pid_file: Path, container_id: str) -> bool:
    """Kills the group that a pid file names, if that process is still the container's. True when one was killed."""
    try:
        pid = int(pid_file.read_text(encoding="ascii")[:20])
    except (OSError, ValueError):
        return False
    if pid <= 1 or environment_of(pid, "CONTAINER_ID") != container_id:
        return False
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    log.warning("killed process group %d that container %s had left behind", pid, container_id)
    return True
