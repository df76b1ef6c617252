"""One master's conversation with the ResourceManager, passed on; its opportunistic containers are chosen on the way.

Numbers of requests and answers stay the master's and the ResourceManager's own. What was placed for a request is kept
until the master's next number shows that it has it: a request that comes again, because an answer was lost or this
NodeManager was killed, is answered with the same containers.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from nm.amrm_proxy.link import ResourceManagerLink
from nm.amrm_proxy.messages import (
    ask_pb,
    ask_rows,
    is_ours,
    lowered,
    most_wait_s,
    offers,
    placed_for,
    placement_pb,
    rows_of,
    unserved,
)
from nm.amrm_proxy.mint import Payer, ProxyMint
from nm.distributed import (
    Asked,
    ContainerOver,
    DistributedLimits,
    DistributedScheduler,
    NodesPublished,
    NotBooked,
    StageEstimated,
    WaitLimited,
    wanted_at,
    wanted_by_size,
)
from yaqd.ipc.errors import (
    ApplicationMasterNotRegistered,
    InvalidResourceBlacklistRequest,
    InvalidResourceRequest,
    NoSuchMethod,
    NoSuchProtocol,
)
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.model.blacklist import refusal
from yaqd.policies.asks.table import TooManyAsks
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol, DistributedSchedulingAMProtocol
from yaqd.security import Token, parse_identifier

log = logging.getLogger(__name__)

#: seconds by priority
Estimates = Callable[[ApplicationId], Mapping[int, float | None]]
Save = Callable[[ApplicationAttemptId, bytes], Awaitable[None]]


class MasterSession:
    def __init__(
        self,
        state: server.ProxiedMaster,
        *,
        rm_address: tuple[str, int],
        limits: DistributedLimits | None,
        mint: ProxyMint,
        estimates: Estimates,
        save: Save,
    ) -> None:
        """`state`: as it was saved, or with no more than who and when. `limits` None: everything is passed on."""
        self.attempt_id = convert.attempt_id(state.attempt_id)
        self.master = convert.container_id(state.master)
        self._state = state
        self._limits = limits
        self._mint = mint
        self._estimates = estimates
        self._save = save
        self._link = ResourceManagerLink(rm_address, self.attempt_id, Token.from_pb(state.token))
        self._turn = asyncio.Lock()
        #: None until the master has registered, and where the ResourceManager lets nobody place containers
        self._scheduler: DistributedScheduler | None = None
        #: by priority and request id, each a ProxiedMaster with these asks alone, so that few are made anew
        self._asks: dict[tuple[int, int], bytes] = {}
        #: why what was placed for the last request went where it did
        self._placements: list[pb.ProxyPlacement] = []
        #: node -> id of the key of the NMToken that the master has
        self._nm_tokens: dict[tuple[str, int], int] = {}
        #: when the master last called, in the proxy's seconds
        self.heard_at = 0.0
        #: id of the local key of the token that the master was last shown; None: of the one it started with
        self.shown_key_id: int | None = None
        if limits is not None and state.HasField("registration"):
            self._resume()

    def change(self, limits: DistributedLimits) -> None:
        """Place by these from now on, where containers are placed here."""
        if self._limits is not None:
            self._limits = limits
        if self._scheduler is not None:
            self._scheduler.change(limits)

    # ---- calls of the master

    async def register(self, request: pb.RegisterApplicationMasterRequest) -> pb.RegisterApplicationMasterResponse:
        async with self._turn:
            if self._limits is None:
                return await self._link.call(ApplicationMasterProtocol.registerApplicationMaster, request)
            method = DistributedSchedulingAMProtocol.registerApplicationMasterForDistributedScheduling
            try:
                answer = await self._link.call(method, request)
            except (NoSuchProtocol, NoSuchMethod):
                log.warning("%s: the ResourceManager lets no proxy place containers: all is passed on", self.attempt_id)
                self._limits = None
                return await self._link.call(ApplicationMasterProtocol.registerApplicationMaster, request)
            self._registered(answer)
            await self._keep()
            return answer.register_response

    async def allocate(self, request: pb.AllocateRequest) -> pb.AllocateResponse:
        async with self._turn:
            if self._limits is None:
                response = await self._link.call(ApplicationMasterProtocol.allocate, request)
                await self._take_token(response)
                return response
            if self._scheduler is None:
                raise ApplicationMasterNotRegistered(f"{self.attempt_id} has not registered with this node's proxy")
            return await self._allocate(request, self._scheduler)

    async def finish(self, request: pb.FinishApplicationMasterRequest) -> pb.FinishApplicationMasterResponse:
        async with self._turn:
            protocol = ApplicationMasterProtocol if self._limits is None else DistributedSchedulingAMProtocol
            return await self._link.call(protocol.finishApplicationMaster, request)

    async def close(self) -> None:
        await self._link.close()

    # ---- placing

    async def _allocate(self, request: pb.AllocateRequest, scheduler: DistributedScheduler) -> pb.AllocateResponse:
        own = [ask for ask in request.ask if is_ours(ask)]
        placed = self._place(request, own, scheduler)
        if own or placed:
            await self._keep()
        message = pb.DistributedSchedulingAllocateRequest(allocated_containers=placed)
        message.allocate_request.CopyFrom(request)
        if self._mint.tells_more:
            for (priority, size), count in wanted_by_size(scheduler.asks).items():
                convert.put_resource(message.yaq_kept.add(priority=priority, count=count).size, size)
            for (size, places), count in wanted_at(scheduler.asks).items():
                convert.put_resource(message.yaq_bound.add(count=count, places=places).size, size)
            message.yaq_placed.extend(self._placements)
            message.yaq_takes_back = True
        if own:
            del message.allocate_request.ask[:]
            message.allocate_request.ask.extend(ask for ask in request.ask if not is_ours(ask))
        answer = await self._link.call(DistributedSchedulingAMProtocol.allocateForDistributedScheduling, message)
        response = answer.allocate_response
        kept = self._not_booked(answer.yaq_not_booked, scheduler)
        scheduler.handle(NodesPublished(offers(answer.nodes_for_scheduling)), time.monotonic())
        is_new = self._limit_waits(answer, scheduler) or kept
        over = [*request.release, *(status.container_id for status in response.completed_container_statuses)]
        if over:
            ended = ContainerOver(
                tuple(convert.container_id(c) for c in over), unserved(response.completed_container_statuses)
            )
            scheduler.handle(ended, time.monotonic())
        if over or is_new:
            await self._keep()
        await self._take_token(response)
        self._hand_out(self._state.placed, response)
        return response

    def _not_booked(self, refused: Iterable[common.ContainerId], scheduler: DistributedScheduler) -> bool:
        """What the ResourceManager would not have where it was placed is wanted as before; is there any?"""
        state, ids = self._state, {message.SerializeToString() for message in refused}
        back = [container for container in state.placed if ids and container.id.SerializeToString() in ids]
        by = {wanted_by.container: wanted_by for wanted_by in state.placed_for}
        wanted = tuple((convert.container_id(c.id), rows_of(c, by.get(c.id.id))) for c in back)
        scheduler.handle(NotBooked(wanted), time.monotonic())
        if not back:
            return False
        rest = [container for container in state.placed if container.id.SerializeToString() not in ids]
        still = [by[container.id.id] for container in rest if container.id.id in by]
        del state.placed[:], state.placed_for[:]
        state.placed.extend(rest)
        state.placed_for.extend(still)
        self._placements = [said for said in self._placements if said.container_id.SerializeToString() not in ids]
        for container in back:
            self._note_ask(scheduler, (container.priority.priority, container.allocation_request_id))
        return True

    def _limit_waits(self, answer: pb.DistributedSchedulingAllocateResponse, scheduler: DistributedScheduler) -> bool:
        """The ResourceManager says how long this master's containers may wait; has it said otherwise before?"""
        known, before = self._state.registration, most_wait_s(self._state.registration)
        known.ClearField("yaq_most_wait_ms")
        if answer.HasField("yaq_most_wait_ms"):
            known.yaq_most_wait_ms = answer.yaq_most_wait_ms
        if most_wait_s(known) == before:
            return False
        scheduler.handle(WaitLimited(most_wait_s(known)), time.monotonic())
        return True

    def _place(
        self, request: pb.AllocateRequest, own: list[common.ResourceRequest], scheduler: DistributedScheduler
    ) -> list[common.Container]:
        """Everything placed for this request, now or when it came before."""
        state = self._state
        rows = ask_rows(own)
        blacklist = request.blacklist_request
        why = refusal(scheduler.blacklist, blacklist.blacklist_additions, blacklist.blacklist_removals)
        if why is not None:
            raise InvalidResourceBlacklistRequest(f"{why} ({self.attempt_id})")
        if state.HasField("response_id") and request.response_id == state.response_id:
            rows = lowered(rows, state.placed, state.placed_for)
        else:
            state.response_id = request.response_id
            del state.placed[:], state.placed_for[:], self._placements[:]
        for priority, estimate_s in self._estimates(self.attempt_id.application_id).items():
            scheduler.handle(StageEstimated(priority, estimate_s), time.monotonic())
        event = Asked(rows, tuple(blacklist.blacklist_additions), tuple(blacklist.blacklist_removals))
        try:
            places = scheduler.handle(event, time.monotonic())
        except TooManyAsks as error:
            raise InvalidResourceRequest(str(error)) from None
        changed = {(row.priority, row.allocation_request_id) for row in rows}
        for key in changed | {(place.priority, place.allocation_request_id) for place in places}:
            self._note_ask(scheduler, key)
        lifetime_ms = state.registration.container_token_expiry_interval
        state.placed.extend(self._mint.container(place, self._payer(), lifetime_ms) for place in places)
        state.placed_for.extend(map(placed_for, places))
        self._placements.extend(map(placement_pb, places))
        for place in places:
            log.debug("%s: placed on %s", place.container_id, place.node.node_id)
        return list(state.placed)

    def _note_ask(self, scheduler: DistributedScheduler, key: tuple[int, int]) -> None:
        ask = scheduler.asks.get(key)
        if ask is None:
            self._asks.pop(key, None)
        else:
            self._asks[key] = server.ProxiedMaster(asks=map(ask_pb, ask.rows())).SerializeToString()

    def _payer(self) -> Payer:
        state = self._state
        return Payer(state.user, state.registration.register_response.queue, state.job_arrival_ms)

    def _hand_out(self, placed: Iterable[common.Container], response: pb.AllocateResponse) -> None:
        for message in response.nm_tokens:
            identifier = parse_identifier(server.NMTokenIdentifier, message.token.identifier)
            self._nm_tokens[message.nodeId.host, message.nodeId.port] = identifier.keyId
        refused = {status.container_id.SerializeToString() for status in response.completed_container_statuses}
        key_id = self._mint.nm_key_id
        for container in placed:
            if container.id.SerializeToString() in refused:
                continue  # ended before its master has heard of it
            response.allocated_containers.append(container)
            node = (container.nodeId.host, container.nodeId.port)
            if key_id is not None and self._nm_tokens.get(node) != key_id:
                self._nm_tokens[node] = key_id
                node_id = convert.node_id(container.nodeId)
                response.nm_tokens.append(self._mint.nm_token(self.attempt_id, node_id, self._state.user))

    # ---- what is remembered

    def _registered(self, answer: pb.RegisterDistributedSchedulingAMResponse) -> None:
        """Again after a new start of the ResourceManager: then it hands out another range, or the same one anew."""
        state, before = self._state, self._scheduler
        lowest = answer.container_id_start
        if before is not None:
            # As far below the new start as it was below the old one: ids of two epochs can print the same.
            lowest -= state.registration.container_id_start - before.lowest_id
        state.registration.CopyFrom(answer)
        state.ClearField("response_id")
        del state.placed[:], state.placed_for[:], self._placements[:]
        self._nm_tokens.clear()
        self._asks.clear()
        scheduler = self._start(lowest)
        if before is not None:
            scheduler.live.update(before.live)
        scheduler.handle(NodesPublished(offers(answer.nodes_for_scheduling)), time.monotonic())

    def _start(self, lowest_id: int) -> DistributedScheduler:
        assert self._limits is not None
        answer = self._state.registration
        # A stock ResourceManager names no increment: sizes then are multiples of the smallest.
        step = answer.incr_container_resource if answer.HasField("incr_container_resource") else None
        self._scheduler = DistributedScheduler(
            self.attempt_id,
            self._limits,
            least=convert.resource(step or answer.min_container_resource),
            most=convert.resource(answer.max_container_resource),
            id_start=lowest_id,
        )
        self._scheduler.handle(WaitLimited(most_wait_s(answer)), time.monotonic())
        return self._scheduler

    def _resume(self) -> None:
        """After a new start of this NodeManager."""
        state = self._state
        scheduler = self._start(state.lowest_id)
        scheduler.handle(Asked(ask_rows(state.asks), tuple(state.blacklist)), time.monotonic())
        scheduler.live.update((ContainerId(self.attempt_id, number), None) for number in state.live)
        for key in {(ask.priority.priority, ask.allocation_request_id) for ask in state.asks}:
            self._note_ask(scheduler, key)
        del state.asks[:]

    async def _keep(self) -> None:
        """Raises OSError."""
        state, scheduler = self._state, self._scheduler
        if scheduler is not None:
            state.lowest_id = scheduler.lowest_id
            del state.live[:], state.blacklist[:]
            state.live.extend(container_id.id for container_id in scheduler.live)
            state.blacklist.extend(scheduler.blacklist)
        # messages one after the other are one message with the fields of all
        await self._save(self.attempt_id, b"".join((state.SerializeToString(), *self._asks.values())))

    async def _take_token(self, response: pb.AllocateResponse) -> None:
        """A new token of the ResourceManager's is for this proxy."""
        if response.HasField("am_rm_token"):
            token = Token.from_pb(response.am_rm_token)
            response.ClearField("am_rm_token")
            self._state.token.CopyFrom(token.to_pb())
            await self._link.renew(token)
            await self._keep()
