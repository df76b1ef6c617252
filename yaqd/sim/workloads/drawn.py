"""The paper's workloads by name, drawn from the statistics that it states (section 4.3, table 2.1).

What it does not state is chosen here and said: how many tasks a Hive query has beside the mean, how alike the tasks of
one stage are, how jobs arrive. `WORKLOADS` is a table; whoever adds a line has a workload for every experiment.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from yaqd.model.values import value
from yaqd.sim.workload import SLOT, SimJob, SimStage, SimTask, Workload
from yaqd.sim.workloads.numbers import Counts, Floats, fitted, fitted_counts, lognormal

#: as MapReduce asks for them
MAP_PRIORITY: Final = 20
REDUCE_PRIORITY: Final = 10
JOBS_MAX: Final = 1_000_000
TASKS_MAX: Final = 10_000_000
#: std / mean of the tasks of one stage about their stage's mean, where tasks of a stage are not all alike
STAGE_CV: Final = 0.5


class WorkloadError(Exception):
    """A workload that cannot be made or read; the text says which value, in a file with its line."""


@value()
class Arrivals:
    """When jobs come. `burst`: all at 0; who runs is then the scheduler's admission. `poisson`: at a rate that asks
    for `load` of the cluster's slots. `recorded`: as a trace says, which is then not drawn."""

    kind: Literal["burst", "poisson", "recorded"] = "burst"
    #: share of the slots that the work asks for in the long run; > 1 piles up
    load: float = 0.9


@value()
class Drawn:
    """A workload to be drawn: which, how many jobs, how they arrive."""

    name: str
    jobs: int
    arrivals: Arrivals = Arrivals()
    #: queues that jobs go to, each equally likely
    queues: tuple[str, ...] = ("default",)
    #: every duration is divided by this
    speedup: float = 1.0
    #: every job has this times its tasks
    size: float = 1.0


@value()
class Stages:
    """Jobs before they arrive: per job its stages' names and durations, s."""

    #: of the stages, in order; jobs may have fewer
    names: tuple[str, ...]
    jobs: list[tuple[Floats, ...]]
    #: by job and stage: indexes of the stages whose output it reads; None: each that of the one before it
    reads: list[tuple[tuple[int, ...], ...]] | None = None
    #: by job: slots that each task takes; None: one
    widths: list[int] | None = None
    #: by job: its queue's place among those drawn for, and when it comes, s; None: as `Drawn` says
    comes: list[tuple[int, float]] | None = None


def draw(drawn: Drawn, slots: int, seed: int) -> Workload:
    """Draw the workload for a cluster of so many slots. Raises WorkloadError.

    The same arguments give the same workload.
    """
    kind = WORKLOADS.get(drawn.name)
    if kind is None:
        raise WorkloadError(f"there is no workload {drawn.name!r}; there are {', '.join(WORKLOADS)}")
    _check(drawn, slots)
    rng = np.random.default_rng([seed, sum(drawn.name.encode())])
    stages = kind.draw(rng, drawn)
    if drawn.speedup != 1:
        stages = replace(stages, jobs=[tuple(s / drawn.speedup for s in job) for job in stages.jobs])
    widths = stages.widths or [1] * len(stages.jobs)
    work = [width * sum(float(s.sum()) for s in job) for width, job in zip(widths, stages.jobs, strict=True)]
    arrivals = _arrivals(rng, drawn.arrivals, work, slots)
    queues = rng.integers(len(drawn.queues), size=len(stages.jobs))
    if stages.comes is not None:
        queues = np.array([place % len(drawn.queues) for place, _ in stages.comes])
        arrivals = [at for _, at in stages.comes]
    jobs = [
        _job(f"{drawn.name}-{number}", drawn.queues[queues[number]], arrivals[number], stages, number)
        for number in range(len(stages.jobs))
    ]
    return Workload(jobs=tuple(jobs), name=drawn.name)


def _check(drawn: Drawn, slots: int) -> None:
    for what, number, most in (
        ("jobs", drawn.jobs, JOBS_MAX),
        ("slots", slots, TASKS_MAX),
        ("load", drawn.arrivals.load, 1000),
        ("speedup", drawn.speedup, 1e6),
        ("size", drawn.size, 1e4),
    ):
        if not 0 < number <= most:  # also refuses NaN
            raise WorkloadError(f"{drawn.name}: {what} is {number}; it must be above 0 and at most {most:g}")
    if not drawn.queues:
        raise WorkloadError(f"{drawn.name}: no queue to submit to")


def _arrivals(rng: np.random.Generator, arrivals: Arrivals, work: list[float], slots: int) -> list[float]:
    if arrivals.kind != "poisson":
        return [0.0] * len(work)
    mean_gap = sum(work) / len(work) / (slots * arrivals.load)
    gaps = rng.exponential(mean_gap, len(work))
    gaps[0] = 0.0
    return [float(at) for at in np.cumsum(gaps)]


def _job(name: str, queue: str, arrival: float, stages: Stages, number: int) -> SimJob:
    durations = stages.jobs[number]
    width = stages.widths[number] if stages.widths is not None else 1
    made = []
    for at, tasks in enumerate(durations):
        # of a graph: by the order of the stages
        priority = 0 if stages.reads is not None else MAP_PRIORITY if at == 0 else REDUCE_PRIORITY
        after = ((at - 1,) if at else ()) if stages.reads is None else stages.reads[number][at]
        made.append(
            SimStage(
                name=stages.names[at],
                tasks=tuple(SimTask(duration_s=float(s), resource=SLOT * width, priority=priority) for s in tasks),
                after=after,
            )
        )
    return SimJob(name=name, user=queue, queue=queue, arrival_s=arrival, stages=tuple(made))


# ------------------------------------------------------------------------------------------------ the workloads


def _hive_ms(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """57.9 mappers and 1.5 reducers a query, tasks of 22.9 s mean and 27.8 s deviation over all queries.

    Chosen: mappers by query lognormal with cv 1.5 (scans of five relations of very different size), reducers one and a
    geometric rest. Stage means are lognormal, tasks lie about their stage's mean with cv 0.5. Mean and deviation over
    all tasks are then fitted exactly.
    """
    mappers = _task_counts(rng, drawn, 57.9, 1.5)
    reducers = fitted_counts(rng.exponential(1.0, drawn.jobs) ** 2, round(1.5 * drawn.size * drawn.jobs))
    stage_cv = np.sqrt((1 + (27.8 / 22.9) ** 2) / (1 + STAGE_CV**2) - 1)
    durations = []
    for counts in (mappers, reducers):
        means = lognormal(rng, drawn.jobs, 22.9, float(stage_cv))
        durations += [means[j] * lognormal(rng, int(counts[j]), 1.0, STAGE_CV) for j in range(drawn.jobs)]
    every = fitted(np.concatenate(durations), 22.9, 27.8)
    parts = np.split(every, np.cumsum([d.size for d in durations])[:-1])
    return Stages(("map", "reduce"), list(zip(parts[: drawn.jobs], parts[drawn.jobs :], strict=True)))


def _task_counts(rng: np.random.Generator, drawn: Drawn, mean: float, cv: float) -> Counts:
    return fitted_counts(lognormal(rng, drawn.jobs, 1.0, cv), round(mean * drawn.size * drawn.jobs))


GRIDMIX_TASKS: Final = 100


def _tasks(drawn: Drawn) -> int:
    return max(1, round(GRIDMIX_TASKS * drawn.size))


def _x_sec(seconds: float) -> Callable[[np.random.Generator, Drawn], Stages]:
    def jobs(rng: np.random.Generator, drawn: Drawn) -> Stages:
        """100 tasks a job, all of one duration."""
        return Stages(("task",), [(np.full(_tasks(drawn), seconds),) for _ in range(drawn.jobs)])

    return jobs


def _mixed_jobs(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """80 % of the jobs have 5 s tasks, 20 % have 50 s tasks (section 4.3); exactly so, in random order."""
    long = rng.permutation(drawn.jobs) < round(0.2 * drawn.jobs)
    return Stages(("task",), [(np.full(_tasks(drawn), 50.0 if is_long else 5.0),) for is_long in long])


def _mixed_tasks(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """Every job has 5 s and 50 s tasks in equal number, in random order (table 2.1: "an even mix")."""
    count = _tasks(drawn)
    return Stages(("task",), [(np.where(rng.permutation(count) < count // 2, 50.0, 5.0),) for _ in range(drawn.jobs)])


def _gridmix_ms(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """Exponential durations of mean 49 s.

    Chosen, because section 4.7.3 calls the tasks of each job "relatively homogeneous": the exponential is over jobs'
    means, and the tasks of a job vary about it with cv 0.5. Mean and deviation over all tasks are fitted to 49 s.
    """
    means = rng.exponential(49.0, drawn.jobs)
    drawn_tasks = [m * lognormal(rng, _tasks(drawn), 1.0, STAGE_CV) for m in means]
    every = fitted(np.concatenate(drawn_tasks), 49.0, 49.0)
    return Stages(("task",), [(part,) for part in np.split(every, drawn.jobs)])


def _heavy_tailed(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """GridMix-MS with 500 s added to the longest 20 % of all tasks (section 4.7.4)."""
    plain = _gridmix_ms(rng, drawn)
    every = np.concatenate([job[0] for job in plain.jobs])
    every[np.argsort(every, kind="stable")[every.size - every.size // 5 :]] += 500.0
    return Stages(plain.names, [(part,) for part in np.split(every, drawn.jobs)])


def _gridmix_iid(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """Exponential durations of mean 49 s, every task for itself: no job is shorter than another by its tasks."""
    return Stages(("task",), [(rng.exponential(49.0, _tasks(drawn)),) for _ in range(drawn.jobs)])


def _gridmix_sizes(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """GridMix-MS where 100 tasks a job are the mean, with the spread that the mappers of a Hive query have here."""
    counts = _task_counts(rng, drawn, float(GRIDMIX_TASKS), 1.5)
    means = rng.exponential(49.0, drawn.jobs)
    drawn_tasks = [m * lognormal(rng, int(count), 1.0, STAGE_CV) for m, count in zip(means, counts, strict=True)]
    every = fitted(np.concatenate(drawn_tasks), 49.0, 49.0)
    return Stages(("task",), [(part,) for part in np.split(every, np.cumsum(counts)[:-1])])


#: s; when the first queue's jobs come
LATE_S: Final = 30.0
_LONG_S: Final = 300.0


def _late_queue(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """A fifth of the jobs come first, to the second queue, of tasks of about 300 s; after 30 s all others, of 5 s."""
    long = max(1, drawn.jobs // 5)
    means = [_LONG_S if number < long else 5.0 for number in range(drawn.jobs)]
    tasks: list[tuple[Floats, ...]] = [(mean * rng.uniform(0.9, 1.1, _tasks(drawn)),) for mean in means]
    return Stages(("task",), tasks, comes=[(1, 0.0) if n < long else (0, LATE_S) for n in range(drawn.jobs)])


#: of a job beside short ones: tasks, which part of the jobs comes before it, and the seconds of a task of any job
LONG_TASKS: Final = 96
_LONG_AFTER: Final = 0.25
_SHORT_TASKS: Final = 6
_ALIKE_S: Final = 5.0
#: what `long-among-short` asks for in the mean, seconds of one slot a job
SHORT_WORK_S: Final = _SHORT_TASKS * _ALIKE_S


def _long_among_short(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """One job of 96 tasks, a quarter of the way; all others have 6 tasks in the mean (cv 1, 48 at most). Tasks of all
    are of 5 s in the mean: exponential over the short jobs, cv 0.5 within a job."""
    short, at = max(1, drawn.jobs - 1), int(drawn.jobs * _LONG_AFTER)
    many = max(2, round(LONG_TASKS * drawn.size))
    counts = np.minimum(_task_counts(rng, replace(drawn, jobs=short), float(_SHORT_TASKS), 1.0), many // 2)
    means = rng.exponential(_ALIKE_S, short)
    drawn_tasks = [m * lognormal(rng, int(c), 1.0, STAGE_CV) for m, c in zip(means, counts, strict=True)]
    every = np.concatenate(drawn_tasks)
    parts = np.split(every * (_ALIKE_S / every.mean()), np.cumsum(counts)[:-1])
    jobs: list[tuple[Floats, ...]] = [(part,) for part in parts]
    jobs.insert(at, (fitted(lognormal(rng, many, _ALIKE_S, STAGE_CV), _ALIKE_S, _ALIKE_S * STAGE_CV),))
    return Stages(("task",), jobs)


#: stages of a graph
_STAGES_MAX: Final = 10


def _two_sizes(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """40 tasks a job, 20 s in the mean; those of every fifth job need four slots, so they take half of the work."""
    count = max(1, round(40 * drawn.size))
    means = rng.exponential(20.0, drawn.jobs)
    every = fitted(np.concatenate([m * lognormal(rng, count, 1.0, STAGE_CV) for m in means]), 20.0, 22.0)
    wide = rng.permutation(drawn.jobs) < round(0.2 * drawn.jobs)
    return Stages(("task",), [(part,) for part in np.split(every, drawn.jobs)], widths=[4 if w else 1 for w in wide])


def _graphs(rng: np.random.Generator, drawn: Drawn) -> Stages:
    """Three to ten stages a job, each of which reads one or two of the three before it, the last one all that nobody
    reads; 12 tasks a stage in the mean (cv 1), 15 s (exponential over stages, cv 0.5 within one)."""
    jobs, reads = [], []
    for _ in range(drawn.jobs):
        many = int(rng.integers(3, _STAGES_MAX + 1))
        counts = np.maximum(1, np.round(lognormal(rng, many, 12.0 * drawn.size, 1.0))).astype(int)
        means = rng.exponential(15.0, many)
        jobs.append(tuple(m * lognormal(rng, int(c), 1.0, STAGE_CV) for m, c in zip(means, counts, strict=True)))
        reads.append(_graph(rng, many))
    return Stages(tuple(f"stage{at}" for at in range(_STAGES_MAX)), jobs, reads=reads)


def _graph(rng: np.random.Generator, many: int) -> tuple[tuple[int, ...], ...]:
    """By stage the ones that it reads."""
    reads: list[tuple[int, ...]] = [()]
    for at in range(1, many):
        near = range(max(0, at - 3), at)
        chosen = rng.permutation(len(near))[: int(rng.integers(1, 3))]
        reads.append(tuple(sorted(near[int(c)] for c in chosen)))
    unread = set(range(many - 1)) - {before for stage in reads[:-1] for before in stage}
    reads[-1] = tuple(sorted(unread | set(reads[-1])))
    return tuple(reads)


@value()
class Kind:
    """A line of the table of workloads."""

    title: str
    draw: Callable[[np.random.Generator, Drawn], Stages]


WORKLOADS: Final[dict[str, Kind]] = {
    "hive-ms": Kind("57.9 maps and 1.5 reduces a query; tasks 22.9 s mean, 27.8 s deviation", _hive_ms),
    "gridmix-ms": Kind("100 tasks a job, exponential, mean 49 s; a job's tasks are alike (cv 0.5)", _gridmix_ms),
    "gridmix-iid": Kind("100 tasks a job, exponential, mean 49 s; every task for itself", _gridmix_iid),
    "gridmix-sizes": Kind("gridmix-ms, but 100 tasks are the mean of the jobs (cv 1.5)", _gridmix_sizes),
    "heavy-tailed": Kind("gridmix-ms, the longest 20 % of all tasks 500 s longer", _heavy_tailed),
    "mixed-5-50-jobs": Kind("80 % of the jobs of 5 s tasks, 20 % of 50 s (section 4.3)", _mixed_jobs),
    "two-sizes": Kind("40 tasks a job, mean 20 s; those of every fifth job need four slots", _two_sizes),
    "late-queue": Kind("a fifth of the jobs, tasks of 300 s, to one queue; after 30 s all others, of 5 s", _late_queue),
    "long-among-short": Kind("a job of 96 tasks among jobs of 6 (cv 1); tasks of 5 s mean", _long_among_short),
    "graphs": Kind("3 to 10 stages a job that read one or two others; 12 tasks a stage, mean 15 s", _graphs),
    "mixed-5-50-tasks": Kind("5 s and 50 s tasks in equal number in every job (table 2.1)", _mixed_tasks),
    **{f"{x}-sec": Kind(f"100 tasks a job, all of {x} s", _x_sec(float(x))) for x in (1, 5, 10, 20, 50)},
}
