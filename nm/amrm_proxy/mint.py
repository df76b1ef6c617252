"""The tokens that go with a container placed here, signed with the keys that the ResourceManager shares with its nodes.

The fields are those that Hadoop's OpportunisticContainerAllocator writes. Estimates ride behind them, in the token
alone and only to nodes that read them.
"""

import math
from collections.abc import Callable

from nm.amrm_proxy.messages import milliseconds
from nm.distributed import Place
from nm.registration import NodeRegistration
from yaqd.model import ApplicationAttemptId, NodeId
from yaqd.model.values import value
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.security import ContainerTokenSecrets, NMTokenSecrets


@value()
class Payer:
    """Whose containers they are."""

    user: str
    #: full path of the leaf queue, as far as it is known
    queue: str
    #: when the job was submitted, epoch ms
    arrival_ms: int


class ProxyMint:
    def __init__(self, registration: NodeRegistration, now_ms: Callable[[], int]) -> None:
        self._containers = ContainerTokenSecrets(registration.container_keys)
        self._nodes = NMTokenSecrets(registration.nm_keys)
        self._registration = registration
        self._now_ms = now_ms

    @property
    def nm_key_id(self) -> int | None:
        """The id of the key that NMTokens are signed with now; None without one."""
        current = self._registration.nm_keys.current
        return current.key_id if current is not None else None

    @property
    def tells_more(self) -> bool:
        """The ResourceManager understands what is said of node queues."""
        return self._registration.fills_queues

    def container(self, place: Place, payer: Payer, lifetime_ms: int) -> common.Container:
        """Makes the container that its master is given, with its token. Raises InvalidToken while this node has no
        keys."""
        offer, now_ms = place.node, self._now_ms()
        identifier = server.ContainerTokenIdentifier(
            nmHostAddr=str(offer.node_id),
            appSubmitter=payer.user,
            expiryTimeStamp=now_ms + lifetime_ms,
            rmIdentifier=self._registration.rm_identifier,
            creationTime=now_ms,
            nodeLabelExpression=offer.partition,
            containerType=common.TASK,
            executionType=common.OPPORTUNISTIC,
            version=0,
            allocation_request_id=place.allocation_request_id,
        )
        convert.put_container_id(identifier.containerId, place.container_id)
        convert.put_resource(identifier.resource, place.resource)
        identifier.priority.priority = place.priority
        if offer.reads_tasks:
            _put_facts(identifier.yaq_task, place, payer)
        container = common.Container(
            id=identifier.containerId,
            nodeId=convert.node_id_pb(offer.node_id),
            node_http_address=offer.http_address,
            resource=identifier.resource,
            priority=identifier.priority,
            execution_type=common.OPPORTUNISTIC,
            allocation_request_id=place.allocation_request_id,
            version=0,
        )
        self._containers.mint(identifier).put(container.container_token)
        return container

    def nm_token(self, attempt_id: ApplicationAttemptId, node_id: NodeId, user: str) -> pb.NMToken:
        """Raises InvalidToken while this node has no keys."""
        token = self._nodes.mint(attempt_id, node_id, user).to_pb()
        return pb.NMToken(nodeId=convert.node_id_pb(node_id), token=token)


def _put_facts(facts: server.TaskFacts, place: Place, payer: Payer) -> None:
    if place.estimate_s is not None:
        facts.estimate_ms = milliseconds(place.estimate_s)
    facts.job_arrival_ms = payer.arrival_ms
    facts.leaf_queue = payer.queue
    if place.waited_s > 0.0:
        facts.waited_ms = milliseconds(place.waited_s)
    if place.most_wait_s < math.inf:
        facts.most_wait_ms = milliseconds(place.most_wait_s)
