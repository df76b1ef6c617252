"""Masters of training jobs and the ResourceManager: what they agree on, orders in answers, nodes that are told."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rm.scheduler.events import QualityDue
from tests.rm.rm_commands import get
from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ManualClock, ask, cluster
from yaqd.model import ApplicationId
from yaqd.model.training import TrainingReport
from yaqd.proto import training
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol
from yaqd.proto.words import TRAINING


class Job:
    def __init__(self, harness: Harness, clock: ManualClock, node: FakeNode, app_id: ApplicationId, master: FakeMaster):
        self.harness, self.clock, self.node, self.app_id, self.master = harness, clock, node, app_id, master
        self.sequence = 0

    async def report(self, *losses: float, first: int = 0, repeat: bool = False) -> pb.AllocateResponse:
        self.sequence += not repeat
        report = TrainingReport(self.sequence, first, losses, max_milli=2000)
        request = pb.AllocateRequest(response_id=self.master.response_id, progress=0.5)
        request.yaq_reports.training.CopyFrom(training.training_report_pb(report))
        response = await self.master.rpc.call(ApplicationMasterProtocol.allocate, request)
        self.master.response_id = response.response_id
        return response


async def begun(clock: ManualClock, harness: Harness, *words: str) -> tuple[Job, pb.RegisterApplicationMasterResponse]:
    node = await harness.node(capabilities=("cores",))
    app_id = await harness.submit()
    master = await harness.launched(app_id, node)
    request = pb.RegisterApplicationMasterRequest(host="am", rpc_port=1, yaq_understands=words)
    response = await master.rpc.call(ApplicationMasterProtocol.registerApplicationMaster, request)
    return Job(harness, clock, node, app_id, master), response


@pytest.fixture
async def job() -> AsyncIterator[Job]:
    clock = ManualClock()
    async with cluster(clock=clock) as harness:
        found, response = await begun(clock, harness, TRAINING)
        assert list(response.yaq_understands) == [TRAINING]
        yield found


async def test_an_order_comes_with_the_answer_and_reaches_the_node(job: Job) -> None:
    response = await job.report()
    assert response.yaq_orders.cores.milli == 2000
    assert not (await job.report(1.0)).HasField("yaq_orders"), "nothing has changed"
    allocated = (await job.master.allocate(ask(1))).allocated_containers
    if not allocated:
        await job.node.beat()
        allocated = (await job.master.allocate()).allocated_containers
    assert allocated
    answer = await job.node.beat()
    assert training.apps_cores(answer.yaq_cores) == {job.app_id: 2000}


async def test_an_epoch_divides_and_the_page_and_explain_say_why(job: Job) -> None:
    await job.report()
    await job.report(1.0, 0.6, 0.4, 0.3)
    job.clock.seconds += 1.0
    job.harness.manager.quality.check(job.clock.now())
    jobs: Any = (await get(job.harness, "/ws/v1/yaq/training"))["jobs"]
    (listed,) = jobs
    assert listed["id"] == str(job.app_id) and listed["cores"] == 2.0 and listed["iteration"] == 3
    assert listed["loss"] == 0.3 and 0.0 < listed["normalizedLoss"] < 0.5 and listed["reason"] == "CAP"
    explained: Any = (await get(job.harness, f"/ws/v1/yaq/explain/{job.app_id}"))["explanation"]
    found = explained["training"]
    assert found["policy"] == "finish" and found["beside"] == [] and "as many as it can use" in found["why"]


async def test_cores_are_divided_as_often_as_the_key_says(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster({"yaq.quality.epoch": "100ms"}) as harness:
        job, _ = await begun(ManualClock(), harness, TRAINING)
        await job.report(1.0, 0.6)
        loop, times, enough = asyncio.get_running_loop(), list[float](), asyncio.Event()
        schedule = harness.manager.cluster.schedule

        def counted(event: Any) -> Any:
            if isinstance(event, QualityDue):
                times.append(loop.time())
                if len(times) == 5:
                    enough.set()
            return schedule(event)

        monkeypatch.setattr(harness.manager.cluster, "schedule", counted)
        await asyncio.wait_for(enough.wait(), 20)
        assert times[4] - times[0] < 3.0, "the other checks come once a second"


async def test_a_stock_master_is_told_nothing_and_its_reports_are_not_read() -> None:
    clock = ManualClock()
    async with cluster(clock=clock) as harness:
        job, response = await begun(clock, harness)
        assert not response.yaq_understands
        assert not (await job.report(1.0)).HasField("yaq_orders")
        assert (await get(harness, "/ws/v1/yaq/training"))["jobs"] == []


async def test_where_cores_are_not_divided_nobody_is_told_of_it() -> None:
    clock = ManualClock()
    async with cluster({"yaq.quality.enabled": "false"}, clock=clock) as harness:
        job, response = await begun(clock, harness, TRAINING)
        assert not response.yaq_understands and not (await job.report(1.0)).HasField("yaq_orders")
        harness.manager.cluster.schedule(QualityDue(()))
