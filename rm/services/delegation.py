"""ApplicationClientProtocol's delegation tokens: made, renewed and cancelled when the state store knows.

Anybody may have one for himself, as Hadoop's ResourceManager allows where security is off: a token says no more than
its owner could say without.
"""

from rm.security.access import Access
from rm.store.delegation import DelegationStore
from rm.store.state_store import StateStoreError
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import RemoteIOError
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Protocol
from yaqd.security import Token
from yaqd.security.delegation import DelegationToken, DelegationTokens


class DelegationService:
    def __init__(self, tokens: DelegationTokens, store: DelegationStore, access: Access) -> None:
        self._tokens = tokens
        self._store = store
        self._access = access

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.getDelegationToken, self.get_delegation_token)
        server.register(Protocol.renewDelegationToken, self.renew_delegation_token)
        server.register(Protocol.cancelDelegationToken, self.cancel_delegation_token)

    async def get_delegation_token(
        self, request: pb.GetDelegationTokenRequest, caller: Caller
    ) -> pb.GetDelegationTokenResponse:
        token, record = self._tokens.mint(caller.user, request.renewer, caller.real_user or "")
        await self._write(record)
        return pb.GetDelegationTokenResponse(token=token.to_pb())

    async def renew_delegation_token(
        self, request: pb.RenewDelegationTokenRequest, caller: Caller
    ) -> pb.RenewDelegationTokenResponse:
        # The daemon's own user renews anybody's.
        renewer = None if caller.user == self._access.daemon_user else caller.user
        record = self._tokens.renew(Token.from_pb(request.token), renewer)
        await self._write(record)
        return pb.RenewDelegationTokenResponse(newExpiryTime=record.good_until_ms)

    async def cancel_delegation_token(
        self, request: pb.CancelDelegationTokenRequest, caller: Caller
    ) -> pb.CancelDelegationTokenResponse:
        record = self._tokens.cancel(Token.from_pb(request.token), caller.user)
        try:
            await self._store.forget_token(record)
        except StateStoreError as error:
            raise RemoteIOError(f"the token may be good again after a restart: {error}") from None
        return pb.CancelDelegationTokenResponse()

    async def _write(self, record: DelegationToken) -> None:
        try:
            await self._store.put_token(record)
        except StateStoreError as error:
            raise RemoteIOError(f"the delegation token was not stored: {error}") from None
