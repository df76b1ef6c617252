"""Container updates: versions, reasons for refusal, room, tokens, confirmation and taking back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ManualClock, ask, cluster
from yaqd.model import Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol, ResourceTracker

INCREASE, DECREASE = pb.INCREASE_RESOURCE, pb.DECREASE_RESOURCE
PROMOTE, DEMOTE = pb.PROMOTE_EXECUTION_TYPE, pb.DEMOTE_EXECUTION_TYPE
GB = 1024


class Life:
    """A node, a running master and one container of its."""

    def __init__(self, rm: Harness, node: FakeNode, master: FakeMaster, container: common.Container) -> None:
        self.rm, self.node, self.master, self.container = rm, node, master, container

    async def update(
        self, kind: "pb.ContainerUpdateType", memory_mb: int = 0, *, version: int = 0, **other: Any
    ) -> Any:
        """The answer to a heartbeat with this request."""
        request = pb.AllocateRequest(response_id=self.master.response_id)
        wanted = request.update_requests.add(container_version=version, update_type=kind)
        wanted.container_id.CopyFrom(other.get("container_id", self.container.id))
        if memory_mb:
            wanted.capability.memory, wanted.capability.virtual_cores = memory_mb, 1
        for _ in range(other.get("repeated", 0)):
            request.update_requests.append(wanted)
        response = await self.master.rpc.call(ApplicationMasterProtocol.allocate, request)
        self.master.response_id = response.response_id
        return response

    async def confirm(self, memory_mb: int) -> server.NodeHeartbeatResponse:
        """The node says that the container has grown."""
        request = self.node.heartbeat()
        grown = request.node_status.increased_containers.add(id=self.container.id)
        grown.resource.memory, grown.resource.virtual_cores = memory_mb, 1
        response = await self.node.tracker.call(ResourceTracker.nodeHeartbeat, request)
        self.node.response_id = response.response_id
        return response

    @property
    def used_mb(self) -> int:
        return self.rm.manager.scheduler.view.root.used.memory_mb


@asynccontextmanager
async def life(overrides: dict[str, str] | None = None, clock: ManualClock | None = None) -> AsyncIterator[Life]:
    settings = {"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true", **(overrides or {})}
    async with cluster(settings, clock=clock) as rm:
        node = await rm.node(memory_mb=4 * GB)
        _, master = await rm.running(node)
        (container,) = (await master.allocate(ask(1))).allocated_containers
        node.run(convert.container_id(container.id))
        await node.beat()
        yield Life(rm, node, master, container)


def granted(response: pb.AllocateResponse) -> tuple[int, common.Container, server.ContainerTokenIdentifier]:
    (update,) = response.updated_containers
    assert not response.update_errors
    token = server.ContainerTokenIdentifier.FromString(update.container.container_token.identifier)
    assert (token.version, token.executionType) == (update.container.version, update.container.execution_type)
    assert convert.resource(token.resource) == convert.resource(update.container.resource)
    return int(update.update_type), update.container, token


async def test_increase_is_charged_and_confirmed() -> None:
    clock = ManualClock()
    async with life(clock=clock) as it:
        kind, container, _ = granted(await it.update(INCREASE, 2 * GB))
        assert (kind, container.version, container.resource.memory) == (INCREASE, 1, 2 * GB)
        assert it.used_mb == 3 * GB and (await it.master.allocate()).limit.memory == GB
        assert not (await it.node.beat()).containers_to_update, "the master takes it there"
        await it.confirm(2 * GB)
        for _ in range(2):
            clock.seconds += 400
            await it.node.beat()
            await it.master.allocate()
        it.rm.manager.updates.check_expiry(clock.now())
        assert it.used_mb == 3 * GB and not (await it.master.allocate()).updated_containers


async def test_an_increase_that_nobody_confirms_is_taken_back() -> None:
    clock = ManualClock()
    async with life(clock=clock) as it:
        granted(await it.update(INCREASE, 2 * GB))
        clock.seconds += 400
        await it.node.beat()
        clock.seconds += 201
        await it.rm.until(lambda: it.used_mb == 2 * GB)
        kind, container, _ = granted(await it.master.allocate())
        assert (kind, container.version, container.resource.memory) == (DECREASE, 2, GB)


async def test_increase_waits_for_room_before_new_containers_get_it() -> None:
    async with life() as it:
        (other,) = (await it.master.allocate(ask(1, memory_mb=2 * GB))).allocated_containers
        assert not (await it.update(INCREASE, 2 * GB)).updated_containers
        await it.master.allocate(ask(1, priority=2))
        response = await it.master.allocate(release=(other.id,))
        kind, container, _ = granted(response)
        assert (kind, container.resource.memory) == (INCREASE, 2 * GB)
        assert it.used_mb == 4 * GB, "the new container had what was left"


async def test_a_later_request_replaces_a_waiting_increase() -> None:
    async with life() as it:
        await it.master.allocate(ask(1, memory_mb=2 * GB))
        assert not (await it.update(INCREASE, 2 * GB)).updated_containers
        kind, container, _ = granted(await it.update(INCREASE, GB))
        assert (kind, container.resource.memory, it.used_mb) == (INCREASE, GB, 4 * GB)
        assert not it.rm.manager.scheduler.updates.waiting


async def test_decrease_goes_to_the_node_with_its_heartbeat() -> None:
    async with life({"yarn.scheduler.minimum-allocation-mb": "256"}) as it:
        kind, container, _ = granted(await it.update(DECREASE, 512))
        assert (kind, container.version, container.resource.memory, it.used_mb) == (DECREASE, 1, 512, GB + 512)
        orders = await it.node.beat()
        assert list(orders.containers_to_update) == [container] == list(orders.containers_to_decrease)
        assert not (await it.node.beat()).containers_to_update


async def test_everything_goes_to_the_node_where_so_configured() -> None:
    async with life({"yarn.resourcemanager.auto-update.containers": "true"}) as it:
        _, container, _ = granted(await it.update(INCREASE, 2 * GB))
        assert list((await it.node.beat()).containers_to_update) == [container]


async def test_demotion_gives_the_room_back_and_promotion_takes_it_again() -> None:
    async with life() as it:
        kind, container, _ = granted(await it.update(DEMOTE))
        assert (kind, container.execution_type, it.used_mb) == (DEMOTE, common.OPPORTUNISTIC, GB)
        kind, container, _ = granted(await it.update(PROMOTE, version=1))
        assert (kind, container.execution_type, container.version) == (PROMOTE, common.GUARANTEED, 2)
        assert it.used_mb == 2 * GB
        assert not (await it.update(PROMOTE, version=2)).updated_containers, "it is guaranteed already"


async def test_promotion_that_waits_cannot_be_asked_for_again() -> None:
    async with life() as it:
        granted(await it.update(DEMOTE))
        await it.master.allocate(ask(3, priority=2))
        assert not (await it.update(PROMOTE, version=1)).updated_containers
        (error,) = (await it.update(PROMOTE, version=1)).update_errors
        assert error.reason == "UPDATE_OUTSTANDING_ERROR"


@pytest.mark.parametrize(
    ("kind", "memory_mb", "fields", "reason", "version"),
    [
        (INCREASE, 2 * GB, {"version": 3}, "INCORRECT_CONTAINER_VERSION_ERROR", 0),
        (INCREASE, 2 * GB, {"container_id": common.ContainerId(id=99)}, "INVALID_CONTAINER_ID", -1),
        (INCREASE, 64 * GB, {}, "RESOURCE_OUTSIDE_ALLOWED_RANGE", 0),
        (INCREASE, -1, {}, "RESOURCE_OUTSIDE_ALLOWED_RANGE", 0),
        (DECREASE, 2 * GB, {}, "RESOURCE_OUTSIDE_ALLOWED_RANGE", 0),
    ],
)
async def test_refused(kind: Any, memory_mb: int, fields: dict[str, Any], reason: str, version: int) -> None:
    async with life() as it:
        response = await it.update(kind, memory_mb, **fields)
        (error,) = response.update_errors
        assert (error.reason, error.current_container_version) == (reason, version)
        assert error.update_request.update_type == kind and not response.updated_containers


async def test_one_update_per_container_and_heartbeat() -> None:
    async with life() as it:
        response = await it.update(INCREASE, 4 * GB, repeated=1)
        assert [e.reason for e in response.update_errors] == ["UPDATE_OUTSTANDING_ERROR"]


async def test_the_end_of_a_container_ends_its_update() -> None:
    async with life() as it:
        await it.master.allocate(ask(1, memory_mb=2 * GB))
        await it.update(INCREASE, 2 * GB)
        it.node.end(convert.container_id(it.container.id))
        await it.node.beat()
        response = await it.master.allocate()
        assert not it.rm.manager.scheduler.updates.waiting and not response.updated_containers
        (end,) = response.completed_container_statuses
        assert convert.resource(end.capability) == Resource(GB, 1)
