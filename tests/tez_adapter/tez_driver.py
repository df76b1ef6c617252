"""A job's machine on a random cluster, step by step."""

from tests.tez_adapter.tez_invariants import validate
from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from yaqd.model import Resource

SMALL = Resource(1024, 1)


def mapreduce(maps: int, reduces: int, *, slow_start: float = 0.05, **vertex: object) -> DagSpec:
    return DagSpec(
        (
            VertexSpec("map", maps, SMALL, 10, **vertex),  # type: ignore[arg-type]
            VertexSpec("reduce", reduces, SMALL, 20, **{k: v for k, v in vertex.items() if k != "hosts"}),  # type: ignore[arg-type]
        ),
        (EdgeSpec(0, 1, slow_start),),
    )


def commands(tasks: int) -> DagSpec:
    return DagSpec((VertexSpec("command", tasks, SMALL, 10, max_attempts=1, timeout_s=0, reusable=False),))


class Driver:
    """Feeds events, checks the invariants after each."""

    def __init__(self, spec: DagSpec) -> None:
        self.machine = JobMachine(spec)
        self.now = 0.0

    def __call__(self, event: ev.Event) -> list[ev.Decision]:
        out = self.machine.handle(event, self.now)
        validate(self.machine)
        return out

    def allocate(self, name: str, host: str = "h1", priority: int = 10) -> list[ev.Decision]:
        return self(ev.ContainerAllocated(name, f"{host}:1", host, SMALL, priority))
