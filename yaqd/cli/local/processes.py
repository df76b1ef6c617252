"""Processes that outlive the command which started them, identified so that a reused pid is never taken for one.

A pid file holds the pid and the process's start time in clock ticks since boot (field 22 of /proc/PID/stat); both must
agree with /proc before anything is signalled.
"""

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    #: clock ticks since boot at which it started
    started_ticks: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Finds the living process with this pid; None if there is none or it is a zombie."""
        found = _state_and_start(pid)
        if found is None or found[0] in ("Z", "X"):
            return None
        return cls(pid, found[1])

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """Reads what the pid file says; None when it is missing or damaged."""
        try:
            pid, started_ticks = file.read_text().split()
            return cls(int(pid), int(started_ticks))
        except (OSError, ValueError):
            return None

    def write(self, file: Path) -> None:
        temporary = file.with_name(f".{file.name}.tmp")
        temporary.write_text(f"{self.pid} {self.started_ticks}\n")
        temporary.replace(file)

    def is_alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def is_halted(self) -> bool:
        """Returns whether a signal has stopped it, and none has let it go on."""
        found = _state_and_start(self.pid)
        return found is not None and found[0] in ("T", "t") and found[1] == self.started_ticks

    def signal_group(self, number: int) -> None:
        """Signals the process group that this process leads."""
        if self.is_alive():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass


def end_all(processes: Iterable[ProcessIdentity], grace_s: float) -> list[ProcessIdentity]:
    """Sends SIGTERM to all at once, SIGKILL to the groups of those that remain after `grace_s`; returns these."""
    alive = [process for process in processes if process.is_alive()]
    for process in alive:
        try:
            os.kill(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    late = wait_for_end(alive, grace_s)
    for process in late:
        process.signal_group(signal.SIGKILL)
    wait_for_end(late, grace_s)
    return late


def wait_for_end(processes: Iterable[ProcessIdentity], timeout_s: float) -> list[ProcessIdentity]:
    """Waits until all have ended or the time is over; returns those that still live."""
    deadline = time.monotonic() + timeout_s
    remaining = []
    for process in processes:
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        try:
            if process.is_alive():
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    remaining.append(process)
        finally:
            os.close(descriptor)
        _reap(process.pid)
    return remaining


def processes_working_under(*folders: Path) -> list[ProcessIdentity]:
    """Lists this user's processes whose working folder lies under one of these.

    Killed daemons leave such behind.
    """
    roots = [folder.resolve() for folder in folders]
    found = []
    for pid in _own_pids():
        try:
            working = Path(str(Path(f"/proc/{pid}/cwd").readlink()).removesuffix(" (deleted)"))
        except OSError:
            continue
        if any(working.is_relative_to(root) for root in roots):
            identity = ProcessIdentity.of(pid)
            if identity is not None:
                found.append(identity)
    return found


def running_clusters() -> list[Path]:
    """Lists folders of the clusters on this machine whose ResourceManager is one of this user's processes."""
    found = []
    for pid in _own_pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[-6:-3] == [b"yaqd.cli", b"rm", b"start"] and words[-3] == b"--conf":
            found.append(Path(os.fsdecode(words[-2])).parent)
    return sorted(found)


def left_by(dead: Iterable[ProcessIdentity], *folders: Path) -> list[ProcessIdentity]:
    """Lists what remains, working under these folders, of the process groups that dead processes led."""
    # a pid is not given anew while a group has it; where it was, the group was gone
    groups = {process.pid for process in dead if process.pid > 0 and ProcessIdentity.of(process.pid) is None}
    found = []
    for process in processes_working_under(*folders):
        with suppress(OSError):
            if os.getpgid(process.pid) in groups:
                found.append(process)
    return found


def proportional_set_bytes(process: ProcessIdentity) -> int | None:
    """Returns the memory of the process and its share of shared pages (PSS); None if it ended."""
    try:
        rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return None
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return None


def group_members(leader: ProcessIdentity) -> list[ProcessIdentity]:
    """Lists the living processes of the group that `leader` leads, itself included."""
    found = []
    for pid in _own_pids():
        try:
            if os.getpgid(pid) != leader.pid:
                continue
        except OSError:
            continue
        identity = ProcessIdentity.of(pid)
        if identity is not None:
            found.append(identity)
    return found


def _own_pids() -> Iterator[int]:
    own, user = os.getpid(), os.getuid()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != own:
            try:
                if entry.stat().st_uid == user:
                    yield int(entry.name)
            except OSError:
                continue


def _state_and_start(pid: int) -> tuple[str, int] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name, in parentheses, may hold anything: fields are counted after the last closing one.
    fields = stat[stat.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])


def _reap(pid: int) -> None:
    """Collects the exit status if the process was our own child, so that no zombie stays."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
