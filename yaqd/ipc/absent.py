"""Methods that a server knows and has no use for: they answer as Hadoop's own server does when the feature is off.

They are objects and not functions, so that whoever describes a server can tell them from what it really serves.
"""

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from google.protobuf.message import Message

from yaqd.ipc.caller import Caller
from yaqd.ipc.errors import NamedRemoteException
from yaqd.proto.protocols import Method

Resp = TypeVar("Resp", bound=Message)
Check = Callable[[Caller], None]


class Refusal:
    """Answers every call with one exception, after `check`, which may raise another one for this caller."""

    def __init__(self, kind: type[NamedRemoteException], text: str, check: Check | None = None) -> None:
        self.kind = kind
        self.text = text
        self._check = check

    def checked(self, check: Check) -> "Refusal":
        return Refusal(self.kind, self.text, check)

    def __call__(self, request: Message, caller: Caller) -> NoReturn:
        if self._check is not None:
            self._check(caller)
        raise self.kind(self.text)


class EmptyAnswer(Generic[Resp]):
    """Answers every call with a message that says nothing: no labels, no attributes, done without doing anything."""

    def __init__(self, method: Method[Any, Resp], check: Check | None = None) -> None:
        self._method = method
        self._check = check

    def checked(self, check: Check) -> "EmptyAnswer[Resp]":
        return EmptyAnswer(self._method, check)

    def __call__(self, request: Message, caller: Caller) -> Resp:
        if self._check is not None:
            self._check(caller)
        return self._method.response()
