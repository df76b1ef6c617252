"""A node queue whose ResourceManager or node starts again, or reads its configuration again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master
from tests.nm.nm_ordered_queue import ONE, THREE, TWO, TWO_SLOTS, known, order, queue_of, read_all, run, settings
from yaqd.model import Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server


@pytest.fixture
async def node(rm: FakeResourceManager, start_node: Callable[..., Any]) -> NodeManager:
    rm.capabilities = ["counts-vcores", "yaq-queue"]
    started: NodeManager = await start_node(TWO_SLOTS)
    return started


async def test_a_resource_manager_that_knows_of_no_queues_ends_them(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, "true")
    await rm.until(lambda: queue_of(rm).queued == 1)
    rm.capabilities = ["counts-vcores"]
    seen = len(rm.registrations)
    rm.orders.append(lambda response: setattr(response, "nodeAction", server.RESYNC))
    await rm.until(lambda: len(rm.registrations) > seen)
    beats = len(rm.heartbeats)
    await rm.until(lambda: len(rm.heartbeats) > beats)
    assert not node.runtime.queue_settings.enabled
    status = rm.heartbeats[-1].node_status
    assert not status.HasField("yaq_queue") and status.opportunistic_containers_status.wait_queue_length == 1
    await master.stop(ONE)
    end = await rm.end_of(TWO)
    assert end.exit_status == 0 and not end.HasField("yaq_times"), "what waited is not lost"


@pytest.mark.parametrize("is_on_again", [False, True])
async def test_after_a_new_registration_the_queue_is_as_the_new_orders_say(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path, is_on_again: bool
) -> None:
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, f"echo x >> {tmp_path}/two")
    await rm.until(lambda: queue_of(rm).queued == 1)
    rm.orders.append(lambda response: setattr(response, "nodeAction", server.RESYNC))
    await rm.until(lambda: len(rm.registrations) == 2)
    told = {convert.container_id(s.container_id): s for s in rm.registrations[1].container_statuses}
    assert told.keys() == {ONE, TWO} and told[TWO].container_state == common.C_RUNNING, "never new: that is an end"
    await order(rm, settings() if is_on_again else server.NodeQueueOrders())
    assert node.runtime.queue_settings.enabled is is_on_again
    await master.stop(ONE)
    assert (await rm.end_of(TWO)).exit_status == 0 and read_all(tmp_path, "two") == "x\n"


async def test_a_restart_runs_nothing_of_the_queue_it_had(
    rm: FakeResourceManager, start_node: Callable[..., Any], tmp_path: Path
) -> None:
    rm.capabilities = ["counts-vcores", "yaq-queue"]
    first: NodeManager = await start_node(TWO_SLOTS)
    await order(rm, settings())
    master = Master(rm, first)
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, f"touch {tmp_path}/ran")
    await rm.until(lambda: queue_of(rm).queued == 1)
    await master.client.close()
    await first.stop()
    assert rm.unregistered, "the ResourceManager knows at once that what was there is lost"
    beats = len(rm.heartbeats)
    second: NodeManager = await start_node(TWO_SLOTS)
    await rm.until(lambda: len(rm.registrations) == 2 and len(rm.heartbeats) > beats)
    assert not rm.registrations[-1].container_statuses and not second.runtime.containers
    other = Master(rm, second)
    await run(other, THREE, "true")
    assert (await rm.end_of(THREE)).exit_status == 0 and not (tmp_path / "ran").exists()
    await other.client.close()


def site(folder: Path, **keys: str) -> None:
    folder.mkdir(exist_ok=True)
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in keys.items())
    (folder / "yaq-site.xml").write_text(f"<configuration>{rows}</configuration>")


async def test_what_the_resource_manager_has_read_again_the_node_reads_again_too(
    rm: FakeResourceManager, start_node: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rm.capabilities = ["counts-vcores", "yaq-queue"]
    site(tmp_path / "conf", **{"yaq.nm.queue.order": "ejf", "yaq.distributed.max-tasks-per-job": "7"})
    distributed = {
        "yarn.nodemanager.distributed-scheduling.enabled": "true",
        "yarn.nodemanager.amrmproxy.address": "127.0.0.1:0",
    }
    node: NodeManager = await start_node({**TWO_SLOTS, **distributed})

    def now() -> tuple[str, int]:
        ordering, proxy = node.runtime.queue_settings.ordering, node.proxy
        assert ordering is not None and proxy is not None
        return ordering.name, proxy.limits.tasks_max

    assert now() == ("ejf", 7)
    site(tmp_path / "conf", **{"yaq.nm.queue.order": "stf", "yaq.distributed.max-tasks-per-job": "9"})
    await order(rm, server.NodeQueueOrders(files_read_ms=1))
    await rm.until(lambda: now() == ("stf", 9))
    site(tmp_path / "conf", **{"yaq.nm.queue.order": "backwards"})
    await order(rm, server.NodeQueueOrders(files_read_ms=2))
    await rm.until(
        lambda: any("stay as they are" in r.message and "yaq-site.xml:1" in r.message for r in caplog.records)
    )
    assert now() == ("stf", 9)
    # what the ResourceManager orders itself goes before the node's own
    await order(rm, settings())
    site(tmp_path / "conf", **{"yaq.nm.queue.order": "lrtf", "yaq.distributed.max-tasks-per-job": "11"})
    await order(rm, server.NodeQueueOrders(files_read_ms=3))
    await rm.until(lambda: now()[1] == 11)
    assert now()[0] == "stf"


async def test_how_waits_are_estimated_is_read_again_whoever_orders_the_rest(
    rm: FakeResourceManager, start_node: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rm.capabilities = ["counts-vcores", "yaq-queue"]
    key = "yaq.nm.queue.wait-estimate"
    site(tmp_path / "conf", **{key: "resources"})
    node: NodeManager = await start_node(TWO_SLOTS)
    await order(rm, settings())
    master = Master(rm, node)
    for one, estimate_s in ((ONE, 1000), (TWO, 2000)):
        await run(master, one, "sleep 1000", known(1000 * estimate_s))
    # wants both slots, so it starts after 2,000 s and the next of its size after 5,000; by tasks alone after 2,000
    await run(master, THREE, "true", known(3_000_000), Resource(1000, 1))
    await rm.until(lambda: queue_of(rm).wait_ms > 4_000_000)
    site(tmp_path / "conf", **{key: "slots"})
    await order(rm, server.NodeQueueOrders(files_read_ms=1))
    await rm.until(lambda: 1_000_000 < queue_of(rm).wait_ms < 3_000_000)
    site(tmp_path / "conf", **{key: "by-feeling"})
    await order(rm, server.NodeQueueOrders(files_read_ms=2))
    await rm.until(lambda: any("stay as they are" in r.message and "by-feeling" in r.message for r in caplog.records))
    assert queue_of(rm).wait_ms < 3_000_000
    site(tmp_path / "conf", **{key: "resources"})
    await order(rm, server.NodeQueueOrders(files_read_ms=3))
    await rm.until(lambda: queue_of(rm).wait_ms > 4_000_000)
    await master.client.close()
