"""One master's way to the ResourceManager, opened with the master's own token, which the master never has."""

from typing import TypeVar

from google.protobuf.message import Message

from yaqd.ipc import RetryPolicy, RpcClient, RpcError
from yaqd.ipc.errors import Retriable
from yaqd.model import ApplicationAttemptId
from yaqd.proto.protocols import Method
from yaqd.security import Token

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

#: together well below what a master waits for an answer
_TIMEOUT_S = 30.0
_RETRIES = RetryPolicy(attempts=6)


class ResourceManagerLink:
    def __init__(self, address: tuple[str, int], attempt_id: ApplicationAttemptId, token: Token) -> None:
        self._address = address
        self._user = str(attempt_id)
        self.token = token
        self._client = self._connect()

    def _connect(self) -> RpcClient:
        host, port = self._address
        return RpcClient(host, port, user=self._user, token=self.token, timeout_s=_TIMEOUT_S, connect_retries=_RETRIES)

    async def call(self, method: Method[Req, Resp], request: Req) -> Resp:
        """Raises RemoteException: the ResourceManager's own, or Retriable when it does not answer."""
        try:
            # numbered, or refused the second time: safe to send twice
            return await self._client.call(method, request, idempotent=True)
        except RpcError as error:
            raise Retriable(f"the ResourceManager does not answer this node's proxy: {error}") from error

    async def renew(self, token: Token) -> None:
        """Reconnects with the master's new token, after the ResourceManager's key has rolled."""
        self.token = token
        before, self._client = self._client, self._connect()
        await before.close()

    async def close(self) -> None:
        await self._client.close()
