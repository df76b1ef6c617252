"""The programming interface of MapReduce jobs: what a job script imports. Definitions only; it starts nothing."""

from yaqd.mapreduce.counters import Counter, CounterCell, Counters, FileSystemCounter, JobCounter, TaskCounter
from yaqd.mapreduce.errors import CorruptDataError, JobError, TooManyCounters, UnserializableError
from yaqd.mapreduce.formats import InputFormat, InputKind, OutputKind
from yaqd.mapreduce.job import Job, Pair, TaskContext
from yaqd.mapreduce.loading import load_job, split_script, user_traceback
from yaqd.mapreduce.params import Param, declared_params, parse_params, unread_names

__all__ = [
    "CorruptDataError",
    "Counter",
    "CounterCell",
    "Counters",
    "FileSystemCounter",
    "InputFormat",
    "InputKind",
    "Job",
    "JobCounter",
    "JobError",
    "OutputKind",
    "Pair",
    "Param",
    "TaskContext",
    "TaskCounter",
    "TooManyCounters",
    "UnserializableError",
    "declared_params",
    "load_job",
    "parse_params",
    "split_script",
    "unread_names",
    "user_traceback",
]
