"""A running container gets other files or another process: localize, restart, re-initialize, roll back, commit.

The container keeps its id, its folders and its place among the node's resources. Files for a replacement are fetched
while the old process still runs, and a fetch that fails changes nothing. What was replaced can come back until the
replacement is committed: on request, or by itself when the replacement fails.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

from nm.containers.container import Container, LocalizationNote, LocalizationState, Previous
from nm.containers.parts import Localizer
from nm.containers.retries import Retries
from nm.containers.states import Event, Stage
from nm.launch.context import LaunchContext, LocalResource
from nm.launch.prepare import make_links
from nm.localizer.localizer import LocalizationFailed, Localized
from nm.resources.directories import NoUsableDisk
from yaqd.model import ContainerId

log = logging.getLogger(__name__)

_OVER: Final = (Stage.COMPLETING, Stage.DONE)


class Replacements:
    def __init__(
        self,
        *,
        localizer: Localizer,
        holds: dict[ContainerId, Localized],
        spawn: Callable[[Container, Coroutine[Any, Any, None]], None],
        handle: Callable[[Container, Event], None],
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
        retries: Callable[[LaunchContext], Retries],
    ) -> None:
        """`holds` are the containers' localized resources, which the owner releases at their end."""
        self._localizer = localizer
        self._holds = holds
        self._spawn = spawn
        self._handle = handle
        self._in_thread = in_thread
        self._retries = retries

    @staticmethod
    def may_change(container: Container) -> bool:
        return _runs(container) and not container.is_replacing

    # ---- further files

    def localize(self, container: Container, resources: tuple[LocalResource, ...]) -> None:
        """Fetch files for a running container and link them into its folder; `later_resources` says how far it is."""
        for resource in resources:
            container.later_resources[resource.link] = LocalizationNote(LocalizationState.PENDING)
            self._spawn(container, self._localize_one(container, resource))

    async def _localize_one(self, container: Container, resource: LocalResource) -> None:
        note = LocalizationNote(LocalizationState.COMPLETED)
        try:
            localized = await self._fetch(container, (resource,))
            if localized is not None and container.folders is not None:
                await self._in_thread(partial(make_links, container.folders.work_dir, localized.links))
        except (LocalizationFailed, NoUsableDisk, OSError) as error:
            note = LocalizationNote(LocalizationState.FAILED, str(error))
            log.info("%s: %s not localized: %s", container.id, resource.link, error)
        container.later_resources[resource.link] = note

    async def _fetch(self, container: Container, resources: tuple[LocalResource, ...]) -> Localized | None:
        """Held with what the container has already; None when it ended meanwhile."""
        localized = await self._localizer.localize(container.grant.user, container.id.application_id, resources)
        held = self._holds.get(container.id)
        if container.stage in _OVER or held is None:
            self._localizer.release(localized)
            return None
        links = {**held.links, **localized.links}
        self._holds[container.id] = Localized(links, (*held.entries, *localized.entries), held.counters)
        return localized

    # ---- another process

    def replace(self, container: Container, launch: LaunchContext | None, *, auto_commit: bool) -> None:
        """End the process and start another one, of `launch` or (None) of the same launch context."""
        container.is_replacing = True
        self._spawn(container, self._replace(container, launch, auto_commit=auto_commit))

    async def _replace(self, container: Container, launch: LaunchContext | None, *, auto_commit: bool) -> None:
        previous = Previous(container.launch, self._holds[container.id].links)
        try:
            if launch is not None and await self._fetch(container, launch.resources) is None:
                return
        except (LocalizationFailed, NoUsableDisk) as error:
            container.is_replacing = False
            container.add_diagnostics(str(error))
            return
        if not _runs(container):
            container.is_replacing = False
            return
        container.previous = None if auto_commit else previous
        container.launch = launch or container.launch
        container.retries = self._retries(container.launch)
        log.info("%s: its process is replaced", container.id)
        self._handle(container, Event.REPLACE)

    def roll_back(self, container: Container) -> None:
        """Starts again what was replaced. The caller has checked that there is something."""
        container.is_replacing = True
        self._take_back(container)
        self._handle(container, Event.REPLACE)

    def rolls_back(self, container: Container) -> bool:
        """Returns whether a container whose process has just ended goes on with what that one replaced."""
        if container.previous is None or container.stage is not Stage.RUNNING or container.exit_status == 0:
            return False
        container.add_diagnostics("Container Re-init Auto Rolled-Back.")
        self._take_back(container)
        return True

    def _take_back(self, container: Container) -> None:
        previous, container.previous = container.previous, None
        assert previous is not None
        log.info("%s: rolled back", container.id)
        container.launch, container.retries = previous.launch, self._retries(previous.launch)
        held = self._holds[container.id]
        self._holds[container.id] = Localized(previous.links, held.entries, held.counters)


def _runs(container: Container) -> bool:
    """One whose process has just ended does not: what it held in the node queue may be another's already."""
    process = container.process
    return container.stage is Stage.RUNNING and process is not None and not process.is_over
