"""The load client is itself held to account: small, against our ResourceManager in this process."""

import asyncio
import math
from pathlib import Path

import pytest

from benchmarks.load_client import Beats, NodeFleet
from benchmarks.load_masters import Masters
from rm.daemon import ResourceManager
from yaqd.config import Configuration
from yaqd.ipc import RpcClient
from yaqd.model import FinalApplicationStatus, YarnApplicationState
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol

LOOPBACK = "127.0.0.1"


def configuration(folder: Path) -> Configuration:
    names = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")
    settings = {f"yarn.resourcemanager{name}.address": f"{LOOPBACK}:0" for name in names}
    settings |= {
        "yarn.resourcemanager.hostname": LOOPBACK,
        "yaq.rm.state-store.path": str(folder / "state.db"),
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    }
    return Configuration.load(folder, overrides=settings, environ={})


@pytest.mark.slow
async def test_nodes_beat_and_masters_are_given_containers(tmp_path: Path) -> None:
    manager = ResourceManager(configuration(tmp_path))
    await manager.start()
    client = (LOOPBACK, manager.servers.client.port)
    players = Masters(client, (LOOPBACK, manager.servers.masters.port))
    fleet = NodeFleet((LOOPBACK, manager.servers.tracker.port), nodes=20, connections=5, on_master=players.on_master)
    await fleet.start()
    try:
        paced = await fleet.beat_paced(rate=200, seconds=0.5)
        assert paced.errors == 0 and 90 <= paced.count + paced.skipped <= 110
        assert paced.percentile_ms(0.5) <= paced.percentile_ms(0.99)
        flat_out = await fleet.beat_flat_out(seconds=0.2, in_flight=64)  # more than there are nodes
        assert flat_out.errors == 0 and flat_out.count >= 20

        beating = asyncio.create_task(fleet.beat_paced(rate=100, seconds=math.inf))
        await players.submit(2, timeout_s=20)
        given = await players.allocate_for(seconds=0.5, want=10, interval_s=0.02)
        assert given.count >= 20 and given.calls >= 4
        await players.finish(fleet)
        await assert_all_succeeded(client, 2)
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
    finally:
        await fleet.stop()
        await manager.stop()


async def assert_all_succeeded(client: tuple[str, int], count: int) -> None:
    reader = RpcClient(*client, user="load")
    response = await reader.call(ApplicationClientProtocol.getApplications, service.GetApplicationsRequest())
    await reader.close()
    ended = [(app.yarn_application_state, app.final_application_status) for app in response.applications]
    wanted = (YarnApplicationState.FINISHED.value, FinalApplicationStatus.SUCCEEDED.value)
    assert ended == [wanted] * count


def test_percentiles_of_nothing_and_of_something() -> None:
    assert math.isnan(Beats().percentile_ms(0.99)) and Beats().rate == 0.0
    beats = Beats(count=100, elapsed_s=2.0, latencies_s=[i / 1000 for i in range(100)])
    assert beats.rate == 50.0
    assert beats.percentile_ms(0.5) == 50.0 and beats.percentile_ms(0.99) == 99.0 and beats.percentile_ms(1.0) == 99.0
