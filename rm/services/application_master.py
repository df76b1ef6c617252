"""ApplicationMasterProtocol: masters register, say what they want and hear what they got, and say good-bye.

A master is who its AMRMToken says, never who its request says. The conversation has a number: a request that repeats
the last one gets the last answer again, any other gap ends it, as in Hadoop's ApplicationMasterService.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from rm.applications.life import Applications
from rm.applications.preemption import preemption_message
from rm.applications.records import Attempt, RmContainer
from rm.applications.states import ContainerEvent, ContainerStage
from rm.cluster import Cluster
from rm.node_queues.words import NodeQueueing
from rm.scheduler.events import Asked, MasterCalled, WaitingTolerated
from rm.scheduler.view.calculators import InvalidAsk
from rm.security.tokens import TokenMint
from rm.services.absent_features import check_no_label
from rm.services.messages import node_report_pb, put_completion, put_container, resource_types_pb
from rm.services.orders import MasterOrders
from rm.services.placement import PlacementRequests
from rm.services.updates import ContainerUpdates
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import (
    ApplicationAttemptNotFound,
    ApplicationMasterNotRegistered,
    InvalidApplicationMasterRequest,
    InvalidResourceBlacklistRequest,
    InvalidResourceRequest,
    InvalidToken,
)
from yaqd.model import (
    ANY_HOST,
    ApplicationAttemptId,
    ExecutionType,
    ExitStatus,
    FinalApplicationStatus,
    NodeId,
    Resource,
)
from yaqd.model.blacklist import refusal
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.asks.table import TooManyAsks
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol
from yaqd.security import Token

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

log = logging.getLogger(__name__)

_RESPONSE_ID_MASK: Final = 0x7FFFFFFF
_TEXT_MAX: Final = 4096
#: rows that are taken in before others have their turn: some ten milliseconds
_ROWS_AT_ONCE: Final = 1000
#: containers one ask may want; more is a mistake or an attack
_COUNT_MAX: Final = 10_000_000


class ApplicationMasterService:
    def __init__(
        self,
        cluster: Cluster,
        applications: Applications,
        tokens: TokenMint,
        conclusion_stored: Callable[[Attempt], Awaitable[None]],
        updates: ContainerUpdates,
        placement: PlacementRequests,
        queueing: NodeQueueing,
    ) -> None:
        self._cluster = cluster
        self._applications = applications
        self._tokens = tokens
        self._conclusion_stored = conclusion_stored
        self._updates = updates
        self._placement = placement
        self._queueing = queueing
        self._orders = MasterOrders(cluster)
        #: identifier bytes -> attempt, so that a heartbeat parses no token
        self._attempts: dict[bytes, Attempt] = {}

    def register_on(self, server: RpcServer) -> None:
        server.register(ApplicationMasterProtocol.registerApplicationMaster, self.register_application_master)
        server.register(ApplicationMasterProtocol.allocate, self.allocate)
        server.register(ApplicationMasterProtocol.finishApplicationMaster, self.finish_application_master)

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        """Forget an attempt that is over: its token opens nothing any more."""
        self._tokens.masters.forget(attempt_id)
        self._queueing.estimates.attempt_over(attempt_id)
        self._attempts = {k: a for k, a in self._attempts.items() if a.id != attempt_id}

    def attempt_of(self, caller: Caller) -> Attempt:
        """Find out who is calling. Raises InvalidToken, ApplicationAttemptNotFound."""
        identifier = caller.token_identifier
        if identifier is None:
            raise InvalidToken("this port serves application masters with an AMRMToken only")
        attempt = self._attempts.get(identifier)
        if attempt is None:
            attempt_id = self._tokens.masters.attempt(identifier)
            attempt = self._cluster.find_attempt(attempt_id)
            if attempt is None or attempt.is_over:
                raise ApplicationAttemptNotFound(f"Application attempt {attempt_id} doesn't exist in this cluster.")
            self._attempts[identifier] = attempt
        if attempt.is_over:
            self._attempts.pop(identifier, None)
            raise ApplicationAttemptNotFound(f"Application attempt {attempt.id} doesn't exist in this cluster.")
        return attempt

    # ---- register

    def register_application_master(
        self, request: pb.RegisterApplicationMasterRequest, caller: Caller
    ) -> pb.RegisterApplicationMasterResponse:
        attempt = self.attempt_of(caller)
        if attempt.is_registered or not attempt.takes_containers:
            raise InvalidApplicationMasterRequest(f"Application Master is already registered : {attempt.app.id}")
        if attempt.state.name not in ("ALLOCATED", "LAUNCHED"):
            raise InvalidApplicationMasterRequest(f"{attempt.id} is {attempt.state.name}, nobody launched it yet")
        self._placement.register(attempt, request)
        attempt.host = request.host[:_TEXT_MAX] if request.HasField("host") else "N/A"
        attempt.rpc_port = request.rpc_port if request.HasField("rpc_port") else -1
        attempt.tracking_url = request.tracking_url[:_TEXT_MAX]
        attempt.is_registered = True
        attempt.response_id = 0
        self._applications.registered(attempt)
        if request.yaq_tolerates_waiting:
            self._cluster.schedule(WaitingTolerated(attempt.id))
        log.info("%s: registered at %s:%d", attempt.id, attempt.host, attempt.rpc_port)
        response = pb.RegisterApplicationMasterResponse(queue=attempt.app.queue)
        self._orders.registered(attempt, request, response)
        maximum = self._cluster.scheduler.maximum_allocation()
        convert.put_resource(response.maximumCapability, maximum)
        response.application_ACLs.extend(attempt.app.context.am_container_spec.application_ACLs)
        response.scheduler_resource_types.append(pb.MEMORY)
        if self._cluster.scheduler.facts.calculator.counts_vcores:
            response.scheduler_resource_types.append(pb.CPU)
        response.resource_types.extend(resource_types_pb(self._cluster.resource_types))
        if attempt.containers:
            self._hand_over(attempt, response)
        return response

    def _hand_over(self, attempt: Attempt, response: pb.RegisterApplicationMasterResponse) -> None:
        """Tell a new master of the containers that were kept for it."""
        for container in attempt.containers.values():
            message = response.containers_from_previous_attempts.add()
            put_container(message, container, self._container_token(attempt, container))
            self._add_nm_token(attempt, container.node_id, response.nm_tokens_from_previous_attempts)

    def _container_token(self, attempt: Attempt, container: RmContainer) -> Token:
        context = attempt.app.context
        logs = context.log_aggregation_context if context.HasField("log_aggregation_context") else None
        return self._tokens.container_token(container, attempt.app.user, self._cluster.clock.wall_ms(), logs)

    # ---- allocate

    def allocate(
        self, request: pb.AllocateRequest, caller: Caller
    ) -> pb.AllocateResponse | Awaitable[pb.AllocateResponse]:
        """Answer at once, except where so many rows come that others would wait for it."""
        attempt = self.attempt_of(caller)
        if attempt.taking_in is not None:
            return self._allocate_after(attempt.taking_in, request, caller)
        self._applications.masters.refresh(attempt.id, self._cluster.clock.now())
        if not attempt.is_registered:
            raise ApplicationMasterNotRegistered(f"AM is not registered for known application attempt: {attempt.id}")
        last = attempt.last_response
        if last is not None and (request.response_id + 1) & _RESPONSE_ID_MASK == attempt.response_id:
            return last
        if request.response_id != attempt.response_id:
            raise InvalidApplicationMasterRequest(
                f"Invalid responseId in AllocateRequest from application attempt: {attempt.id}, "
                f"expect responseId to be {attempt.response_id}, but get {request.response_id}"
            )
        if not attempt.takes_containers:
            return self._answer(attempt, pb.AllocateResponse(num_cluster_nodes=1))
        self._check_blacklist(attempt, request.blacklist_request)
        if self._cluster.scheduler.facts.fills_queues:
            self._cluster.schedule(MasterCalled(attempt.app.id))
        if len(request.ask) > _ROWS_AT_ONCE:
            attempt.taking_in = asyncio.get_running_loop().create_future()
            return self._allocate_in_parts(attempt, request, attempt.taking_in)
        placed = self._placement.read(attempt, request)
        self._take_in(attempt, request, self._rows(attempt, request.ask))
        return self._conclude(attempt, request, placed)

    def _check_blacklist(self, attempt: Attempt, asked: common.ResourceBlacklistRequest) -> None:
        """Raises InvalidResourceBlacklistRequest before anything is taken in."""
        scheduled = self._cluster.scheduler.facts.attempt(attempt.id)
        avoided = scheduled.blacklist if scheduled is not None else ()
        why = refusal(avoided, asked.blacklist_additions, asked.blacklist_removals)
        if why is not None:
            raise InvalidResourceBlacklistRequest(f"{why} ({attempt.id})")

    async def _allocate_after(
        self, before: asyncio.Future[None], request: pb.AllocateRequest, caller: Caller
    ) -> pb.AllocateResponse:
        """Calls of one master are answered one after the other."""
        await asyncio.shield(before)
        answer = self.allocate(request, caller)
        return answer if isinstance(answer, pb.AllocateResponse) else await answer

    async def _allocate_in_parts(
        self, attempt: Attempt, request: pb.AllocateRequest, done: asyncio.Future[None]
    ) -> pb.AllocateResponse:
        """As `allocate` does it, and others have their turn in between."""
        try:
            placed = self._placement.read(attempt, request)
            rows: list[AskRow] = []
            for at in range(0, len(request.ask), _ROWS_AT_ONCE):
                rows += self._rows(attempt, request.ask[at : at + _ROWS_AT_ONCE])
                if not await self._still_takes_containers(attempt):
                    return self._answer(attempt, pb.AllocateResponse(num_cluster_nodes=1))
            asked = self._asked(attempt, request, tuple(rows))
            try:
                told = self._cluster.scheduler.parts(asked, _ROWS_AT_ONCE)
            except TooManyAsks as error:
                raise InvalidResourceRequest(str(error)) from None
            self._note(attempt, request)
            for part in told:
                self._ask(attempt, part)
                if not await self._still_takes_containers(attempt):
                    return self._answer(attempt, pb.AllocateResponse(num_cluster_nodes=1))
            return self._conclude(attempt, request, placed)
        finally:
            attempt.taking_in = None
            done.set_result(None)

    @staticmethod
    async def _still_takes_containers(attempt: Attempt) -> bool:
        """Others have their turn. Raises ApplicationAttemptNotFound when the attempt ended in it."""
        await asyncio.sleep(0)
        if attempt.is_over:
            raise ApplicationAttemptNotFound(f"Application attempt {attempt.id} doesn't exist in this cluster.")
        return attempt.takes_containers

    def _conclude(
        self, attempt: Attempt, request: pb.AllocateRequest, placed: tuple[AskRow, ...]
    ) -> pb.AllocateResponse:
        """The answer, once the asks are taken in."""
        self._placement.take_in(attempt, request, placed)
        response = pb.AllocateResponse()
        self._updates.take_in(attempt, request, response)
        self._hand_out(attempt, response)
        self._updates.hand_out(attempt, response)
        self._placement.hand_out(attempt, response)
        self._orders.hand_out(attempt, response)
        return self._answer(attempt, response)

    @staticmethod
    def _answer(attempt: Attempt, response: pb.AllocateResponse) -> pb.AllocateResponse:
        attempt.response_id = (attempt.response_id + 1) & _RESPONSE_ID_MASK
        response.response_id = attempt.response_id
        attempt.last_response = response
        return response

    def _take_in(self, attempt: Attempt, request: pb.AllocateRequest, rows: tuple[AskRow, ...]) -> None:
        self._note(attempt, request)
        asked = self._asked(attempt, request, rows)
        said = rows or asked.blacklist_additions or asked.blacklist_removals
        if said or self._cluster.scheduler.facts.waits_for_node(attempt.id):
            self._ask(attempt, asked)

    def _note(self, attempt: Attempt, request: pb.AllocateRequest) -> None:
        """All that the master says but its asks."""
        progress = request.progress
        attempt.progress = 0.0 if math.isnan(progress) else min(1.0, max(0.0, progress))
        if request.HasField("tracking_url"):
            attempt.tracking_url = request.tracking_url[:_TEXT_MAX]
        if request.HasField("yaq_left"):
            self._queueing.left_told(attempt, request.yaq_left)
        self._orders.take_in(attempt, request)
        self._queueing.estimates.called(attempt.id)
        for released in request.release:
            container = attempt.containers.get(convert.container_id(released))
            if container is not None:
                why, kill = "Container released by application", container.stage is not ContainerStage.ALLOCATED
                self._cluster.end_container(container, ContainerEvent.RELEASE, ExitStatus.ABORTED, why, kill=kill)

    @staticmethod
    def _asked(attempt: Attempt, request: pb.AllocateRequest, rows: tuple[AskRow, ...]) -> Asked:
        blacklist = request.blacklist_request
        return Asked(attempt.id, rows, tuple(blacklist.blacklist_additions), tuple(blacklist.blacklist_removals))

    def _ask(self, attempt: Attempt, asked: Asked) -> None:
        self._queueing.expect(attempt, asked.rows)
        try:
            self._cluster.schedule(asked)
        except TooManyAsks as error:
            raise InvalidResourceRequest(str(error)) from None

    def _rows(self, attempt: Attempt, asks: Iterable[common.ResourceRequest]) -> tuple[AskRow, ...]:
        """Checked and converted; raises InvalidResourceRequest before anything is taken in."""
        label = attempt.app.context.node_label_expression
        bounds = self._cluster.scheduler.facts.bounds
        maximum: Resource | None = None
        rows = []
        for ask in asks:
            check_no_label(ask.node_label_expression or (label if ask.resource_name == ANY_HOST else ""))
            amount = convert.resource(ask.capability)
            count = ask.num_containers
            if count < 0 or count > _COUNT_MAX:
                raise InvalidResourceRequest(f"Invalid resource request, num_containers is {count}")
            if count:
                maximum = maximum or self._cluster.scheduler.maximum_allocation()
                try:
                    bounds.check(amount, maximum)
                except InvalidAsk as error:
                    raise InvalidResourceRequest(str(error)) from None
            # Whether the type is enforced is not looked at: neither does Hadoop's ResourceManager, which gives
            # opportunistic containers to those who ask for them, and guaranteed ones where it gives none of the others.
            opportunistic = ask.execution_type_request.execution_type == common.OPPORTUNISTIC
            rows.append(
                AskRow(
                    ask.priority.priority,
                    ask.allocation_request_id,
                    ask.resource_name or ANY_HOST,
                    amount,
                    count,
                    ask.relax_locality,
                    ExecutionType.OPPORTUNISTIC if opportunistic else ExecutionType.GUARANTEED,
                )
            )
        return tuple(rows)

    def _hand_out(self, attempt: Attempt, response: pb.AllocateResponse) -> None:
        cluster, app = self._cluster, attempt.app
        if attempt.allocated:
            granted, attempt.allocated = attempt.allocated, []
            for container in granted:
                container.machine.advance(ContainerEvent.ACQUIRE)
                token = self._container_token(attempt, container)
                put_container(response.allocated_containers.add(), container, token)
                self._add_nm_token(attempt, container.node_id, response.nm_tokens)
        # This call shows that the last answer arrived: until now the nodes could be asked for those containers.
        for completion in attempt.told_completions:
            cluster.forget_id_on_node(completion.container_id, completion.node_id)
        attempt.told_completions, attempt.completions = attempt.completions, []
        scheduled = cluster.scheduler.facts.attempt(attempt.id) if attempt.told_completions else None
        is_ours = scheduled is not None and scheduled.tolerates_waiting
        for completion in attempt.told_completions:
            put_completion(response.completed_container_statuses.add(), completion, with_times=is_ours)
        if attempt.node_changes_seen != cluster.node_changes:
            changed = cluster.node_changes_since(attempt.node_changes_seen)
            attempt.node_changes_seen = cluster.node_changes
            response.updated_nodes.extend(node_report_pb(node) for node in changed)
        if attempt.notices:
            notice = preemption_message(attempt, cluster.scheduler.facts.bounds.minimum)
            if notice is not None:
                response.preempt.CopyFrom(notice)
        convert.put_resource(response.limit, cluster.scheduler.facts.headroom(attempt.id))
        response.num_cluster_nodes = max(1, cluster.usable_nodes)
        response.application_priority.priority = app.priority
        newest = self._tokens.amrm_keys.newest.key_id
        if attempt.amrm_key_id != newest:
            attempt.amrm_key_id = newest
            response.am_rm_token.CopyFrom(self._tokens.masters.mint(attempt.id).to_pb())

    def _add_nm_token(
        self, attempt: Attempt, node_id: NodeId, tokens: "RepeatedCompositeFieldContainer[pb.NMToken]"
    ) -> None:
        node = self._cluster.nodes.get(node_id)
        key_id = self._tokens.nm_keys.current.key_id
        if node is None or attempt.nm_tokens.get(node.id) == key_id:
            return
        attempt.nm_tokens[node.id] = key_id
        token = self._tokens.nm_token(attempt.id, node.id, attempt.app.user)
        message = tokens.add()
        message.nodeId.host, message.nodeId.port = node.id.host, node.id.port
        message.token.CopyFrom(token.to_pb())

    # ---- finish

    async def finish_application_master(
        self, request: pb.FinishApplicationMasterRequest, caller: Caller
    ) -> pb.FinishApplicationMasterResponse:
        attempt = self.attempt_of(caller)
        self._applications.masters.refresh(attempt.id, self._cluster.clock.now())
        if not attempt.is_registered:
            raise ApplicationMasterNotRegistered(
                f"Application Master is trying to unregister before registering for: {attempt.app.id}"
            )
        if attempt.takes_containers:
            said = request.final_application_status
            try:
                status = FinalApplicationStatus(said)
            except ValueError:
                status = FinalApplicationStatus.UNDEFINED
            url = request.tracking_url[:_TEXT_MAX] or attempt.tracking_url
            log.info("%s: finishes with %s", attempt.id, status.name)
            self._applications.unregistered(attempt, status, request.diagnostics, url)
        await self._conclusion_stored(attempt)
        return pb.FinishApplicationMasterResponse(isUnregistered=True)
