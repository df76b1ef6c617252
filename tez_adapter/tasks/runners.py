"""What runs the tasks of each kind of job, and what all of them import.

The process that forks tasks loads it, or each task would. Prepared processes have it already.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

from tez_adapter.jobspec import JobKind
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.shared_imports import SharedImports
from tez_adapter.tasks.task_output import Committed
from yaqd.ipc import BlockingRpcClient


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a task has of the process that runs it."""

    #: to the job manager
    client: BlockingRpcClient
    #: the job's, by which map outputs are fetched
    secret: bytes
    #: the container's
    folder: Path
    shared: SharedImports
    #: a further connection to the job manager
    connect: Callable[[], BlockingRpcClient]


@dataclass(frozen=True, slots=True)
class Runner:
    #: `module:function`, called with the attempt and its workplace; it returns the output to commit, if there is some
    entry: str
    #: what its tasks import besides
    modules: tuple[str, ...]

    def load(self) -> Callable[[TaskAttempt, Workplace], Committed | None]:
        function: Callable[[TaskAttempt, Workplace], Committed | None] = resolve_name(self.entry)
        return function


#: the last two are imported where they are first needed: numpy.ma, of all things, when pyarrow reads an array
_ANY: Final = ("tez_adapter.merging.shared_outputs", "yaqd.storage.local", "encodings.ascii", "numpy.ma")
RUNNERS: Final[Mapping[JobKind, Runner]] = {
    JobKind.MAPREDUCE: Runner("tez_adapter.tasks.mapreduce:run", ("tez_adapter.tasks.raw", *_ANY)),
    JobKind.STREAMING: Runner("tez_adapter.streaming.task:run", _ANY),
    JobKind.TRAINING: Runner("tez_adapter.training.tasks:run", ("yaqd.ml", "yaqd.ml.arrays", *_ANY)),
    JobKind.EXPLORATION: Runner("tez_adapter.exploration.slot:run", ("yaqd.ml", *_ANY)),
    JobKind.FLOW: Runner("tez_adapter.flow.run:run", _ANY),
}


def import_runners(kind: JobKind) -> None:
    runner = RUNNERS[kind]
    for name in (runner.entry.partition(":")[0], *runner.modules):
        import_module(name)
