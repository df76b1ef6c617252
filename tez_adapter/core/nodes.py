"""Places to keep away from: hosts where too much fails, nodes that do not answer or have no room on their disks.

Hosts are avoided through the ResourceManager's blacklist, as long as enough of the cluster stays usable. A node that
does not answer looks free to the ResourceManager until it expires there. So every container given back would come again
from the same node at once: such containers are parked instead, neither started nor given back, until the node has had
time to return. What is parked takes the dead node's room, and the next container comes from elsewhere. The same goes
for a node whose disks are full, which is healthy to the ResourceManager until its next check. It goes, too, for one
that takes no container at present, of which the ResourceManager hears with its next heartbeat.
"""

from tez_adapter.core.dag import Limits
from tez_adapter.core.events import Blacklist


class HostFailures:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures: dict[str, int] = {}
        self._avoided: dict[str, None] = {}
        #: containers in a row that came on such hosts, and the hosts from which so many came that they are used
        self._came_anyway = 0
        self._used_anyway: set[str] = set()
        self._nodes = 1

    @property
    def nodes(self) -> int:
        """How many the cluster has."""
        return self._nodes

    def is_avoided(self, host: str) -> bool:
        return host in self._avoided

    def came_anyway(self, host: str) -> Blacklist | None:
        """Note that a wanted container came on an avoided host.

        The host is used from now on where too many did so in a row. A ResourceManager that knows its nodes by other
        names (yarn.scheduler.include-port-in-node-name) heeds none.
        """
        self._came_anyway += 1
        if self._came_anyway < self._limits.avoided_max:
            return None
        self._came_anyway = 0
        self._used_anyway.add(host)
        del self._avoided[host]
        return Blacklist((), (host,))

    def came_elsewhere(self) -> None:
        self._came_anyway = 0

    def failed(self, host: str) -> Blacklist | None:
        self._failures[host] = self._failures.get(host, 0) + 1
        if host in self._avoided or host in self._used_anyway or self._failures[host] < self._limits.node_failures:
            return None
        if len(self._avoided) + 1 > self._limits.blacklist_share * self._nodes:
            return None
        self._avoided[host] = None
        return Blacklist((host,), ())

    def cluster_size(self, nodes: int) -> Blacklist | None:
        """Note the number of nodes. A shrunken cluster cannot afford to avoid as many: then none is avoided."""
        self._nodes = max(1, nodes)
        if not self._avoided or len(self._avoided) <= self._limits.blacklist_share * self._nodes:
            return None
        removals = tuple(sorted(self._avoided))
        self._avoided.clear()
        return Blacklist((), removals)


class UnusableNodes:
    """Nodes that are left alone for a while."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parked_max = limits.parked_max
        #: node -> when it is tried again
        self._until: dict[str, float] = {}
        #: nodes that had no room on their disks and have started nothing since
        self._full: set[str] = set()
        #: container -> node
        self._parked: dict[str, str] = {}

    def silent(self, node: str, now: float) -> None:
        self._until[node] = now + self._limits.node_retry_s

    def busy(self, node: str, now: float) -> None:
        """Note that the node answers, and takes nothing at present."""
        self._until[node] = max(now + self._limits.busy_retry_s, self._until.get(node, 0.0))

    def disk_full(self, node: str, now: float) -> None:
        self._until[node] = now + self._limits.disk_retry_s
        self._full.add(node)

    def started(self, node: str) -> None:
        """Note that a container runs there: its disks have room."""
        self._full.discard(node)

    def all_full(self, nodes: int) -> bool:
        """Return whether no node of so many is known to have room on its disks."""
        return len(self._full) >= nodes

    def park(self, container: str, node: str) -> bool:
        """Return whether a container that came on this node is to be kept unused."""
        if node not in self._until or len(self._parked) >= self._parked_max:
            return False
        self._parked[container] = node
        return True

    def completed(self, container: str) -> None:
        self._parked.pop(container, None)

    def lost(self, node: str) -> None:
        """Forget a node that the ResourceManager has given up: it ends the containers there itself."""
        self._until.pop(node, None)
        self._full.discard(node)
        self._parked = {c: n for c, n in self._parked.items() if n != node}

    def recovered(self, now: float) -> list[str]:
        """Return parked containers to give back: their nodes are tried again from now on."""
        for node in [n for n, until in self._until.items() if now > until]:
            del self._until[node]
        released = [c for c, n in self._parked.items() if n not in self._until]
        for container in released:
            del self._parked[container]
        return released

    def clear(self) -> list[str]:
        """Return all parked containers, at the end of the job."""
        released = list(self._parked)
        self._parked.clear()
        return released
