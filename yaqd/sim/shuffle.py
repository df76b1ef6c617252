"""A model of one shuffle's time: maps that end, mergers that work meanwhile, disks that charge for seeks (Riffle, 4.5).

The merge scheduler that runs here is the job manager's own. The storage is apart from the nodes, as in the paper's
cluster: any merger may merge any outputs, and reads spread over all disks. A read costs its disk a seek and its bytes;
a merge is bound by the speed at which one file is written. What is not modelled: the reduces' own work, networks, and
stragglers other than maps.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from riffle_merger.plan.decisions import CancelMerge, Decision, MapOutput, Publish, SendMerge
from riffle_merger.plan.merge_scheduler import MergeScheduler, MergeSpec
from riffle_merger.plan.policy import OFF, MergePolicy

#: one group: any merger may take any outputs
_ANYWHERE: Final = "storage"


@dataclass(frozen=True, slots=True)
class Storage:
    """Disks and mergers; the defaults are the paper's where it tells them."""

    #: disks that reads spread over: its 20 M reads of 150 KB take 474 s
    disks: int = 400
    seek_s: float = 0.008
    #: of one disk, and of one file that is written or read alone
    bytes_per_s: float = 100e6
    mergers: int = 100
    #: merges that one merger's memory has room for
    at_once: int = 15

    def reads_s(self, reads: float, size: float) -> float:
        """Return the time of so many reads of so many bytes in all, s, with all disks busy."""
        return (reads * self.seek_s + size / self.bytes_per_s) / self.disks


@dataclass(frozen=True, slots=True)
class MapStage:
    """Maps on slots; how long one takes varies, as in the paper's cluster, where few take far longer than most."""

    slots: int = 5656
    #: median of a map, s, and the deviation of its logarithm
    median_s: float = 36.0
    spread: float = 0.42


@dataclass(frozen=True, slots=True)
class ShuffleJob:
    maps: int
    partitions: int
    #: stored bytes of all map outputs
    size: float


@dataclass(frozen=True, slots=True)
class ShuffleOutcome:
    """Seconds, and what a reduce reads."""

    #: until reduces may begin: maps and the merges that are waited for
    map_s: float
    reduce_s: float
    #: files that each reduce reads from
    files: int

    @property
    def job_s(self) -> float:
        return self.map_s + self.reduce_s


def map_ends(job: ShuffleJob, stage: MapStage, seed: int) -> list[tuple[float, int]]:
    """Return when each map ends, in that order: a slot takes the next map when its last is over."""
    draw = random.Random(seed)
    free = [0.0] * min(stage.slots, job.maps)
    ends = []
    for index in range(job.maps):
        end = heapq.heappop(free) + stage.median_s * draw.lognormvariate(0.0, stage.spread)
        heapq.heappush(free, end)
        ends.append((end, index))
    return sorted(ends)


class ShuffleRun:
    """One job through the model."""

    def __init__(self, job: ShuffleJob, storage: Storage, policy: MergePolicy, best_effort: float) -> None:
        spec = MergeSpec(
            job.maps,
            job.partitions,
            policy,
            best_effort=best_effort,
            timeout_s=0,
            outstanding=storage.mergers * storage.at_once,
        )
        self._job, self._storage = job, storage
        self._scheduler = MergeScheduler(spec)
        #: ends of merges: time and number
        self._due: list[tuple[float, int]] = []
        self._cancelled: set[int] = set()
        self._files = 0
        self._read_s = 0.0
        self._now = 0.0

    def run(self, ends: list[tuple[float, int]]) -> ShuffleOutcome:
        size = max(1, round(self._job.size / self._job.maps))
        for end, index in ends:
            self._until(end)
            self._now = end
            self._take(self._scheduler.finished(MapOutput(index, str(index), _ANYWHERE, size), end))
        self._until(float("inf"))
        return ShuffleOutcome(self._now, self._read_s, self._files)

    def _until(self, now: float) -> None:
        while self._due and self._due[0][0] <= now and not self._scheduler.is_settled:
            at, merge = heapq.heappop(self._due)
            if merge not in self._cancelled:
                self._now = at
                self._take(self._scheduler.merged(merge, at))

    def _take(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            match decision:
                case SendMerge():
                    size = sum(output.size for output in decision.outputs)
                    heapq.heappush(self._due, (self._now + size / self._storage.bytes_per_s, decision.merge))
                case CancelMerge():
                    self._cancelled.add(decision.merge)
                case Publish():
                    self._read(decision)

    def _read(self, decision: Publish) -> None:
        files = len(decision.outputs) if decision.merge is None else 1
        self._files += files
        size = sum(output.size for output in decision.outputs)
        self._read_s += self._storage.reads_s(files * self._job.partitions, size)


def run(
    job: ShuffleJob,
    policy: MergePolicy = OFF,
    *,
    best_effort: float = 1.0,
    storage: Storage = Storage(),
    stage: MapStage = MapStage(),
    seed: int = 1,
) -> ShuffleOutcome:
    return ShuffleRun(job, storage, policy, best_effort).run(map_ends(job, stage, seed))


# ---- spilling against shuffling (4.1.3)


@dataclass(frozen=True, slots=True)
class Memory:
    """A map task's memory: a larger partition is written to disk and read back in parts before it is one file."""

    partition_bytes: float = 2e9


def spill_s(job: ShuffleJob, storage: Storage = Storage(), memory: Memory = Memory()) -> float:
    """Return the time of spilling, s: what does not fit is written and read once more, in large pieces."""
    each = job.size / job.maps
    beyond = max(0.0, 1.0 - memory.partition_bytes / each)
    return storage.reads_s(0, 2 * job.size * beyond)


def trade_off(size: float, partitions: int, counts: list[int], files: int = 0) -> Iterator[tuple[int, float, float]]:
    """Yield (maps, seconds of spilling, seconds of shuffling) of the same data in more and more maps.

    `files`: merged so.
    """
    storage = Storage()
    for maps in counts:
        job = ShuffleJob(maps, partitions, size)
        reads = -(-maps // files) if files else maps
        yield maps, spill_s(job, storage), storage.reads_s(reads * partitions, size)


# ---- more and more tasks (4.1.2)


@dataclass(frozen=True, slots=True)
class Growth:
    """A shuffle between as many maps as reduces, each map of the same size."""

    tasks: int
    reads: int
    #: of one read, on average
    read_bytes: float
    seconds: float


def growth(task_bytes: float, counts: list[int], files: int = 0) -> Iterator[Growth]:
    """Yield how reads grow with tasks. `files`: merged so; the merges themselves are not counted."""
    storage = Storage()
    for tasks in counts:
        reads = (-(-tasks // files) if files else tasks) * tasks
        size = tasks * task_bytes
        yield Growth(tasks, reads, size / reads, storage.reads_s(reads, size))
