"""The ResourceManager's answers as events, and what the wire said of each container that they name.

The machine knows a container by its text. Starting, releasing and stopping it take the protocol's own records,
which are kept here until its end has been heard of.
"""

import logging
from collections.abc import Iterator

from tez_adapter.core import events as ev
from yaqd.model import ContainerId, NodeState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.stages import stages_order

log = logging.getLogger(__name__)

_UNUSABLE = (NodeState.UNHEALTHY, NodeState.DECOMMISSIONED, NodeState.LOST)


class Granted:
    def __init__(self) -> None:
        #: containers allocated and not yet started
        self._allocated: dict[str, common.Container] = {}
        #: of all that are not over: a text does not tell whether it was counted up or down
        self._ids: dict[str, ContainerId] = {}
        #: what the ResourceManager said at a registration of which the machine has not heard yet
        self._news: list[ev.Event] = []
        #: of the latest order about stages since then
        self._ordered = 0

    def registered(self, response: pb.RegisterApplicationMasterResponse) -> None:
        """Note the registration's answer, before anything that comes after it.

        Memory counts even where the answer names nothing.
        """
        self._news = [ev.ResourcesCounted(cores=pb.CPU in response.scheduler_resource_types)]
        self._ordered = 0

    def events(self, response: pb.AllocateResponse) -> Iterator[ev.Event]:
        """Yield the events in the order to be handled; a container's id is forgotten once its end has been handled."""
        news, self._news = self._news, []
        yield from news
        if response.HasField("limit"):
            yield ev.ClusterSeen(convert.resource(response.limit), response.num_cluster_nodes)
        for status in response.completed_container_statuses:
            container = str(convert.container_id(status.container_id))
            log.info("%s completed with %d", container, status.exit_status)
            ran_s = status.yaq_times.run_ms / 1000 if status.HasField("yaq_times") else None
            yield ev.ContainerCompleted(container, status.exit_status, status.diagnostics, ran_s)
            self._ids.pop(container, None)
        for node in response.updated_nodes:
            if NodeState(node.node_state) in _UNUSABLE:
                yield ev.NodeLost(str(convert.node_id(node.nodeId)))
        for allocated in response.allocated_containers:
            name = str(convert.container_id(allocated.id))
            self._allocated[name] = allocated
            self._ids[name] = convert.container_id(allocated.id)
            node_id = convert.node_id(allocated.nodeId)
            resource = convert.resource(allocated.resource)
            yield ev.ContainerAllocated(name, str(node_id), node_id.host, resource, allocated.priority.priority)
        if response.HasField("yaq_orders") and response.yaq_orders.HasField("stages"):
            order = stages_order(response.yaq_orders.stages)
            if order.sequence > self._ordered:
                self._ordered = order.sequence
                yield ev.StagesOrdered(order)

    def take(self, container: str) -> common.Container:
        """Take what was granted, to be started now."""
        return self._allocated.pop(container)

    def give_back(self, container: str) -> ContainerId:
        self._allocated.pop(container, None)
        return self._ids[container]

    def find(self, container: str) -> ContainerId | None:
        """Return the container's id; None: it is over."""
        return self._ids.get(container)

    def id(self, container: str) -> ContainerId:
        return self._ids[container]
