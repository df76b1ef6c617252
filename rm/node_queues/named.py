"""Which containers a node names with its heartbeats: most are those that it named before.

Each one's id is a message of messages, and reading it anew at each heartbeat took longer than all that the scheduler
does with the report.
"""

from typing import Final

from yaqd.model import ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

#: statuses of one heartbeat that are read
_STATUSES_MAX: Final = 100_000


class NamedContainers:
    """The containers that one node named last."""

    __slots__ = ("_ids", "_stages", "_started", "_waiting")

    def __init__(self) -> None:
        #: their ids as they came on the wire, and what they say
        self._ids: dict[bytes, ContainerId] = {}
        self._waiting: list[bytes] = []
        self._started: list[bytes] = []
        self._stages: tuple[frozenset[ContainerId], frozenset[ContainerId]] = (frozenset(), frozenset())

    def read(self, status: server.NodeStatus) -> tuple[frozenset[ContainerId], frozenset[ContainerId]]:
        """Return the containers that have not started on the node, and those that run: the same objects as long as it
        names the same."""
        waiting: list[bytes] = []
        started: list[bytes] = []
        scheduled, complete = common.CSS_SCHEDULED, common.C_COMPLETE
        for said in status.containersStatuses[:_STATUSES_MAX]:
            if said.state != complete:
                wire = said.container_id.SerializeToString()
                if said.container_sub_state != scheduled:
                    started.append(wire)
                else:
                    waiting.append(wire)
                if wire not in self._ids:
                    self._ids[wire] = convert.container_id(said.container_id)
        if waiting != self._waiting or started != self._started:
            known = self._ids
            self._ids = {wire: known[wire] for wire in (*waiting, *started)}
            self._waiting, self._started = waiting, started
            self._stages = frozenset(known[wire] for wire in waiting), frozenset(known[wire] for wire in started)
        return self._stages
