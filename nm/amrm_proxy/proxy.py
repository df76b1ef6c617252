"""The server that masters on this node call in place of the ResourceManager's scheduler service.

When a master's container is to be started, its token for the ResourceManager is taken out of its credentials. One that
opens this server alone is put in its place, as Hadoop's AMRMProxyService does. Where the master finds the server is a
matter of its own configuration; our job manager reads it from its environment.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from nm.amrm_proxy.mint import ProxyMint
from nm.amrm_proxy.session import Estimates, MasterSession
from nm.amrm_proxy.settings import ProxySettings
from nm.amrm_proxy.store import ProxyStore
from nm.distributed import DistributedLimits
from nm.launch.context import LaunchContext
from yaqd.config.reach import WILDCARDS
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import InvalidToken, Retriable
from yaqd.ipc.limits import ServerLimits
from yaqd.ipc.server_connection import ServiceAcl
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol as Protocol
from yaqd.security import AM_RM_TOKEN, AMRMTokenSecrets, BadCredentials, Credentials, MasterKey, RollingKeys

T = TypeVar("T")

log = logging.getLogger(__name__)

#: tells our job manager where to find the proxy
ADDRESS_VARIABLE: Final = "YAQ_SCHEDULER_ADDRESS"
_SUBMIT_TIME_VARIABLE: Final = "APP_SUBMIT_TIME_ENV"
#: how often it is looked whether a key is to be rolled, or a master gone, s
_ROLL_S: Final = 60.0


class AmrmProxy:
    def __init__(
        self,
        settings: ProxySettings,
        *,
        host: str,
        folder: Path,
        mint: ProxyMint,
        estimates: Estimates,
        limits: ServerLimits,
        service_acl: ServiceAcl | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`host`: this node's, by which masters reach a proxy that listens everywhere; `folder`: for what outlives
        it."""
        self._settings = settings
        self._host = host if settings.address[0] in WILDCARDS else settings.address[0]
        self._mint = mint
        self._estimates = estimates
        self._now = now
        self._store = ProxyStore(folder)
        self._keys = RollingKeys(
            now=now(), random=os.urandom, interval_s=settings.key_interval_s, activation_s=settings.key_activation_s
        )
        self._tokens = AMRMTokenSecrets(self._keys)
        self._sessions: dict[ApplicationAttemptId, MasterSession] = {}
        self._tasks = TaskSet(lambda error: log.error("the proxy's state could not be kept: %s", error))
        self._roller: asyncio.TimerHandle | None = None
        bind, port = settings.address
        self.server = RpcServer(
            name="AMRMProxy",
            host=bind,
            port=port,
            token_secrets=self._tokens,
            allow_simple=False,
            limits=limits,
            service_acl=service_acl,
        )
        self.server.register(Protocol.registerApplicationMaster, self._register)
        self.server.register(Protocol.allocate, self._allocate)
        self.server.register(Protocol.finishApplicationMaster, self._finish)

    async def start(self) -> None:
        """Raises OSError and RpcConnectionError."""
        loop = asyncio.get_running_loop()
        masters, keys = await loop.run_in_executor(None, self._store.load)
        if keys is not None:
            self._keys.current = MasterKey.from_pb(keys.current)
            self._keys.next = MasterKey.from_pb(keys.next) if keys.HasField("next") else None
        await self._save_keys()
        for state in masters:
            session = self._open(state)
            self._tokens.mint(session.attempt_id)
            log.info("%s: its calls are passed on again", session.attempt_id)
        await self.server.start()
        self._roller = loop.call_later(_ROLL_S, self._roll)

    async def stop(self) -> None:
        if self._roller is not None:
            self._roller.cancel()
        await self.server.stop()
        for session in list(self._sessions.values()):
            await session.close()
        await self._tasks.wait()
        await asyncio.get_running_loop().run_in_executor(None, self._store.close)

    @property
    def address(self) -> str:
        """`host:port` for masters on this node."""
        return f"{self._host}:{self.server.port}"

    # ---- masters come and go

    def adopt(self, token: server.ContainerTokenIdentifier, launch: LaunchContext) -> LaunchContext:
        """Returns the launch context to carry out. A master's has another token in it."""
        if token.containerType != common.APPLICATION_MASTER:
            return launch
        try:
            credentials = Credentials.read(launch.tokens)
        except BadCredentials as error:
            log.warning("%s: its calls are not passed on: %s", convert.container_id(token.containerId), error)
            return launch
        held = [(alias, t) for alias, t in credentials.tokens.items() if t.kind == AM_RM_TOKEN]
        if not held:
            return launch
        alias, real = held[0]
        state = server.ProxiedMaster(
            attempt_id=token.containerId.app_attempt_id,
            user=token.appSubmitter,
            job_arrival_ms=_submitted_ms(launch),
            master=token.containerId,
            token=real.to_pb(),
        )
        session = self._open(state)
        self._tasks.start(self._store.save(session.attempt_id, state.SerializeToString()))
        local = self._tokens.mint(session.attempt_id)
        session.shown_key_id = self._keys.newest.key_id
        environment = {**launch.environment, ADDRESS_VARIABLE: self.address}
        return replace(launch, tokens=credentials.with_token(alias, local).write(), environment=environment)

    def container_done(self, container_id: ContainerId) -> None:
        """Notes that a container has ended. If it was a master's, its session is closed."""
        session = self._sessions.get(container_id.attempt_id)
        if session is not None and session.master == container_id:
            self._close(session)

    def application_ended(self, application_id: ApplicationId) -> None:
        for session in [s for s in self._sessions.values() if s.attempt_id.application_id == application_id]:
            self._close(session)

    def _open(self, state: server.ProxiedMaster) -> MasterSession:
        settings = self._settings
        session = MasterSession(
            state,
            rm_address=settings.rm_address,
            limits=settings.limits if settings.distributed else None,
            mint=self._mint,
            estimates=self._estimates,
            save=self._store.save,
        )
        session.heard_at = self._now()
        self._sessions[session.attempt_id] = session
        return session

    @property
    def limits(self) -> DistributedLimits:
        return self._settings.limits

    def change(self, limits: DistributedLimits) -> None:
        """Place by these from now on, for masters that are here as well."""
        self._settings = replace(self._settings, limits=limits)
        for session in self._sessions.values():
            session.change(limits)

    def _close(self, session: MasterSession) -> None:
        del self._sessions[session.attempt_id]
        self._tokens.forget(session.attempt_id)
        self._tasks.start(session.close())
        self._tasks.start(self._store.forget(session.attempt_id))

    # ---- calls

    def _session(self, caller: Caller) -> MasterSession:
        if caller.token_identifier is None:
            raise InvalidToken("an AMRMToken is needed")
        attempt_id = self._tokens.attempt(caller.token_identifier)
        session = self._sessions.get(attempt_id)
        if session is None:
            raise InvalidToken(f"{attempt_id} does not run on this node")
        session.heard_at = self._now()
        return session

    async def _register(
        self, request: pb.RegisterApplicationMasterRequest, caller: Caller
    ) -> pb.RegisterApplicationMasterResponse:
        return await self._kept(self._session(caller).register(request))

    async def _allocate(self, request: pb.AllocateRequest, caller: Caller) -> pb.AllocateResponse:
        session = self._session(caller)
        response = await self._kept(session.allocate(request))
        newest = self._keys.newest.key_id
        if session.shown_key_id != newest:
            session.shown_key_id = newest
            response.am_rm_token.CopyFrom(self._tokens.mint(session.attempt_id).to_pb())
        return response

    async def _finish(
        self, request: pb.FinishApplicationMasterRequest, caller: Caller
    ) -> pb.FinishApplicationMasterResponse:
        return await self._session(caller).finish(request)

    @staticmethod
    async def _kept(answer: Coroutine[Any, Any, T]) -> T:
        try:
            return await answer
        except OSError as error:
            raise Retriable(f"this node's proxy cannot write what it has to keep: {error}") from error

    # ---- keys

    def _roll(self) -> None:
        now = self._now()
        if self._keys.roll(now):
            self._tasks.start(self._save_keys())
        for session in list(self._sessions.values()):
            if now - session.heard_at > self._settings.master_expiry_s:
                log.info("%s: silent for too long, its calls are passed on no longer", session.attempt_id)
                self._close(session)
        self._roller = asyncio.get_running_loop().call_later(_ROLL_S, self._roll)

    async def _save_keys(self) -> None:
        state = server.ProxyKeys(current=self._keys.current.to_pb())
        if self._keys.next is not None:
            state.next.CopyFrom(self._keys.next.to_pb())
        await self._store.save_keys(state)


def _submitted_ms(launch: LaunchContext) -> int:
    """When the application was submitted, as the ResourceManager tells every master; 0: not known."""
    text = launch.environment.get(_SUBMIT_TIME_VARIABLE, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
