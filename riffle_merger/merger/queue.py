"""Which merge starts next: a memory budget that makes requests wait, and justice among jobs. Decides, does nothing.

Jobs take turns by the bytes that were merged for each (start-time fair queueing): a job that comes late starts where
the others are. So it neither waits behind everything that came before nor catches up on what it never asked for. The
request whose turn it is starts as soon as it fits in the budget; none overtakes it, so a large one never starves.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Request(Generic[Key]):
    key: Key
    job: str
    #: that it holds while it runs
    memory_bytes: int
    #: that it merges
    work_bytes: int


@dataclass(slots=True)
class _QueuedJob(Generic[Key]):
    #: bytes merged and being merged, on a scale that all jobs share
    served: int
    #: when it joined, to order equals
    number: int
    waiting: "OrderedDict[Key, Request[Key]]" = field(default_factory=OrderedDict)
    running: set[Key] = field(default_factory=set)


class MergeQueue(Generic[Key]):
    def __init__(self, *, budget_bytes: int, running_max: int) -> None:
        """`running_max`: merges at one time, however little they take."""
        self.budget_bytes = budget_bytes
        self._running_max = running_max
        self._jobs: dict[str, _QueuedJob[Key]] = {}
        self._running: dict[Key, Request[Key]] = {}
        self._numbers = 0
        #: where the job was that was served last
        self._now = 0
        self.used_bytes = self.used_bytes_max = 0
        self.waiting = 0
        self.waiting_bytes = 0

    @property
    def running(self) -> int:
        return len(self._running)

    def counts(self, job: str) -> tuple[int, int]:
        """Counts how many of the job's requests wait and run."""
        known = self._jobs.get(job)
        return (len(known.waiting), len(known.running)) if known is not None else (0, 0)

    def add(self, request: Request[Key]) -> None:
        """Adds a request; a key is added once. Raises ValueError when it could never start."""
        if not 0 <= request.memory_bytes <= self.budget_bytes or request.work_bytes < 0:
            raise ValueError(f"a merge of {request.memory_bytes} bytes in a budget of {self.budget_bytes}")
        job = self._jobs.get(request.job)
        if job is None:
            self._numbers += 1
            job = self._jobs[request.job] = _QueuedJob(self._now, self._numbers)
        elif not job.waiting and not job.running:
            job.served = max(job.served, self._now)
        job.waiting[request.key] = request
        self.waiting += 1
        self.waiting_bytes += request.work_bytes

    def start(self) -> list[Request[Key]]:
        """Returns the requests that start now, in their order."""
        started = []
        while len(self._running) < self._running_max:
            candidates = [job for job in self._jobs.values() if job.waiting]
            if not candidates:
                break
            job = min(candidates, key=lambda j: (j.served, j.number))
            key, request = next(iter(job.waiting.items()))
            if self.used_bytes + request.memory_bytes > self.budget_bytes:
                break
            self._remove(job, key)
            self._now = job.served
            job.served += request.work_bytes
            job.running.add(key)
            self._running[key] = request
            self.used_bytes += request.memory_bytes
            self.used_bytes_max = max(self.used_bytes_max, self.used_bytes)
            started.append(request)
        return started

    def finished(self, key: Key) -> None:
        """Notes that a started request has come to its end, whichever."""
        request = self._running.pop(key)
        self._jobs[request.job].running.discard(key)
        self.used_bytes -= request.memory_bytes
        self._forget_idle()

    def cancel(self, job_name: str, keys: Iterable[Key] | None = None) -> list[Key]:
        """Takes these requests of a job out of the queue, all when None; returns those that had not started."""
        job = self._jobs.get(job_name)
        if job is None:
            return []
        found = [key for key in (list(job.waiting) if keys is None else keys) if key in job.waiting]
        for key in found:
            self._remove(job, key)
        self._forget_idle()
        return found

    def _remove(self, job: _QueuedJob[Key], key: Key) -> None:
        request = job.waiting.pop(key)
        self.waiting -= 1
        self.waiting_bytes -= request.work_bytes

    def _forget_idle(self) -> None:
        """A job without requests is remembered as long as it is ahead of the others: coming back gains nothing."""
        for name in [n for n, j in self._jobs.items() if not j.waiting and not j.running and j.served <= self._now]:
            del self._jobs[name]
        if not self.waiting and not self._running:
            self._jobs.clear()
            self._now = 0
