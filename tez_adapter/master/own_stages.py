"""Where a flow's idle containers go on under a ResourceManager that does not decide about stages: a stock one.

The policy is the one that queues with `ordering-policy=clotho` have (`yaq.clotho.policy`, `yaq.clotho.weights`).
It sees this job alone. So it says which stage goes on, and not how many containers the job should have.
"""

import logging
from collections import Counter
from typing import Final

from tez_adapter.core import events as ev
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import JobState
from yaqd.config import ConfigError, Configuration
from yaqd.config.stage_weights import configured_weights
from yaqd.model.stages import StagesOrder
from yaqd.policies.clotho.facts import Scene
from yaqd.policies.clotho.policies import LEARNED, Chooser
from yaqd.policies.clotho.told import ToldStages
from yaqd.policies.clotho.weights import BYTES_MAX
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.words import STAGES

log = logging.getLogger(__name__)

_INSTEAD: Final = "weighted-fair"
#: a container changes no job here
_MOVE_S: Final = 0.0


class OwnStages:
    def __init__(self, machine: JobMachine, chooser: Chooser, odd: str = "") -> None:
        """`odd`: what is logged where the policy decides."""
        self._machine = machine
        self._chooser, self._odd = chooser, odd
        self._stages = ToldStages()
        self._orders = 0
        self._is_on = False
        #: what was decided of last, and to no effect
        self._left_as_is: object = None

    @classmethod
    def of(cls, conf: Configuration, machine: JobMachine) -> "OwnStages":
        """Raises ConfigError, but not for weights: a node need not have the file. Blocking."""
        name = conf.get_named("yaq.clotho.policy", Chooser.check)
        if name != LEARNED:
            return cls(machine, Chooser(name, note=log.warning))
        try:
            weights = configured_weights(conf, BYTES_MAX + 1)
        except ConfigError as error:
            return cls(machine, Chooser(_INSTEAD, note=log.warning), f"{error}; {_INSTEAD} decides instead")
        return cls(machine, Chooser(name, weights, note=log.warning))

    def registered(self, response: pb.RegisterApplicationMasterResponse) -> None:
        """Note whether this ResourceManager decides about stages, where its queue says so."""
        self._is_on = STAGES not in response.yaq_understands
        if self._is_on and self._odd:
            log.warning("%s", self._odd)

    def follow(self, now: float) -> ev.StagesOrdered | None:
        """Return where the containers go on that wait for word. `now`: the machine's seconds."""
        if not self._is_on or self._machine.state is not JobState.RUNNING:
            return None
        if not self._machine.held.orders.decides:
            return self._order()
        idle = self._machine.held.undecided()
        if not idle:
            return None
        vertices = self._machine.vertices
        state = idle, tuple((vertex.done, len(vertex.running), len(vertex.pending)) for vertex in vertices)
        if state == self._left_as_is:
            return None
        self._left_as_is = state
        self._stages.hear(self._machine.left(now), lambda priority: None)
        shares = self._chosen(idle)
        return self._order(*shares) if shares else None

    def _chosen(self, idle: int) -> list[tuple[int, int]]:
        """Return which stages get them, and how many, the first first."""
        stages, shares = self._stages, list[tuple[int, int]]()
        containers = self._machine.containers.values()
        vertices = (one.meant_for for one in containers if one.meant_for is not None)
        meant = Counter(self._machine.vertices[vertex].spec.priority for vertex in vertices)
        while idle:
            coming = [meant[priority] for priority in stages.priorities]
            job = stages.facts(coming, len(containers), idle, stages.work_s())
            choice = self._chooser.choose(Scene((job,), len(containers), _MOVE_S, 0, idle)) if job is not None else None
            if choice is None:
                break
            priority = stages.priorities[choice.stage]
            shares.append((priority, choice.containers))
            meant[priority] += choice.containers
            idle -= choice.containers
        return shares

    def _order(self, *shares: tuple[int, int]) -> ev.StagesOrdered:
        self._orders += 1
        return ev.StagesOrdered(StagesOrder(self._orders, shares=shares))
