"""Masters in a queue that decides by stages: orders in answers, what explain says, weights from a file."""

from pathlib import Path
from typing import Any

import pytest

from tests.rm.rm_commands import get
from tests.rm.rm_harness import FakeMaster, Harness, ask, cluster
from tests.rm.rm_queueing import site
from yaqd.config.stage_weights import shipped_weights
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import RemoteException
from yaqd.model import ApplicationId
from yaqd.model.stages import StagesOrder
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin
from yaqd.proto.stages import stages_order
from yaqd.proto.words import STAGES
from yaqd.proto.yarn_admin_pb2 import RefreshQueuesRequest

QUEUE = {"yarn.scheduler.capacity.root.default.ordering-policy": "clotho"}


def left(*stages: tuple[int, int, int, int, tuple[int, ...]], idle: int = 0) -> common.JobLeft:
    """What is left by priority, tasks, how many run, how long one takes, ms, and after which stages."""
    message = common.JobLeft(idle=idle)
    for priority, tasks, running, task_ms, after in stages:
        message.stages.add(priority=priority, tasks=tasks, running=running, task_ms=task_ms, after=after)
    return message


async def begun(harness: Harness, *words: str) -> tuple[ApplicationId, FakeMaster]:
    app_id = await harness.submit()
    master = await harness.launched(app_id, harness.nodes[0])
    request = pb.RegisterApplicationMasterRequest(host="am", rpc_port=1, yaq_understands=words)
    response = await master.rpc.call(ApplicationMasterProtocol.registerApplicationMaster, request)
    assert list(response.yaq_understands) == list(words)
    return app_id, master


async def two_containers(harness: Harness) -> int:
    """Return how many containers a master gets that has two tasks left and asks for two."""
    await harness.node(vcores=4)
    _, master = await begun(harness, STAGES)
    await master.allocate(left=left((1, 2, 0, 1000, ())))
    got = len((await master.allocate(ask(2))).allocated_containers)
    await harness.until(lambda: harness.manager.scheduler.facts.stages_due_at is None)
    return got + len((await master.allocate()).allocated_containers)


async def test_orders_come_with_answers_and_explain_tells_of_them() -> None:
    async with cluster(QUEUE | {"yaq.clotho.interval-ms": "0"}) as harness:
        await harness.node(vcores=4)
        app_id, master = await begun(harness, STAGES)
        first = await master.allocate(left=left((1, 2, 0, 1000, ()), (2, 5, 0, 4000, (1,))))
        assert stages_order(first.yaq_orders.stages) == StagesOrder(1)
        allocated = list((await master.allocate(ask(2))).allocated_containers)
        await harness.nodes[0].beat()
        allocated += (await master.allocate()).allocated_containers
        assert len(allocated) == 2
        rest = left((2, 5, 0, 4000, ()), idle=2)
        rest.stages[0].name = "Count\x1b" + "x" * 100
        answer = await master.allocate(left=rest)
        assert stages_order(answer.yaq_orders.stages) == StagesOrder(2, shares=((2, 2),))
        assert not (await master.allocate()).HasField("yaq_orders"), "nothing is new"
        explained: Any = (await get(harness, f"/ws/v1/yaq/explain/{app_id}"))["explanation"]
        found = explained["stages"]
        assert (found["policy"], found["containers"], found["jobs"]) == ("clotho", 2, 1)
        assert [(one["priority"], one["tasks"], one["taskS"]) for one in found["stages"]] == [(2, 5, 4.0)]
        assert found["stages"][0]["name"] == "Count?" + "x" * 74
        assert found["stages"][0]["score"] is not None and found["learnedLimit"] >= 1
        assert found["choices"][0]["priority"] == 2 and found["choices"][0]["containers"] == 2


async def test_a_stock_master_hears_of_no_order() -> None:
    async with cluster(QUEUE | {"yaq.clotho.interval-ms": "0"}) as harness:
        node = await harness.node(vcores=4)
        app_id, master = await begun(harness)
        answers = [await master.allocate(ask(2)), await master.allocate()]
        await node.beat()
        answers.append(await master.allocate())
        assert sum(len(answer.allocated_containers) for answer in answers) == 2
        assert not any(answer.HasField("yaq_orders") for answer in answers)
        explained: Any = (await get(harness, f"/ws/v1/yaq/explain/{app_id}"))["explanation"]
        assert [one["priority"] for one in explained["stages"]["stages"]] == [1]


async def test_a_decision_that_waits_for_its_time_comes_by_itself() -> None:
    async with cluster(QUEUE | {"yaq.clotho.interval-ms": "60"}) as harness:
        assert await two_containers(harness) == 2


async def test_weights_that_are_not_there_are_refused_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"yaq.clotho.weights.*cannot be read: No such file"):
        async with cluster(QUEUE | {"yaq.clotho.weights": str(tmp_path / "none.npz")}):
            pass


async def test_damaged_weights_leave_weighted_fair_sharing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"PK nothing")
    async with cluster(QUEUE | {"yaq.clotho.weights": str(bad)}) as harness:
        assert await two_containers(harness) == 2
    assert sum("as its weights do not load: no .npz of plain arrays" in line for line in caplog.messages) == 1


async def test_a_refresh_refuses_damaged_weights_and_leaves_what_runs(tmp_path: Path) -> None:
    stages = tmp_path / "stages.npz"
    stages.write_bytes(shipped_weights())
    async with cluster(conf=site(tmp_path, **QUEUE, **{"yaq.clotho.weights": str(stages)})) as harness:
        before = harness.manager.scheduler._stages.spec
        operator = RpcClient("127.0.0.1", harness.manager.servers.admin.port, user="root")
        try:
            for damaged in (b"PK nothing", shipped_weights()[:900]):
                stages.write_bytes(damaged)
                with pytest.raises(RemoteException, match=r"stay as they are: .*site.xml:3: yaq.clotho.weights.*load"):
                    await operator.call(Admin.refreshQueues, RefreshQueuesRequest())
                assert harness.manager.scheduler._stages.spec is before
            stages.write_bytes(shipped_weights("makespan"))
            await operator.call(Admin.refreshQueues, RefreshQueuesRequest())
            assert harness.manager.scheduler._stages.spec.weights != before.weights
        finally:
            await operator.close()
