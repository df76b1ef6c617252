"""Tasks of the live benchmark: real processes that say when they start, and sleep for as long as the trace says.

A container's command writes its number into a pipe that the benchmark reads and becomes `sleep`, so that a task costs
one process, and its start is known to a millisecond on either side without reading logs. Its end is its start and its
duration: `sleep` is exact.
"""

import asyncio
import heapq
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_READ_BYTES = 64 << 10


@dataclass(slots=True)
class Task:
    """One task as the client knows it; times are seconds of the client's clock, None until they are known."""

    number: int
    duration_s: float
    #: host and port of the node that runs it
    node: str = ""
    asked_at: float = 0.0
    given_at: float | None = None
    started_at: float | None = None
    #: the ResourceManager told the master of its end
    told_at: float | None = None

    @property
    def ended_at(self) -> float:
        """When its process ended; raises where it never started."""
        if self.started_at is None:
            raise ValueError(f"task {self.number} did not start")
        return self.started_at + self.duration_s


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What became of one task, s since its trace began."""

    node: str
    duration_s: float
    asked_s: float
    given_s: float
    started_s: float
    #: its master heard of its end; None: it has not
    told_s: float | None


def record(task: Task, began: float) -> TaskRecord:
    """Return what became of a task that has started; raises ValueError where it has not."""
    if task.given_at is None or task.started_at is None:
        raise ValueError(f"task {task.number} has not started")
    asked_s, given_s, started_s = (moment - began for moment in (task.asked_at, task.given_at, task.started_at))
    told_s = None if task.told_at is None else task.told_at - began
    return TaskRecord(task.node, task.duration_s, asked_s, given_s, started_s, told_s)


class StartLog:
    """Numbers tasks and notes their starts; one for each run."""

    def __init__(self, folder: Path) -> None:
        """`folder`: exists; every node's containers may write to the pipe in it."""
        self._pipe = folder / "starts"
        os.mkfifo(self._pipe)
        self._pipe.chmod(0o666)
        self._descriptor = -1
        self._rest = b""
        self.tasks: list[Task] = []
        #: starts of a task that had already started: something ran it twice
        self.doubled = 0

    def task(self, duration_s: float) -> Task:
        """A new task."""
        made = Task(len(self.tasks), duration_s)
        self.tasks.append(made)
        return made

    def command(self, task: Task) -> str:
        """What its container runs."""
        return f"echo {task.number} > {self._pipe}; exec sleep {task.duration_s:.3f}"

    def __enter__(self) -> "StartLog":
        self._descriptor = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._pipe.unlink()

    def _read(self) -> None:
        now = time.monotonic()
        *lines, self._rest = (self._rest + os.read(self._descriptor, _READ_BYTES)).split(b"\n")
        for line in lines:
            task = self.tasks[int(line)]
            if task.started_at is not None:
                self.doubled += 1
            else:
                task.started_at = now


def utilization(tasks: Iterable[Task], slots: int, start: float, end: float) -> float:
    """Slot time with a process in it, as a share of all slot time between the two moments; in [0, 1]."""
    busy = 0.0
    for task in tasks:
        if task.started_at is not None:
            busy += max(min(task.ended_at, end) - max(task.started_at, start), 0.0)
    return busy / (slots * (end - start))


def start_gaps(tasks: Sequence[Task], start: float, end: float, *, queued: bool = False) -> list[float]:
    """Seconds between a process's end and the next one's start on the same node, for the starts between two moments.

    Each start takes the earliest end that no other start has taken, as slots that are filled in turn would. `queued`:
    only of tasks that their master had before the slot was free.
    """
    gaps: list[float] = []
    by_node: dict[str, list[Task]] = {}
    for task in tasks:
        if task.started_at is not None:
            by_node.setdefault(task.node, []).append(task)
    for found in by_node.values():
        free: list[float] = []
        for task in sorted(found, key=lambda task: task.started_at or 0.0):
            began = task.started_at or 0.0
            if free and free[0] <= began:
                freed = heapq.heappop(free)
                was_there = task.given_at is not None and task.given_at < freed
                if start <= began <= end and (was_there or not queued):
                    gaps.append(began - freed)
            heapq.heappush(free, task.ended_at)
    return gaps
