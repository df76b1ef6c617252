"""Hadoop's asynchronous scheduling: a thread that offers each node one container, again and again."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from rm.scheduler.decisions import Outcome
from rm.scheduler.events import PassDue
from rm.scheduler.scheduler import Scheduler
from yaqd.model import NodeId
from yaqd.sim.engine import Engine
from yaqd.sim.scheduling.timing import TimedScheduler


class Passes:
    """The passes of that thread over all nodes, each from a node drawn at random on.

    A pass takes no time. Passes that could give nothing are not played: those while no node has room, and those after
    as many in vain as there are nodes, until something changes.
    """

    def __init__(
        self,
        every_s: float,
        engine: Engine,
        scheduler: Scheduler | TimedScheduler,
        nodes: Sequence[NodeId],
        random: Random,
        take: Callable[[list[Outcome], float], None],
    ) -> None:
        """`every_s`: s; 0: there is no such thread. `take` is handed what was decided, and when."""
        self._every_s, self._engine, self.scheduler = every_s, engine, scheduler
        self._nodes: Final = tuple(nodes)
        self._random, self._take = random, take
        self._is_due = False
        self._in_vain = 0

    @property
    def is_on(self) -> bool:
        return self._every_s > 0.0

    def stir(self, now: float) -> None:
        """Hear that something has changed."""
        self._in_vain = 0
        self._go_on(now)

    def _go_on(self, now: float) -> None:
        scheduler = self.scheduler
        if self._is_due or not self.is_on or not scheduler.has_waiting or not scheduler.facts.has_free_node:
            return
        self._is_due = True
        self._engine.at((math.floor(now / self._every_s) + 1) * self._every_s, self._pass, None)

    def _pass(self, now: float, _: None) -> None:
        self._is_due = False
        first = self._random.randrange(len(self._nodes))
        decisions = self.scheduler.handle(PassDue((*self._nodes[first:], *self._nodes[:first])), now)
        self._take(decisions, now)
        self._in_vain = 0 if decisions else self._in_vain + 1
        if self._in_vain <= len(self._nodes):
            self._go_on(now)
