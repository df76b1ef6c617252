"""A job's own partition function, as what sorts map output asks it."""

from typing import Any

from riffle_merger.format.columns import I64, U8
from tez_adapter.data import KeyPartitioner
from tez_adapter.data.partition import Partitions
from yaqd.mapreduce import Job, JobError
from yaqd.mapreduce.job import TaskContext
from yaqd.mapreduce.serde import decode_key


class JobPartitioner(KeyPartitioner):
    """The job's own function of a key. It is asked when pairs are sorted, once for equal keys."""

    def __init__(self, job: Job, *, is_sided: bool = False) -> None:
        """`is_sided`: the key is the first of two parts (`tez_adapter.flow.body.sided`)."""

        def part(code: bytes, partitions: int) -> int:
            key = decode_key(code)
            return job.partition(key[0] if is_sided else key, partitions)

        super().__init__(part)
        self._job = job

    def partition(self, data: U8, offsets: I64, partitions: int) -> Partitions:
        task: Any = self._job.task
        self._job.task = _TaskOfKeys(task)  # type: ignore[assignment]
        try:
            return super().partition(data, offsets, partitions)
        finally:
            self._job.task = task


class _TaskOfKeys:
    """`self.task` within partition(): there is no record at hand, and the file would be that of another one."""

    def __init__(self, task: TaskContext) -> None:
        self._task = task

    def __getattr__(self, name: str) -> Any:
        if name.startswith("input_"):
            raise JobError(
                f"partition() cannot ask for self.task.{name}: it is asked about a key, and equal keys go to one "
                "reducer from whatever file they are; put what it needs into the key"
            )
        return getattr(self._task, name)
