"""Processes of containers that have lost their mark (`nm.warm.marks`): for what runs by `su`, PAM sets all limits anew.

Whose they are is known by CONTAINER_ID in the environment that they began with, and by their parents. Where they have
neither any more (`su -`), it is known by a look of the monitor that found them below their container. Orphans become
children of this process (a child subreaper), so that no look goes further than these and what is below. Who comes and
loses all of it between two looks belongs to nobody that can be told (`nm.resources.unclaimed`). Where the NodeManager
was killed, only marks count.
"""

import contextlib
import os
import signal
from collections.abc import Collection, Iterable

from nm.warm.marks import is_mark, mark_of
from yaqd.model.child_processes import children_of

#: a process's number and when it began, in clock ticks after boot: nobody else's, ever
Stray = tuple[int, int]
_NAME = b"CONTAINER_ID="
#: a longer environment is not read to its end
_ENVIRONMENT_MAX = 1 << 20


def container_of(pid: int) -> str | None:
    """Returns the container whose environment a process began with.

    None: nobody's, or it has ended, or is not ours to ask.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            values = file.read(_ENVIRONMENT_MAX).split(b"\0")
    except OSError:
        return None
    return next((value[len(_NAME) :].decode(errors="replace") for value in values if value.startswith(_NAME)), None)


def named(pids: Iterable[int]) -> dict[str, list[int]]:
    """Returns, by container, the processes that began with its environment. Blocking."""
    found: dict[str, list[int]] = {}
    for pid in pids:
        if (container := container_of(pid)) is not None:
            found.setdefault(container, []).append(pid)
    return found


def continue_stopped(containers: Collection[str]) -> list[int]:
    """Continues what is stopped and began with the environment of one of these containers; returns its numbers.

    Blocking. For what another life of this NodeManager stopped and nobody can kill by a mark.
    """
    if not containers:
        return []
    names = os.listdir("/proc")  # noqa: PTH208
    stopped = [int(name) for name in names if name.isdigit() and _is_stopped(int(name))]
    found = [stray for pid in stopped if container_of(pid) in containers and (stray := living(pid)) is not None]
    signal_strays(found, signal.SIGCONT)
    return [pid for pid, _ in found]


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] == b"T"
    except OSError:
        return False


def is_stray(pid: int, container: str, seen: Collection[Stray]) -> bool:
    """Returns whether a child of this process is the container's, though it does not carry its mark.

    `seen`: strays that were found earlier.
    """
    if is_mark(mark_of(pid)):
        return False
    stray = living(pid)
    return stray is not None and (stray in seen or container_of(pid) == container)


def strays(container: str, marked: Iterable[int], seen: Collection[Stray]) -> set[Stray]:
    """Finds a container's processes besides those that are marked. Blocking, shortly."""
    pending = [pid for pid in children_of(os.getpid()) if is_stray(pid, container, seen)]
    pending += [pid for pid, started in seen if living(pid) == (pid, started)]
    found = set(pending)
    pending += marked
    while pending:
        new = {pid for pid in children_of(pending.pop()) if not is_mark(mark_of(pid))} - found
        found |= new
        pending += new
    return {stray for pid in found if (stray := living(pid)) is not None}


def signal_strays(found: Iterable[Stray], number: int) -> None:
    """Signals those that have not ended; never another process that has such a number by now."""
    for stray in found:
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            descriptor = os.pidfd_open(stray[0])
            try:
                if living(stray[0]) == stray:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def living(pid: int) -> Stray | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    return None if fields[0] in b"ZX" else (pid, int(fields[19]))
