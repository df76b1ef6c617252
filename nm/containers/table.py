"""Which containers and applications a node knows."""

from collections.abc import Iterator
from typing import Final

from nm.containers.application import Application
from nm.containers.container import Container
from yaqd.model import ApplicationId, ContainerId

_KEPT_S: Final = 600.0
_KEPT_MAX: Final = 100_000


class GoneContainers:
    """Knows for a while those that have left: a late call about one gets an answer of its own.

    Times are seconds on the caller's clock.
    """

    def __init__(self) -> None:
        #: when each left, oldest first
        self._left_at: dict[ContainerId, float] = {}

    def add(self, container_id: ContainerId, now: float) -> None:
        while self._left_at and (len(self._left_at) >= _KEPT_MAX or now - next(iter(self._left_at.values())) > _KEPT_S):
            del self._left_at[next(iter(self._left_at))]
        self._left_at[container_id] = now

    def has(self, container_id: ContainerId, now: float) -> bool:
        at = self._left_at.get(container_id)
        return at is not None and now - at < _KEPT_S


class ContainerTable:
    """A container is known until the ResourceManager has heard of its end."""

    def __init__(self) -> None:
        self.containers: dict[ContainerId, Container] = {}
        self.applications: dict[ApplicationId, Application] = {}
        self._gone = GoneContainers()

    def add(self, container: Container) -> None:
        """Takes on a container, and its application with the first one."""
        grant = container.grant
        application = self.applications.get(grant.container_id.application_id)
        if application is None:
            application = Application(grant.container_id.application_id, grant.user, container.launch.acls)
            self.applications[application.id] = application
        application.containers.add(container.id)
        self.containers[container.id] = container

    def remove(self, container_id: ContainerId, now: float) -> None:
        """Removes a container's record: the ResourceManager has its end."""
        container = self.containers.get(container_id)
        if container is None or not container.is_done:
            return
        del self.containers[container_id]
        application = self.applications.get(container_id.application_id)
        if application is not None:
            application.containers.discard(container_id)
        self._gone.add(container_id, now)

    def reported(self, container_id: ContainerId, now: float) -> None:
        """Notes that the ResourceManager answered a heartbeat that carried this end."""
        container = self.containers.get(container_id)
        if container is not None and container.is_done:
            container.is_reported = True
            if container_id.application_id not in self.applications:
                self.remove(container_id, now)

    def retire(self, application: Application, now: float) -> bool:
        """Drops an ending application once its last container is done; their records stay until told. Returns whether
        it has gone."""
        if any(not self.containers[c].is_done for c in application.containers):
            return False
        for container_id in sorted(application.containers):
            if self.containers[container_id].is_reported:
                self.remove(container_id, now)
        del self.applications[application.id]
        return True

    def was_here(self, container_id: ContainerId, now: float) -> bool:
        """Returns whether the container ended on this node not long ago."""
        return self._gone.has(container_id, now)

    def spelled(self, container_id: ContainerId) -> Container | None:
        """Finds the container here whose id prints like this one."""
        return self.containers.get(container_id) or self.containers.get(container_id.counted_down)

    def unfinished(self) -> Iterator[Container]:
        """Yields the containers that are here and not over, running or not."""
        return (container for container in self.containers.values() if not container.is_done)
