"""Containers as processes: waiting by pidfd on the event loop, signals to whole groups, and what leaders leave behind.

A process is a group leader and, since the NodeManager is a child subreaper, its child whoever forked it. Its group
is killed before it is reaped: until then the kernel gives its number to nobody else, so no stranger can be hit.
All processes of a container are in its control group where there is one (`nm.resources.groups`), carry its mark
(`nm.warm.marks`) or are its strays (`nm.resources.strays`). When the leader has ended, those that it left behind are
asked to end and, some time later, killed: a shell that SIGTERM ends at once gives the program it waited for that time.
"""

import asyncio
import ctypes
import hashlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path

from nm.resources.groups import ContainerGroup
from nm.resources.strays import Stray, continue_stopped, is_stray, living, signal_strays, strays
from nm.warm import marks
from nm.warm.client import Reaped
from yaqd.ipc.tasks import TaskSet

log = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER = 36
_ADOPTION_DELAYS_S = (0.0, 0.01, 0.05, 0.2, 1.0)
#: between looks at what is left of a container; a process that cannot be killed in so long is in the kernel's hands
_LOOK_S = 0.01
_KILLING_S = 10.0


def become_subreaper(own_mark: int = 0) -> None:
    """Makes orphaned descendants children of this process. Raises OSError where the kernel refuses.

    `own_mark`: of what this process starts itself, from now on. One that it has already stays, as it is told by that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    if not marks.can_be_set():
        log.warning("hard limit of file locks (ulimit -H -x): what leaves its session may outlive a container")
    elif own_mark and not marks.is_mark(marks.mark_of(os.getpid())):
        marks.set_mark(own_mark)


class ContainerProcess:
    """A container's process group leader. `exited` resolves once, to the exit code (128 + signal for a killed one).

    Its forker is its parent and reaps it when asked; when the forker is gone, this process is.
    """

    def __init__(
        self,
        pid: int,
        reap_by_forker: Callable[[int], Awaitable[Reaped | None]],
        mark: int,
        *,
        container: str,
        group: ContainerGroup | None = None,
        kill_delay_s: float,
        is_warm: bool = False,
    ) -> None:
        """`kill_delay_s`: what is asked to end is killed so long later. Raises OSError when there is none."""
        self.pid = pid
        #: forked from the prepared process rather than started by the script
        self.is_warm = is_warm
        self.mark = mark
        self.container = container
        #: all its processes are in it, as far as it could be made
        self.group = group
        #: what was found of it without its mark, at the last look
        self.strays: frozenset[Stray] = frozenset()
        self._kill_delay_s = kill_delay_s
        #: it has been asked to end, and is killed then
        self._kill_at: float | None = None
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._reap_by_forker = reap_by_forker
        self._tasks = TaskSet(lambda error: log.error("process %d cannot be followed to its end", pid, exc_info=error))
        #: what it used, once `exited` is done; None: nobody knows
        self.reaped: Reaped | None = None
        #: it has ended; its exit code follows
        self.is_over = False
        self._when_ended: Callable[[], None] | None = None
        self._pidfd = os.pidfd_open(pid)
        self._loop.add_reader(self._pidfd, self._ended)

    @property
    def is_ending(self) -> bool:
        """Tell whether it, or what it left behind, has been asked to end."""
        return self._kill_at is not None

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls once the process has ended and what it left behind is killed; `exited` takes longer, for the code."""
        if self.is_over:
            call()
        else:
            self._when_ended = call

    def signal_group(self, number: int) -> None:
        """Signals every process of the group; does nothing when the leader was reaped."""
        if self.exited.done():
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            log.warning("not permitted to send signal %d to process group %d", number, self.pid)

    async def terminate(self) -> None:
        """Sends SIGTERM to the group, and SIGKILL some time later to all that still lives. Waits for its end."""
        self.signal_group(signal.SIGTERM)
        if self._kill_at is None:
            self._kill_at = self._loop.time() + self._kill_delay_s
        try:
            async with asyncio.timeout_at(self._kill_at):
                await asyncio.shield(self.exited)
        except TimeoutError:
            self.signal_group(signal.SIGKILL)
            await asyncio.shield(self.exited)

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        in_group = self.group is not None and bool(self.group.pids())
        if in_group or _may_have_left(self.mark, self.container, self.strays):
            self._tasks.start(self._clear())
        else:
            self._over()

    async def _clear(self) -> None:
        """Ends what the leader left behind."""
        left = self._left()
        if self._kill_at is None:
            self._kill_at = self._loop.time() + self._kill_delay_s
            self._signal_left(left, signal.SIGTERM)
        while (left or self.strays) and self._loop.time() < self._kill_at + _KILLING_S:
            if self._loop.time() >= self._kill_at:
                self._signal_left(left, signal.SIGKILL)
                if self.group is not None:
                    self.group.kill()
            await asyncio.sleep(_LOOK_S)
            left = self._left()
        left += [pid for pid, _ in self.strays]
        if left:
            log.warning("processes %s, which process %d left behind, cannot be killed", left, self.pid)
        self._over()

    def _signal_left(self, marked: list[int], number: int) -> None:
        for pid in marked:
            marks.signal_marked(pid, number, {self.mark})
        signal_strays(self.strays, number)

    def _left(self) -> list[int]:
        """Those with its mark; the others are its strays then."""
        try:
            left = [pid for pid in marks.marked({self.mark}) if pid != self.pid]
        except OSError as error:
            log.warning("cannot tell what process %d left behind: %s", self.pid, error)
            left = []
        seen = set(self.strays)
        if self.group is not None:
            seen.update(one for pid in self.group.pids() if pid not in (self.pid, *left) and (one := living(pid)))
        self.strays = frozenset(strays(self.container, left, seen))
        return left

    def _over(self) -> None:
        self.signal_group(signal.SIGKILL)  # what took its mark away
        if self.group is not None:
            self.group.kill()
        self.is_over = True
        if self._when_ended is not None:
            self._when_ended()
        self._tasks.start(self._reap())

    async def _reap(self) -> None:
        reaped = self._reap_own_child()
        if reaped is None:
            reaped = await self._reap_by_forker(self.pid)
        for delay_s in _ADOPTION_DELAYS_S:
            if reaped is not None:
                break
            await asyncio.sleep(delay_s)  # the forker is dying: the kernel hands its children over
            reaped = self._reap_own_child()
        os.close(self._pidfd)
        self.reaped = reaped
        self.exited.set_result(LOST if reaped is None else reaped.exit_code)
        if self.group is not None:
            await self.group.remove()

    def _reap_own_child(self) -> Reaped | None:
        """It has ended, so that until it is reaped its number is its own."""
        try:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:
            return None
        return Reaped.of(status, used.ru_utime + used.ru_stime, used.ru_maxrss << 10) if pid else None


#: Hadoop's code of a container whose end nobody saw
LOST = 154


def mark_for(pid_file: Path) -> int:
    """Returns the mark of the container whose process's number stands in this file.

    It is nobody else's on this machine, and no limit that anybody sets.
    """
    digest = hashlib.blake2b(os.fsencode(pid_file), digest_size=8).digest()
    return int.from_bytes(digest) >> 3 | 1 << 61


def _may_have_left(mark: int, container: str, seen: Collection[Stray]) -> bool:
    """Quicker than a look at all processes: whatever lost its parents has become this process's child."""
    pid = os.getpid()
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
    except OSError:
        return True  # a kernel that does not tell
    return any(marks.mark_of(child) == mark or is_stray(child, container, seen) for child in map(int, children))


def kill_leftovers(pid_files: Iterable[Path]) -> None:
    """Kills what is left of the containers that these files belonged to. Blocking, as a rule shortly.

    What has lost its mark and was stopped goes on.
    """
    files = list(pid_files)
    killed = marks.kill_marked({mark_for(pid_file) for pid_file in files})
    if killed:
        log.warning("killed processes %s, which containers had left behind", sorted(killed))
    if continued := continue_stopped({pid_file.stem for pid_file in files}):
        log.warning("processes %s, which containers had left behind, were stopped and go on", continued)
