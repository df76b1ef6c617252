"""What containers take of their node, who hears of them, and their limits."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor as ThreadExecutor
from dataclasses import dataclass
from typing import Protocol

from nm.containers.container import Container
from nm.containers.executor import Executor
from nm.launch.context import LocalResource
from nm.launch.prepare import NodeIdentity
from nm.localizer.localizer import Localized
from nm.resources.deletion import Deletion
from nm.resources.directories import NodeDirectories
from nm.resources.gpus import Gpus
from nm.resources.start_pacer import StartPacer
from yaqd.model import ApplicationId


class Localizer(Protocol):
    async def localize(
        self, user: str, application: ApplicationId, resources: Iterable[LocalResource]
    ) -> Localized: ...
    def release(self, localized: Localized) -> None: ...
    def application_ended(self, user: str, application: ApplicationId) -> None: ...


@dataclass(frozen=True, slots=True)
class NodeParts:
    gpus: Gpus
    localizer: Localizer
    executor: Executor
    directories: NodeDirectories
    deletion: Deletion
    identity: Callable[[], NodeIdentity]
    pacer: StartPacer
    #: threads that touch files
    io: ThreadExecutor


@dataclass(frozen=True, slots=True)
class ContainerNews:
    """Neither may block."""

    #: hears of each container that starts running or is done
    changed: Callable[[Container], None]
    application_ended: Callable[[ApplicationId], None]


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    stderr_tail_bytes: int
    #: guaranteed containers that may wait in the queue
    waiting_max: int
    #: a failed container is not run again sooner
    retry_interval_min_s: float
