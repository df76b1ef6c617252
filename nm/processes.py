"""Containers as processes: waiting by pidfd on the event loop, signals to whole groups, parents and orphans.

A process is a group leader and, since the NodeManager is a child subreaper, its child whoever forked it. Its group
is killed before it is reaped: until then the kernel gives its number to nobody else, so no stranger can be hit.
"""

import asyncio
import ctypes
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

log = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER = 36
_ADOPTION_DELAYS_S = (0.0, 0.01, 0.05, 0.2, 1.0)


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process. Raises OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class ContainerProcess:
    """A container's process group leader. `exited` resolves once, to the exit code (128 + signal for a killed one).

    Its forker is its parent and reaps it when asked; when the forker is gone, this process is.
    """

    def __init__(
        self, pid: int, reap_by_forker: Callable[[int], Awaitable[int | None]], *, is_warm: bool = False
    ) -> None:
        """Raises OSError when there is no such process."""
        self.pid = pid
        #: forked from the prepared process rather than started by the script
        self.is_warm = is_warm
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._reap_by_forker = reap_by_forker
        self._reaping: asyncio.Task[None] | None = None
        #: it has ended; its exit code follows
        self.is_over = False
        self._when_ended: Callable[[], None] | None = None
        self._pidfd = os.pidfd_open(pid)
        self._loop.add_reader(self._pidfd, self._ended)

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls once the process has ended and what it left behind is killed; `exited` takes longer, for the code."""
        if self.is_over:
            call()
        else:
            self._when_ended = call

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

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.signal_group(signal.SIGKILL)  # what the leader left behind
        self.is_over = True
        if self._when_ended is not None:
            self._when_ended()
        self._reaping = self._loop.create_task(self._reap())

    async def _reap(self) -> None:
        code = self._own_child_code()
        if code is None:
            code = await self._reap_by_forker(self.pid)
        for delay_s in _ADOPTION_DELAYS_S:
            if code is not None:
                break
            await asyncio.sleep(delay_s)  # the forker is dying: the kernel hands its children over
            code = self._own_child_code()
        os.close(self._pidfd)
        self.exited.set_result(LOST if code is None else code)

    def _own_child_code(self) -> int | None:
        try:
            found = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            return None
        if found is None:
            return None
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
