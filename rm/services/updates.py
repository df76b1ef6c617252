"""Container updates between masters, the scheduler and the nodes.

A master asks in its heartbeat, holding the version it knows; what is wrong is answered with Hadoop's reasons
(RMServerUtils). What the scheduler grants gives the container a new version and goes back with a new token. The
master takes the token to the node, except for a decrease, which the ResourceManager tells the node itself (everything,
where `yarn.resourcemanager.auto-update.containers` is set). An increase that the node has not confirmed in time is
taken back to what it was.
"""

import logging
from dataclasses import replace
from enum import IntEnum
from typing import Final

from rm.applications.records import Attempt, RmContainer
from rm.cluster import Cluster
from rm.nodes.node import RmNode
from rm.scheduler.decisions import Update
from rm.scheduler.events import UpdateAsked
from rm.scheduler.view.calculators import AllocationBounds, InvalidAsk
from rm.security.tokens import TokenMint
from rm.services.messages import put_container, wire
from yaqd.model import ContainerId, ExecutionType, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.security import Token

log = logging.getLogger(__name__)

INVALID_CONTAINER: Final = "INVALID_CONTAINER_ID"
WRONG_VERSION: Final = "INCORRECT_CONTAINER_VERSION_ERROR"
OUTSTANDING: Final = "UPDATE_OUTSTANDING_ERROR"
OUT_OF_RANGE: Final = "RESOURCE_OUTSIDE_ALLOWED_RANGE"


class UpdateType(IntEnum):
    INCREASE_RESOURCE = 0
    DECREASE_RESOURCE = 1
    PROMOTE_EXECUTION_TYPE = 2
    DEMOTE_EXECUTION_TYPE = 3


class _Refused(Exception):
    """The request cannot be taken; its text is the reason told."""


class ContainerUpdates:
    def __init__(self, cluster: Cluster, tokens: TokenMint, *, tells_nodes: bool) -> None:
        """`tells_nodes`: every update goes to the node with its heartbeat, not only decreases."""
        self._cluster = cluster
        self._tokens = tokens
        self._tells_nodes = tells_nodes

    # ---- asked for

    def take_in(self, attempt: Attempt, request: pb.AllocateRequest, response: pb.AllocateResponse) -> None:
        """Take a heartbeat's requests, errors going into its answer."""
        seen: set[ContainerId] = set()
        for update in request.update_requests:
            container_id = convert.container_id(update.container_id)
            container = attempt.containers.get(container_id)
            try:
                self._ask(update, container, is_repeated=container_id in seen)
            except _Refused as refusal:
                error = response.update_errors.add(reason=str(refusal))
                error.update_request.CopyFrom(update)
                error.current_container_version = container.version if container is not None else -1
            seen.add(container_id)

    def _ask(self, update: pb.UpdateContainerRequest, container: RmContainer | None, *, is_repeated: bool) -> None:
        """Raises _Refused."""
        if container is None:
            raise _Refused(INVALID_CONTAINER)
        if update.container_version != container.version:
            raise _Refused(WRONG_VERSION)
        if is_repeated:
            raise _Refused(OUTSTANDING)
        allocation = container.allocation
        resource, execution_type = allocation.resource, allocation.execution_type
        kind = UpdateType(update.update_type)
        if kind in (UpdateType.INCREASE_RESOURCE, UpdateType.DECREASE_RESOURCE):
            resource = self._target(container, convert.resource(update.capability), kind)
        else:
            execution_type = _execution_type(update, kind)
            if execution_type is allocation.execution_type:
                return
            if self._cluster.scheduler.facts.is_update_waiting(container.id, container.node_id):
                raise _Refused(OUTSTANDING)
        log.info("%s: its master asks for %s, %s", container.id, resource, execution_type.name)
        container.update_wanted = kind
        self._cluster.schedule(UpdateAsked(container.id, resource, execution_type))

    def _target(self, container: RmContainer, wanted: Resource, kind: UpdateType) -> Resource:
        """The size asked for, normalized. Raises _Refused for one that cannot be."""
        scheduler, now = self._cluster.scheduler, container.allocation.resource
        bounds: AllocationBounds = scheduler.facts.bounds
        try:
            bounds.check(wanted, scheduler.maximum_allocation())
        except InvalidAsk:
            raise _Refused(OUT_OF_RANGE) from None
        target = scheduler.normalized(wanted)
        smaller, larger = (now, target) if kind is UpdateType.INCREASE_RESOURCE else (target, now)
        node = self._cluster.nodes.get(container.node_id)
        if not smaller.fits_in(larger) or node is None or not scheduler.facts.calculator.fits(target, node.total):
            raise _Refused(OUT_OF_RANGE)
        return target

    # ---- granted

    def granted(self, update: Update) -> None:
        """Note that the scheduler has booked it: the record follows, the master will be told."""
        container = self._cluster.containers[update.container_id]
        container.book_usage(self._cluster.clock.wall_ms())
        container.allocation = replace(
            container.allocation, resource=update.resource, execution_type=update.execution_type
        )
        container.version += 1
        log.info("%s: version %d has %s, %s", container.id, container.version, update.resource, update.execution_type)
        if container.update_wanted is not UpdateType.INCREASE_RESOURCE:
            container.confirmed = update.resource
            self._cluster.unconfirmed.forget(container.id)
        container.attempt.updated[container.id] = container

    def hand_out(self, attempt: Attempt, response: pb.AllocateResponse) -> None:
        """Tell a master of its changed containers, with new tokens."""
        updated, attempt.updated = attempt.updated, {}
        for container in updated.values():
            if container.is_over or container.update_wanted is None:
                continue
            kind = UpdateType(container.update_wanted)
            message = common.Container()
            put_container(message, container, self._token(container))
            response.updated_containers.add(update_type=wire(kind), container=message)
            if kind is UpdateType.DECREASE_RESOURCE or self._tells_nodes:
                self._tell_node(container, message)
            elif kind is UpdateType.INCREASE_RESOURCE and container.is_started:
                self._cluster.unconfirmed.seen(container.id, self._cluster.clock.now())

    def _tell_node(self, container: RmContainer, message: common.Container) -> None:
        container.confirmed = container.allocation.resource
        node = self._cluster.nodes.get(container.node_id)
        if node is not None:
            node.orders.updates[container.id] = message

    def _token(self, container: RmContainer) -> Token:
        app = container.attempt.app
        logs = app.context.log_aggregation_context if app.context.HasField("log_aggregation_context") else None
        return self._tokens.container_token(container, app.user, self._cluster.clock.wall_ms(), logs)

    # ---- confirmed, or not

    def reported(self, node: RmNode, status: server.NodeStatus) -> None:
        """Note what the node says has grown there."""
        for message in status.increased_containers:
            container = node.containers.get(convert.container_id(message.id))
            if container is None:
                continue
            has = convert.resource(message.resource)
            if container.confirmed.fits_in(has):
                container.confirmed = has
            if container.allocation.resource.fits_in(has):
                self._cluster.unconfirmed.forget(container.id)

    def check_expiry(self, now: float) -> None:
        """Take back increases that no node has confirmed."""
        for container_id in self._cluster.unconfirmed.expired(now):
            container = self._cluster.containers.get(container_id)
            if container is None:
                continue
            log.warning("%s: its increase was not taken to its node in time and is taken back", container_id)
            container.update_wanted = UpdateType.DECREASE_RESOURCE
            kind = container.allocation.execution_type
            self._cluster.schedule(UpdateAsked(container_id, container.confirmed, kind))


def _execution_type(update: pb.UpdateContainerRequest, kind: UpdateType) -> ExecutionType:
    if update.HasField("execution_type"):
        return ExecutionType(update.execution_type)
    return ExecutionType.GUARANTEED if kind is UpdateType.PROMOTE_EXECUTION_TYPE else ExecutionType.OPPORTUNISTIC
