"""Full nodes with more asks than ever end, some of which refuse nodes."""

from collections.abc import Callable

from rm.scheduler.decisions import Allocate, Outcome, Reserve, Unreserve
from rm.scheduler.events import Asked, WaitingTolerated
from rm.scheduler.node_queues.spec import QueueingSpec
from tests.rm.rm_life import Life
from tests.rm.rm_world import GB, row
from yaqd.model import ApplicationAttemptId, Resource
from yaqd.policies.asks.placement import SELF, ConstraintScope, Single, Target
from yaqd.policies.asks.rows import AskRow

#: what keeps an application from node a
NOWHERE = Single(ConstraintScope.NODE, 1, None, (Target(SELF, ("never there",)),))


class QuickLife(Life):
    """Recounted when asked to be: for thousands of applications."""

    def __init__(self, queueing: QueueingSpec) -> None:
        super().__init__(queueing, validates=False)


def strict_rows(host: str, request: int = 0) -> tuple[AskRow, ...]:
    names = ((host, True), ("/r1", False), ("*", False))
    return tuple(row(name, relax=relax, request=request) for name, relax in names)


HOSTS = ("a", "b", "c")
LARGE = Resource(4 * GB, 1)


class Busy(QuickLife):
    """Three nodes of four slots, all full of small containers, more of which are asked for than ever end."""

    def __init__(self, queueing: QueueingSpec, *, sizes: tuple[int, int, int] = (4, 4, 4)) -> None:
        super().__init__(queueing)
        self.kept: list[str] = []
        self.given_up = 0
        self.served: set[ApplicationAttemptId] = set()
        self.nodes = [self.node(host, gb=gb) for host, gb in zip(HOSTS, sizes, strict=True)]
        small = self.app()
        self.tell(WaitingTolerated(small))
        self.ask(small, 100_000)

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, Reserve):
            self.kept.append(decision.node_id.host)
        elif isinstance(decision, Unreserve):
            self.given_up += 1
        elif isinstance(decision, Allocate):
            self.served.add(decision.container_id.attempt_id)

    def second(self, *, wait_s: float = 1.0, ends: Callable[[str], bool] = lambda _: True) -> None:
        """A container ends at each node where one may, and all send their heartbeats."""
        self.now += 1.0
        for node in self.nodes:
            if ends(node.host):
                self.end(node.host)
            self.reports(node, 4, 0, wait_s)
            self.beats(node)

    def start_of(self, who: ApplicationAttemptId, within_s: int, **how: object) -> int | None:
        """After how many seconds it is given something."""
        for number in range(within_s):
            self.second(**how)  # type: ignore[arg-type]
            if who in self.served:
                self.scheduler.validate()
                return number + 1
        return None

    def large(
        self, *rows: AskRow, blacklist: tuple[str, ...] = (), estimate: float | None = None
    ) -> ApplicationAttemptId:
        app = self.app(estimate=estimate)
        self.tell(Asked(app, rows or (AskRow(1, -1, "*", LARGE, 1),), blacklist))
        return app
