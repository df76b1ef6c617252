"""A MapReduce job on this machine, without a cluster: the tasks of the cluster, one after the other.

As there, each has a process of its own. Map and reduce run the code that task processes run, over the same splits,
partitions, formats and committer. So the output is the same, for a reduce that does not depend on the order of a key's
values. No cluster promises that order. What is left out is what a job manager adds: a failed task is not tried again.
The first failure ends the job, unless mapreduce.map|reduce.failures.maxpercent allows it to do without the task.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tez_adapter.client.local_files import laid_out
from tez_adapter.client.overwrite import check_replaceable, remove_results
from tez_adapter.client.submit import Attachments, check_output
from tez_adapter.core.wording import left_out_text
from tez_adapter.jobspec import JobKind, JobSpec, attempt_name
from tez_adapter.kinds.mapreduce import failures_max_percent
from tez_adapter.master.output import JobOutput
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.tasks.local_tasks import LocalAttempt, LocalTask, LocalTasks, TaskFailed, done_by, work_of
from tez_adapter.tasks.scripts import CheckedScript, sample_boundaries
from yaqd.config import Configuration
from yaqd.mapreduce import Counters, InputFormat, Job, JobCounter, JobError
from yaqd.proto import job_pb2 as pb
from yaqd.storage import (
    InputSplit,
    check_output_absent,
    compute_splits,
    get_filesystem,
    output_codec,
    qualify,
)
from yaqd.storage.paths import hadoop_user

#: told after each task: "map" or "reduce", tasks done, tasks in all
Progress = Callable[[str, int, int], None]
#: told of tasks that the job does without
Notify = Callable[[str], None]


@dataclass(slots=True)
class _Phase:
    """The tasks of a kind, and how many of them failed."""

    name: str
    tasks: int
    failures_max_percent: int
    notify: Notify
    failed: int = 0

    def leave_out(self, error: TaskFailed) -> None:
        """Raises the error where that would be one too many."""
        self.failed += 1
        if self.failed * 100 > self.failures_max_percent * self.tasks:
            raise error
        self.notify("\n".join(part for part in (f"a {self.name} task is left out: {error}", error.detail) if part))


def run_local(
    job_class: type[Job],
    inputs: Sequence[str],
    output: str,
    conf: Configuration,
    reduces: int | None = None,
    params: dict[str, Any] | None = None,
    *,
    tasks: LocalTasks | None = None,
    attachments: Attachments | None = None,
    progress: Progress = lambda phase, done, total: None,
    notify: Notify = lambda line: None,
    overwrite: bool = False,
) -> Counters:
    """Run the job; its counters. `overwrite`: results in the output folder go when it begins.

    `params` holds values by attribute, as `parse_params` gives them. `tasks` load the job themselves; without them each
    gets a copy of the class as it is now, so this process should have one thread.

    StorageError for input that is missing and output that stands already, SubmitError for output that cannot be made.
    JobError (with the author's traceback in `detail`) for a task that fails; then no output is left.
    """
    own = LocalTasks(lambda _: work_of(job_class, params or {}), conf) if tasks is None else nullcontext(tasks)
    with own as ready:
        return _run(
            job_class, inputs, output, conf, reduces, params or {}, ready, attachments, progress, notify, overwrite
        )


def _run(
    job_class: type[Job],
    inputs: Sequence[str],
    output: str,
    conf: Configuration,
    reduces: int | None,
    params: dict[str, Any],
    tasks: LocalTasks,
    attachments: Attachments | None,
    progress: Progress,
    notify: Notify,
    overwrite: bool,
) -> Counters:
    count = job_class.reduces if reduces is None else reduces
    target = qualify(output, conf)
    _check(inputs, output, target, conf, count, overwrite=overwrite)
    splits = compute_splits(inputs, InputFormat.parse(job_class.input_format), conf)
    phases = [
        _Phase(name, tasks, failures_max_percent(name, conf), notify)
        for name, tasks in (("map", len(splits)), ("reduce", count))
    ]
    if overwrite:
        remove_results(conf, output)
    spec = _spec(job_class, target, count, splits, params, conf)
    result = JobOutput(spec, conf)
    result.setup()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="yaq-local-") as folder,
            laid_out(attachments or Attachments(), conf) as files,
        ):
            counters = _LocalJob(tasks, spec, conf, Path(folder), files, progress).run(splits, *phases)
    except BaseException:
        result.abort()
        raise
    result.commit()
    return counters


def _check(
    inputs: Sequence[str], output: str, target: str, conf: Configuration, reduces: int, *, overwrite: bool
) -> None:
    """Says before anything starts what cannot be. Raises JobError, StorageError and SubmitError."""
    if reduces < 0:
        raise JobError(f"{reduces} reduces: ask for 0 or more")
    if reduces:
        shuffle_codec(conf)
    output_codec(conf)
    if overwrite:
        check_replaceable(conf, output, inputs)
    else:
        check_output_absent(get_filesystem(target, conf), target)
    check_output(conf, output, overwrite=overwrite)


def _spec(
    job_class: type[Job],
    output: str,
    reduces: int,
    splits: Sequence[InputSplit],
    params: dict[str, Any],
    conf: Configuration,
) -> JobSpec:
    boundaries: list[bytes] = []
    if job_class.partitioner == "range" and reduces > 1:
        boundaries = sample_boundaries(CheckedScript(job_class, "", "", params), splits, reduces, conf)
    return JobSpec(
        job_id=f"job_{time.time_ns() // 1_000_000}_0001",
        name=job_class.name or job_class.__name__,
        user=hadoop_user(),
        kind=JobKind.MAPREDUCE,
        conf={},
        staging="",
        class_name=job_class.__name__,
        output=output,
        reduces=reduces,
        input_format=job_class.input_format,
        output_format=job_class.output_format,
        boundaries=tuple(key.hex() for key in boundaries),
    )


class _LocalJob:
    def __init__(
        self,
        tasks: LocalTasks,
        spec: JobSpec,
        conf: Configuration,
        folder: Path,
        files: Path | None,
        progress: Progress,
    ) -> None:
        """`files`: where what travels with the job lies."""
        self._tasks = tasks
        self._spec = spec
        self._conf = conf
        self._folder = folder
        self._progress = progress
        self._files = files
        #: each task has its limit; what they make together has none, as on a cluster
        self._counters = Counters(sys.maxsize)

    def run(self, splits: Sequence[InputSplit], maps: _Phase, reduces: _Phase) -> Counters:
        outputs: list[str] = []
        for index, split in enumerate(splits):
            try:
                outputs.append(str(self._run(pb.TaskDescription.MAP, index, split=json.dumps(split.to_json()))))
            except TaskFailed as error:
                maps.leave_out(error)
            self._progress("map", index + 1, len(splits))
        for partition in range(self._spec.reduces):
            try:
                self._run(pb.TaskDescription.REDUCE, partition, outputs=outputs)
            except TaskFailed as error:
                reduces.leave_out(error)
            self._progress("reduce", partition + 1, self._spec.reduces)
        self._count_tasks(maps, JobCounter.TOTAL_LAUNCHED_MAPS, JobCounter.NUM_FAILED_MAPS)
        self._count_tasks(reduces, JobCounter.TOTAL_LAUNCHED_REDUCES, JobCounter.NUM_FAILED_REDUCES)
        return self._counters

    def _count_tasks(self, phase: _Phase, launched: JobCounter, failed: JobCounter) -> None:
        self._counters.job(launched).increment(phase.tasks)
        if phase.failed:
            self._counters.job(failed).increment(phase.failed)
            phase.notify(left_out_text(phase.name, phase.failed, phase.tasks))

    def _run(
        self, kind: "pb.TaskDescription.Kind", index: int, *, split: str = "", outputs: Sequence[str] = ()
    ) -> Path:
        """Run a task and add up its counters; the folder of its map output. Raises TaskFailed."""
        is_map = kind == pb.TaskDescription.MAP
        description = pb.TaskDescription(
            attempt=pb.AttemptRef(vertex=0 if is_map else 1, index=index, number=0),
            attempt_id=attempt_name(self._spec.job_id, "m" if is_map else "r", index, 0),
            kind=kind,
            split=split,
            inputs=len(outputs),
        )
        task = LocalTask(description.SerializeToString(), self._spec, self._files, self._folder, tuple(outputs))
        for counter in done_by(self._tasks, task, self._conf).counters:
            self._counters.take(counter.group, counter.name, counter.value)
        return LocalAttempt(description, self._spec, self._conf, self._folder).output_folder()
