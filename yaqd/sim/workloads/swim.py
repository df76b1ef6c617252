"""SWIM traces (Chen et al., "The Case for Evaluating MapReduce Performance Using Workload Suites", 2011).

A line is: job, submit time in s, gap in s, bytes of map input, of shuffle, of output, with tabs between. SWIM says
nothing of tasks or durations, so both follow from the bytes: one map a block, one reduce a gigabyte of shuffle, each
at a fixed rate beside a fixed start. The rates are arguments; what a policy wins hangs on the mix, not on them.
"""

import math
from pathlib import Path
from typing import Final

from yaqd.model.values import value
from yaqd.sim.workload import SLOT, SimJob, SimStage, SimTask, Workload
from yaqd.sim.workloads.drawn import MAP_PRIORITY, REDUCE_PRIORITY
from yaqd.sim.workloads.reading import TASKS_PER_JOB_MAX, Budget, Place, lines, read_text

COLUMNS: Final = 6
_BYTES_MAX: Final = 1e18
_MB: Final = 1 << 20


@value()
class Rates:
    """From bytes to tasks and seconds."""

    block_bytes: float = 128.0 * _MB
    bytes_per_reduce: float = 1024.0 * _MB
    #: of one task
    bytes_per_s: float = 20.0 * _MB
    #: of every task, s
    start_s: float = 2.0


def read_swim(path: Path, *, jobs: int | None = None, rates: Rates = Rates()) -> Workload:
    """Read the trace's first `jobs` jobs. Raises WorkloadError with file and line."""
    place = Place(path)
    budget = Budget(place)
    made: list[SimJob] = []
    for line in lines(read_text(path), place):
        if jobs is not None and len(made) >= jobs:
            break
        fields = line.split("\t")
        if len(fields) != COLUMNS:
            place.fail(f"{len(fields)} columns; a SWIM line has {COLUMNS}: job, submit, gap, map, shuffle, output")
        job = _job(fields, place, rates)
        budget.job(sum(len(stage.tasks) for stage in job.stages))
        made.append(job)
    if not made:
        place.fail("no job")
    return Workload(jobs=tuple(made), name=path.name)


def read_shuffles(path: Path, *, jobs: int | None = None, rates: Rates = Rates()) -> list[tuple[int, int, float]]:
    """Read maps, reduces and bytes between them of the trace's first `jobs` jobs that have any.

    Raises WorkloadError.
    """
    place = Place(path)
    found: list[tuple[int, int, float]] = []
    for line in lines(read_text(path), place):
        if jobs is not None and len(found) >= jobs:
            break
        fields = line.split("\t")
        if len(fields) != COLUMNS:
            place.fail(f"{len(fields)} columns; a SWIM line has {COLUMNS}: job, submit, gap, map, shuffle, output")
        read = place.number(fields[3], "map input", most=_BYTES_MAX)
        shuffled = place.number(fields[4], "shuffle", most=_BYTES_MAX)
        if shuffled:
            found.append(
                (_count(read, rates.block_bytes, place), _count(shuffled, rates.bytes_per_reduce, place), shuffled)
            )
    if not found:
        place.fail("no job with a shuffle")
    return found


def _job(fields: list[str], place: Place, rates: Rates) -> SimJob:
    name = place.text(fields[0], "the job's name")
    submitted = place.number(fields[1], "submit time")
    read, shuffled, written = (
        place.number(field, what, most=_BYTES_MAX)
        for field, what in zip(fields[3:], ("map input", "shuffle", "output"), strict=True)
    )
    maps = _count(read, rates.block_bytes, place)
    only_maps = not shuffled
    map_bytes = read + shuffled + (written if only_maps else 0.0)
    stages = [SimStage(name="map", tasks=_tasks(maps, map_bytes, rates, MAP_PRIORITY), after=())]
    if not only_maps:
        reduces = _count(shuffled, rates.bytes_per_reduce, place)
        tasks = _tasks(reduces, shuffled + written, rates, REDUCE_PRIORITY)
        stages.append(SimStage(name="reduce", tasks=tasks, after=(0,)))
    return SimJob(name=name, user="swim", queue="default", arrival_s=submitted, stages=tuple(stages))


def _count(volume: float, each: float, place: Place) -> int:
    count = max(1, math.ceil(volume / each))
    if count > TASKS_PER_JOB_MAX:
        place.fail(f"{volume:g} bytes are {count} tasks; {TASKS_PER_JOB_MAX} at most")
    return count


def _tasks(count: int, volume: float, rates: Rates, priority: int) -> tuple[SimTask, ...]:
    seconds = rates.start_s + volume / count / rates.bytes_per_s
    return (SimTask(duration_s=seconds, resource=SLOT, priority=priority),) * count
