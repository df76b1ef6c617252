"""What a simulation found, and the recorder that collects it: one entry for each container that ran."""

from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from yaqd.model.values import value

Floats = NDArray[np.float64]


@value()
class JobResult:
    """Times are seconds of the simulation."""

    name: str
    user: str
    queue: str
    submitted: float
    #: when it was let in and its manager began to ask
    started: float
    #: when its first task ran
    first_run: float
    ended: float
    tasks: int

    @property
    def from_submission(self) -> float:
        """Job completion time with the wait to be let in."""
        return self.ended - self.submitted

    @property
    def from_start(self) -> float:
        """Job completion time as the paper has it (4.3)."""
        return self.ended - self.started


@dataclass(frozen=True)
class SimResult:
    """All arrays have one entry for each container that ran, in the order in which they ended; last those that the
    horizon ended."""

    #: those that are over, in the order of the workload
    jobs: tuple[JobResult, ...]
    #: that were not over at the horizon
    unfinished: int
    slots: int
    #: until the last job was over, or the horizon
    makespan: float
    #: when it came to its node, when its process ran, and when that ended
    arrived: Floats = field(repr=False)
    started: Floats = field(repr=False)
    ended: Floats = field(repr=False)
    #: index of its job in the workload, and whether it did its work (it was not killed)
    job: NDArray[np.int32] = field(repr=False)
    done: NDArray[np.bool_] = field(repr=False)
    #: leaf queue of each job of the workload
    job_queues: tuple[str, ...] = field(repr=False)
    #: how often what happened: events, heartbeats, polls, allocated, refused, killed, lost, ...
    counts: dict[str, int]

    @property
    def tasks(self) -> int:
        """Tasks that are done."""
        return int(np.count_nonzero(self.done))

    @property
    def queuing_delays(self) -> Floats:
        """From a task's coming to its node until its process ran, s."""
        return self.started - self.arrived

    def completion_times(self, *, from_start: bool = False) -> Floats:
        """Return the completion time of each job that is over, s."""
        return np.array([job.from_start if from_start else job.from_submission for job in self.jobs], dtype=np.float64)

    @property
    def jobs_per_minute(self) -> float:
        return len(self.jobs) / self.makespan * 60.0 if self.makespan > 0 else 0.0

    @property
    def utilization(self) -> float:
        """Part of the slots that held a running process, over the whole time."""
        return self.utilization_between(0.0, self.makespan)

    def utilization_between(self, since: float, until: float) -> float:
        """Return the utilization in one window of time, 0 for an empty one."""
        if until <= since:
            return 0.0
        busy = np.minimum(self.ended, until) - np.maximum(self.started, since)
        return float(np.sum(np.maximum(busy, 0.0)) / (self.slots * (until - since)))

    def shares(self, window_s: float) -> dict[str, Floats]:
        """Return, by leaf queue, the part of the cluster's slots that it held, in each window of `window_s`."""
        windows = max(1, int(np.ceil(self.makespan / window_s)))
        queues = np.array(self.job_queues)[self.job] if len(self.job) else np.array([], dtype=str)
        found = {}
        for queue in sorted(set(self.job_queues)):
            of_queue = queues == queue
            busy = _busy_by_window(self.started[of_queue], self.ended[of_queue], window_s, windows)
            found[queue] = busy / (self.slots * window_s)
        return found


def _busy_by_window(started: Floats, ended: Floats, window_s: float, windows: int) -> Floats:
    """Seconds of running processes in each window."""

    def until(times: Floats) -> Floats:
        """Seconds after `times` in each window, summed: by a window's own part and whole windows that follow."""
        at = np.minimum((times / window_s).astype(np.int64), windows - 1)
        part = np.minimum((at + 1) * window_s - times, window_s)
        later = np.cumsum(np.bincount(at, minlength=windows)).astype(np.float64)
        later = np.concatenate(([0.0], later[:-1])) * window_s
        return np.bincount(at, weights=np.maximum(part, 0.0), minlength=windows) + later

    return until(started) - until(ended)


class Recorder:
    """Collects while the simulation runs."""

    def __init__(self, jobs: int) -> None:
        self.arrived = array("d")
        self.started = array("d")
        self.ended = array("d")
        self.job = array("i")
        self.done = array("b")
        self.counts: dict[str, int] = {}
        #: by index in the workload
        self.jobs: list[JobResult | None] = [None] * jobs

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def ran(self, job: int, arrived: float, started: float, ended: float, *, done: bool) -> None:
        """Record that a process has ended."""
        self.arrived.append(arrived)
        self.started.append(started)
        self.ended.append(ended)
        self.job.append(job)
        self.done.append(done)

    def result(self, slots: int, queues: tuple[str, ...], now: float) -> SimResult:
        over = tuple(job for job in self.jobs if job is not None)
        unfinished = len(self.jobs) - len(over)
        return SimResult(
            jobs=over,
            unfinished=unfinished,
            slots=slots,
            makespan=now if unfinished else max((job.ended for job in over), default=0.0),
            arrived=np.array(self.arrived, dtype=np.float64),
            started=np.array(self.started, dtype=np.float64),
            ended=np.array(self.ended, dtype=np.float64),
            job=np.array(self.job, dtype=np.int32),
            done=np.array(self.done, dtype=np.bool_),
            job_queues=queues,
            counts=dict(sorted(self.counts.items())),
        )
