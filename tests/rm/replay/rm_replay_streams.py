"""The event streams that are played again. `python -m tests.rm.replay.rm_replay_streams [NAME...]` records them.

Each is a cluster that went by itself once. What it told its scheduler, and what that decided, stands in NAME.jsonl.gz.
A change that changes no rule decides the same. One that does records the streams anew, and says so.
"""

import gzip
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks.scheduler
import yaqd.sim.booking
import yaqd.sim.central
from benchmarks.scheduler import ROWS, Play
from rm.scheduler import recording
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import SchedulerEvent
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.scheduler import Scheduler
from yaqd.sim.experiments.ground import HIVE_SHAPE, OURS
from yaqd.sim.simulation import ClusterShape, System, simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload
from yaqd.sim.workloads import Drawn
from yaqd.sim.workloads.drawn import draw

FOLDER = Path(__file__).parent
_TASKS_A_HEARTBEAT = 20


class RecordedScheduler(Scheduler):
    """Writes down what it is told, each call as it came, also those that benchmarks do not count."""

    def __init__(self, spec: SchedulerSpec, limits: SchedulerLimits) -> None:
        super().__init__(spec, limits)
        self.lines = [recording.header(spec, limits)]
        _made.append(self)

    def handle(self, event: SchedulerEvent, now: float) -> list[Outcome]:
        decisions = super().handle(event, now)
        self.lines.append(recording.entry(now, event, decisions))
        return decisions


_made: list[RecordedScheduler] = []


@contextmanager
def recorded() -> Iterator[None]:
    """Schedulers that are made meanwhile are recorded ones."""
    modules: list[Any] = [benchmarks.scheduler, yaqd.sim.central, yaqd.sim.booking]
    for module in modules:
        module.Scheduler = RecordedScheduler
    try:
        yield
    finally:
        for module in modules:
            module.Scheduler = Scheduler


def core(row: str, applications: int) -> None:
    nodes, size = ROWS[row]
    queues, shipped = row.startswith("core-queues"), row.startswith("core-shipped")
    play = Play(nodes // 5, size, applications, _TASKS_A_HEARTBEAT, queues=queues, is_shipped=shipped)
    play.run(applications * _TASKS_A_HEARTBEAT * 5)


def hive() -> None:
    """Queries of the paper's, eight at a time on a tenth of its nodes, with what is shipped."""
    shape, drawn = replace(HIVE_SHAPE, nodes=8), Drawn("hive-ms", 12)
    simulate(shape, draw(drawn, shape.nodes * shape.slots, 1), replace(OURS, jobs_at_once=8), 1)


def _jobs(rng: random.Random, *, is_aware: Callable[[int], bool], queues: tuple[tuple[str, str], ...]) -> Workload:
    """Of some maps and a few longer reduces each, coming one after the other; `queues`: with a user each."""
    jobs = []
    for number in range(14):
        maps = SimStage("maps", tuple(SimTask(rng.uniform(2.0, 25.0)) for _ in range(rng.randint(5, 40))))
        reduces = SimStage("reduces", tuple(SimTask(rng.uniform(10.0, 40.0)) for _ in range(rng.randint(1, 4))))
        queue, user = queues[number % len(queues)]
        arrival_s, aware = number * 6.0, is_aware(number)
        jobs.append(
            SimJob(f"job{number}", (maps, reduces), queue=queue, user=user, arrival_s=arrival_s, is_aware=aware)
        )
    return Workload(tuple(jobs))


def unaware() -> None:
    """Half of the masters tolerate no waiting; their proxies place what is opportunistic."""
    jobs = _jobs(random.Random(3), is_aware=lambda number: number % 2 == 0, queues=(("default", "user"),))
    system = System("yaq-d", booked=True, order="srjf", max_wait_unaware_s=4.0, starve_s=20.0)
    simulate(ClusterShape(nodes=6, slots=4, heartbeat_s=1.0), jobs, system, 3)


def unaware_central() -> None:
    """The same with one scheduler that fills nodes' queues."""
    jobs = _jobs(random.Random(4), is_aware=lambda number: number % 2 == 0, queues=(("default", "user"),))
    system = replace(OURS, max_wait_unaware_s=4.0, starve_s=20.0)
    simulate(ClusterShape(nodes=6, slots=4, heartbeat_s=1.0), jobs, system, 4)


def preemption() -> None:
    """Two queues of two users each; one takes back what the other had while it was away."""
    queues = (("b", "ann"), ("b", "bob"), ("a", "cid"), ("a", "dee"))
    jobs = _jobs(random.Random(5), is_aware=lambda number: True, queues=queues)
    long = SimStage("long", tuple(SimTask(200.0) for _ in range(40)))
    jobs = Workload((SimJob("long", (long,), queue="b", user="ann"), *jobs.jobs))
    shape = ClusterShape(nodes=6, slots=4, heartbeat_s=1.0, queues=(("a", 70.0), ("b", 30.0)))
    simulate(shape, jobs, replace(OURS, starve_s=20.0, preempt=True), 5)


STREAMS: dict[str, Callable[[], None]] = {
    "core-shipped-500": lambda: core("core-shipped-500", 20),
    "core-queues": lambda: core("core-queues", 20),
    "hive": hive,
    "unaware": unaware,
    "unaware-central": unaware_central,
    "preemption": preemption,
}


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.jsonl.gz"


def record(name: str) -> list[str]:
    """The lines of a stream as it goes now."""
    _made.clear()
    with recorded():
        STREAMS[name]()
    assert len(_made) == 1, "one scheduler a stream"
    return _made[0].lines


def main() -> None:
    for name in sys.argv[1:] or STREAMS:
        lines = record(name)
        with path_of(name).open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
            file.writelines(f"{line}\n".encode("ascii") for line in lines)
        print(f"{name}: {len(lines) - 1} events, {path_of(name).stat().st_size >> 10} kB")


if __name__ == "__main__":
    main()
