"""One look at /proc: which processes belong to which container, and what they use.

A container is what carries its mark, its leader's descendants, everything in its session and its strays
(`nm.resources.strays`); each process is read once per scan however many containers there are. Numbers are the kernel's:
resident pages count shared ones in full, so whoever looks overdrawn is asked for its proportional share (PSS) before
anything is done about it: forked tasks share most of their pages.
"""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

from nm.resources.strays import Stray
from nm.warm.marks import is_mark, mark_of

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
#: of some processes, that are looked at: who has more is at work
_THREADS_MAX = 256


@dataclass(frozen=True, slots=True)
class ProcessReading:
    pid: int
    parent: int
    session: int
    #: one letter as in /proc/PID/stat; Z has ended and waits for its parent
    state: str
    #: clock ticks after boot
    started: int
    resident_bytes: int
    virtual_bytes: int
    #: with that of its children that have ended and were waited for
    cpu_s: float
    #: of its container (`nm.warm.marks`), or what the limit is otherwise; None: unknown
    mark: int | None


@dataclass(slots=True)
class Usage:
    """Sums over one container's processes, in bytes and seconds."""

    physical_bytes: int = 0
    virtual_bytes: int = 0
    #: of processes that were there at the scan before, too
    aged_physical_bytes: int = 0
    aged_virtual_bytes: int = 0
    cpu_s: float = 0.0
    pids: tuple[int, ...] = ()


class ProcessTable:
    """All processes at one moment. Blocking to make."""

    def __init__(self, readings: Iterable[ProcessReading]) -> None:
        self.by_pid = {reading.pid: reading for reading in readings}
        self._children: dict[int, list[int]] = {}
        self._sessions: dict[int, list[int]] = {}
        self._marked: dict[int | None, list[int]] = {}
        for reading in self.by_pid.values():
            self._children.setdefault(reading.parent, []).append(reading.pid)
            self._sessions.setdefault(reading.session, []).append(reading.pid)
            self._marked.setdefault(reading.mark, []).append(reading.pid)

    @classmethod
    def scan(cls) -> "ProcessTable":
        with os.scandir("/proc") as entries:
            names = [entry.name for entry in entries if entry.name.isdigit()]
        return cls(reading for name in names if (reading := _read(name)) is not None)

    def members(self, leader: int, mark: int, others: Iterable[int] = ()) -> list[int]:
        """Lists the container's processes.

        They are those marked, the leader and its session, `others`, and the descendants of all these.
        """
        found = {leader, *self._sessions.get(leader, ()), *self._marked.get(mark, ()), *others} & self.by_pid.keys()
        pending = sorted(found)
        while pending:
            for child in self._children.get(pending.pop(), ()):
                if child not in found:
                    found.add(child)
                    pending.append(child)
        return sorted(found)

    def children(self, parent: int) -> list[ProcessReading]:
        return [self.by_pid[pid] for pid in self._children.get(parent, ())]

    def still_there(self, strays: Iterable[Stray]) -> list[int]:
        return [pid for pid, started in strays if pid in self.by_pid and self.by_pid[pid].started == started]

    def strays(self, leader: int, members: Iterable[int]) -> frozenset[Stray]:
        """Returns those of a container's processes that carry no mark."""
        found = (self.by_pid[pid] for pid in members if pid != leader)
        return frozenset((one.pid, one.started) for one in found if not is_mark(one.mark))

    def usage(self, leader: int, mark: int, earlier: "ProcessTable | None", others: Iterable[int] = ()) -> Usage:
        usage = Usage(pids=tuple(self.members(leader, mark, others)))
        for pid in usage.pids:
            reading = self.by_pid[pid]
            usage.physical_bytes += reading.resident_bytes
            usage.virtual_bytes += reading.virtual_bytes
            usage.cpu_s += reading.cpu_s
            before = earlier.by_pid.get(pid) if earlier is not None else None
            if before is not None and before.started == reading.started:
                usage.aged_physical_bytes += reading.resident_bytes
                usage.aged_virtual_bytes += reading.virtual_bytes
        return usage


@dataclass(frozen=True, slots=True)
class ProcessorNeed:
    """How much some processes want a processor."""

    #: for how long their threads of now had one, or waited until they had, all together, s
    had_s: float
    #: one of them has, or waits for one (or for a disk) at this moment
    wants: bool


def stat_fields(text: bytes) -> list[bytes]:
    """Split the text of /proc/PID/stat; returns what comes after the program's name."""
    return text[text.rindex(b")") + 2 :].split()


def small_file(path: str) -> bytes:
    """Read the first 64 KB of a file. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        return file.read(65536)


def _read(pid: str) -> ProcessReading | None:
    try:
        text = small_file(f"/proc/{pid}/stat")
    except OSError:
        return None  # it has ended
    fields = stat_fields(text)
    return ProcessReading(
        pid=int(pid),
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0].decode("ascii"),
        started=int(fields[19]),
        resident_bytes=int(fields[21]) * _PAGE,
        virtual_bytes=int(fields[20]),
        cpu_s=sum(map(int, fields[11:15])) / _TICKS,
        mark=mark_of(int(pid)),
    )


def proportional_bytes(pid: int) -> int | None:
    """Reads a process's PSS, bytes: private pages plus a share of the shared ones.

    Blocking, some milliseconds; None if unreadable.
    """
    try:
        text = small_file(f"/proc/{pid}/smaps_rollup")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return None


def machine_memory() -> tuple[int, int]:
    """Reads bytes in use and bytes committed, of the whole machine. Blocking."""
    values = {}
    for line in small_file("/proc/meminfo").splitlines():
        name, _, rest = line.partition(b":")
        values[name] = int(rest.split()[0]) << 10
    used = values[b"MemTotal"] - values.get(b"MemAvailable", values[b"MemFree"])
    return used, values.get(b"Committed_AS", used)


def processor_need(leader: int) -> ProcessorNeed | None:
    """Reads what processor time a process and those that it started had, and whether they want more.

    Where processors are scarce, what they used says little of what they would use. None: it has ended, or the kernel
    does not tell.

    Blocking, some hundredths of a millisecond a thread. Unlike a scan it looks at no other processes. It stops looking
    once a thread wants a processor, or there are very many. What a thread other than a process's first one started is
    not found.
    """
    had_ns, looked_at, wants, pending, pids = 0, 0, False, [leader], {leader}
    while pending:
        pid = pending.pop()
        try:
            with os.scandir(f"/proc/{pid}/task") as threads:
                for thread in threads:
                    looked_at += 1
                    if wants or looked_at > _THREADS_MAX:
                        return ProcessorNeed(had_ns / 1e9, wants=True)
                    with contextlib.suppress(OSError):  # it has ended meanwhile
                        had_ns += sum(map(int, small_file(f"{thread.path}/schedstat").split()[:2]))
                        wants = stat_fields(small_file(f"{thread.path}/stat"))[0] in b"RD"
            children = {*map(int, small_file(f"/proc/{pid}/task/{pid}/children").split())} - pids
        except OSError:
            if pid == leader:
                return None
            continue
        pids |= children
        pending += children
    return ProcessorNeed(had_ns / 1e9, wants)


def machine_cpu_s() -> float:
    """Reads for how many seconds all cores together have been busy since boot. Blocking."""
    with open("/proc/stat", "rb", buffering=0) as file:
        fields = [int(field) for field in file.read(1024).split(b"\n", 1)[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / _TICKS
