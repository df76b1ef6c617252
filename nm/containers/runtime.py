"""What the NodeManager's other parts may ask of its containers, and the questions about them that it answers.

Nothing here waits while a caller waits: `accept` and `kill` return at once, the rest follows as events.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from nm.containers.application import Application
from nm.containers.container import Container, ContainerGrant
from nm.containers.course import ContainerCourse
from nm.containers.parts import ContainerNews, NodeParts, RuntimeLimits
from nm.containers.states import Stage
from nm.containers.table import ContainerTable
from nm.launch.context import LaunchContext
from nm.node_queue import (
    CapacityChanged,
    HeldStarts,
    NodeQueue,
    NodeQueueSettings,
    NodeQueueSnapshot,
    NodeQueueStatistics,
    OpportunisticLimit,
    Updated,
)
from nm.node_queue import Event as QueueEvent
from yaqd.model import ApplicationId, ContainerId, ContainerType, ExitStatus, Resource

#: Containers taken on beyond those that may wait. The queue ends what finds no place in it with -102 (or -108), which
#: masters of all kinds take for nobody's fault, where a start that fails costs MapReduce's tasks an attempt: so what
#: the ResourceManager sent in good faith, on an old view of the node or as one that does not know this node's limit, is
#: taken on and given back. Far more than that nobody sends in good faith, and it must not take this daemon's memory.
_BEYOND_MAX: Final = 1000


class ContainerRuntime:
    def __init__(self, queue: NodeQueue, parts: NodeParts, limits: RuntimeLimits, news: ContainerNews) -> None:
        self.gpus = parts.gpus
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._table = ContainerTable()
        self.containers: Mapping[ContainerId, Container] = self._table.containers
        self.applications: Mapping[ApplicationId, Application] = self._table.applications
        self._course = ContainerCourse(self._table, queue, parts, limits, news)
        self._driver = self._course.driver
        self.replacements = self._course.replacements
        self._is_stopping = False

    def accept(self, grant: ContainerGrant, launch: LaunchContext) -> Container:
        """Takes a container on and returns at once. The caller has checked that the id is new."""
        container = Container(grant, launch, self._course.retries(launch), accepted_at=self._loop.time())
        self._table.add(container)
        self._course.start(container)
        return container

    def kill(self, container_id: ContainerId, status: ExitStatus, reason: str) -> None:
        """Ends a container, whatever it is doing; the first reason given is the one reported."""
        self._course.kill(container_id, status, reason)

    def remove(self, container_id: ContainerId) -> None:
        """Removes a container's record: the ResourceManager has its end."""
        self._table.remove(container_id, self._loop.time())

    def refusal(self, grant: ContainerGrant) -> str | None:
        """Returns why this container is not taken on at present, or None where it is.

        A master is never refused for want of places, nor is a container that fits beside all that is here.
        """
        if self._is_stopping:
            return "the node is about to stop"
        most = self._limits.waiting_max + _BEYOND_MAX
        if len(self.containers) < most or grant.container_type is ContainerType.APPLICATION_MASTER:
            return None
        # what was given back is here until the ResourceManager has heard of it
        unstarted = sum(1 for c in self.containers.values() if not c.started_at and not c.is_reported)
        if unstarted < most or self._fits(grant.resource):
            return None
        return f"too many containers wait on this node ({unstarted})"

    def _fits(self, newcomer: Resource) -> bool:
        """Beside all that is here and not over, running or not."""
        capacity, wanted, number = self._driver.queue.capacity, newcomer, 0
        for container in self._table.unfinished():
            wanted, number = wanted + container.grant.resource, number + 1
        # what needs no memory still takes some of this daemon's
        return number < capacity.memory_mb and wanted.fits_in(capacity)

    def signal(self, container_id: ContainerId, number: int) -> None:
        """Signals the container's process group; accepted and without effect where nothing runs."""
        container = self.containers.get(container_id)
        if container is not None and container.process is not None:
            container.process.signal_group(number)

    def end_application(self, application_id: ApplicationId) -> None:
        """Ends an application at the ResourceManager's word: kills what runs, then deletes its folders."""
        application = self.applications.get(application_id)
        if application is None or application.is_ending:
            return
        application.is_ending = True
        for container_id in sorted(application.containers):
            self.kill(container_id, ExitStatus.KILLED_AFTER_APP_COMPLETION, "Container killed: its application ended.")
        self._course.retire(application)

    def was_here(self, container_id: ContainerId) -> bool:
        """Returns whether the container ended on this node not long ago."""
        return self._table.was_here(container_id, self._loop.time())

    def is_running(self, container_id: ContainerId) -> bool:
        """Returns whether the container has a process. Its id may have been read from a text."""
        container = self.spelled(container_id)
        return container is not None and container.process is not None

    def spelled(self, container_id: ContainerId) -> Container | None:
        """Finds the container here whose id prints like this one."""
        return self._table.spelled(container_id)

    def queue_statistics(self) -> NodeQueueStatistics:
        return self._driver.queue.statistics()

    def estimates(self, job: ApplicationId) -> Mapping[int, float | None]:
        """Returns how long the job's containers run, s, by priority, as far as the ResourceManager told."""
        return self._driver.queue.estimates(job)

    def queue_snapshot(self, first: int = 10) -> NodeQueueSnapshot:
        """Counts all containers that wait and describes the `first` ones."""
        return self._driver.queue.snapshot(self._loop.time(), first, self.held_starts())

    def held_starts(self) -> HeldStarts:
        """Returns the containers whose turn has come and whose programs wait for a processor."""
        return self._course.held()

    @property
    def fetch_s(self) -> float:
        """Returns how long containers took of late from their arrival until they could start, s."""
        return self._course.fetching.mean

    @property
    def queue_settings(self) -> NodeQueueSettings:
        """`enabled`: the ResourceManager sends containers beyond what is free."""
        return self._driver.queue.settings

    def free_for_masters(self) -> Resource | None:
        return self._driver.queue.free_for_masters()

    def room_comes(self) -> float:
        """Returns seconds until the node has room for the masters that are expected; inf: nobody knows when."""
        return self._driver.queue.room_comes(self._loop.time(), self.held_starts())

    def order(self, events: Iterable[QueueEvent]) -> None:
        """Passes the ResourceManager's word on how the queue goes to the queue."""
        for event in events:
            self._driver.tell(event)

    def set_capacity(self, capacity: Resource) -> None:
        self._driver.tell(CapacityChanged(self.gpus.bounded(capacity)))

    def limit_opportunistic(self, max_length: int) -> None:
        """Lets so many opportunistic containers wait here, as the ResourceManager says; the rest end."""
        self._driver.tell(OpportunisticLimit(max_length))

    def update(self, container_id: ContainerId, grant: ContainerGrant) -> None:
        """Takes a newer grant of a live container: its resources or execution type have changed."""
        container = self.containers.get(container_id)
        if container is None or container.is_done or grant.version <= container.grant.version:
            return
        container.grant = grant
        self._driver.tell(Updated(container_id, self.gpus.in_use(container_id, grant.resource), grant.execution_type))

    def reported(self, container_ids: Iterable[ContainerId]) -> None:
        """Notes that the ResourceManager answered a heartbeat that carried these ends."""
        for container_id in container_ids:
            self._table.reported(container_id, self._loop.time())

    def validate(self) -> None:
        """Raises AssertionError when the records contradict each other; tests call it."""
        self._course.validate()
        stages = (Stage.RUNNING, Stage.KILLING, Stage.REPLACING)
        running = {c.id for c in self.containers.values() if c.stage in stages}
        assert all(self.containers[c].process is not None for c in running)
        for application in self.applications.values():
            assert application.containers <= self.containers.keys(), application

    def refuse_all(self) -> None:
        """Refuses every container from now on: the node is about to stop."""
        self._is_stopping = True

    async def stop(self) -> None:
        """Kills every container and waits until all are done."""
        for container_id in sorted(self.containers):
            self.kill(
                container_id,
                ExitStatus.KILLED_BY_RESOURCEMANAGER,
                "Container killed: its NodeManager is shutting down.",
            )
        await self._course.over()
