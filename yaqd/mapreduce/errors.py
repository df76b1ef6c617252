"""What a job's author did wrong, in one line: what, where, what to do.

A `JobError` is shown as it is, without our own traceback; where the author's traceback helps it rides in `detail`.
"""

import reprlib
from typing import Final

#: shows a value in short
shown: Final = reprlib.Repr()
shown.maxstring = shown.maxother = 80


class JobError(Exception):
    """A mistake in a job script, its options or the data it emits."""

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        #: traceback of the author's own frames, or ""
        self.detail = detail


class SampleError(JobError):
    """A map that fails on the sample that a total order is found by: the job itself fails, before its first task."""


class UnserializableError(JobError, TypeError):
    """A key or value of a type that cannot travel between tasks."""


class CorruptDataError(JobError):
    """Bytes that are no encoded key or value."""


class TooManyCounters(JobError):
    """A task that makes more counters than `mapreduce.job.counters.max` (names made from data, as a rule)."""
