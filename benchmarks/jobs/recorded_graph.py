"""A flow whose tasks sleep: a graph of stages as it was recorded. `benchmarks.clotho.live_rows` fills STAGES in.

Each stage: how many tasks, the stages that it reads, and for how long its tasks sleep, s, task by task.
"""

import time
from collections.abc import Iterable

from yaqd.mapreduce import Flow, Job, Param
from yaqd.mapreduce.flow import Stream

STAGES: list[tuple[int, list[int], list[float]]] = []


class Read(Job):
    """Sleeps in the map: a stage that reads a file."""

    stage = Param(int, default=0, help="number of the stage")

    def setup(self) -> None:
        if self.task.phase == "map":
            time.sleep(STAGES[self.stage][2][self.task.index])

    def map(self, key: object, value: object) -> Iterable[tuple[object, object]]:
        return ()


class Sleep(Job):
    """Sleeps in the reduce: a stage that reads others. Its map is part of theirs."""

    stage = Param(int, default=0, help="number of the stage")

    def setup(self) -> None:
        if self.task.phase == "reduce":
            time.sleep(STAGES[self.stage][2][self.task.index])

    def reduce(self, key: object, values: object) -> Iterable[tuple[object, object]]:
        return ()


def graph() -> Flow:
    """Return the flow; each stage that nothing reads is written."""
    made = Flow()
    streams: list[Stream] = []
    for number, (tasks, reads, seconds) in enumerate(STAGES):
        mean_s = sum(seconds) / len(seconds)
        params = {"stage": number}
        if reads:
            source = streams[reads[0]] if len(reads) == 1 else made.union(*(streams[one] for one in reads))
            streams.append(source.then(Sleep, reduces=tasks, params=params, task_s=mean_s))
        else:
            lines = made.read(f"lines-{tasks}")
            streams.append(lines.then(Read, params=params, task_s=mean_s))
    read = {one for _, reads, _ in STAGES for one in reads}
    for number, stream in enumerate(streams):
        if number not in read:
            stream.write(f"out-{number}")
    return made


if STAGES:
    flow = graph()
