"""Hosts where too much fails are avoided, as long as enough of the cluster stays usable."""

from tez_adapter.core.dag import Limits
from tez_adapter.core.events import Blacklist


class HostFailures:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures: dict[str, int] = {}
        self._avoided: dict[str, None] = {}
        self._nodes = 1

    def is_avoided(self, host: str) -> bool:
        return host in self._avoided

    def failed(self, host: str) -> Blacklist | None:
        self._failures[host] = self._failures.get(host, 0) + 1
        if host in self._avoided or self._failures[host] < self._limits.node_failures:
            return None
        if len(self._avoided) + 1 > self._limits.blacklist_share * self._nodes:
            return None
        self._avoided[host] = None
        return Blacklist((host,), ())

    def cluster_size(self, nodes: int) -> Blacklist | None:
        """A shrunken cluster cannot afford to avoid as many: then none is avoided."""
        self._nodes = max(1, nodes)
        if not self._avoided or len(self._avoided) <= self._limits.blacklist_share * self._nodes:
            return None
        removals = tuple(sorted(self._avoided))
        self._avoided.clear()
        return Blacklist((), removals)
