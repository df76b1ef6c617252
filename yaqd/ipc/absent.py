"""Methods that a server knows and has no use for: they answer as Hadoop's own server does when the feature is off.

They are objects and not functions, so that whoever describes a server can tell them from what it really serves.
"""

from typing import Any, Generic, NoReturn, TypeVar

from google.protobuf.message import Message

from yaqd.ipc.caller import Caller
from yaqd.ipc.errors import NamedRemoteException
from yaqd.proto.protocols import Method

Resp = TypeVar("Resp", bound=Message)


class Refusal:
    """Answers every call with one exception."""

    def __init__(self, kind: type[NamedRemoteException], text: str) -> None:
        self.kind = kind
        self.text = text

    def __call__(self, request: Message, caller: Caller) -> NoReturn:
        raise self.kind(self.text)


class EmptyAnswer(Generic[Resp]):
    """Answers every call with a message that says nothing: no labels, no attributes, done without doing anything."""

    def __init__(self, method: Method[Any, Resp]) -> None:
        self._response = method.response

    def __call__(self, request: Message, caller: Caller) -> Resp:
        return self._response()
