"""One connection to a ResourceManager with calls that are answered to a function: no futures, no tasks.

The driver has one core, and must be the less busy side: a future and a coroutine a call would cost as much as the call.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final, cast

from google.protobuf.message import Message

from yaqd.ipc.client_connection import ClientConnection
from yaqd.ipc.wire import CLIENT_ID_BYTES
from yaqd.proto.protocols import Method

#: what is done with the answer's bytes
Answered = Callable[[bytes], None]


class RpcLine(asyncio.Protocol):
    """A connection without a token. An error in an answer is raised in the event loop's handler, and kept."""

    def __init__(self, protocol: str, errors: list[BaseException]) -> None:
        """`errors` takes the first of what goes wrong, for whoever drives."""
        self._connection: Final = ClientConnection(
            user="yarn", protocol=protocol, client_id=os.urandom(CLIENT_ID_BYTES), random=os.urandom
        )
        self._errors: Final = errors
        self._answers: dict[int, Answered] = {}
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._connection.start())

    def call(self, method: Method[Any, Any], request: Message, answered: Answered) -> None:
        """Send a call now; `answered` is handed its answer. Nothing is sent once the connection is closed."""
        if self._transport is None:
            raise RuntimeError("not connected")
        if self._transport.is_closing():
            return
        call_id, encoded = self._connection.request(method, request)
        self._answers[call_id] = answered
        self._transport.write(encoded)

    def data_received(self, data: bytes) -> None:
        try:
            replies, _ = self._connection.receive(data)
            for reply in replies:
                if reply.error is not None:
                    raise reply.error
                self._answers.pop(reply.call_id)(reply.body)
        except Exception as error:
            self._errors.append(error)
            self.close()

    def close(self) -> None:
        """Close the connection; calls under way are never answered."""
        if self._transport is not None:
            self._transport.close()
