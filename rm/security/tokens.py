"""The ResourceManager's keys and what it signs with them."""

from collections.abc import Callable

from rm.applications.records import RmContainer
from rm.services.messages import wire
from yaqd.model import ApplicationAttemptId, ContainerType, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.security import AMRMTokenSecrets, ContainerTokenSecrets, NMTokenSecrets, RollingKeys, Token


class TokenMint:
    """Three kinds of token, each with keys that roll by handed-in time."""

    def __init__(
        self,
        *,
        now: float,
        random: Callable[[int], bytes],
        rm_identifier: int,
        container_interval_s: float,
        nm_interval_s: float,
        amrm_interval_s: float,
        nm_activation_s: float,
        amrm_activation_s: float,
        container_lifetime_s: float,
    ) -> None:
        def keys(interval_s: float, activation_s: float) -> RollingKeys:
            return RollingKeys(
                now=now, random=random, interval_s=interval_s, activation_s=min(activation_s, interval_s / 2)
            )

        self.container_keys = keys(container_interval_s, nm_activation_s)
        self.nm_keys = keys(nm_interval_s, nm_activation_s)
        self.amrm_keys = keys(amrm_interval_s, amrm_activation_s)
        self.containers = ContainerTokenSecrets(self.container_keys)
        self.nodes = NMTokenSecrets(self.nm_keys)
        self.masters = AMRMTokenSecrets(self.amrm_keys)
        self._rm_identifier = rm_identifier
        #: what the container's node should know of its task; set by the daemon
        self.task_facts: Callable[[RmContainer], server.TaskFacts | None] = lambda container: None
        self._form = server.ContainerTokenIdentifier()
        #: what `_form` was filled in for
        self._form_kind: tuple[object, ...] | None = None
        self._container_lifetime_ms = int(container_lifetime_s * 1000)

    def roll(self, now: float) -> None:
        """Make or activate keys whose time has come."""
        for keys in (self.container_keys, self.nm_keys, self.amrm_keys):
            keys.roll(now)

    def container_token(
        self,
        container: RmContainer,
        submitter: str,
        now_ms: int,
        log_aggregation: common.LogAggregationContext | None = None,
    ) -> Token:
        """Make the token that the node checks before it starts the container."""
        identifier = self._form_of(container, submitter, log_aggregation)
        identifier.nmHostAddr = str(container.node_id)
        identifier.expiryTimeStamp = now_ms + self._container_lifetime_ms
        identifier.creationTime = container.created_ms
        identifier.containerId.id = container.id.id
        facts = self.task_facts(container)
        if facts is not None:
            identifier.yaq_task.CopyFrom(facts)
        elif identifier.HasField("yaq_task"):
            identifier.ClearField("yaq_task")
        return self.containers.mint(identifier)

    def _form_of(
        self, container: RmContainer, submitter: str, log_aggregation: common.LogAggregationContext | None
    ) -> server.ContainerTokenIdentifier:
        """The last identifier where it differs in nothing but number, node and times, as among those of one ask it
        does; filling all of it in again takes longer than signing it.
        """
        allocation = container.allocation
        kind = (
            container.id.attempt_id,
            submitter,
            allocation.resource,
            allocation.priority,
            allocation.allocation_request_id,
            allocation.execution_type,
            allocation.is_master,
            allocation.tags,
            container.version,
            log_aggregation.SerializeToString() if log_aggregation is not None else None,
        )
        if kind == self._form_kind:
            return self._form
        form = server.ContainerTokenIdentifier(
            appSubmitter=submitter,
            rmIdentifier=self._rm_identifier,
            nodeLabelExpression="",
            version=container.version,
            allocation_request_id=allocation.allocation_request_id,
            allocation_tags=allocation.tags,
        )
        convert.put_container_id(form.containerId, container.id)
        convert.put_resource(form.resource, allocation.resource)
        form.priority.priority = allocation.priority
        form.containerType = wire(ContainerType.APPLICATION_MASTER if allocation.is_master else ContainerType.TASK)
        form.executionType = wire(allocation.execution_type)
        if log_aggregation is not None:
            form.logAggregationContext.CopyFrom(log_aggregation)
        self._form, self._form_kind = form, kind
        return form

    def nm_token(self, attempt_id: ApplicationAttemptId, node_id: NodeId, submitter: str) -> Token:
        return self.nodes.mint(attempt_id, node_id, submitter)
