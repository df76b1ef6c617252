"""Sparrow (Ousterhout et al., SOSP 2013): batch sampling, with late binding or without.

For a stage of m tasks a manager asks d m nodes at random. With late binding each of them queues a place. When its turn
comes, the manager hands out a task or none, one round trip later. Without it the nodes say how long their queues are
and the m shortest get the tasks at once; so the paper's authors built it on Mercury (4.5).
"""

import math
from heapq import nsmallest
from random import Random
from typing import Final

from nm.node_queue import Ended, NodeQueue
from yaqd.model import ContainerId, Resource
from yaqd.sim.direct import Direct
from yaqd.sim.jobs import ContainerRun, Group, JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.queues import UNBOUNDED, new_queue
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workload import Workload

#: a place without a task yet
_NO_TASK: Final = -1


class Sparrow(Direct):
    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        super().__init__(shape, workload, system, seed)
        self._random: Final[Random] = self.random("samples")
        #: by job: containers made
        self._made: dict[int, int] = {}
        #: by node: containers there at its last heartbeat
        self._said: Final = [0] * shape.nodes

    @property
    def _asks_first(self) -> bool:
        """Do nodes queue places, and get tasks when these have their turn? Where none is asked there are no places."""
        return self.system.late_binding and self.system.probes > 0

    def new_queue(self, capacity: Resource) -> NodeQueue:
        """Make a queue that takes any number of places."""
        return new_queue(capacity, self.system, queues_guaranteed=False, opportunistic_max=UNBOUNDED)

    def place(self, job: JobRun, now: float) -> None:
        for group in job.groups.values():
            if group.is_changed:
                group.is_changed = False
                if self._asks_first:
                    self._probe(job, group, len(group.waiting) * self.system.probes, now)
                else:
                    self._place_shortest(job, group, now)

    def _sample(self, number: int) -> list[SimNode]:
        """So many nodes, each as often as any other or once more."""
        there = self._published()
        if not there:
            return []
        rounds, rest = divmod(number, len(there))
        return there * rounds + self._random.sample(there, rest)

    def reported(self, node: SimNode, now: float) -> None:
        self._said[node.index] = len(node.runs)

    def _published(self) -> list[SimNode]:
        """All that are there; or, as Mercury has it, those that said that they had the least to do."""
        there = [node for node in self.nodes if node.is_up]
        most = self.system.published
        return there if most >= len(there) else nsmallest(most, there, key=lambda node: self._said[node.index])

    def _send_to(self, job: JobRun, group: Group, node: SimNode, task: int, when: float) -> None:
        made = self._made[job.index] = self._made.get(job.index, 0) + 1
        run = ContainerRun(group.stage, group, task, ContainerId(job.attempt_id, made))
        run.node = node.index
        self.engine.at(when, self.send, run)

    def _place_shortest(self, job: JobRun, group: Group, now: float) -> None:
        if not self.system.probes:
            self._place_blindly(job, group, now)
            return
        wanted = len(group.waiting)
        sample = self._sample(math.ceil(wanted * self.system.probes))
        load: dict[int, int] = {}
        for node in sample:
            load.setdefault(node.index, len(node.runs))
        while group.waiting and load:
            best = min(load, key=lambda index: (load[index], index))
            load[best] += 1
            task = group.take()
            assert task is not None
            self.recorder.count("allocated")
            self._send_to(job, group, self.nodes[best], task, now + 3.0 * self.shape.network_s)
        if group.waiting:
            group.is_changed = True
            self.engine.at(now + self.shape.heartbeat_s, self._place_later, job)

    def _place_blindly(self, job: JobRun, group: Group, now: float) -> None:
        """Nobody is asked: any node for each task, what placement by knowledge is compared with."""
        there = [node for node in self.nodes if node.is_up]
        while there and (task := group.take()) is not None:
            self.recorder.count("allocated")
            self._send_to(job, group, self._random.choice(there), task, now + self.shape.network_s)
        if group.waiting:
            group.is_changed = True
            self.engine.at(now + self.shape.heartbeat_s, self._place_later, job)

    # ---- late binding

    def _probe(self, job: JobRun, group: Group, places: float, now: float) -> None:
        sample = self._sample(math.ceil(places))
        for node in sample:
            self.recorder.count("probes")
            self._send_to(job, group, node, _NO_TASK, now + self.shape.network_s)
        if not sample:
            group.is_changed = True
            self.engine.at(now + self.shape.heartbeat_s, self._place_later, job)

    def launch(self, run: ContainerRun, node: SimNode, now: float) -> None:
        if run.task != _NO_TASK:
            super().launch(run, node, now)
            return
        node.running += 1
        run.started = math.inf  # it holds its slot, and nothing runs
        self.engine.at(now + 2.0 * self.shape.network_s, self._bind, run)

    def _bind(self, now: float, run: ContainerRun) -> None:
        """The manager's answer reaches the node."""
        if run.node < 0:
            return
        node = self.nodes[run.node]
        task = None if run.stage.job.is_over else run.group.take()
        if task is None:
            self.recorder.count("cancelled")
            self._leave(run, node)
            self.carry_out(node, node.queue.handle(Ended(run.container_id), now), now)
            return
        run.task = task
        run.duration = run.stage.durations[task]
        node.running -= 1
        super().launch(run, node, now)

    def _again(self, now: float, run: ContainerRun) -> None:
        """As many places are asked for as went: one, or those of a task."""
        job, group = run.stage.job, run.group
        if not self._asks_first:
            super()._again(now, run)
        elif not job.is_over:
            if run.task != _NO_TASK:
                group.put(run.task)
                group.is_changed = False
            if group.waiting:
                self._probe(job, group, 1 if run.task == _NO_TASK else self.system.probes, now)
