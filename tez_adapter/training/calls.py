"""Calls of a training job's processes to its job manager."""

from typing import TypeVar

from google.protobuf.message import Message

from yaqd.ipc import BlockingRpcClient, RemoteException
from yaqd.ipc.errors import IllegalArgument
from yaqd.mapreduce import JobError
from yaqd.proto.protocols import Method

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)


def call(client: BlockingRpcClient, method: Method[Q, A], request: Q) -> A:
    """Return the answer. Raises JobError with the job manager's words where it refuses what the program made."""
    try:
        return client.call(method, request, idempotent=True)
    except RemoteException as error:
        if error.class_name == IllegalArgument.JAVA_CLASS:
            raise JobError(error.message) from None
        raise
