"""Shuffles at full size through the merge scheduler itself, without their bytes: how many reads they take.

Maps end one after the other, each on the node whose turn it is; a node's merger does one merge after the other, and
each takes as long as so many of the job's maps. What reducers are told is counted.
"""

import random
from collections import deque
from dataclasses import dataclass

from riffle_merger.plan.counts import MergeRequests, ReadCounter, Unit
from riffle_merger.plan.decisions import CancelMerge, Decision, MapOutput, Publish, SendMerge
from riffle_merger.plan.merge_scheduler import MergeScheduler, MergeSpec


@dataclass(frozen=True, slots=True)
class Shuffle:
    maps: int
    partitions: int
    #: average stored block, bytes
    block_bytes: int
    nodes: int
    #: deviation of an output's size from the mean, over the mean
    variation: float = 0.0


def outputs(shuffle: Shuffle, seed: int) -> list[MapOutput]:
    """Map outputs in the order of their ends."""
    draw = random.Random(seed)
    order = list(range(shuffle.maps))
    draw.shuffle(order)
    mean = shuffle.block_bytes * shuffle.partitions
    return [
        MapOutput(
            index,
            f"attempt_{index:06d}",
            f"node{at % shuffle.nodes}",
            max(1, round(mean * max(0.1, draw.gauss(1.0, shuffle.variation)))),
        )
        for at, index in enumerate(order)
    ]


class Drive:
    """One shuffle, from the first map's end to the last word to its reducers."""

    def __init__(self, shuffle: Shuffle, spec: MergeSpec, merging: MergeRequests, unit: Unit) -> None:
        self.scheduler = MergeScheduler(spec)
        self.counter = ReadCounter(shuffle.partitions, merging, unit)
        self.cancelled = 0
        self._queues: dict[str, deque[int]] = {}
        self._due: deque[tuple[float, str]] = deque()
        self._sent: dict[int, tuple[MapOutput, ...]] = {}

    def run(self, ends: list[MapOutput], merge_takes: float) -> ReadCounter:
        for now, output in enumerate(ends):
            self._until(float(now), merge_takes)
            self._carry_out(self.scheduler.finished(output, now), now, merge_takes)
        self._until(float("inf"), merge_takes)
        return self.counter

    def _until(self, now: float, merge_takes: float) -> None:
        while self._due and self._due[0][0] <= now:
            at, node = self._due.popleft()
            queue = self._queues[node]
            if queue:
                merge = queue.popleft()
                self.merge(self._sent.pop(merge))
                self._carry_out(self.scheduler.merged(merge, at), at, merge_takes)
                if queue:
                    self._due.append((at + merge_takes, node))

    def _carry_out(self, decisions: list[Decision], now: float, merge_takes: float) -> None:
        for decision in decisions:
            match decision:
                case SendMerge():
                    self._sent[decision.merge] = decision.outputs
                    queue = self._queues.setdefault(decision.node, deque())
                    queue.append(decision.merge)
                    if len(queue) == 1:
                        self._due.append((now + merge_takes, decision.node))
                case CancelMerge():
                    self.cancelled += 1
                    self._queues[decision.node].remove(decision.merge)
                case Publish():
                    self.counter.add([decision])
                    self.published(decision)

    def merge(self, outputs: tuple[MapOutput, ...]) -> None:
        """They are merged now."""

    def published(self, publish: Publish) -> None:
        """Reducers hear of these."""


def count(
    shuffle: Shuffle,
    spec: MergeSpec,
    merging: MergeRequests,
    *,
    merge_takes: float = 1.0,
    seed: int = 1,
    unit: Unit | None = None,
) -> ReadCounter:
    """Run one; `merge_takes` in units of the time between two maps' ends."""
    drive = Drive(shuffle, spec, merging, unit or Unit())
    counter = drive.run(outputs(shuffle, seed), merge_takes)
    if counter.outputs != shuffle.maps or drive.scheduler.anomalies:
        raise AssertionError(f"{counter.outputs} outputs of {shuffle.maps} published; {drive.scheduler.anomalies[:3]}")
    return counter
