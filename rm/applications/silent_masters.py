"""Masters that are not heard of: their nodes do not report, or they themselves do not call.

Until the ResourceManager takes one for lost nothing happens to its application, which looks as if it ran; whoever waits
for it is told.
"""

from dataclasses import dataclass
from typing import Any, Final

from rm.applications.records import Attempt
from rm.cluster import Cluster
from rm.nodes.liveness import Liveness
from yaqd.model import ApplicationAttemptId, YarnApplicationAttemptState

_STARTED: Final = (
    YarnApplicationAttemptState.ALLOCATED,
    YarnApplicationAttemptState.LAUNCHED,
    YarnApplicationAttemptState.RUNNING,
)
#: a running master that has not called for so long is silent, s: MapReduce's calls each second, Spark's each 3 s
#: (spark.yarn.scheduler.heartbeat.interval-ms)
_CALLS_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Silence:
    #: where the master runs
    node: str
    #: of the node, else of the master itself, s
    silent_s: float
    #: when the application goes on without it, s since it was heard of last
    lost_after_s: float
    is_node: bool

    def __str__(self) -> str:
        what = f"its master runs on {self.node}, " if self.is_node else f"its master, on {self.node}, was "
        lost = f"the ResourceManager takes it for lost after {self.lost_after_s:g} s"
        return f"{what}not heard of for {self.silent_s:.0f} s; {lost}"

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "silentS": self.silent_s,
            "lostAfterS": self.lost_after_s,
            "isNode": self.is_node,
            "why": str(self),
        }


class SilentMasters:
    def __init__(
        self, cluster: Cluster, masters: Liveness[ApplicationAttemptId], *, heartbeat_s: float, node_expiry_s: float
    ) -> None:
        """`heartbeat_s`: how often nodes report; `node_expiry_s`: how long after its last report one is lost."""
        self._cluster = cluster
        self._masters = masters
        self._heartbeat_s = heartbeat_s
        self._node_expiry_s = node_expiry_s

    def of(self, attempt: Attempt | None) -> Silence | None:
        """Return the silence of a master or its node; None: both are heard of, or there is no master."""
        if attempt is None or attempt.master is None or attempt.state not in _STARTED:
            return None
        now, node = self._cluster.clock.now(), self._cluster.nodes.get(attempt.master.node_id)
        where, limit_s = str(attempt.master.node_id), self._masters.limit_s
        silent_s = node.silent_s(now, self._heartbeat_s) if node is not None else None
        if silent_s is not None:
            return Silence(where, silent_s, min(limit_s, self._node_expiry_s), is_node=True)
        silent_s = self._masters.silent_s(attempt.id, now)
        if silent_s < _CALLS_S or attempt.state is not YarnApplicationAttemptState.RUNNING:
            return None  # one that starts may take its time
        return Silence(where, round(silent_s, 3), limit_s, is_node=False)
