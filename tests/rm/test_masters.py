"""The conversation between a master and the ResourceManager."""

import pytest

from tests.rm.rm_harness import LOOPBACK, FakeMaster, ManualClock, ask, cluster
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import (
    AccessControl,
    ApplicationAttemptNotFound,
    ApplicationMasterNotRegistered,
    InvalidApplicationMasterRequest,
    InvalidLabelResourceRequest,
    InvalidResourceBlacklistRequest,
    InvalidResourceRequest,
    InvalidToken,
    RemoteException,
    YarnError,
)
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol
from yaqd.security import Token

NO_LABELS = "Exception: .* this ResourceManager has no node labels but request contains label expression$"


async def test_conversation_numbers() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id = await rm.submit()
        master = await rm.launched(app_id, node)
        with pytest.raises(ApplicationMasterNotRegistered):
            await master.allocate()
        with pytest.raises(ApplicationMasterNotRegistered):
            await master.finish()
        await master.register()
        with pytest.raises(InvalidApplicationMasterRequest):
            await master.register()
        first = await master.allocate(ask(1))
        assert (first.response_id, len(first.allocated_containers)) == (1, 1)
        master.response_id = 0
        again = await master.allocate(ask(5))
        assert again == first, "a lost answer is repeated unchanged, and its request not taken in twice"
        master.response_id = 7
        with pytest.raises(InvalidApplicationMasterRequest):
            await master.allocate()
        master.response_id = 1
        assert (await master.allocate()).response_id == 2


async def test_only_a_genuine_token_opens_the_scheduler_port() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id = await rm.submit()
        master = await rm.launched(app_id, node)
        token = master.rpc._token
        assert isinstance(token, Token)
        forged = FakeMaster(rm.manager, Token(token.identifier, b"x" * 20, token.kind, ""))
        rm.masters.append(forged)
        with pytest.raises(RemoteException):
            await forged.register()
        stranger = RpcClient(LOOPBACK, rm.manager.servers.masters.port, user="mallory")
        with pytest.raises((AccessControl, InvalidToken)):
            await stranger.call(
                ApplicationMasterProtocol.registerApplicationMaster, pb.RegisterApplicationMasterRequest()
            )
        await stranger.close()
        assert (await master.register()).queue == "root.default"


async def test_bad_asks_are_refused_and_change_nothing() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        negative = ask(1)
        negative.capability.memory = -5
        for bad in (ask(1, memory_mb=9000), ask(1, vcores=5), ask(-1), ask(2**31 - 1), negative):
            with pytest.raises(InvalidResourceRequest):
                await master.allocate(ask(3), bad)
        labelled = ask(1)
        labelled.node_label_expression = "gpu"
        with pytest.raises(InvalidLabelResourceRequest, match=NO_LABELS):
            await master.allocate(ask(3), labelled)
        request = pb.AllocateRequest(response_id=0)
        request.scheduling_requests.add()
        with pytest.raises(YarnError, match="placement constraints"):
            await master.rpc.call(ApplicationMasterProtocol.allocate, request)
        response = await master.allocate(progress=float("nan"))
        assert not response.allocated_containers
        response = await master.allocate(ask(1, memory_mb=1500))
        assert response.allocated_containers[0].resource.memory == 2048, "rounded up to a multiple of the minimum"


async def test_submissions_that_want_labelled_nodes_are_refused() -> None:
    async with cluster() as rm:
        with pytest.raises(InvalidLabelResourceRequest, match=NO_LABELS):
            await rm.submit(node_label_expression="gpu")
        context = await rm.submission()
        asked = context.am_container_resource_request.add()
        asked.CopyFrom(ask(1))
        asked.node_label_expression = "gpu"
        with pytest.raises(InvalidLabelResourceRequest, match=NO_LABELS):
            await rm.client.call(
                ApplicationClientProtocol.submitApplication,
                pb.SubmitApplicationRequest(application_submission_context=context),
            )
        assert not rm.manager.cluster.applications
        await rm.submit(node_label_expression="")


async def test_unmanaged_master_asks_for_the_label_of_its_submission() -> None:
    async with cluster() as rm:
        app_id = await rm.submit(node_label_expression="gpu", unmanaged_am=True)
        master = FakeMaster(rm.manager, Token.from_pb((await rm.report(app_id)).am_rm_token))
        rm.masters.append(master)
        await master.register()
        with pytest.raises(InvalidLabelResourceRequest, match=NO_LABELS):
            await master.allocate(ask(1))
        await master.allocate(ask(1, name="/default-rack"))


async def test_release_before_and_after_the_master_knows() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        given = await master.allocate(ask(2, priority=7, request_id=42))
        assert {(c.priority.priority, c.allocation_request_id) for c in given.allocated_containers} == {(7, 42)}
        held = given.allocated_containers[0].id
        response = await master.allocate(release=(held, held))
        ended = response.completed_container_statuses
        assert [(s.exit_status, s.diagnostics) for s in ended] == [(-100, "Container released by application")]
        assert response.limit.memory == 8192 - 2 * 1024
        orders = await node.beat()
        assert [convert.container_id(c) for c in orders.containers_to_cleanup] == [convert.container_id(held)]


async def test_nm_token_is_sent_once_per_node_and_key() -> None:
    clock = ManualClock()
    overrides = {
        "yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs": "3600",
        "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs": "7200",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "5000000",
        "yarn.am.liveness-monitor.expiry-interval-ms": "90000000",
    }
    async with cluster(overrides, clock=clock) as rm:
        node = await rm.node(16384)
        _, master = await rm.running(node)
        assert len((await master.allocate(ask(1))).nm_tokens) == 1
        assert not (await master.allocate(ask(1))).nm_tokens
        keys = rm.manager.tokens.nm_keys
        before = keys.current.key_id
        await node.beat()
        clock.seconds += 3601
        await rm.until(lambda: keys.next is not None)
        await node.beat()
        assert node.keys.current is not None and node.keys.current.key_id == keys.newest.key_id
        assert not (await master.allocate(ask(1))).nm_tokens, "the new key is shown, and not used yet"
        clock.seconds += 1801
        await rm.until(lambda: keys.current.key_id != before)
        await node.beat()
        assert len((await master.allocate(ask(1))).nm_tokens) == 1, "a new key, a new token"
        clock.seconds += 2000
        await rm.until(lambda: rm.manager.tokens.amrm_keys.next is not None)
        rolled = await master.allocate()
        assert rolled.HasField("am_rm_token")
        assert not (await master.allocate()).HasField("am_rm_token")
        renewed = FakeMaster(rm.manager, Token.from_pb(rolled.am_rm_token))
        renewed.response_id = master.response_id
        rm.masters.append(renewed)
        await renewed.allocate()


async def test_finish_is_answered_once_stored_and_ends_the_conversation() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        assert await master.finish(common.APP_FAILED)
        assert await master.finish(), "a client that did not hear may ask again"
        response = await master.allocate(ask(3))
        assert not response.allocated_containers
        report = await rm.report(app_id)
        assert report.final_application_status == common.APP_FAILED
        container_id = next(iter(node.started))
        node.end(container_id)
        await node.beat()
        with pytest.raises(ApplicationAttemptNotFound):
            await master.allocate()


async def test_updated_nodes_are_told_once() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        await master.allocate()
        second = await rm.node()
        assert [n.nodeId.port for n in (await master.allocate()).updated_nodes] == [second.id.port]
        await second.beat(is_healthy=False)
        changed = (await master.allocate()).updated_nodes
        assert [(n.node_state, n.node_update_type) for n in changed] == [(common.NS_UNHEALTHY, common.NODE_UNUSABLE)]
        assert not (await master.allocate()).updated_nodes


async def test_a_blacklist_is_bounded_and_one_that_is_refused_changes_nothing() -> None:
    async with cluster() as rm:
        app_id, master = await rm.running(await rm.node())
        view = rm.manager.scheduler.view.applications[app_id].attempt
        assert view is not None

        async def avoid(*names: str, instead_of: tuple[str, ...] = ()) -> None:
            request = pb.AllocateRequest(response_id=number)
            request.blacklist_request.blacklist_additions.extend(names)
            request.blacklist_request.blacklist_removals.extend(instead_of)
            await master.rpc.call(ApplicationMasterProtocol.allocate, request)

        number, many = 0, [f"host-{n}" for n in range(10_000)]
        await avoid(*many)
        for names in (("one-more",), ("*",), ("h" * 256,)):
            number = 1
            with pytest.raises(InvalidResourceBlacklistRequest, match="blacklist"):
                await avoid(*names, instead_of=() if names == ("one-more",) else tuple(many[:5]))
            assert view.blacklist == set(many)
        await avoid("other", *many[1:], instead_of=(many[0],))
        assert view.blacklist == {"other", *many[1:]}
