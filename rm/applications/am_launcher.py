"""Starting masters: the ResourceManager is a client of the NodeManager, with an NMToken like any master.

A bounded number of launches run at a time, each with a deadline, and connecting is retried within it. The launch
context is the submitted one with three additions, as Hadoop's AMLauncher makes them: where the web proxy is, when
the application was submitted, and the AMRMToken among the credentials.
"""

import asyncio
import logging
from typing import Final

from rm.applications.life import Applications
from rm.applications.records import Attempt
from rm.clock import Clock
from rm.security.tokens import TokenMint
from yaqd.ipc import RemoteException, RetryPolicy, RpcClient, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ContainerManagementProtocol
from yaqd.security import BadCredentials, Credentials, Token

log = logging.getLogger(__name__)

_RETRIES: Final = RetryPolicy(attempts=20, first_delay_s=0.05, delay_max_s=2.0)


class LaunchRefused(Exception):
    """The node said no; the message is its reason."""


class MasterLauncher:
    def __init__(
        self,
        applications: Applications,
        tokens: TokenMint,
        clock: Clock,
        *,
        launches_max: int,
        timeout_s: float,
        user: str,
    ) -> None:
        self._applications = applications
        self._tokens = tokens
        self._clock = clock
        self._slots = asyncio.Semaphore(launches_max)
        self._timeout_s = timeout_s
        self._user = user
        self._tasks = TaskSet()

    def launch(self, attempt: Attempt) -> None:
        """Begin to start the attempt's master; the outcome goes to `Applications`."""
        token = self._tokens.masters.mint(attempt.id)
        attempt.amrm_key_id = self._tokens.amrm_keys.newest.key_id
        try:
            context = launch_context(attempt, token_added(attempt.app.context.am_container_spec.tokens, token))
        except BadCredentials as error:
            self._applications.master_launch_failed(attempt, f"the submitted credentials cannot be read: {error}")
            return
        self._tasks.start(
            self._run(attempt, context),
            on_error=lambda error: log.error("%s: launching its master failed", attempt.id, exc_info=error),
        )

    async def stop(self) -> None:
        await self._tasks.end()

    async def _run(self, attempt: Attempt, context: common.ContainerLaunchContext) -> None:
        try:
            async with self._slots:
                if attempt.is_over:
                    return
                await self._start(attempt, context)
        except (RpcError, RemoteException, LaunchRefused, OSError) as error:
            log.warning("%s: the master was not launched: %s", attempt.id, error)
            self._applications.master_launch_failed(attempt, str(error))
        else:
            self._applications.master_launched(attempt)

    async def _start(self, attempt: Attempt, context: common.ContainerLaunchContext) -> None:
        container = attempt.master
        assert container is not None
        app = attempt.app
        request = pb.StartContainersRequest()
        item = request.start_container_request.add()
        item.container_launch_context.CopyFrom(context)
        logs = app.context.log_aggregation_context if app.context.HasField("log_aggregation_context") else None
        token = self._tokens.container_token(container, app.user, self._clock.wall_ms(), logs)
        item.container_token.CopyFrom(token.to_pb())
        node_id = container.node_id
        client = RpcClient(
            node_id.host,
            node_id.port,
            user=self._user,
            token=self._tokens.nm_token(attempt.id, node_id, app.user),
            timeout_s=self._timeout_s,
            connect_retries=_RETRIES,
        )
        try:
            response = await client.call(ContainerManagementProtocol.startContainers, request)
        finally:
            await client.close()
        for failure in response.failed_requests:
            raise LaunchRefused(failure.exception.message or failure.exception.class_name)


def launch_context(attempt: Attempt, tokens: bytes) -> common.ContainerLaunchContext:
    """Return the submitted launch context with what every master is told."""
    app = attempt.app
    context = common.ContainerLaunchContext()
    context.CopyFrom(app.context.am_container_spec)
    added = {"APPLICATION_WEB_PROXY_BASE": f"/proxy/{app.id}", "APP_SUBMIT_TIME_ENV": str(app.submitted_ms)}
    kept = [e for e in context.environment if e.key not in added]
    del context.environment[:]
    context.environment.extend(kept)
    for key, value in added.items():
        context.environment.add(key=key, value=value)
    context.tokens = tokens
    return context


def token_added(credentials: bytes, token: Token) -> bytes:
    """Return the credentials with the AMRMToken under its service's name, "" as a stock ResourceManager has it."""
    return Credentials.read(credentials).with_token("", token).write()
