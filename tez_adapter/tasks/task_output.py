"""A task's own output file: written under `_temporary`, renamed into place when the job manager allows it."""

from typing import Protocol

from tez_adapter.flow.spec import FlowOutput
from tez_adapter.master.output import committer, committer_of
from tez_adapter.tasks.attempt import TaskAttempt
from yaqd.mapreduce.counters import OUTPUT_GROUP
from yaqd.storage import (
    RecordWriter,
    get_filesystem,
    open_writer,
    output_suffix,
    part_name,
    streaming_part_name,
)


def task_folder(attempt: TaskAttempt) -> str:
    return committer(attempt.spec, attempt.conf).task_folder(attempt.name)


def make_task_folder(attempt: TaskAttempt) -> None:
    """Make the task's folder. Raises PathNotFound where the job was given up: its folder must not come back."""
    folder = task_folder(attempt)
    get_filesystem(folder, attempt.conf).mkdirs(folder, make_parents=False)


class Committed(Protocol):
    """What an attempt has written and the job manager may let stand."""

    def commit(self) -> None: ...
    def abort(self) -> None: ...


class TaskFiles:
    """Whatever stands in an attempt's folder below the job's output."""

    def __init__(self, attempt: TaskAttempt) -> None:
        self._attempt = attempt
        self._committer = committer(attempt.spec, attempt.conf)

    def commit(self) -> None:
        self._committer.commit_task(self._attempt.name)

    def abort(self) -> None:
        self._committer.abort_task(self._attempt.name)


def side_files(attempt: TaskAttempt) -> TaskFiles | None:
    """Return what the program has put into the attempt's folder, if any.

    For an attempt that has no output file of its own.
    """
    folder = task_folder(attempt)
    return TaskFiles(attempt) if get_filesystem(folder, attempt.conf).exists(folder) else None


class OutputFiles:
    """An attempt's files in several outputs."""

    def __init__(self, attempt: TaskAttempt) -> None:
        self.attempt = attempt
        self._writers: list[RecordWriter] = []

    def open(self, output: FlowOutput, name: str) -> RecordWriter:
        """Open a file of one output. Close or abort it before the commit."""
        attempt = self.attempt
        to = committer_of(output.path, attempt.spec, attempt.conf)
        path = to.task_path(attempt.name, name + output_suffix(attempt.conf))
        files = get_filesystem(path, attempt.conf)
        files.mkdirs(to.task_folder(attempt.name), make_parents=False)
        writer = open_writer(files, path, output.format, attempt.conf)
        self._writers.append(writer)
        return writer

    def commit(self) -> None:
        for path in self.attempt.spec.outputs:
            committer_of(path, self.attempt.spec, self.attempt.conf).commit_task(self.attempt.name)
        written = sum(writer.bytes_written for writer in self._writers)
        self.attempt.counters.increment(OUTPUT_GROUP, "BYTES_WRITTEN", written)

    def abort(self) -> None:
        for path in self.attempt.spec.outputs:
            committer_of(path, self.attempt.spec, self.attempt.conf).abort_task(self.attempt.name)


class PartFile(TaskFiles):
    """part-m-NNNNN or part-r-NNNNN of one attempt; part-NNNNN of a streaming job's."""

    def __init__(self, attempt: TaskAttempt, letter: str) -> None:
        super().__init__(attempt)
        suffix = output_suffix(attempt.conf)
        is_streaming = attempt.spec.streaming is not None
        name = streaming_part_name(attempt.index, suffix) if is_streaming else part_name(letter, attempt.index, suffix)
        path = self._committer.task_path(attempt.name, name)
        files = get_filesystem(path, attempt.conf)
        make_task_folder(attempt)
        #: close or abort it before the commit
        self.writer = open_writer(files, path, attempt.spec.output_format, attempt.conf)

    def commit(self) -> None:
        super().commit()
        self._attempt.counters.increment(OUTPUT_GROUP, "BYTES_WRITTEN", self.writer.bytes_written)
