"""What every task would import otherwise: loaded by the process that forks them. Prepared processes have it already."""

from importlib import import_module
from typing import Final

from tez_adapter.jobspec import JobKind

#: the last two are imported where they are first needed: numpy.ma, of all things, when pyarrow reads an array
_ANY: Final = ("tez_adapter.merging.shared_outputs", "yaqd.storage.local", "encodings.ascii", "numpy.ma")
_STREAMING: Final = ("tez_adapter.streaming.task", *_ANY)
_MAPREDUCE: Final = (
    "tez_adapter.tasks.map_task",
    "tez_adapter.tasks.raw",
    "tez_adapter.tasks.reduce_task",
    "tez_adapter.tasks.scripts",
    *_ANY,
)


def import_runners(kind: JobKind) -> None:
    for name in _STREAMING if kind is JobKind.STREAMING else _MAPREDUCE:
        import_module(name)
