"""From a container whose turn has come to its process: devices, folders, script, and who starts it.

A container that has to wait for its turn is prepared meanwhile, as far as no other container's end decides anything of
it (devices do): then nothing but the start itself stands between one container's end and the next one's beginning.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from nm.containers.container import Container
from nm.containers.executor import ProcessSpec
from nm.containers.parts import NodeParts
from nm.containers.states import Stage
from nm.launch.context import BadLaunchContext
from nm.launch.prepare import prepare
from nm.localizer.localizer import Localized
from nm.node_queue import HeldStarts
from nm.resources.directories import NoUsableDisk, delete_tree
from nm.resources.gpus import GPU
from nm.resources.processes import ContainerProcess
from yaqd.model import ContainerId, ContainerType

log = logging.getLogger(__name__)

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class Abandoned(Exception):
    """The container was killed before its process existed, and none was started."""


class Launcher:
    def __init__(self, parts: NodeParts, in_thread: InThread) -> None:
        self._parts = parts
        self._in_thread = in_thread
        #: files of waiting containers, written or being written; None: it could not be done
        self._ahead: dict[ContainerId, asyncio.Task[ProcessSpec | None]] = {}
        #: name and IP address of this node, once asked for
        self._address: tuple[str, str] | None = None

    def prepare_ahead(self, container: Container, localized: Localized) -> None:
        """Writes what a waiting container needs. Trouble with that shows at its launch."""
        if not container.grant.resource.extras.get(GPU, 0):
            self._ahead[container.id] = asyncio.ensure_future(self._prepared_ahead(container, localized))

    async def launch(self, container: Container, localized: Localized) -> ContainerProcess:
        """Raises OSError, BadLaunchContext, LaunchFailed, NoUsableDisk and NotEnoughGpus; Abandoned where the container
        was killed before there was a process."""
        if gpus := self._parts.gpus.assign(container.id, container.grant.resource):
            log.info("%s has GPUs %s", container.id, ", ".join(map(str, gpus)))
        if self._address is None:
            self._address = await self._in_thread(partial(_address_of, self._parts.identity().host))
        ahead = self._ahead.pop(container.id, None)
        spec = None
        if ahead is not None:
            spec = ahead.result() if ahead.done() else await ahead
            if gpus or (container.folders is not None and not self._parts.directories.has(container.folders)):
                spec = None
        if spec is None:
            spec = await self._in_thread(self._preparation(container, localized))
        await self._await_turn(container, spec)
        try:
            process = await self._parts.executor.launch(spec)
        except BaseException:
            self._parts.pacer.over(container.id)
            raise
        self._parts.pacer.started(container.id, process.pid)
        process.exited.add_done_callback(lambda exited: self._parts.pacer.over(container.id))
        container.address = self._address
        return process

    async def _await_turn(self, container: Container, spec: ProcessSpec) -> None:
        if container.stage is not Stage.ABORTING and spec.warm is None and not spec.is_master:
            loop = asyncio.get_running_loop()
            container.held_since = since = loop.time()
            try:
                await self._parts.pacer.turn(container.id)
            finally:
                container.held_since = None
                if not container.started_at:  # else it has run before, and that counts as running
                    container.held_s = loop.time() - since
        if container.stage is Stage.ABORTING:
            self._parts.pacer.over(container.id)
            if not container.started_at and container.folders is not None:
                await self._in_thread(partial(_delete_all, container.folders.log_dirs))
            raise Abandoned

    def held(self) -> HeldStarts:
        """Returns the programs whose start is held."""
        return self._parts.pacer.held()

    def hurry(self, container_id: ContainerId) -> None:
        """Notes that the container is to end: its program need not wait for its turn any more."""
        self._parts.pacer.over(container_id)

    async def given_up(self, container: Container) -> None:
        """Notes that the container is over. If it was prepared in vain, waits until its empty logs are gone again."""
        ahead = self._ahead.pop(container.id, None)
        if ahead is not None and await ahead is not None and container.folders is not None:
            await self._in_thread(partial(_delete_all, container.folders.log_dirs))

    async def _prepared_ahead(self, container: Container, localized: Localized) -> ProcessSpec | None:
        try:
            spec: ProcessSpec = await self._in_thread(self._preparation(container, localized))
        except (OSError, BadLaunchContext, NoUsableDisk) as error:
            log.info("%s could not be prepared while it waits: %s", container.id, error)
            return None
        return spec

    def _preparation(self, container: Container, localized: Localized) -> Callable[[], ProcessSpec]:
        """Raises NoUsableDisk."""
        if container.folders is not None and not self._parts.directories.has(container.folders):
            self._parts.deletion.container_ended(container.folders)  # a disk has gone bad since they were chosen
            container.folders = None
        if container.folders is None:
            container.folders = self._parts.directories.folders(container.grant.user, container.id)
        return partial(
            prepare,
            container_id=str(container.id),
            user=container.grant.user,
            is_master=container.grant.container_type is ContainerType.APPLICATION_MASTER,
            launch=container.launch,
            folders=container.folders,
            links=localized.links,
            localization=container.localization,
            devices=self._parts.gpus.environment(container.id),
            node=self._parts.identity(),
        )


def _delete_all(folders: Iterable[Path]) -> None:
    """Blocking."""
    for folder in folders:
        try:
            delete_tree(folder)
        except OSError as error:
            log.warning("cannot delete %s: %s", folder, error)


def _address_of(host: str) -> tuple[str, str]:
    """Blocking. A host and its IP address; the name twice where nobody knows it."""
    try:
        return host, socket.gethostbyname(host)
    except OSError:
        return host, host
