"""Inputs of Hadoop's Scheduler Load Simulator: its own job files, and the rumen traces that it also takes.

A job file is JSON objects one after the other with `job.tasks`, each task a container with start and end
(org.apache.hadoop.yarn.sls.SLSRunner, AMDefinitionSLS). A rumen trace has `mapTasks` and `reduceTasks` with attempts
(AMDefinitionRumen). Tasks of one priority are a stage; in a `mapreduce` job, reduces come after maps. SLS's `dag` jobs
say nothing of who waits for whom: what lies between the starts of their stages is not kept.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from yaqd.model import Resource
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload
from yaqd.sim.workloads.drawn import MAP_PRIORITY, REDUCE_PRIORITY
from yaqd.sim.workloads.reading import SECONDS_MAX, TASKS_PER_JOB_MAX, Budget, Place, json_values, read_text

#: SLS's own default container (yarn.sls.container.*)
_DEFAULT: Final = Resource(1024, 1)
_MS_MAX: Final = SECONDS_MAX * 1000


def read_sls(path: Path, *, jobs: int | None = None) -> Workload:
    """Read the file's first `jobs` jobs, the first one at 0 s. Raises WorkloadError with file and line."""
    place = Place(path)
    budget = Budget(place)
    made: list[SimJob] = []
    for found in json_values(read_text(path), place):
        if jobs is not None and len(made) >= jobs:
            break
        for job in _jobs(found, place):
            budget.job(sum(len(stage.tasks) for stage in job.stages))
            made.append(job)
    if not made:
        place.fail("no job")
    return Workload(jobs=from_zero(made), name=path.name)


def from_zero(jobs: list[SimJob]) -> tuple[SimJob, ...]:
    """Return the jobs in order of arrival, the first at 0 s."""
    first = min(job.arrival_s for job in jobs)
    moved = [
        SimJob(name=j.name, user=j.user, queue=j.queue, arrival_s=j.arrival_s - first, stages=j.stages) for j in jobs
    ]
    return tuple(sorted(moved, key=lambda job: job.arrival_s))


def _jobs(found: dict[str, Any], place: Place) -> Iterator[SimJob]:
    if "job.tasks" in found:
        count = int(place.number(found.get("job.count", 1), "job.count", least=1, most=10_000))
        job = _sls_job(found, place)
        yield from (job for _ in range(count))
    elif "mapTasks" in found or "reduceTasks" in found:
        yield _rumen_job(found, place)
    else:
        place.fail("neither an SLS job (job.tasks) nor a rumen one (mapTasks)")


def _sls_job(found: dict[str, Any], place: Place) -> SimJob:
    by_priority: dict[int, tuple[str, list[SimTask]]] = {}
    total = 0
    for task in _list(found, "job.tasks", place):
        count = int(place.number(task.get("count", 1), "count", least=1, most=TASKS_PER_JOB_MAX))
        total += count
        if total > TASKS_PER_JOB_MAX:
            place.fail(f"a job of more than {TASKS_PER_JOB_MAX} tasks")
        kind = place.text(task.get("container.type", "map"), "container.type")
        usual = MAP_PRIORITY if kind == "map" else REDUCE_PRIORITY
        priority = int(place.number(task.get("container.priority", usual), "container.priority", most=1e6))
        made = SimTask(
            duration_s=_duration(task, "container.start.ms", "container.end.ms", place, known="duration.ms"),
            resource=_resource(task, place),
            priority=priority,
            hosts=(_host(task["container.host"], place),) if "container.host" in task else (),
        )
        by_priority.setdefault(priority, (kind, []))[1].extend([made] * count)
    # the higher number is asked first in the master's program: maps are 20, reduces 10
    stages = _chained([by_priority[p] for p in sorted(by_priority, reverse=True)])
    start = place.number(found.get("job.start.ms", 0), "job.start.ms", most=_MS_MAX) / 1000
    name = str(found.get("job.id", f"job-{place.line}"))[:256]
    user = str(found.get("job.user", "default"))[:256]
    queue = str(found.get("job.queue.name", found.get("job.queue", "default")))[:256]
    return SimJob(name=name, user=user, queue=queue, arrival_s=start, stages=stages)


def _chained(kinds: list[tuple[str, list[SimTask]]]) -> tuple[SimStage, ...]:
    return tuple(
        SimStage(name=name, tasks=tuple(tasks), after=(at - 1,) if at else ()) for at, (name, tasks) in enumerate(kinds)
    )


def _rumen_job(found: dict[str, Any], place: Place) -> SimJob:
    kinds: list[tuple[str, list[SimTask]]] = []
    for key, kind, priority in (("mapTasks", "map", MAP_PRIORITY), ("reduceTasks", "reduce", REDUCE_PRIORITY)):
        tasks = [
            SimTask(duration_s=seconds, resource=_DEFAULT, priority=priority, hosts=hosts)
            for task in _list(found, key, place)
            for seconds, hosts in _rumen_attempt(task, place)
        ]
        if tasks:
            kinds.append((kind, tasks))
    if not kinds:
        place.fail("a job without a task that succeeded")
    submitted = place.number(found.get("submitTime"), "submitTime", most=1e14) / 1000
    names = [str(found.get(key) or "default")[:256] for key in ("jobName", "user", "queue")]
    return SimJob(name=names[0], user=names[1], queue=names[2], arrival_s=submitted, stages=_chained(kinds))


def _rumen_attempt(task: dict[str, Any], place: Place) -> Iterator[tuple[float, tuple[str, ...]]]:
    """The attempt that succeeded, if one did. A reduce's time before its shuffle ended is its own, as rumen has it."""
    for attempt in _list(task, "attempts", place):
        if attempt.get("result") == "SUCCESS":
            host = (_host(attempt["hostName"], place),) if attempt.get("hostName") else ()
            yield _duration(attempt, "startTime", "finishTime", place, most=1e14), host
            return


def _list(found: dict[str, Any], key: str, place: Place) -> list[dict[str, Any]]:
    tasks = found.get(key) or []
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        place.fail(f"{key} is not a list of objects")
    return tasks


def _duration(
    task: dict[str, Any], start: str, end: str, place: Place, *, known: str = "", most: float = _MS_MAX
) -> float:
    if known in task:
        return place.number(task[known], known, most=_MS_MAX) / 1000
    began = place.number(task.get(start), start, most=most)
    ended = place.number(task.get(end), end, most=most)
    return place.number((ended - began) / 1000, f"{end} - {start} in s")


def _host(value: object, place: Place) -> str:
    """The node's name: SLS writes /rack/node."""
    return place.text(value, "host").rpartition("/")[2]


def _resource(task: dict[str, Any], place: Place) -> Resource:
    memory = place.number(task.get("container.memory", _DEFAULT.memory_mb), "container.memory", least=1, most=1 << 30)
    cores = place.number(task.get("container.vcores", _DEFAULT.vcores), "container.vcores", most=1 << 20)
    return Resource(int(memory), int(cores))
