"""What the compatibility page says of refused methods is what clients meet at a running ResourceManager."""

from typing import Any

import pytest
from google.protobuf.message import Message

from tests.rm.rm_harness import LOOPBACK, Harness, cluster
from yaqd.cli.compatibility.methods import MethodState, ProtocolState, State, hadoop_protocols
from yaqd.ipc import RemoteException, RpcClient
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol, Method, ResourceManagerAdministrationProtocol

TABLES: tuple[Any, ...] = (ApplicationClientProtocol, ResourceManagerAdministrationProtocol)


def _method(protocol: ProtocolState, name: str) -> Method[Any, Any]:
    """From our table, or as a client would make it whose table has more."""
    (table,) = (table for table in TABLES if protocol.name == table.NAME)
    made = Method(protocol.name, name, pb.GetNewApplicationRequest, pb.GetNewApplicationResponse)
    return getattr(table, name, made)


def _filled(message: Message) -> Message:
    """With something in every required field, without which it is no message."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.message_type is not None:
            _filled(getattr(message, field.name)).SetInParent()
        else:
            setattr(message, field.name, field.default_value)
    return message


async def _call(rm: Harness, protocol: ProtocolState, state: MethodState) -> str:
    """The Java class of the exception, empty when there is none."""
    is_client = protocol.name == ApplicationClientProtocol.NAME
    server = rm.manager.servers.client if is_client else rm.manager.servers.admin
    client = RpcClient(LOOPBACK, server.port, user=rm.manager.settings.user)
    method = _method(protocol, state.name)
    try:
        await client.call(method, _filled(method.request()))
    except RemoteException as error:
        return error.class_name
    finally:
        await client.close()
    return ""


@pytest.mark.parametrize("kind", [State.REFUSED, State.EMPTY, State.UNKNOWN])
async def test_page_tells_the_truth(kind: State) -> None:
    names = [table.NAME for table in TABLES]
    told = [p for p in hadoop_protocols() if p.name in names]
    async with cluster() as rm:
        for protocol in told:
            for state in protocol.methods:
                if state.state is kind:
                    assert await _call(rm, protocol, state) == state.exception, state.name
