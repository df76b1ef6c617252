"""Which handler a call belongs to: by declaring protocol and method name, as the request's own header gives them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from yaqd.ipc import errors
from yaqd.ipc.caller import Caller
from yaqd.ipc.server_connection import Code
from yaqd.ipc.wire import parse
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto.protocols import Method

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)
Handler = Callable[[Req, Caller], Resp | Awaitable[Resp]]

#: distinct encoded RequestHeaders remembered; there are as many as methods unless a peer plays games
_REMEMBERED_MAX: Final = 1024

#: the error code that goes with what `find` raises
ERROR_CODES: Final[dict[type[errors.RemoteException], Code.RpcErrorCode]] = {
    errors.NoSuchProtocol: Code.ERROR_NO_SUCH_PROTOCOL,
    errors.NoSuchMethod: Code.ERROR_NO_SUCH_METHOD,
    errors.VersionMismatch: Code.ERROR_RPC_VERSION_MISMATCH,
    errors.ServerError: Code.ERROR_RPC_SERVER,
}


@dataclass(frozen=True, slots=True)
class Route:
    """Where calls with one RequestHeader go."""

    method: Method[Any, Any]
    handler: Callable[[Any, Caller], Any]


class Routes:
    """The methods a server offers. Encoded headers are remembered, so that a call costs one dictionary look-up."""

    def __init__(self) -> None:
        self._methods: dict[str, dict[str, Route]] = {}
        self._by_header: dict[bytes, Route] = {}

    def add(self, method: Method[Req, Resp], handler: Handler[Req, Resp]) -> None:
        methods = self._methods.setdefault(method.protocol, {})
        if method.name in methods:
            raise ValueError(f"{method.protocol}.{method.name} is registered already")
        methods[method.name] = Route(method, handler)

    def all(self) -> list[Route]:
        """List the routes in the order in which they were added, protocol by protocol."""
        return [route for methods in self._methods.values() for route in methods.values()]

    def find(self, header: bytes) -> Route:
        """Return where an encoded RequestHeader leads.

        Raises NoSuchProtocol, NoSuchMethod, VersionMismatch, ServerError.
        """
        route = self._by_header.get(header)
        if route is None:
            route = self._find(header)
            if len(self._by_header) < _REMEMBERED_MAX:
                self._by_header[header] = route
        return route

    def _find(self, header: bytes) -> Route:
        try:
            request = parse(rpc.RequestHeader, header)
        except errors.ProtocolViolation as violation:
            raise errors.ServerError(str(violation)) from None
        protocol, name = request.declaringClassProtocolName[:200], request.methodName[:200]
        methods = self._methods.get(protocol)
        if methods is None:
            raise errors.NoSuchProtocol(f"Unknown protocol: {protocol}")
        route = methods.get(name)
        if route is None:
            raise errors.NoSuchMethod(f"Unknown method {name} called on {protocol} protocol.")
        if request.clientProtocolVersion != route.method.version:
            raise errors.VersionMismatch(
                f"Protocol {protocol} version mismatch. (client = {request.clientProtocolVersion}, "
                f"server = {route.method.version})"
            )
        return route
