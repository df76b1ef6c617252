"""What a node is told to do with its next heartbeat's answer."""

from dataclasses import dataclass, field

from yaqd.model import ApplicationId, ContainerId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service


@dataclass(slots=True)
class NodeOrders:
    """Gathers orders until an answer takes them along. False where there is none."""

    containers_to_kill: dict[ContainerId, None] = field(default_factory=dict)
    containers_to_forget: list[ContainerId] = field(default_factory=list)
    applications_to_clean: list[ApplicationId] = field(default_factory=list)
    signals: list[service.SignalContainerRequest] = field(default_factory=list)
    #: changed containers, with the tokens that say how
    updates: dict[ContainerId, common.Container] = field(default_factory=dict)
    #: its size changed by an administrator
    resized: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.containers_to_kill
            or self.containers_to_forget
            or self.applications_to_clean
            or self.signals
            or self.updates
            or self.resized
        )

    def put_into(self, response: server.NodeHeartbeatResponse, total: Resource) -> None:
        """Fill the answer; `total` is what the node has."""
        for container_id in self.containers_to_kill:
            convert.put_container_id(response.containers_to_cleanup.add(), container_id)
        for container_id in self.containers_to_forget:
            convert.put_container_id(response.containers_to_be_removed_from_nm.add(), container_id)
        response.applications_to_cleanup.extend(convert.application_id_pb(app) for app in self.applications_to_clean)
        response.containers_to_signal.extend(self.signals)
        response.containers_to_update.extend(self.updates.values())
        response.containers_to_decrease.extend(self.updates.values())
        if self.resized:
            convert.put_resource(response.resource, total)
