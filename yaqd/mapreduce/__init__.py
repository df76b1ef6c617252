"""The programming interface of MapReduce jobs: what a job script imports. Definitions only; it starts nothing."""

from yaqd.mapreduce.counters import Counter, CounterCell, Counters, FileSystemCounter, JobCounter, TaskCounter
from yaqd.mapreduce.errors import CorruptDataError, JobError, TooManyCounters, UnserializableError
from yaqd.mapreduce.flow import Flow, Stream
from yaqd.mapreduce.formats import InputFormat, InputKind, OutputKind
from yaqd.mapreduce.job import Job, Pair, TaskContext
from yaqd.mapreduce.loading import check_job, load_job, load_module, split_script, user_traceback
from yaqd.mapreduce.params import Param, declared_params, parse_params, unread_names

__all__ = [
    "CorruptDataError",
    "Counter",
    "CounterCell",
    "Counters",
    "FileSystemCounter",
    "Flow",
    "InputFormat",
    "InputKind",
    "Job",
    "JobCounter",
    "JobError",
    "OutputKind",
    "Pair",
    "Param",
    "Stream",
    "TaskContext",
    "TaskCounter",
    "TooManyCounters",
    "UnserializableError",
    "check_job",
    "declared_params",
    "load_job",
    "load_module",
    "parse_params",
    "split_script",
    "unread_names",
    "user_traceback",
]
