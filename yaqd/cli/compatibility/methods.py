"""What each server registers, method by method, beside what Hadoop's own servers have. Nothing is started for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from yaqd.ipc import RpcServer
from yaqd.ipc.absent import EmptyAnswer, Refusal
from yaqd.ipc.errors import NoSuchMethod, NoSuchProtocol
from yaqd.ipc.routes import Route
from yaqd.proto.hadoop_methods import HADOOP_METHODS


class State(Enum):
    SERVED = "served"
    #: answered with an empty message, as when the feature is off
    EMPTY = "answers empty"
    #: known and refused with an exception that clients expect
    REFUSED = "refused"
    #: never heard of: the RPC layer's own refusal
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class MethodState:
    name: str
    state: State
    #: Java class of the exception, where there is one
    exception: str = ""
    #: what the exception says, or why there is none
    text: str = ""


@dataclass(frozen=True, slots=True)
class ProtocolState:
    name: str
    #: which of our daemons has it, on which address
    server: str
    methods: tuple[MethodState, ...]

    def count(self, state: State) -> int:
        return sum(method.state is state for method in self.methods)


#: where Hadoop serves what nothing here does
_ELSEWHERE: Final = {
    "org.apache.hadoop.ha.HAServiceProtocol": "ResourceManager administration",
    "org.apache.hadoop.yarn.server.api.DistributedSchedulingAMProtocolPB": (
        "ResourceManager application master service"
    ),
    "org.apache.hadoop.yarn.server.nodemanager.api.LocalizationProtocolPB": "NodeManager localizer (8040)",
    "org.apache.hadoop.yarn.server.api.CollectorNodemanagerProtocolPB": "NodeManager timeline collector (8048)",
}


def hadoop_protocols() -> list[ProtocolState]:
    """List the protocols that Hadoop has, in its order; then the others on the same servers."""
    found: dict[str, tuple[str, dict[str, Route]]] = {}
    for server in (*_resource_manager(), _node_manager()):
        for route in server.routes.all():
            found.setdefault(route.method.protocol, (server.name, {}))[1][route.method.name] = route
    states = []
    for protocol in (*HADOOP_METHODS, *(name for name in found if name not in HADOOP_METHODS)):
        server_name, routes = found.get(protocol, (_ELSEWHERE.get(protocol, ""), {}))
        missing = NoSuchMethod.JAVA_CLASS if routes else NoSuchProtocol.JAVA_CLASS
        names = dict.fromkeys((*HADOOP_METHODS.get(protocol, ()), *routes))
        methods = tuple(_state(name, routes.get(name), missing) for name in names)
        states.append(ProtocolState(protocol, server_name, methods))
    return states


def own_protocols() -> list[ProtocolState]:
    """List the job manager's protocols, which only our own tasks and commands speak."""
    from tez_adapter.master.umbilical import Umbilical

    server = RpcServer(name="job manager", host="127.0.0.1")
    nobody: Any = None
    Umbilical(server, nobody)
    by_protocol: dict[str, list[MethodState]] = {}
    for route in server.routes.all():
        by_protocol.setdefault(route.method.protocol, []).append(_state(route.method.name, route, ""))
    return [ProtocolState(name, server.name, tuple(methods)) for name, methods in by_protocol.items()]


def _state(name: str, route: Route | None, missing: str) -> MethodState:
    match route:
        case None:
            return MethodState(name, State.UNKNOWN, missing)
        case Route(handler=Refusal() as refusal):
            return MethodState(name, State.REFUSED, refusal.kind.JAVA_CLASS, refusal.text)
        case Route(handler=EmptyAnswer()):
            return MethodState(name, State.EMPTY)
    return MethodState(name, State.SERVED)


def _resource_manager() -> Iterable[RpcServer]:
    """A real one with the shipped configuration and distributed scheduling on, in memory, that listens nowhere."""
    from rm.daemon import ResourceManager
    from yaqd.config import Configuration

    settings = {
        "yaq.rm.state-store.path": "memory",
        "hadoop.tmp.dir": "/nonexistent",
        "yarn.nodemanager.distributed-scheduling.enabled": "true",
        "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    }
    manager = ResourceManager(Configuration.load(overrides=settings, environ={}))
    manager.store.close()
    return manager.servers.all()


def _node_manager() -> RpcServer:
    """Its services need a running node for everything but saying what they would serve."""
    from nm.containers.replacement_service import ReplacementService
    from nm.containers.service import ContainerService

    server = RpcServer(name="NodeManager container service", host="127.0.0.1")
    object.__new__(ContainerService).register(server)
    object.__new__(ReplacementService).register(server)
    return server
