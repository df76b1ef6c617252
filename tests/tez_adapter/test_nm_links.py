"""What a node's answer to a start means to the job: no, not now, or no answer at all."""

import asyncio
import os

import pytest

from tez_adapter.core.events import LaunchFailed
from tez_adapter.master.nm_links import NodeLinks
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import NMNotYetReady, RemoteException, YarnError
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ContainerManagementProtocol
from yaqd.security import NMTokenSecrets, RollingKeys

ATTEMPT = ApplicationAttemptId(ApplicationId(1, 1), 1)
ONE = ContainerId.make(ATTEMPT, 1)


class Node:
    """Refuses all: each container by itself, or the call as a whole."""

    def __init__(self, error: RemoteException, *, whole: bool) -> None:
        self._error, self._whole = error, whole
        self.tokens = NMTokenSecrets(RollingKeys(now=0.0, random=os.urandom))
        self.rpc = RpcServer(name="node", host="127.0.0.1", token_secrets=self.tokens, allow_simple=False)
        self.rpc.register(ContainerManagementProtocol.startContainers, self._start)

    def _start(self, request: pb.StartContainersRequest, _: Caller) -> pb.StartContainersResponse:
        if self._whole:
            raise self._error
        response = pb.StartContainersResponse()
        failed = response.failed_requests.add()
        convert.put_container_id(failed.container_id, ONE)
        failed.exception.class_name, failed.exception.message = self._error.class_name, self._error.message
        return response


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("error", "not_now"), [(NMNotYetReady("too many containers wait"), True), (YarnError("no such service"), False)]
)
async def test_a_node_that_takes_nothing_at_present_is_told_from_one_that_refuses(
    error: RemoteException, not_now: bool, whole: bool
) -> None:
    node = Node(error, whole=whole)
    await node.rpc.start()
    failed: asyncio.Future[LaunchFailed] = asyncio.get_running_loop().create_future()
    links = NodeLinks("u", on_failure=failed.set_result, on_started=print, on_waiting=print)
    at = NodeId("127.0.0.1", node.rpc.port)
    token = node.tokens.mint(ATTEMPT, at, "u")
    links.token(at, token)
    links.start(at, ONE, token.to_pb(), common.ContainerLaunchContext())
    async with asyncio.timeout(10):
        heard = await failed
    assert (heard.container, heard.refused, heard.not_now) == (str(ONE), True, not_now)
    assert error.message in heard.reason
    await links.close()
    await node.rpc.stop()
