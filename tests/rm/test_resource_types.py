"""Further countable resources in the ResourceManager: asked for, granted, refused, counted, reported."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession

from rm.daemon import ResourceManager
from rm.settings.daemon import read_queues
from tests.rm.rm_harness import LOOPBACK, FakeNode, Harness, ManualClock, ask, cluster, configuration
from yaqd.config import ConfigError, Configuration
from yaqd.ipc.errors import InvalidResourceRequest
from yaqd.model import Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

GPU = "yarn.io/gpu"
TYPES = "yarn.resource-types"
CALCULATOR = "yarn.scheduler.capacity.resource-calculator"
SETTINGS = {
    TYPES: f"{GPU},disk",
    f"{TYPES}.{GPU}.maximum-allocation": "4",
    f"{TYPES}.disk.units": "Gi",
    f"{TYPES}.disk.minimum-allocation": "1",
    CALCULATOR: "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}
GB = 1 << 30


@asynccontextmanager
async def gpu_cluster(clock: ManualClock | None = None) -> AsyncIterator[tuple[Harness, FakeNode]]:
    """A node with 2 GPUs, 10 GiB of disk and something that nobody has defined."""
    async with cluster(SETTINGS, clock=clock) as rm:
        node = FakeNode(rm.manager, 8192, 8)
        for name, amount, unit in ((GPU, 2, ""), ("disk", 10, "Gi"), ("unheard-of", 7, "")):
            node.size.resource_value_map.add(key=name, value=amount, units=unit, type=common.COUNTABLE)
        await node.server.start()
        rm.nodes.append(node)
        await node.register()
        yield rm, node


def gpu_ask(count: int, gpus: int) -> common.ResourceRequest:
    request = ask(count)
    request.capability.resource_value_map.add(key=GPU, value=gpus, units="")
    return request


async def test_granted_as_far_as_there_are_any_and_counted() -> None:
    clock = ManualClock()
    async with gpu_cluster(clock) as (rm, node):
        app_id, master = await rm.running(node)
        response = await master.allocate(gpu_ask(3, 1))
        granted = [convert.resource(c.resource) for c in response.allocated_containers]
        # each one also has the least amount of disk
        assert granted == [Resource(1024, 1, {GPU: 1, "disk": GB})] * 2
        token = server.ContainerTokenIdentifier.FromString(response.allocated_containers[0].container_token.identifier)
        assert convert.resource(token.resource) == granted[0]
        # the master has its GiB of disk too
        assert convert.resource(response.limit) == Resource(8192 - 3 * 1024, 5, {"disk": 7 * GB})
        assert len((await master.allocate(gpu_ask(1, 0))).allocated_containers) == 1, "others go on without"
        used = (await rm.report(app_id)).app_resource_Usage
        assert convert.resource(used.used_resources).extras[GPU] == 2
        clock.seconds += 10
        for container in response.allocated_containers:
            await master.allocate(release=(container.id,))
        totals = {e.key: e.value for e in (await rm.report(app_id)).app_resource_Usage.application_resource_usage_map}
        # two that ended, the master and the one without a device, which still run
        assert totals == {"memory-mb": 40960, "vcores": 40, GPU: 20, "disk": 40 * GB}
        assert rm.manager.web is not None
        address = f"http://{LOOPBACK}:{rm.manager.web.port}/ws/v1/cluster/apps/{app_id}"
        async with ClientSession() as session, session.get(address) as answer:
            shown = (await answer.json())["app"]
        entries = {e["key"]: e["value"] for e in shown["resourceSecondsMap"]["entry"]}
        assert entries == {name: str(total) for name, total in totals.items()}
        assert shown["preemptedResourceSecondsMap"] == {}, "nothing was"
        nodes = await rm.client.call(Client.getClusterNodes, pb.GetClusterNodesRequest())
        assert convert.resource(nodes.nodeReports[0].capability) == Resource(8192, 8, {GPU: 2, "disk": 10 * GB})


async def test_clients_and_masters_learn_of_the_types() -> None:
    async with gpu_cluster() as (rm, node):
        info = await rm.client.call(Client.getResourceTypeInfo, pb.GetAllResourceTypeInfoRequest())
        expected = [("memory-mb", "Mi"), ("vcores", ""), (GPU, ""), ("disk", "Gi")]
        assert [(t.name, t.units) for t in info.resource_type_info] == expected
        master = await rm.launched(await rm.submit(), node)
        registered = await master.register()
        assert [(t.name, t.units) for t in registered.resource_types] == expected
        assert convert.resource(registered.maximumCapability).extras == {GPU: 2, "disk": 10 * GB}


@pytest.mark.parametrize("gpus", [3, -1])
async def test_more_than_any_node_has_is_refused_in_hadoops_words(gpus: int) -> None:
    async with gpu_cluster() as (rm, node):
        _, master = await rm.running(node)
        with pytest.raises(InvalidResourceRequest, match=rf"Requested resource type=\[{GPU}\]"):
            await master.allocate(gpu_ask(1, gpus))


async def test_types_that_nobody_defined_are_left_out() -> None:
    async with gpu_cluster() as (rm, node):
        _, master = await rm.running(node)
        request = ask(1)
        request.capability.resource_value_map.add(key="unheard-of", value=1, units="")
        (granted,) = (await master.allocate(request)).allocated_containers
        assert convert.resource(granted.resource).extras == {"disk": GB}


def test_the_calculator_must_count_them(tmp_path: Path) -> None:
    simple = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
    with pytest.raises(ConfigError, match="Use DominantResourceCalculator instead"):
        ResourceManager(configuration({**SETTINGS, CALCULATOR: simple}))
    queues, types = tmp_path / "capacity-scheduler.xml", tmp_path / "resource-types.xml"

    def write(file: Path, **settings: str) -> None:
        rows = (f"<property><name>{key}</name><value>{value}</value></property>\n" for key, value in settings.items())
        file.write_text(f"<configuration>{''.join(rows)}</configuration>")

    write(types, **{"yarn.resource-types": "disk"})
    only = {"yarn.scheduler.capacity.root.queues": "a", "yarn.scheduler.capacity.root.a.capacity": "100"}
    for named, place in (({CALCULATOR: simple}, f"{queues}:3"), ({}, f"{types}:1")):
        write(queues, **only, **named)
        with pytest.raises(ConfigError, match=rf"^{place}: {CALCULATOR}.* specified disk\. Use Dominant"):
            read_queues(Configuration.load(tmp_path, environ={}))
