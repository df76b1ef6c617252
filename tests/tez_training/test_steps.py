"""Steps as a job manager serves them: states out, partials in, in order, whoever is lost."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tez_adapter.core.training import TrainingMachine
from tez_adapter.training.evaluations import Evaluations
from tez_adapter.training.steps import Steps
from yaqd.ipc.errors import IllegalArgument
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb

REF = job_pb2.AttemptRef(vertex=0, index=0, number=0)


class Job:
    def __init__(self, partitions: int, workers: int, **more: Any) -> None:
        self.left: list[str] = []
        evaluations = more.pop("evaluations", None)
        self.machine = TrainingMachine(partitions, wanted=workers, gather_s=0.0)
        self.steps = Steps(
            self.machine, partitions, evaluations, bytes_max=more.pop("bytes_max", 1000), on_leave=self.left.append
        )
        self.pulled: list[str] = []

    def evaluate(self, iteration: int, state: bytes | None, wait_ms: int = 5000) -> "asyncio.Task[pb.EvaluateResponse]":
        request = pb.EvaluateRequest(attempt=REF, iteration=iteration, state=state, wait_ms=wait_ms)
        return asyncio.ensure_future(_awaited(self.steps.evaluate(request)))

    async def ask(self, worker: str, wait_ms: int = 5000, **more: Any) -> pb.WorkResponse:
        request = pb.WorkRequest(attempt=REF, wait_ms=wait_ms, **more)
        return await _awaited(self.steps.work(worker, request))

    async def work(self, worker: str) -> None:
        """Until told to leave: a partial is the state and the partition."""
        answer = await self.ask(worker)
        while answer.action != pb.WorkResponse.LEAVE:
            if answer.action == pb.WorkResponse.WAIT:
                answer = await self.ask(worker)
                continue
            state = self.steps.state(answer.version).state
            partials = [pb.Partial(partition=p, value=b"%s/%d" % (state, p)) for p in answer.partitions]
            answer = await self.ask(worker, step=answer.step, partials=partials)


async def _awaited(answer: Any) -> Any:
    return await answer if isinstance(answer, Awaitable) else answer


async def test_partials_come_in_the_order_of_partitions_with_any_number_of_workers() -> None:
    for workers in (1, 2, 3, 8, 11):
        job = Job(8, workers)
        tasks = [asyncio.ensure_future(job.work(f"w{i}")) for i in range(workers)]
        for iteration in range(4):
            answer = await job.evaluate(iteration, b"s%d" % iteration)
            assert answer.is_done
            assert list(answer.partials) == [b"s%d/%d" % (iteration, p) for p in range(8)]
        for i in range(workers):
            job.steps.lost(f"w{i}")
        await asyncio.gather(*tasks)


async def test_a_lost_workers_part_is_done_by_another() -> None:
    job = Job(4, 2)
    asking = [asyncio.ensure_future(job.ask(name)) for name in ("stays", "dies")]
    await asyncio.sleep(0)
    driver = job.evaluate(0, b"s")
    stays, dies = [await each for each in asking]
    assert [list(order.partitions) for order in (stays, dies)] == [[0, 1], [2, 3]]
    job.steps.lost("dies")
    working = asyncio.ensure_future(_hand_in(job, "stays", stays))
    assert (await driver).is_done
    assert job.machine.owned() == {"stays": (0, 1, 2, 3)}
    job.steps.lost("stays")
    await working


async def _hand_in(job: Job, worker: str, order: pb.WorkResponse) -> None:
    """What the order says, and whatever comes after it, until the step is done."""
    while order.action == pb.WorkResponse.STEP:
        partials = [pb.Partial(partition=p, value=b"x") for p in order.partitions]
        order = await job.ask(worker, step=order.step, partials=partials, wait_ms=200)


async def test_workers_that_are_too_many_leave_between_steps() -> None:
    job = Job(4, 3)
    tasks = {name: asyncio.ensure_future(job.work(name)) for name in "abc"}
    assert (await job.evaluate(0, b"0")).is_done
    job.steps.want(1)
    assert not job.left
    assert (await job.evaluate(1, b"1")).is_done
    assert sorted(job.left) == ["b", "c"]
    await asyncio.gather(tasks["b"], tasks["c"])
    job.steps.want(2)
    joined = asyncio.ensure_future(job.work("d"))
    await asyncio.sleep(0)
    assert (await job.evaluate(2, b"2")).is_done
    assert {name: len(owned) for name, owned in job.machine.owned().items()} == {"a": 2, "d": 2}
    for name, task in (("a", tasks["a"]), ("d", joined)):
        job.steps.lost(name)
        await task


async def test_a_driver_that_asks_again_joins_its_step() -> None:
    job = Job(2, 1)
    first = await job.evaluate(0, b"s", wait_ms=0)
    assert not first.is_done and not first.wants_state
    assert (await job.evaluate(5, None)).wants_state
    worker = asyncio.ensure_future(job.work("w"))
    assert list((await job.evaluate(0, None)).partials) == [b"s/0", b"s/1"]
    assert list((await job.evaluate(0, b"s")).partials) == [b"s/0", b"s/1"]
    assert job.steps._step == 0
    job.steps.lost("w")
    await worker


async def test_evaluations_are_answered_again_as_far_as_they_fit() -> None:
    evaluations = Evaluations(bytes_max=20)
    job = Job(2, 1, evaluations=evaluations)
    worker = asyncio.ensure_future(job.work("w"))
    for place in range(3):
        await job.evaluate(place, b"state%d" % place)
    assert [len(partials) for _, partials in evaluations.known] == [2]  # 16 of 20 bytes
    other = Job(2, 1, evaluations=Evaluations(20, evaluations.known))
    assert list((await other.evaluate(0, b"state0")).partials) == [b"state0/0", b"state0/1"]
    assert not (await other.evaluate(1, b"state1", wait_ms=0)).is_done
    assert not (await other.evaluate(0, b"another", wait_ms=0)).is_done
    job.steps.lost("w")
    await worker


async def test_a_driver_that_takes_another_course_is_answered_for_the_states_it_asks_for() -> None:
    """From the first other state on nothing is remembered, and a line says so, once."""
    notes: list[str] = []
    evaluations = Evaluations(1000, note=notes.append)
    job = Job(2, 1, evaluations=evaluations)
    worker = asyncio.ensure_future(job.work("w"))
    courses: tuple[tuple[bytes, ...], ...] = (
        (b"a", b"b", b"c", b"d"),
        (b"a", b"b", b"x", b"d", b"e"),
        (b"a", b"y", b"x"),
    )
    for course in courses:
        for place, state in enumerate(course):
            answer = await job.evaluate(place, state)
            assert list(answer.partials) == [b"%s/%d" % (state, p) for p in range(2)]
            assert len(evaluations.known) >= place + 1
        assert course is courses[0] or len(evaluations.known) == len(course)
    (line,) = notes
    assert line.startswith("run() asked for another state at evaluation 3 than before its restart: ")
    job.steps.lost("w")
    await worker


async def test_a_step_that_its_driver_has_left_ends_without_harm() -> None:
    """The driver is lost in a step, and asks again from the beginning while workers are at it."""
    job = Job(2, 1, evaluations=Evaluations(1000))
    worker = asyncio.ensure_future(job.work("w"))
    await job.evaluate(0, b"a")
    job.steps.lost("w")
    await worker
    left = job.evaluate(1, b"b", wait_ms=0)
    order = await job.ask("v")
    await left
    assert list((await job.evaluate(0, b"a")).partials) == [b"a/0", b"a/1"]
    partials = [pb.Partial(partition=p, value=b"b/%d" % p) for p in order.partitions]
    await job.ask("v", step=order.step, partials=partials, wait_ms=1)
    assert list((await job.evaluate(0, b"a")).partials) == [b"a/0", b"a/1"]
    worker = asyncio.ensure_future(job.work("v"))
    assert list((await job.evaluate(1, b"b")).partials) == [b"b/0", b"b/1"]
    job.steps.lost("v")
    await worker


async def test_what_is_too_large_is_refused() -> None:
    job = Job(2, 1)
    with pytest.raises(IllegalArgument, match=r"yaq\.ml\.state\.bytes-max"):
        await job.evaluate(0, bytes(1001))
    driver = job.evaluate(0, b"s", wait_ms=100)
    order = await job.ask("w")
    with pytest.raises(IllegalArgument, match=r"yaq\.ml\.state\.bytes-max"):
        await job.ask("w", step=order.step, partials=[pb.Partial(partition=0, value=bytes(1001))])
    await driver


async def test_partials_that_nobody_asked_for_change_nothing() -> None:
    job = Job(2, 1)
    driver = job.evaluate(0, b"s")
    strange = [pb.Partial(partition=p, value=b"x") for p in (-1, 2, 1 << 30)]
    await job.ask("w", step=0, partials=strange, wait_ms=0)
    await job.ask("w", step=7, partials=[pb.Partial(partition=0, value=b"x")], wait_ms=0)
    worker = asyncio.ensure_future(job.work("w"))
    assert list((await driver).partials) == [b"s/0", b"s/1"]
    job.steps.lost("w")
    await worker


_NUMBERS = st.integers(-(2**31), 2**31 - 1)
_LONG = st.integers(-(2**63), 2**63 - 1)
_PARTIALS = st.lists(
    st.builds(pb.Partial, partition=st.one_of(st.integers(0, 3), _NUMBERS), value=st.binary(max_size=9))
)
_CALLS = st.one_of(
    st.builds(pb.EvaluateRequest, attempt=st.just(REF), iteration=st.one_of(st.integers(0, 3), _LONG),
              state=st.one_of(st.none(), st.binary(max_size=9))),
    st.tuples(st.sampled_from("abc"), st.builds(pb.WorkRequest, attempt=st.just(REF), partials=_PARTIALS,
              step=st.one_of(st.integers(-1, 3), _LONG), cpu_us=_LONG, wait_ms=st.sampled_from((0, 1)))),
    st.sampled_from("abc"),
    _NUMBERS,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(calls=st.lists(_CALLS, max_size=25), keeps=st.booleans())
def test_whatever_is_called_an_honest_worker_ends_the_step(calls: list[Any], keeps: bool) -> None:
    async def play() -> None:
        job = Job(4, 2, evaluations=Evaluations(50) if keeps else None)
        pending: list[asyncio.Future[Any]] = []
        for call in calls:
            if isinstance(call, pb.EvaluateRequest):
                pending.append(asyncio.ensure_future(_awaited(job.steps.evaluate(call))))
            elif isinstance(call, tuple):
                pending.append(asyncio.ensure_future(_awaited(job.steps.work(*call))))
            elif isinstance(call, str):
                job.steps.lost(call)
            else:
                job.steps.want(call)
        for name in "abc":
            job.steps.lost(name)
        job.steps.want(1)
        driver = job.evaluate(77, b"honest")
        worker = asyncio.ensure_future(job.work("honest"))
        answer = await driver
        assert answer.is_done and list(answer.partials) == [b"honest/%d" % p for p in range(4)]
        job.steps.lost("honest")
        await asyncio.gather(worker, *pending)

    asyncio.run(play())
