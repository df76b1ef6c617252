"""The mark of a container: a number that all its processes inherit and keep, whatever they do to parents, session and
environment.

A process that makes a session of its own, forgets its environment and loses its parents cannot be told from others by
any of these. Its resource limits stay. The mark is the soft limit of file locks: the kernel has not looked at that
since Linux 2.4.25. Any user may set it, and whoever may send a process a signal may read it. Unlike a control group it
needs no rights on the machine. Unlike a look at who descends from whom it misses no process whose parents came and went
between two looks. A program that takes the limit away on purpose loses its mark.

The standard library only: forkers import this.
"""

import contextlib
import os
import resource
import signal
import time
from collections.abc import Collection
from typing import TypeGuard

#: RLIMIT_LOCKS
_LIMIT = 10
_KILL_DELAYS_S = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def can_be_set() -> bool:
    return resource.getrlimit(_LIMIT)[1] == resource.RLIM_INFINITY


def set_mark(mark: int) -> int:
    """Marks this process and all that it starts from now on; returns the mark before. Best effort."""
    before, most = resource.getrlimit(_LIMIT)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(_LIMIT, (mark, most))
    return before


def mark_of(pid: int) -> int | None:
    """Returns the process's mark; None: it has ended, or is not ours to ask."""
    try:
        return resource.prlimit(pid, _LIMIT)[0]
    except OSError:
        return None


def is_mark(limit: int | None) -> TypeGuard[int]:
    """Returns whether this is the mark of a container, rather than a limit that somebody set."""
    return limit is not None and limit >> 61 == 1


def marked(marks: Collection[int]) -> list[int]:
    """Lists the processes that carry one of these marks and have not ended."""
    names = os.listdir("/proc")  # noqa: PTH208
    return [pid for name in names if name.isdigit() and mark_of(pid := int(name)) in marks and not _has_ended(pid)]


def _has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in b"ZX"
    except OSError:
        return True


def signal_marked(pid: int, number: int, marks: Collection[int]) -> None:
    """Signals a process if it carries one of these marks.

    Does nothing where it has ended, even if another has its number by now.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if mark_of(pid) in marks:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        pass  # it has ended, or has become another user's
    finally:
        os.close(descriptor)


def kill_marked(marks: Collection[int]) -> set[int]:
    """Kills all that carry one of these, and what they fork meanwhile; returns whom. Blocking, as a rule shortly."""
    killed: set[int] = set()
    for delay_s in _KILL_DELAYS_S if marks else ():
        time.sleep(delay_s)
        alive = marked(marks)
        if not alive:
            break
        for pid in alive:
            signal_marked(pid, signal.SIGKILL, marks)
        killed.update(alive)
    return killed
