"""ContainerManagementProtocol against liars: wrong tokens, other applications' containers, impossible requests."""

import time
from typing import Any

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import (
    CLUSTER_TIMESTAMP,
    USER,
    FakeResourceManager,
    Master,
    attempt,
    container_id,
    launch_context,
    start,
)
from yaqd.ipc import RemoteException, RpcClient, RpcError
from yaqd.ipc.errors import InvalidToken, YarnError
from yaqd.model import ContainerSubState, ExitStatus, NodeId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text

ONE = container_id(1)


async def refused(master: Master, token: common.Token) -> common.SerializedException:
    response = await start(master, token)
    assert not response.succeeded_requests and len(response.failed_requests) == 1
    failure: common.SerializedException = response.failed_requests[0].exception
    return failure


async def test_simple_callers_are_not_let_in(node: NodeManager) -> None:
    client = RpcClient("127.0.0.1", node.node_id.port, user="root", timeout_s=5)
    with pytest.raises((RemoteException, RpcError)):
        await client.call(ContainerManagementProtocol.stopContainers, service.StopContainersRequest())
    await client.close()


@pytest.mark.parametrize("wrong", ["password", "node", "key"])
async def test_wrong_nm_tokens(rm: FakeResourceManager, node: NodeManager, wrong: str) -> None:
    node_id = NodeId("127.0.0.1", 1) if wrong == "node" else node.node_id
    token = rm.nm_tokens.mint(attempt(), node_id, USER)
    if wrong == "password":
        token = Token(token.identifier, b"x" * 20, token.kind, token.service)
    if wrong == "key":
        token = FakeResourceManager().nm_tokens.mint(attempt(), node_id, USER)
    client = RpcClient("127.0.0.1", node.node_id.port, user="x", token=token, timeout_s=5)
    with pytest.raises((RemoteException, RpcError)):
        await client.call(ContainerManagementProtocol.startContainers, service.StartContainersRequest())
    await client.close()


async def test_forged_container_token_fails_the_call(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    token = rm.container_token(ONE, node.node_id)
    token.password = b"x" * 20
    with pytest.raises(InvalidToken):
        await start(master, token)
    token = rm.container_token(ONE, node.node_id)
    token.identifier = token.identifier.replace(USER.encode(), b"mallo")
    with pytest.raises(InvalidToken):
        await start(master, token)
    token = rm.container_token(ONE, node.node_id)
    token.kind = "NMToken"
    with pytest.raises(InvalidToken):
        await start(master, token)
    request = service.StartContainersRequest()
    for item in (rm.container_token(ONE, node.node_id), token):
        request.start_container_request.add().container_token.CopyFrom(item)
    with pytest.raises(InvalidToken):  # not even those before the forged one are started
        await master.client.call(ContainerManagementProtocol.startContainers, request)
    assert not node.runtime.containers


@pytest.mark.parametrize(
    ("fields", "name", "words"),
    [
        ({"expiryTimeStamp": int(time.time() * 1000) - 1000}, "YarnException", "This token is expired. current time"),
        (
            {"rmIdentifier": CLUSTER_TIMESTAMP - 1},
            "InvalidContainerException",
            "rejected as it is allocated by a previous RM",
        ),
        ({"appSubmitter": "../../etc"}, "InvalidContainerException", "cannot be a folder's name"),
        ({"appSubmitter": ""}, "InvalidContainerException", "cannot be a folder's name"),
    ],
)
async def test_genuine_tokens_for_something_else(
    rm: FakeResourceManager, node: NodeManager, master: Master, fields: dict[str, Any], name: str, words: str
) -> None:
    failure = await refused(master, rm.container_token(ONE, node.node_id, **fields))
    assert words in failure.message
    assert failure.class_name == f"org.apache.hadoop.yarn.exceptions.{name}"


async def test_a_container_token_for_another_node_fails_the_call(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    with pytest.raises(InvalidToken, match="identifier is not valid for current Node manager"):
        await start(master, rm.container_token(ONE, NodeId("127.0.0.1", 1)))


async def test_another_applications_container(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    theirs = container_id(1, app=2)
    failure = await refused(master, rm.container_token(theirs, node.node_id))
    assert "was used for starting container with container token issued for application attempt" in failure.message
    other = Master(rm, node, app=2)
    await other.run(theirs, launch_context("sleep 1000"))
    response = await master.stop(theirs)
    words = f"{attempt()} attempted to stop non-application container : {theirs}"
    assert response.failed_requests[0].exception.message == words
    words = f"{attempt()} attempted to get status for non-application container : {theirs}"
    assert (await master.statuses(theirs)).failed_requests[0].exception.message == words
    order = service.SignalContainerRequest(
        container_id=convert.container_id_pb(theirs), command=common.FORCEFUL_SHUTDOWN
    )
    with pytest.raises(YarnError, match="non-application container"):
        await master.client.call(ContainerManagementProtocol.signalToContainer, order)
    update = service.ContainerUpdateRequest(
        update_container_token=[rm.container_token(theirs, node.node_id, resource=Resource(256, 1), version=1)]
    )
    updated = await master.client.call(ContainerManagementProtocol.updateContainer, update)
    assert not updated.succeeded_requests and len(updated.failed_requests) == 1
    assert not node.runtime.containers[theirs].is_done
    await other.client.close()


async def test_a_container_starts_once(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await master.run(ONE, launch_context("true"))
    failure = await refused(master, rm.container_token(ONE, node.node_id))
    assert failure.message == f"Container {ONE} already is running on this node!!"
    await rm.end_of(ONE)
    await rm.until(lambda: ONE not in node.runtime.containers)
    await refused(master, rm.container_token(ONE, node.node_id))  # the token is not good for a second life


async def test_stop_and_status_of_what_is_gone_or_never_was(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(ONE, launch_context("true"))
    await rm.end_of(ONE)
    await rm.until(lambda: ONE not in node.runtime.containers)
    response = await master.stop(ONE, container_id(9))
    assert [convert.container_id(c) for c in response.succeeded_requests] == [ONE]
    message = response.failed_requests[0].exception.message
    assert message == f"Container {container_id(9)} is not handled by this NodeManager"
    status = await master.statuses(ONE)
    assert "was recently stopped" in status.failed_requests[0].exception.message


async def test_services_metadata_is_in_every_answer(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    response = await master.start(ONE, launch_context("true"))
    (entry,) = response.services_meta_data
    assert (entry.key, int.from_bytes(entry.value, "big")) == ("mapreduce_shuffle", node.shuffle.port)


@pytest.mark.parametrize("kind", [JOB_TOKEN, "tez.job", ""])
async def test_service_data_reaches_the_shuffle_or_fails_the_container(
    kind: str, rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    job = f"job_{CLUSTER_TIMESTAMP}_0001"
    token = Token(encode_text(job), b"key", kind, job).to_writable()
    await master.run(ONE, launch_context("true", service_data={"mapreduce_shuffle": token}))
    known = node.shuffle_jobs.get(job)
    assert known is not None and known.password == b"key" and known.user == USER
    response = await master.start(container_id(2), launch_context("true", service_data={"spark_shuffle": b""}))
    assert response.failed_requests[0].exception.class_name.endswith("InvalidAuxServiceException")
    response = await master.start(container_id(3), launch_context("true", service_data={"mapreduce_shuffle": b"\xff"}))
    assert "not a token" in response.failed_requests[0].exception.message
    no_password = Token(encode_text(job), b"", kind, job).to_writable()
    response = await master.start(
        container_id(4), launch_context("true", service_data={"mapreduce_shuffle": no_password})
    )
    assert "without a password" in response.failed_requests[0].exception.message


async def test_update_needs_a_newer_version(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await master.run(ONE, launch_context("sleep 1000"))
    for version, ok in ((0, False), (1, True)):
        token = rm.container_token(ONE, node.node_id, resource=Resource(1024, 2), version=version)
        request = service.ContainerUpdateRequest(update_container_token=[token])
        response = await master.client.call(ContainerManagementProtocol.updateContainer, request)
        assert bool(response.succeeded_requests) is ok and bool(response.failed_requests) is not ok
    assert node.runtime.containers[ONE].grant.resource == Resource(1024, 2)
    assert node.runtime.queue_statistics().used == Resource(1024, 2)
    await rm.until(lambda: any(c.version == 1 for h in rm.heartbeats for c in h.node_status.increased_containers))


async def test_signal_reaches_the_group(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    command = "trap 'echo dumped; exit 3' QUIT; echo ready; sleep 1000 & wait"
    await master.run(ONE, launch_context(f"( {command} ) 1><LOG_DIR>/stdout"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    process = node.runtime.containers[ONE].process
    assert process is not None
    request = service.SignalContainerRequest(
        container_id=convert.container_id_pb(ONE), command=common.FORCEFUL_SHUTDOWN
    )
    await master.client.call(ContainerManagementProtocol.signalToContainer, request)
    assert (await rm.end_of(ONE)).exit_status == 137


async def test_queued_containers_wait_and_can_be_stopped(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    whole = node.settings.resource
    await master.run(ONE, launch_context("sleep 1000"), resource=whole)
    two, three = container_id(2), container_id(3)
    await master.run(two, launch_context("true"), resource=whole)
    await master.run(three, launch_context("true"), resource=whole)
    await rm.until(lambda: rm.sub_state(three) == ContainerSubState.SCHEDULED)
    status = (await master.statuses(two)).status[0]
    assert (status.state, status.exit_status) == (common.C_RUNNING, ExitStatus.INVALID)
    await master.stop(two)
    assert (await rm.end_of(two)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert not rm.completed.get(three)
    await master.stop(ONE)
    assert (await rm.end_of(three)).exit_status == 0


async def test_tokens_file_and_environment(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    context = launch_context(
        "test $(stat -c %a $HADOOP_TOKEN_FILE_LOCATION) = 600 && test $(head -c 4 container_tokens) = HDTS "
        "&& test -d tmp && test $PWD = $(pwd) && test -d $LOCAL_DIRS && test $USER = alice && test -n $NM_HTTP_PORT "
        "&& test -n $NM_AUX_SERVICE_mapreduce_shuffle && test $JVM_PID = $(cut -d' ' -f4 /proc/self/stat)"
    )
    await master.run(ONE, context)
    end = await rm.end_of(ONE)
    assert end.exit_status == 0, end.diagnostics
