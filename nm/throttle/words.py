"""Cores in the node's conversation with the ResourceManager: what it says of processor time, and what it is ordered.

A ResourceManager that does not say the word for it is told nothing, and orders nothing.
"""

from nm.throttle.throttle import Throttle
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.training import apps_cores, cpu_pb
from yaqd.proto.words import CORES


class CoresWords:
    def __init__(self, throttle: Throttle | None, *, processors: int, started_ms: int) -> None:
        """Speak for a throttle; without one the node neither counts nor bounds, and says so by saying nothing.

        `started_ms` tells this life of the node from others, as its counts begin with it.
        """
        self._throttle = throttle
        self._processors, self._started_ms = processors, started_ms
        self._is_understood = False

    def offer(self, said: server.NodeCapabilities) -> None:
        """Put into a registration what the node can do."""
        if self._throttle is not None:
            said.understands.append(CORES)
            said.processors, said.counts_since_ms = self._processors, self._started_ms

    def registered(self, said: server.NodeCapabilities) -> None:
        """Begin anew: the ResourceManager orders again what it means to hold."""
        self._is_understood = self._throttle is not None and CORES in said.understands
        if self._throttle is not None:
            self._throttle.heard()
            self._throttle.order({})

    def put(self, status: server.NodeStatus) -> None:
        """Say what the applications have used that it asked for."""
        if self._throttle is not None and self._is_understood:
            status.yaq_cpu.extend(cpu_pb(app_id, cpu_s) for app_id, cpu_s in self._throttle.totals().items())

    def answered(self, response: server.NodeHeartbeatResponse) -> None:
        """Carry out what the answer to a heartbeat orders."""
        if self._throttle is None or not self._is_understood:
            return
        self._throttle.heard()
        if response.HasField("yaq_cores"):
            self._throttle.order(apps_cores(response.yaq_cores))
