"""A training job's service in its job manager, without a cluster: reports, orders, checkpoints, workers."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tez_training.training_jobs import order
from tez_adapter.core import events as ev
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import JobState
from tez_adapter.jobspec import JobKind, JobSpec, Training
from tez_adapter.kinds.training import TrainingKind
from tez_adapter.master.access import JobAccess
from tez_adapter.master.ended import JobEnd
from tez_adapter.protocol import JobClientProtocol, TrainingProtocol
from tez_adapter.training.keeper import read_curve, read_model, read_stop
from tez_adapter.training.service import TrainingService
from yaqd.config import Configuration
from yaqd.ipc import Caller
from yaqd.ipc.errors import Authorization, IllegalArgument
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import Method
from yaqd.proto.words import TRAINING

TASK = Caller("me", None, "TOKEN", b"", "", ("127.0.0.1", 1))
OWNER = Caller("me", None, "SIMPLE", None, None, ("127.0.0.1", 1))
OTHER = Caller("another", None, "SIMPLE", None, None, ("127.0.0.1", 1))


class World:
    """A job manager around the service: its machine, its server, and what the service asked for."""

    def __init__(self, folder: Path, terms: Training, **conf: str) -> None:
        self.conf = Configuration.load(None, overrides=conf)
        staging = f"file://{folder}/me/.staging/job_1_0001"
        self.spec = JobSpec("job_1_0001", "j", "me", JobKind.TRAINING, conf, staging, training=terms)
        self.machine = JobMachine(TrainingKind().plan(self.spec, self.conf, []))
        self.handlers: dict[str, Callable[[Any, Caller], Any]] = {}
        self.notes: list[str] = []
        self.sent: list[ev.Event] = []
        access = JobAccess(self.conf, "me", lambda user: ())
        self.service = TrainingService(
            self.spec,
            self.conf,
            self.machine,
            self,  # type: ignore[arg-type]
            access,
            dispatch=self.dispatch,
            note=self.notes.append,
        )
        self.folder = f"file://{folder}/me/.training/job_1_0001"

    def register(self, method: Method[Any, Any], handler: Callable[[Any, Caller], Any]) -> None:
        self.handlers[method.name] = handler

    def dispatch(self, event: ev.Event) -> list[ev.Decision]:
        self.sent.append(event)
        out = self.machine.handle(event, 0.0)
        self.service.follow()
        return out

    async def call(self, method: Method[Any, Any], request: Any, caller: Caller = TASK) -> Any:
        answer = self.handlers[method.name](request, caller)
        return await answer if isinstance(answer, Awaitable) else answer

    def container(self, name: str, priority: int = 10) -> None:
        from tests.tez_adapter.tez_driver import SMALL

        self.dispatch(ev.ContainerAllocated(name, "h:1", "h", SMALL, priority))
        self.dispatch(ev.TaskRequested(name))

    async def report(self, *losses: tuple[int, float], number: int = 0, **more: Any) -> pb.TrainingReportResponse:
        points = [pb.TrainingPoint(iteration=i, loss=loss) for i, loss in losses]
        ref = job_pb2.AttemptRef(vertex=0, index=0, number=number)
        answer = await self.call(TrainingProtocol.report, pb.TrainingReportRequest(attempt=ref, points=points, **more))
        assert isinstance(answer, pb.TrainingReportResponse)
        return answer


DRIVER = job_pb2.AttemptRef(vertex=0, index=0, number=0)


@pytest.fixture
async def script(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, Training(max_cores=2))
    world.container("d")
    yield world
    await world.service.end()


async def test_whoever_has_no_token_or_no_attempt_is_refused(script: World) -> None:
    for method in (TrainingProtocol.begin, TrainingProtocol.report, TrainingProtocol.work):
        with pytest.raises(Authorization):
            await script.call(method, method.request(attempt=DRIVER), OWNER)
    with pytest.raises(IllegalArgument):
        await script.report((0, 1.0), number=1)
    with pytest.raises(IllegalArgument):
        await script.call(TrainingProtocol.evaluate, pb.EvaluateRequest(attempt=DRIVER, iteration=0, state=b""))
    with pytest.raises(Authorization):
        await script.call(JobClientProtocol.stopTraining, pb.StopTrainingRequest(), OTHER)


async def test_iterations_that_go_back_are_no_news(script: World) -> None:
    script.service.registered(service.RegisterApplicationMasterResponse(yaq_understands=[TRAINING]))
    await script.report((0, 9.0), (1, 8.0), (0, 7.0), (1, 6.0), (2, 5.0))
    status = await script.call(JobClientProtocol.getTrainingStatus, pb.TrainingStatusRequest(), OWNER)
    assert [(point.iteration, point.loss) for point in status.curve] == [(0, 9.0), (1, 8.0), (2, 5.0)]
    assert (status.iteration, status.loss, status.normalized, status.reports) == (2, 5.0, 0.0, 5)
    told = script.service.reports.news()
    assert told is not None and list(told.training.losses) == [9.0, 8.0, 5.0]


async def test_cores_are_those_that_are_ordered_also_fewer_than_the_least(tmp_path: Path) -> None:
    world = World(tmp_path, Training(min_cores=2, max_cores=3, partitions=8))
    world.container("d")
    assert (await world.report()).cores == 3.0  # nobody orders
    world.service.registered(service.RegisterApplicationMasterResponse(yaq_understands=[TRAINING]))
    assert world.sent[-1] == ev.VertexLimited(1, 2)
    assert (await world.report()).cores == 2.0  # until it does
    for sequence, milli, cores, workers in ((1, 2200, 2.2, 3), (2, 100, 0.1, 1), (3, 9000, 3.0, 3), (4, 0, 0.0, 1)):
        world.service.hear(order(sequence, milli))
        assert (await world.report()).cores == cores
        assert world.sent[-1] == ev.VertexLimited(1, workers)
        status = await world.call(JobClientProtocol.getTrainingStatus, pb.TrainingStatusRequest(), OWNER)
        assert (status.cores, status.workers_wanted) == (cores, workers)
    await world.service.end()


async def test_a_stop_is_said_with_a_wish_for_a_checkpoint(script: World) -> None:
    assert not (await script.report((0, 1.0))).stop
    await script.call(JobClientProtocol.stopTraining, pb.StopTrainingRequest(), OWNER)
    answer = await script.report((1, 1.0))
    assert answer.stop and answer.wants_checkpoint
    assert len(script.notes) == 1 and "stopped by me" in script.notes[0]


async def test_a_loss_that_is_no_number_does_not_hide_the_one_before_it(script: World) -> None:
    await script.report((1, 4.0), (2, 2.0), (3, math.nan), (4, math.inf))
    status = await script.call(JobClientProtocol.getTrainingStatus, pb.TrainingStatusRequest(), OWNER)
    assert (status.iteration, status.loss, status.normalized) == (4, 2.0, 0.0)
    assert math.isnan(status.odd_loss) and status.odd_since == 3
    await script.report((5, 1.0))
    status = await script.call(JobClientProtocol.getTrainingStatus, pb.TrainingStatusRequest(), OWNER)
    assert status.loss == 1.0 and not status.HasField("odd_loss")


async def stop_at_three(folder: Path, terms: Training, *, with_checkpoint: bool) -> World:
    world = World(folder, terms)
    world.container("d")
    await world.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=DRIVER))
    await world.call(JobClientProtocol.stopTraining, pb.StopTrainingRequest(), OWNER)
    more: dict[str, Any] = {"checkpoint": b"c", "checkpoint_iteration": 3} if with_checkpoint else {}
    await world.report((3, 1.0), **more)
    await world.call(TrainingProtocol.trained, pb.TrainedRequest(attempt=DRIVER, iteration=3, state=b"model"))
    await world.service.end()
    world.service.leave()
    return world


async def test_a_job_that_was_stopped_says_so_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    world = await stop_at_three(tmp_path, Training(iterations=9), with_checkpoint=True)
    again = "`yaq ml resume application_1_0001`"
    assert (
        world.service.said(JobEnd(JobState.SUCCEEDED, ""))
        == f"stopped by me after iteration 3; {again} goes on after iteration 3"
    )
    assert read_stop(world.conf, world.folder) == ("me", 3)
    later = World(tmp_path, Training())
    later.container("d")
    begun = await later.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=DRIVER))
    assert (begun.checkpoint, begun.checkpoint_iteration) == (b"c", 3)
    await later.service.end()


async def test_what_a_stop_leaves_without_a_checkpoint_is_said(tmp_path: Path) -> None:
    world = await stop_at_three(tmp_path, Training(), with_checkpoint=False)
    assert world.service.said(JobEnd(JobState.SUCCEEDED, "")).startswith(
        "stopped by me after iteration 3; it kept no checkpoint, so `yaq ml resume"
    )


async def test_a_job_that_is_at_its_end_was_not_stopped(tmp_path: Path) -> None:
    for terms in (Training(iterations=3), Training(target=1.0)):
        world = await stop_at_three(tmp_path, terms, with_checkpoint=True)
        assert world.service.said(JobEnd(JobState.SUCCEEDED, "")) == "" and read_stop(world.conf, world.folder) is None


async def test_another_attempt_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    world = World(tmp_path, Training(), **{"yaq.ml.checkpoint.interval": "0"})
    world.container("d")
    begun = await world.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=DRIVER))
    assert not begun.HasField("checkpoint")
    await world.report((0, 9.0), (1, 8.0), checkpoint=b"one", checkpoint_iteration=1)
    await world.service._keeper.written()
    # the driver dies, and the job manager does not
    world.dispatch(ev.ContainerCompleted("d", 137))
    world.container("e")
    ref = job_pb2.AttemptRef(vertex=0, index=0, number=1)
    begun = await world.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=ref))
    assert (begun.checkpoint, begun.checkpoint_iteration) == (b"one", 1)
    # the job manager dies
    other = World(tmp_path, Training())
    other.container("d")
    begun = await other.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=DRIVER))
    assert (begun.checkpoint, begun.checkpoint_iteration) == (b"one", 1)
    await other.report((1, 8.0), (2, 7.0))
    await other.call(TrainingProtocol.trained, pb.TrainedRequest(attempt=DRIVER, iteration=3, state=b"model"))
    await other.service.end()
    other.service.leave()
    assert [p.iteration for p in read_curve(other.conf, other.folder).points] == [0, 1, 2]
    assert read_model(other.conf, other.folder).pieces == [b"model"]
    await world.service.end()


async def test_a_program_that_counts_anew_after_its_checkpoint_is_told_of(tmp_path: Path) -> None:
    world = World(tmp_path, Training())
    world.container("d")
    await world.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=DRIVER))
    await world.report((6, 3.0), (7, 2.0), checkpoint=b"c", checkpoint_iteration=7)
    await world.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=DRIVER))
    await world.report((0, 2.0), (7, 2.0))
    assert world.notes == []
    await world.report((1, 1.9), (2, 1.8))
    (line,) = world.notes
    assert line.startswith("iteration 1 is reported by a program that goes on after iteration 7")
    await world.service.end()


async def test_a_call_that_does_not_return_is_made_again_once(tmp_path: Path) -> None:
    world = World(tmp_path, Training(max_cores=2, partitions=4))
    for name, priority in {"d": 10, "w0": 20, "w1": 20}.items():
        world.container(name, priority)
    for index, state in enumerate((JobState.RUNNING, JobState.FAILED)):
        attempt = job_pb2.AttemptRef(vertex=1, index=index, number=0)
        answer = await world.call(TrainingProtocol.work, pb.WorkRequest(attempt=attempt, late="step hangs"))
        assert answer.action == pb.WorkResponse.LEAVE
        assert world.machine.state is state
    assert world.notes == ["step hangs"]
    await world.service.end()


async def test_workers_whose_attempts_end_are_lost_and_their_part_goes_to_others(tmp_path: Path) -> None:
    world = World(tmp_path, Training(max_cores=2, partitions=4), **{"yaq.ml.worker.gather-wait": "0"})
    world.container("d")
    world.container("w0", 20)
    world.container("w1", 20)
    asking = [asyncio.ensure_future(world.call(TrainingProtocol.work, work(i))) for i in range(2)]
    await asyncio.wait_for(asyncio.shield(world.service._loaded), 10)
    await asyncio.sleep(0)
    driver = asyncio.ensure_future(
        world.call(TrainingProtocol.evaluate, pb.EvaluateRequest(attempt=DRIVER, iteration=0, state=b"s", wait_ms=5000))
    )
    orders = [await each for each in asking]
    assert sorted(p for order_ in orders for p in order_.partitions) == [0, 1, 2, 3]
    world.dispatch(ev.ContainerCompleted("w1", 137))
    lost = f"worker 1 failed with partitions {', '.join(map(str, orders[1].partitions))} in iteration 1"
    assert world.notes == [f"{lost}; it is computed again"]
    for said, told in {"exit status 137": f"exit status 137\n{lost}", "x on partition 1": "x on partition 1"}.items():
        assert world.service.said(JobEnd(JobState.FAILED, said)) == told
    asked = await world.call(TrainingProtocol.work, work(0, orders[0], 5000))
    assert list(asked.partitions) == list(orders[1].partitions)
    assert (await world.call(TrainingProtocol.work, work(1))).action == pb.WorkResponse.LEAVE
    last = asyncio.ensure_future(world.call(TrainingProtocol.work, work(0, asked, 100)))
    answer = await driver
    assert list(answer.partials) == [b"%d" % p for p in range(4)]
    await last
    await world.service.end()


def work(index: int, done: pb.WorkResponse | None = None, wait_ms: int = 5000) -> pb.WorkRequest:
    ref = job_pb2.AttemptRef(vertex=1, index=index, number=0)
    request = pb.WorkRequest(attempt=ref, wait_ms=wait_ms)
    if done is not None:
        request.step = done.step
        request.partials.extend(pb.Partial(partition=p, value=b"%d" % p) for p in done.partitions)
    return request


@pytest.mark.parametrize("has_own", (False, True))
async def test_a_run_that_asks_for_another_state_after_its_restart_is_told_of(tmp_path: Path, has_own: bool) -> None:
    """Not of one that goes on from a checkpoint of its own, which asks for later states."""
    terms, conf = Training(max_cores=1, partitions=1, by_run=True), {"yaq.ml.worker.gather-wait": "0"}
    world = World(tmp_path, terms, **conf, **{"yaq.ml.checkpoint.interval": "0"})
    for name, priority in (("d", 10), ("w", 20)):
        world.container(name, priority)
    for place, state in enumerate((b"a", b"b")):
        await evaluated(world, place, state)
    if has_own:
        await world.report((2, 1.0), checkpoint=b"own", checkpoint_iteration=2)
    world.dispatch(ev.ContainerCompleted("d", 137))
    world.container("e")
    await evaluated(world, 0, b"a", number=1)
    assert world.notes == []
    await evaluated(world, 1, b"x", number=1)
    assert [line.partition(":")[0] for line in world.notes] == (
        [] if has_own else ["run() asked for another state at evaluation 2 than before its restart"]
    )
    await world.service.end()


async def evaluated(world: World, place: int, state: bytes, number: int = 0) -> None:
    """One worker computes what is asked for, where it is not known."""
    ref = job_pb2.AttemptRef(vertex=0, index=0, number=number)
    request = pb.EvaluateRequest(attempt=ref, iteration=place, state=state, wait_ms=5000)
    driver = asyncio.ensure_future(world.call(TrainingProtocol.evaluate, request))
    asked = await world.call(TrainingProtocol.work, work(0, wait_ms=50))
    if asked.action == pb.WorkResponse.STEP:
        await world.call(TrainingProtocol.work, work(0, asked, 1))
    assert (await driver).is_done
