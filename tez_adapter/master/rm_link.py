"""The job manager's conversation with the ResourceManager: registration, the allocate heartbeat, the end.

Heartbeats follow events: one goes out at once when the asks grow, and while nothing happens the pause grows with the
quiet time (a twentieth of it). So a job never waits for the heartbeat by more than some per cent of its own length. A
quiet job costs the ResourceManager one call a second.

Asks are absolute counts that both sides lower on an allocation. Rather than guess how the scheduler lowered its
rows, all rows of a priority are sent again after a container of that priority came.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol as Interface

from tez_adapter.core.demand import Ask
from tez_adapter.master.left import WorkLeft
from yaqd.config import Configuration
from yaqd.ipc import NO_RETRY, ClientOptions, RemoteException, RpcClient, RpcConnectionError, RpcError
from yaqd.ipc.errors import ApplicationMasterNotRegistered, Retriable
from yaqd.model import ApplicationId, ContainerId, FinalApplicationStatus, Resource, YarnApplicationState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol
from yaqd.proto.protocols import ApplicationMasterProtocol as Protocol
from yaqd.proto.words import STAGES
from yaqd.security import Token

log = logging.getLogger(__name__)

_QUIET_SHARE = 0.05
_PAUSE_MIN_S = 0.005
#: while something is asked for, its arrival is worth more calls
_PAUSE_ASKING_MAX_S = 0.25

#: a node kills 250 ms after it told a process to end
_OVER_TRIES = 6
_OVER_PAUSE_S = 0.02

#: priority, place, opportunistic or not
Row = tuple[int, str, bool]
#: the scheduler keeps one kind of container for a priority and a request id
_SPARE_REQUEST_ID = 1


@dataclass(slots=True)
class AskTable:
    """What the ResourceManager was last told, and what it must be told now."""

    sent: dict[Row, tuple[int, Resource]] = field(default_factory=dict)

    def allocated(self, priority: int) -> None:
        """Notes that the scheduler lowered rows of this priority in its own way: they are told again."""
        for row, (_, resource) in self.sent.items():
            if row[0] == priority:
                self.sent[row] = (-1, resource)

    def forget(self) -> None:
        """Forgets what was sent: the ResourceManager knows nothing any more."""
        self.sent.clear()

    def changes(self, wanted: list[Ask]) -> list[Ask]:
        """Returns the rows to send, and takes them as sent from now on."""
        rows = {_row(a): a for a in wanted}
        changed = [a for row, a in rows.items() if self.sent.get(row) != (a.count, a.resource)]
        gone = [
            Ask(priority, name, 0, resource, opportunistic=spare)
            for (priority, name, spare), (count, resource) in self.sent.items()
            if (priority, name, spare) not in rows and count != 0
        ]
        for ask in gone:
            del self.sent[_row(ask)]
        for ask in changed:
            self.sent[_row(ask)] = (ask.count, ask.resource)
        return gone + changed


def _row(ask: Ask) -> Row:
    return ask.priority, ask.name, ask.opportunistic


class Reports(Interface):
    """What a job's program reports, in an extension field."""

    @property
    def words(self) -> Sequence[str]:
        """That say so at the registration."""

    def news(self) -> pb.YaqReports | None:
        """Return what is new, from now on taken as told; None: nothing."""

    def forget(self) -> None:
        """Tell again what was told last: the ResourceManager may not have heard it."""


class ResourceManagerLink:
    def __init__(
        self,
        address: tuple[str, int],
        user: str,
        token: Token,
        *,
        asks: Callable[[], list[Ask]],
        progress: Callable[[], float],
        left: WorkLeft,
        reports: Reports | None = None,
        on_registered: Callable[[pb.RegisterApplicationMasterResponse], None],
        on_response: Callable[[pb.AllocateResponse], None],
        heartbeat_s: float,
        options: ClientOptions,
    ) -> None:
        """`reports`: what the job's program reports, where it does."""
        self._address = address
        self._user = user
        self._options = options
        self._client = RpcClient(*address, user=user, token=token, **options)
        self._asks = asks
        self._progress = progress
        self._left = left
        self._reports = reports
        self._on_registered, self._on_response = on_registered, on_response
        #: longest pause between heartbeats
        self._pause_max_s = heartbeat_s
        self._table = AskTable()
        self._releases: list[ContainerId] = []
        #: hosts that the ResourceManager was told to avoid, and what it has to be told of them
        self._avoided: set[str] = set()
        self._blacklist = common.ResourceBlacklistRequest()
        self._response_id = 0
        self._wake = asyncio.Event()
        self._active_at = 0.0
        self._answered_at = 0.0
        self._answered = asyncio.Event()
        self._wanted: tuple[int, ...] = ()
        self._idle = 0
        self._registration = pb.RegisterApplicationMasterRequest()

    async def register(self, host: str, port: int, tracking_url: str) -> pb.RegisterApplicationMasterResponse:
        self._registration = pb.RegisterApplicationMasterRequest(
            host=host, rpc_port=port, tracking_url=tracking_url, yaq_tolerates_waiting=True, yaq_understands=[STAGES]
        )
        if self._reports is not None:
            self._registration.yaq_understands.extend(self._reports.words)
        return await self._register()

    async def _register(self) -> pb.RegisterApplicationMasterResponse:
        self._response_id = 0
        self._table.forget()
        self._left.forget()
        self._tell_avoided_again()
        response = await self._client.call(Protocol.registerApplicationMaster, self._registration)
        self._on_registered(response)
        return response

    def wake(self) -> None:
        """Sends a heartbeat soon: something changed that the ResourceManager should know."""
        self._wake.set()

    def wake_if_changed(self, wanted: tuple[int, ...], idle: int) -> None:
        """Wakes the link if more is asked for, or other containers wait for the ResourceManager's word.

        Called after every event. `wanted`: the machine's short form of its asks. `idle`: how many containers wait.
        """
        grown = len(wanted) != len(self._wanted) or any(w > b for w, b in zip(wanted, self._wanted, strict=True))
        changed = idle != self._idle
        self._wanted, self._idle = wanted, idle
        if grown or changed:
            # less is told with the next heartbeat: tasks end all the time, and a surplus container is given back
            self.expect_news()
            self.wake()

    def expect_news(self) -> None:
        """Looks often again: something will come soon."""
        self._active_at = asyncio.get_running_loop().time()

    def release(self, container: ContainerId) -> None:
        self._releases.append(container)
        self.wake()

    def blacklist(self, additions: tuple[str, ...], removals: tuple[str, ...]) -> None:
        self._avoided.update(additions)
        self._avoided.difference_update(removals)
        self._blacklist.blacklist_additions.extend(additions)
        self._blacklist.blacklist_removals.extend(removals)
        self.wake()

    def _tell_avoided_again(self, *removals: str) -> None:
        """The ResourceManager may know nothing of it: containers there would come and be given back without end."""
        removed = {*removals, *self._blacklist.blacklist_removals} - self._avoided
        self._blacklist = common.ResourceBlacklistRequest(
            blacklist_additions=sorted(self._avoided), blacklist_removals=sorted(removed)
        )

    async def run(self) -> None:
        """Sends heartbeats until cancelled.

        Raises RemoteException when this attempt is no longer wanted, RpcError when nothing answers.
        """
        self.expect_news()
        self._answered_at = self._answered_at or self._active_at
        while True:
            self._wake.clear()
            response = await self._allocate()
            self._answered_at = asyncio.get_running_loop().time()
            self._answered.set()
            if response.allocated_containers or response.completed_container_statuses:
                self.expect_news()
            self._on_response(response)
            await self._pause()

    async def _pause(self) -> None:
        quiet_s = asyncio.get_running_loop().time() - self._active_at
        cap_s = min(_PAUSE_ASKING_MAX_S, self._pause_max_s) if self._table.sent else self._pause_max_s
        try:
            async with asyncio.timeout(min(cap_s, max(_PAUSE_MIN_S, quiet_s * _QUIET_SHARE))):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _allocate(self) -> pb.AllocateResponse:
        request = pb.AllocateRequest(response_id=self._response_id, progress=self._progress())
        for ask in self._table.changes(self._asks()):
            _add_ask(request, ask)
        left = self._left.news()
        if left is not None:
            request.yaq_left.CopyFrom(left)
        reports = None if self._reports is None else self._reports.news()
        if reports is not None:
            request.yaq_reports.CopyFrom(reports)
        released, self._releases = self._releases, []
        request.release.extend(convert.container_id_pb(c) for c in released)
        if self._blacklist.blacklist_additions or self._blacklist.blacklist_removals:
            request.blacklist_request.CopyFrom(self._blacklist)
            self._blacklist = common.ResourceBlacklistRequest()
        try:
            # the same response id again is answered with the same response: safe to send twice
            response = await self._client.call(Protocol.allocate, request, idempotent=True)
        except (RpcError, Retriable) as error:
            # what this request carried is told again
            self._table.forget()
            self._left.forget()
            if self._reports is not None:
                self._reports.forget()
            self._tell_avoided_again(*request.blacklist_request.blacklist_removals)
            self._releases = released + self._releases
            if isinstance(error, Retriable):  # a proxy at this node, which does not reach it at present
                raise RpcConnectionError(str(error)) from error
            raise
        except ApplicationMasterNotRegistered:
            log.warning("the ResourceManager does not know this attempt any more: registering again")
            await self._register()
            self._releases = released + self._releases
            return pb.AllocateResponse()
        self._response_id = response.response_id
        for container in response.allocated_containers:
            self._table.allocated(container.priority.priority)
        if response.HasField("am_rm_token"):
            await self._renew(Token.from_pb(response.am_rm_token))
        return response

    async def _renew(self, token: Token) -> None:
        """The key rolled: later connections need the new token."""
        await self._client.close()
        self._client = RpcClient(*self._address, user=self._user, token=token, **self._options)

    async def finish(self, status: FinalApplicationStatus, diagnostics: str, tracking_url: str) -> None:
        request = pb.FinishApplicationMasterRequest(
            final_application_status=int(status),  # type: ignore[arg-type]
            diagnostics=diagnostics,
            tracking_url=tracking_url,
        )
        pause_s = 0.005
        async with asyncio.timeout(60):
            while not (await self._client.call(Protocol.finishApplicationMaster, request)).isUnregistered:
                await asyncio.sleep(pause_s)
                pause_s = min(0.1, pause_s * 2)

    def silent_s(self) -> float:
        """Returns how long ago the ResourceManager last answered, s."""
        return asyncio.get_running_loop().time() - self._answered_at

    async def hear(self, within_s: float) -> None:
        """Returns once it has answered that lately."""
        while self.silent_s() > within_s:
            self._answered.clear()
            await self._answered.wait()

    async def close(self) -> None:
        await self._client.close()


async def application_is_over(conf: Configuration, application_id: ApplicationId, user: str) -> bool:
    """Returns whether the ResourceManager has closed the application; False when it does not answer in time."""
    client = RpcClient(*conf.get_address("yarn.resourcemanager.address"), user=user, connect_retries=NO_RETRY)
    request = pb.GetApplicationReportRequest(application_id=convert.application_id_pb(application_id))
    try:
        # the end is stored before it is shown, which takes a moment longer than ending the attempt
        for _ in range(_OVER_TRIES):
            response = await client.call(ApplicationClientProtocol.getApplicationReport, request, timeout_s=1.0)
            if YarnApplicationState(response.application_report.yarn_application_state).is_final:
                return True
            await asyncio.sleep(_OVER_PAUSE_S)
        return False
    except (RpcError, RemoteException, ValueError):
        return False
    finally:
        await client.close()


def _add_ask(request: pb.AllocateRequest, ask: Ask) -> None:
    row = request.ask.add()
    row.priority.priority = ask.priority
    row.resource_name = ask.name
    convert.put_resource(row.capability, ask.resource)
    row.num_containers = ask.count
    row.relax_locality = ask.relax
    # a stock ResourceManager with opportunistic allocation on fails when this is absent
    row.execution_type_request.execution_type = common.OPPORTUNISTIC if ask.opportunistic else common.GUARANTEED
    if ask.opportunistic:
        row.execution_type_request.enforce_execution_type = True
        row.allocation_request_id = _SPARE_REQUEST_ID
