"""Localization: every file a container needs, fetched once per node and shared, before the container runs."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor as ThreadExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nm.launch.context import LocalResource
from nm.localizer.archives import ArchiveLimits
from nm.localizer.cache import CachedResource, ResourceCache, ResourceKey, Scope
from nm.localizer.child import fetch_as
from nm.localizer.fetch import Fetched, FetchFailed
from nm.resources.directories import NodeDirectories
from yaqd.config import Configuration
from yaqd.model import ApplicationId

log = logging.getLogger(__name__)


class LocalizationFailed(Exception):
    """A resource could not be had; the text says which and why."""

    def __init__(self, text: str, *, is_disk_full: bool = False) -> None:
        super().__init__(text)
        #: this node has no room for it
        self.is_disk_full = is_disk_full


@dataclass(frozen=True, slots=True)
class Localized:
    """A container's hold on its resources; to be released once."""

    #: link name in the work folder -> localized path
    links: Mapping[str, Path]
    entries: tuple[CachedResource, ...] = ()
    #: bytes fetched, bytes found, files fetched, files found, milliseconds
    counters: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)


class ResourceLocalizer:
    def __init__(
        self,
        conf: Configuration,
        directories: NodeDirectories,
        *,
        threads: ThreadExecutor,
        cache_target_bytes: int,
        limits: ArchiveLimits,
        delete: Callable[[Path], None],
    ) -> None:
        """`delete` removes a folder in the background."""
        self._conf = conf
        self._directories = directories
        self._threads = threads
        self._limits = limits
        self._delete = delete
        self._loop = asyncio.get_running_loop()
        self._cache = ResourceCache(cache_target_bytes)
        #: done once the cache knows the outcome
        self._fetching: dict[ResourceKey, asyncio.Task[None]] = {}
        self._number = 0

    async def localize(self, user: str, application: ApplicationId, resources: Iterable[LocalResource]) -> Localized:
        """Raises LocalizationFailed, holding nothing then."""
        wanted = tuple(resources)
        if not wanted:
            return Localized({})
        began = self._loop.time()
        held: list[CachedResource] = []
        waits: list[asyncio.Task[None]] = []
        found = [0, 0]
        try:
            for resource in wanted:
                entry = self._hold(resource, user, application)
                held.append(entry)
                if entry.path is not None:
                    found = [found[0] + entry.size_bytes, found[1] + 1]
                else:
                    waits.append(self._fetching[entry.key])
            for wait in waits:
                await asyncio.shield(wait)
        except FetchFailed as error:
            self.release(Localized({}, tuple(held)))
            raise LocalizationFailed(str(error), is_disk_full=error.is_disk_full) from None
        except BaseException:
            self.release(Localized({}, tuple(held)))
            raise
        for entry in self._cache.evict():
            self._delete(entry.folder)
        links = {}
        for resource, entry in zip(wanted, held, strict=True):
            if entry.path is None:
                self.release(Localized({}, tuple(held)))
                raise LocalizationFailed(f"{entry.key.url}: its application ended while it was fetched")
            links[resource.link] = entry.path
        fetched_bytes = sum(entry.size_bytes for entry in held) - found[0]
        spent_ms = int(1000 * (self._loop.time() - began))
        return Localized(links, tuple(held), (fetched_bytes, found[0], len(waits), found[1], spent_ms))

    def release(self, localized: Localized) -> None:
        for entry in localized.entries:
            entry.uses -= 1
            entry.last_used = self._loop.time()
        for entry in self._cache.evict():
            self._delete(entry.folder)

    def application_ended(self, user: str, application: ApplicationId) -> None:
        """Forgets the application's own resources, which go with its folders."""
        self._cache.drop_application(application)

    @property
    def cache_bytes(self) -> int:
        return self._cache.size_bytes

    def _hold(self, resource: LocalResource, user: str, application: ApplicationId) -> CachedResource:
        """The one entry of this resource; the first to ask starts its fetch. Raises NoUsableDisk."""
        key = ResourceKey.of(resource, user, application)
        entry = self._cache.get(key)
        if entry is None:
            entry = CachedResource(key, self._new_folder(key.scope, user, application))
            self._cache.add(entry)
            work = partial(fetch_as, resource, entry.folder, self._conf, self._limits, user=user)
            self._fetching[key] = task = self._loop.create_task(self._fetch(entry, work))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # may have no waiter left
        entry.uses += 1
        return entry

    async def _fetch(self, entry: CachedResource, work: Callable[[], Fetched]) -> None:
        """Raises FetchFailed."""
        try:
            result = await self._loop.run_in_executor(self._threads, work)
        except BaseException:
            self._cache.drop(entry)
            raise
        finally:
            self._fetching.pop(entry.key, None)
        if self._cache.get(entry.key) is entry:
            self._cache.arrived(entry, result.path, result.size_bytes)
        log.info("localized %s (%d bytes)", entry.key.url, result.size_bytes)

    def _new_folder(self, scope: Scope, user: str, application: ApplicationId) -> Path:
        usable = self._directories.usable_local()
        self._number += 1
        root = usable[self._number % len(usable)]
        if scope.application is not None:
            root = self._directories.app_dir(root, user, application)
        elif scope.user:
            root = self._directories.user_dir(root, user)
        return root / "filecache" / str(self._number)
