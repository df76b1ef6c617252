"""Jobs of several stages whose containers go on as a queue orders."""

from tests.tez_adapter.tez_driver import SMALL, Driver
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from yaqd.model.stages import StagesOrder


def stages(*tasks: int, edges: tuple[EdgeSpec, ...] = (), task_s: float | None = None) -> DagSpec:
    """Return vertices of priorities 10, 20, ..."""
    found = [VertexSpec(f"v{at}", many, SMALL, 10 + 10 * at, task_s=task_s) for at, many in enumerate(tasks)]
    return DagSpec(tuple(found), edges)


def after(source: int, target: int, slow_start: float = 1.0) -> EdgeSpec:
    return EdgeSpec(source, target, slow_start)


class Ordered(Driver):
    """In a queue that decides about stages."""

    def __init__(self, spec: DagSpec, containers: int = 0, *, decides: bool = True) -> None:
        super().__init__(spec)
        self.sequence = 0
        if decides:
            assert self.order() == []
        for number in range(containers):
            self.start(f"c{number}")

    def order(self, *shares: tuple[int, int], limit: int | None = None, decides: bool = True) -> list[ev.Decision]:
        self.sequence += 1
        return self(ev.StagesOrdered(StagesOrder(self.sequence, decides, limit, shares)))

    def start(self, name: str, priority: int = 10) -> AttemptId:
        """Have a container come and take up its first task."""
        self.allocate(name, priority=priority)
        self(ev.TaskRequested(name))
        return self.attempt_in(name)

    def attempt_in(self, name: str) -> AttemptId:
        attempt = self.machine.containers[name].attempt
        assert attempt is not None
        return attempt.id

    def done(self, *names: str) -> list[ev.Decision]:
        """Have the tasks in these containers end well; return what follows from the last one's."""
        found: list[ev.Decision] = []
        for name in names:
            found = self(ev.AttemptSucceeded(self.attempt_in(name)))
        return found

    @property
    def undecided(self) -> int:
        return self.machine.held.undecided()
