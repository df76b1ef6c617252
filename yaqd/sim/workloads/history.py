"""What a cluster really ran: job history files as workloads, so that "what if" has the answer of the same jobs.

Two kinds: the job manager's own (`job_*.jsonl`, one JSON line an attempt) and Hadoop's `.jhist` as JSON text
(`mapreduce.jobhistory.jhist.format` = json). Durations are those of the attempts that succeeded; a reduce's time of
waiting for maps is left out, because in the simulator it waits for them anyway.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from yaqd.model.values import value
from yaqd.sim.workload import SLOT, SimJob, SimStage, SimTask, Workload
from yaqd.sim.workloads.drawn import MAP_PRIORITY, REDUCE_PRIORITY, WorkloadError
from yaqd.sim.workloads.reading import Budget, Place, json_lines, read_text
from yaqd.sim.workloads.seen import Sightings
from yaqd.sim.workloads.sls import from_zero

_MS_MAX: Final = 1e14
_FILES_MAX: Final = 100_000
#: where a folder has no history itself, it is looked for so many floors below it: a cluster's own folder has it at 3,
#: MapReduce's history server at 6; and in no more folders than this
_FLOORS: Final = 6
_FOLDERS_MAX: Final = 10_000
_EDGES_MAX: Final = 1_000_000
_EVENT_PREFIX: Final = "org.apache.hadoop.mapreduce.jobhistory."
_AVRO: Final = "Avro-Json"


@value()
class _Attempt:
    stage: str
    task: str
    #: epoch ms
    started: float
    finished: float
    #: a reduce's last map output was there, epoch ms
    fed: float | None = None


def read_history(paths: Sequence[Path]) -> Workload:
    """Read all jobs of these files, and of history files in or below these folders; the first comes at 0 s.

    Raises WorkloadError with file and line.
    """
    jobs: list[SimJob] = []
    seen = Sightings()
    for path in _files(paths):
        place = Place(path)
        text = read_text(path)
        seen.job(path.name)
        job = _jhist_job(text, place, seen) if text.startswith(_AVRO) else _own_job(text, place, seen)
        if job is not None:
            Budget(place).job(sum(len(stage.tasks) for stage in job.stages))
            jobs.append(job)
    if not jobs:
        raise WorkloadError(f"no job with a finished task in {', '.join(map(str, paths))}")
    return Workload(jobs=from_zero(jobs), name="history", seen=seen.cluster())


def _files(paths: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted([*path.glob("*.jsonl"), *path.glob("*.jhist")]) if path.is_dir() else [path]
        found = found or _below(path)
        if not found:
            raise WorkloadError(
                f"{path}: no job history there (*.jsonl, *.jhist) nor in folders below it (job_*.jsonl, *.jhist)"
            )
        files += found
        if len(files) > _FILES_MAX:
            raise WorkloadError(f"more than {_FILES_MAX} history files")
    return files


def _below(top: Path) -> list[Path]:
    """History files in the folders below. Hidden ones are left out: what a running job writes is in one of them."""
    found: list[Path] = []
    for folders, (folder, below, names) in enumerate(os.walk(top), 1):
        if folders > _FOLDERS_MAX:
            raise WorkloadError(f"{top}: more than {_FOLDERS_MAX} folders below it, name the one with the job history")
        is_deep = len(Path(folder).relative_to(top).parts) >= _FLOORS
        below[:] = [] if is_deep else [name for name in below if not name.startswith(".")]
        found += (Path(folder, name) for name in names if _is_history(name))
    return sorted(found)


def _is_history(name: str) -> bool:
    """Among files of any kind; a folder of histories alone may have them under other names."""
    return name.endswith(".jhist") or (name.startswith("job_") and name.endswith(".jsonl"))


def _own_job(text: str, place: Place, seen: Sightings) -> SimJob | None:
    name, user, submitted = place.path.stem, "default", None
    order: list[str] = []
    reads: dict[str, list[str]] | None = None
    attempts: list[_Attempt] = []
    for line in json_lines(text, place):
        kind = line.get("type")
        if kind == "job":
            name, user = str(line.get("name") or name)[:256], str(line.get("user") or user)[:256]
            submitted = place.number(line.get("submitted_ms", line.get("started_ms")), "started_ms", most=_MS_MAX)
            vertices = line.get("vertices") or {}
            order = list(vertices) if isinstance(vertices, dict) else []
            reads = _reads(line["edges"], order, place) if "edges" in line else None
        elif kind == "attempt":
            # one that failed held its slot too
            began, state = line.get("began_ms", line.get("started_ms")), line.get("state")
            seen.ran(line.get("node"), began, line.get("finished_ms"), killed=state == "KILLED")
            if state != "SUCCEEDED":
                continue
            attempts.append(
                _Attempt(
                    place.text(line.get("vertex"), "vertex"),
                    str(line.get("task")),
                    _began(line, place),
                    place.number(line.get("finished_ms"), "finished_ms", most=_MS_MAX),
                )
            )
    if submitted is None:
        place.fail("no job line: not a job history")
    return _job(name, user, "default", submitted, attempts, order, place, reads)


def _reads(edges: object, order: list[str], place: Place) -> dict[str, list[str]]:
    """Return by stage which stages it reads: earlier ones, as the job manager numbers them."""
    reads: dict[str, list[str]] = {name: [] for name in order}
    at = {name: number for number, name in enumerate(order)}
    if not isinstance(edges, list) or len(edges) > _EDGES_MAX:
        place.fail(f"edges are no list of {_EDGES_MAX} pairs at most")
    for edge in edges:
        if not isinstance(edge, list) or len(edge) != 2 or not all(isinstance(name, str) for name in edge):
            place.fail(f"an edge is {str(edge)[:80]}, no pair of stages")
        before, after = edge
        if at.get(before, len(order)) >= at.get(after, -1):
            place.fail(f"stage {after[:40]!r} reads {before[:40]!r}, which is no earlier stage")
        reads[after].append(before)
    return reads


def _began(line: dict[str, Any], place: Place) -> float:
    """Not when its container came: that may have waited in a node's queue, and would wait in the simulator again."""
    name = "began_ms" if line.get("began_ms") is not None else "started_ms"
    return place.number(line.get(name), name, most=_MS_MAX)


def _jhist_job(text: str, place: Place, seen: Sightings) -> SimJob | None:
    """Events as Avro's JSON encoding has them: {"type": ..., "event": {class: {...}}}."""
    body = text.partition("\n")[2]
    name, user, queue, submitted = place.path.stem, "default", "default", None
    starts: dict[str, float] = {}
    attempts: list[_Attempt] = []
    for event in json_lines(body, place, first=2):
        inner = event.get("event")
        if not isinstance(inner, dict):
            continue  # the schema
        for kind, fields in inner.items():
            short = kind.removeprefix(_EVENT_PREFIX)
            if not isinstance(fields, dict):
                place.fail(f"{short[:40]} is not an object")
            if short == "JobSubmitted":
                submitted = place.number(fields.get("submitTime"), "submitTime", most=_MS_MAX)
                name, user, queue = (
                    str(_plain(fields.get(key)) or default)[:256]
                    for key, default in (("jobName", name), ("userName", user), ("jobQueueName", queue))
                )
            elif short == "TaskAttemptStarted":
                starts[str(fields.get("attemptId"))] = place.number(fields.get("startTime"), "startTime", most=_MS_MAX)
            elif short in ("MapAttemptFinished", "ReduceAttemptFinished"):
                attempt = _jhist_attempt(fields, short, starts, place)
                attempts.append(attempt)
                seen.ran(_plain(fields.get("hostname")), attempt.started, attempt.finished)
    if submitted is None:
        place.fail("no JobSubmitted event: not a job history")
    return _job(name, user, queue, submitted, attempts, ["map", "reduce"], place)


def _jhist_attempt(fields: dict[str, Any], kind: str, starts: dict[str, float], place: Place) -> _Attempt:
    attempt = str(fields.get("attemptId"))
    if attempt not in starts:
        place.fail(f"{attempt[:60]} finished but never started")
    is_map = kind == "MapAttemptFinished"
    return _Attempt(
        "map" if is_map else "reduce",
        str(fields.get("taskid")),
        starts[attempt],
        place.number(fields.get("finishTime"), "finishTime", most=_MS_MAX),
        None if is_map else place.number(fields.get("shuffleFinishTime"), "shuffleFinishTime", most=_MS_MAX),
    )


def _plain(field: object) -> object:
    """Avro writes a union's value as {type: value}."""
    return next(iter(field.values())) if isinstance(field, dict) and len(field) == 1 else field


def _job(
    name: str,
    user: str,
    queue: str,
    submitted: float,
    attempts: list[_Attempt],
    order: list[str],
    place: Place,
    reads: dict[str, list[str]] | None = None,
) -> SimJob | None:
    """Stages in `order`, each after those that it reads; where that is not told after the one before.

    None when no task of the job was done.
    """
    by_stage: dict[str, dict[str, _Attempt]] = {stage: {} for stage in order}
    for attempt in attempts:
        by_stage.setdefault(attempt.stage, {})[attempt.task] = attempt  # the last one counts: earlier output was lost
    stages: list[SimStage] = []
    #: number and end of each stage, epoch ms
    known: dict[str, tuple[int, float]] = {}
    for stage, done in by_stage.items():
        if not done:
            continue
        parents = list(known)[-1:] if reads is None else [one for one in reads.get(stage, ()) if one in known]
        before = max((known[one][1] for one in parents), default=0.0)
        priority = REDUCE_PRIORITY if stages else MAP_PRIORITY
        tasks = tuple(
            SimTask(duration_s=_seconds(attempt, before, place), resource=SLOT, priority=priority)
            for attempt in done.values()
        )
        known[stage] = len(stages), max(attempt.finished for attempt in done.values())
        stages.append(SimStage(name=stage, tasks=tasks, after=tuple(known[one][0] for one in parents)))
    if not stages:
        return None
    return SimJob(name=name, user=user, queue=queue, arrival_s=submitted / 1000, stages=tuple(stages))


def _seconds(attempt: _Attempt, before: float, place: Place) -> float:
    """How long it worked: from its start, or from when the stage before it was done if that is later."""
    work_from = max(attempt.started, min(before, attempt.fed or before))
    return place.number(max(0.0, attempt.finished - work_from) / 1000, "the attempt's duration in s")
