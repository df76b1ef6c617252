"""DistributedSchedulingAMProtocol: what proxies at the nodes ask on behalf of the masters there.

A proxy takes the opportunistic asks out of its master's requests and chooses the nodes itself. It sends what it chose
along, to be booked before the ordinary part of the call; a container that cannot be booked comes back as ended, so that
its master asks again. Their ids count down from where this ResourceManager's own begin. The lowest one seen is
remembered, which makes a repeated request book nothing twice and an id that was used before worth nothing.
"""

import logging
import math
from collections import Counter
from collections.abc import Awaitable
from typing import Final

from rm.applications.records import Attempt, Completion
from rm.applications.states import ContainerEvent
from rm.cluster import Cluster
from rm.node_queues.usage_monitor import UsageMonitor
from rm.node_queues.words import NodeQueueing
from rm.scheduler.decisions import NodeQueuePlace
from rm.scheduler.events import BoundWish, ProxyPlaced, WantedElsewhere
from rm.scheduler.view.calculators import InvalidAsk
from rm.services.application_master import ApplicationMasterService
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import InvalidApplicationMasterRequest
from yaqd.model import ContainerId, ExecutionType, ExitStatus, NodeId, Resource
from yaqd.policies.queueing import limits
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import DistributedSchedulingAMProtocol as Protocol

log = logging.getLogger(__name__)

#: live containers of one attempt beyond which nothing is booked
_CONTAINERS_MAX: Final = 200_000
#: ids below the first one that a proxy may use
_RANGE: Final = 1 << 39
#: stages of one job of which a proxy may tell, and containers of one
_STAGES_MAX: Final = 1000
_COUNT_MAX: Final = 10_000_000
#: places that are read of those that one container insists on
_PLACES_MAX: Final = 1000
#: characters kept of why a container was put where it is
_RULE_MAX: Final = 300


class DistributedSchedulingService:
    def __init__(
        self,
        cluster: Cluster,
        masters: ApplicationMasterService,
        monitor: UsageMonitor,
        queueing: NodeQueueing,
        *,
        epoch: int,
        expiry_ms: int,
    ) -> None:
        """`expiry_ms`: how long a container token may wait for its use."""
        self._cluster = cluster
        self._masters = masters
        self._monitor = monitor
        self._queueing = queueing
        #: proxies count down from here, the scheduler up
        self._id_start = ContainerId.start(epoch)
        self._expiry_ms = expiry_ms

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.registerApplicationMasterForDistributedScheduling, self.register_application_master)
        server.register(Protocol.allocateForDistributedScheduling, self.allocate)
        server.register(Protocol.finishApplicationMaster, self._masters.finish_application_master)

    def register_application_master(
        self, request: pb.RegisterApplicationMasterRequest, caller: Caller
    ) -> pb.RegisterDistributedSchedulingAMResponse:
        answer = self._masters.register_application_master(request, caller)
        attempt = self._masters.attempt_of(caller)
        response = pb.RegisterDistributedSchedulingAMResponse(
            container_token_expiry_interval=self._expiry_ms, container_id_start=self._id_start
        )
        response.register_response.CopyFrom(answer)
        convert.put_resource(response.max_container_resource, self._cluster.scheduler.maximum_allocation())
        convert.put_resource(response.min_container_resource, self._cluster.scheduler.facts.bounds.minimum)
        response.nodes_for_scheduling.extend(self._monitor.publish(_node(attempt), attempt.id))
        self._limit_waits(attempt, response)
        return response

    def _limit_waits(
        self,
        attempt: Attempt,
        response: pb.RegisterDistributedSchedulingAMResponse | pb.DistributedSchedulingAllocateResponse,
    ) -> None:
        most_wait_ms = self._queueing.most_wait_ms(attempt)
        if most_wait_ms is not None and self._monitor.understands(_node(attempt)):
            response.yaq_most_wait_ms = most_wait_ms

    def allocate(
        self, request: pb.DistributedSchedulingAllocateRequest, caller: Caller
    ) -> pb.DistributedSchedulingAllocateResponse | Awaitable[pb.DistributedSchedulingAllocateResponse]:
        """Book what the proxy has placed, then answer the master's own request."""
        attempt = self._masters.attempt_of(caller)
        if attempt.is_registered and attempt.takes_containers:
            if request.allocated_containers:
                self._book(attempt, request)
            self._note_kept(attempt, request)
        answer = self._masters.allocate(request.allocate_request, caller)
        if isinstance(answer, pb.AllocateResponse):
            return self._answer(attempt, request, answer)
        return self._answer_later(attempt, request, answer)

    async def _answer_later(
        self,
        attempt: Attempt,
        request: pb.DistributedSchedulingAllocateRequest,
        answer: Awaitable[pb.AllocateResponse],
    ) -> pb.DistributedSchedulingAllocateResponse:
        return self._answer(attempt, request, await answer)

    def _answer(
        self, attempt: Attempt, request: pb.DistributedSchedulingAllocateRequest, answer: pb.AllocateResponse
    ) -> pb.DistributedSchedulingAllocateResponse:
        response = pb.DistributedSchedulingAllocateResponse()
        response.allocate_response.CopyFrom(answer)
        response.nodes_for_scheduling.extend(self._monitor.publish(_node(attempt), attempt.id))
        self._limit_waits(attempt, response)
        if attempt.proxy_refused:
            ids = (message.id for message in request.allocated_containers)
            response.yaq_not_booked.extend(one for one in ids if convert.container_id(one) in attempt.proxy_refused)
        return response

    # ---- booking

    def _book(self, attempt: Attempt, request: pb.DistributedSchedulingAllocateRequest) -> None:
        """Raises InvalidApplicationMasterRequest, with nothing booked, for what no proxy sends."""
        seen = self._id_start if attempt.proxy_lowest is None else attempt.proxy_lowest
        fresh: dict[ContainerId, common.Container] = {}
        for message in request.allocated_containers:
            container_id = convert.container_id(message.id)
            if container_id.attempt_id != attempt.id or not self._is_ours(container_id):
                raise InvalidApplicationMasterRequest(
                    f"{attempt.id}: {container_id} (id {container_id.id}) is not for its proxy to give"
                )
            if container_id.id < seen:
                fresh[container_id] = message
        if len(attempt.containers) + len(fresh) > _CONTAINERS_MAX:
            raise InvalidApplicationMasterRequest(f"{attempt.id}: more than {_CONTAINERS_MAX} containers at a time")
        if fresh:
            attempt.proxy_lowest = min(container_id.id for container_id in fresh)
            attempt.proxy_refused.clear()
        said = {
            convert.container_id(why.container_id): why
            for why in request.yaq_placed[: len(request.allocated_containers)]
        }
        for container_id, message in fresh.items():
            if request.yaq_takes_back and not self._may_go(attempt, message):
                attempt.proxy_refused.add(container_id)
                continue
            self._book_one(attempt, container_id, message, said.get(container_id))

    def _may_go(self, attempt: Attempt, message: common.Container) -> bool:
        """Proxies do not know of each other: the node may have been given more since this one heard of it."""
        known = self._cluster.scheduler.facts.attempt(attempt.id)
        node_id, need = convert.node_id(message.nodeId), convert.resource(message.resource)
        return known is None or self._cluster.scheduler.facts.may_go(known, node_id, need)

    def _note_kept(self, attempt: Attempt, request: pb.DistributedSchedulingAllocateRequest) -> None:
        """What the proxy keeps is left of the job too, and its stages' estimates will be wanted there."""
        if not self._queueing.is_on:
            return
        counts, of_size = Counter[int](), Counter[Resource | None]()
        for stage in request.yaq_kept[:_STAGES_MAX]:
            counts[stage.priority] += (count := _count(stage))
            of_size[_size(stage)] += count
        bound = tuple(
            BoundWish(_count(wish), _size(wish), frozenset(wish.places[:_PLACES_MAX]))
            for wish in request.yaq_bound[:_STAGES_MAX]
        )
        for wish in bound:
            of_size[wish.size] -= wish.count
        sizes = {size for size, count in of_size.items() if count > 0}
        placed = {container.priority.priority for container in request.allocated_containers}
        if counts or placed:
            self._queueing.estimates.expect(attempt.app, placed | counts.keys())
        known = frozenset(size for size in sizes if size is not None)
        any_size = len(request.yaq_kept) > _STAGES_MAX or None in sizes
        self._cluster.schedule(
            WantedElsewhere(attempt.app.id, tuple(sorted(counts.items())), frozenset() if any_size else known, bound)
        )

    def _is_ours(self, container_id: ContainerId) -> bool:
        return self._id_start - _RANGE < container_id.id < self._id_start

    def _book_one(
        self, attempt: Attempt, container_id: ContainerId, message: common.Container, said: pb.ProxyPlacement | None
    ) -> None:
        node_id, resource = convert.node_id(message.nodeId), convert.resource(message.resource)
        problem = self._problem(message, node_id, resource)
        if problem is None:
            priority, request_id = message.priority.priority, message.allocation_request_id
            rule = said.rule[:_RULE_MAX] if said is not None else ""
            place = _place(said, rule) if said is not None else None
            self._cluster.schedule(ProxyPlaced(container_id, node_id, resource, priority, request_id, rule, place))
            container = attempt.containers.get(container_id)
            if container is not None:
                # Its proxy hands it out, not the answer to this call.
                attempt.allocated.remove(container)
                container.machine.advance(ContainerEvent.ACQUIRE)
                return
            problem = f"node {node_id} is not there"
        log.warning("%s: not booked: %s", container_id, problem)
        why = f"Container {container_id} was placed by its master's proxy and not taken: {problem}"
        kind = ExecutionType.OPPORTUNISTIC
        attempt.completions.append(Completion(container_id, ExitStatus.ABORTED, why, resource.floored(), kind, node_id))

    def _problem(self, message: common.Container, node_id: NodeId, resource: Resource) -> str | None:
        if message.execution_type != common.OPPORTUNISTIC:
            return "only opportunistic containers may be"
        try:
            self._cluster.scheduler.facts.bounds.check(resource, self._cluster.scheduler.maximum_allocation())
        except InvalidAsk as error:
            return str(error)
        node = self._cluster.nodes.get(node_id)
        if node is None or not node.is_usable:
            return f"node {node_id} is not there"
        return None


def _count(said: pb.PendingStage | pb.BoundWish) -> int:
    return min(max(0, said.count), _COUNT_MAX)


def _size(said: pb.PendingStage | pb.BoundWish) -> Resource | None:
    """None: it does not say."""
    return convert.resource(said.size).floored() if said.HasField("size") else None


def _place(said: pb.ProxyPlacement, rule: str) -> NodeQueuePlace | None:
    """What a proxy said of a container's wait, as far as it can be; it changes no decision, only what people read."""
    if said.HasField("wait_ms") and said.wait_ms == 0:
        return None
    wait_s = limits.duration(said.wait_ms / 1000 if said.HasField("wait_ms") else None)
    estimate_s = limits.duration(said.estimate_ms / 1000 if said.HasField("estimate_ms") else None)
    behind = min(max(0, said.behind), _COUNT_MAX)
    return NodeQueuePlace(wait_s, behind, rule, estimate_s if estimate_s < math.inf else None)


def _node(attempt: Attempt) -> NodeId | None:
    """Where the master and with it the proxy is."""
    return attempt.master.node_id if attempt.master is not None else None
