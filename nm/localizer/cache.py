"""Which resources are on the node, who uses them, and which go when room is needed: bookkeeping without I/O.

Shared by content, as Hadoop does: two requests are one when scope, path, timestamp, type and pattern agree. A
resource in use never goes; of the others the longest unused go first, until the cache is within its size again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nm.launch.context import LocalResource
from yaqd.model import ApplicationId, LocalResourceType, LocalResourceVisibility


@dataclass(frozen=True, slots=True)
class Scope:
    """Who may share a resource: everybody, one user, or one application."""

    visibility: LocalResourceVisibility
    user: str = ""
    application: ApplicationId | None = None

    @classmethod
    def of(cls, resource: LocalResource, user: str, application: ApplicationId) -> "Scope":
        match resource.visibility:
            case LocalResourceVisibility.PUBLIC:
                return cls(resource.visibility)
            case LocalResourceVisibility.PRIVATE:
                return cls(resource.visibility, user)
            case _:
                return cls(resource.visibility, user, application)


@dataclass(frozen=True, slots=True)
class ResourceKey:
    scope: Scope
    url: str
    timestamp_ms: int
    type: LocalResourceType
    pattern: str

    @classmethod
    def of(cls, resource: LocalResource, user: str, application: ApplicationId) -> "ResourceKey":
        scope = Scope.of(resource, user, application)
        return cls(scope, resource.url, resource.timestamp_ms, resource.type, resource.pattern)


@dataclass(slots=True, eq=False)
class CachedResource:
    """Invariant: `uses` counts the containers that hold it; it is on disk once `path` is set."""

    key: ResourceKey
    #: numbered folder that holds it
    folder: Path
    path: Path | None = None
    size_bytes: int = 0
    uses: int = 0
    last_used: float = 0.0


class ResourceCache:
    def __init__(self, target_bytes: int) -> None:
        self._target_bytes = target_bytes
        self._entries: dict[ResourceKey, CachedResource] = {}
        #: of what `evict` may take: application resources go with their application
        self._bytes = 0

    def get(self, key: ResourceKey) -> CachedResource | None:
        return self._entries.get(key)

    def add(self, entry: CachedResource) -> None:
        self._entries[entry.key] = entry

    def arrived(self, entry: CachedResource, path: Path, size_bytes: int) -> None:
        entry.path = path
        entry.size_bytes = size_bytes
        if entry.key.scope.application is None:
            self._bytes += size_bytes

    def drop(self, entry: CachedResource) -> None:
        """Forgets a resource that never arrived or is being deleted."""
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
            if entry.key.scope.application is None:
                self._bytes -= entry.size_bytes

    def drop_application(self, application: ApplicationId) -> None:
        for entry in [e for e in self._entries.values() if e.key.scope.application == application]:
            self.drop(entry)

    def evict(self) -> list[CachedResource]:
        """Forgets resources until the cache is within its size, and returns them: the caller deletes them now."""
        if self._bytes <= self._target_bytes:
            return []
        idle = [e for e in self._entries.values() if e.uses == 0 and e.path and e.key.scope.application is None]
        evicted = []
        for entry in sorted(idle, key=lambda e: (e.last_used, str(e.folder))):
            if self._bytes <= self._target_bytes:
                break
            self.drop(entry)
            evicted.append(entry)
        return evicted

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def entries(self) -> Iterable[CachedResource]:
        return self._entries.values()
