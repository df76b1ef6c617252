"""An exploration's service in its job manager, without a cluster: slots, trials, checkpoints, restarts, faults."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.tez_exploration.exploration_manager import OTHER, OWNER, TERMS, Order, World, container_id
from tez_adapter.core import events as ev
from tez_adapter.core.states import JobState
from tez_adapter.exploration.past import past_of
from tez_adapter.exploration.store import read_records
from tez_adapter.master.ended import JobEnd
from tez_adapter.protocol import ExplorationProtocol, JobClientProtocol
from yaqd.ipc.errors import Authorization
from yaqd.proto import convert, job_pb2
from yaqd.proto import job_exploration_pb2 as pb
from yaqd.proto import yarn_service_pb2 as service


async def test_whoever_has_no_token_is_refused(made: Callable[..., World]) -> None:
    world = made()
    slot = world.container(0)
    for method in (ExplorationProtocol.slotTurn, ExplorationProtocol.report, ExplorationProtocol.keepCheckpoint):
        with pytest.raises(Authorization):
            await world.call(method, method.request(attempt=slot), OWNER)
    with pytest.raises(Authorization):
        await world.call(JobClientProtocol.stopExploration, pb.StopExplorationRequest(), OTHER)


async def test_a_slot_of_an_attempt_that_is_over_leaves(made: Callable[..., World]) -> None:
    world = made()
    gone = job_pb2.AttemptRef(vertex=0, index=0, number=7)
    assert (await world.turn(gone)).leave


async def test_a_report_is_on_storage_before_it_is_answered(made: Callable[..., World]) -> None:
    world = made()
    slot = world.container(0)
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    await world.report(slot, trial, 1, 0.25, metrics=[pb.NamedNumber(name="loss", value=2.0)])
    (report,) = [record for record in read_records(world.conf, world.folder) if record["do"] == "report"]
    assert (report["number"], report["iteration"], report["value"]) == (trial.number, 1, 0.25)
    assert report["metrics"] == {"loss": 2.0} and report["verdict"][0] == 2


async def test_a_job_manager_that_starts_again_knows_all(made: Callable[..., World]) -> None:
    first = made()
    slot = first.container(0)
    done = [await first.run_to_rung(slot, value, bytes([place])) for place, value in enumerate((0.1, 0.4, 0.2))]
    last = await first.next_trial(slot)
    await first.begin(slot, last)
    before = await first.status()
    again = made()
    await asyncio.wait((again.service._loaded,))
    after = await again.status()
    for old, new in zip(before.trials, after.trials, strict=True):
        assert (old.number, old.params, old.values, old.priority) == (new.number, new.params, new.values, new.priority)
        assert (old.state, old.why, str(old.value), str(old.bound)) == (
            new.state,
            new.why,
            str(new.value),
            str(new.bound),
        )
    slot = again.container(0)
    trial = await again.next_trial(slot)
    assert trial.number == last.number and trial.lap == last.lap + 1
    assert (await again.begin(slot, last)).leave, "a process of the lost attempt"
    assert (await again.report(slot, last, 1, 0.9)).order == Order.LEAVE
    assert (await again.report(slot, trial, 1, 0.3)).order == Order.SUSPEND
    await again.over(slot, trial)
    # the best of four goes on, from its checkpoint
    promoted = await again.next_trial(slot)
    begun = await again.begin(slot, promoted)
    assert promoted.number == done[1].number
    assert (begun.checkpoint, begun.checkpoint_iteration, begun.checkpoint_epoch) == (b"\x01", 1, 1)
    assert (begun.epochs, begun.iteration) == (1, 1)


async def test_a_damaged_checkpoint_is_said_and_its_trial_begins_anew(made: Callable[..., World]) -> None:
    world = made(replace(TERMS, trials=4))
    slot = world.container(0)
    for value in (0.1, 0.4, 0.2, 0.3):
        await world.run_to_rung(slot, value)
    for path in world.checkpoints():
        path.write_bytes(path.read_bytes()[:-1])
    trial = await world.next_trial(slot)
    begun = await world.begin(slot, trial)
    assert not begun.HasField("checkpoint") and begun.checkpoint_epoch == 0 and begun.iteration == 1
    assert "begins anew" in world.notes[-1] and "damaged" in world.notes[-1]


async def test_checkpoints_keep_to_their_budget_and_the_least_promising_go(made: Callable[..., World]) -> None:
    world = made(replace(TERMS, trials=6), **{"yaq.ml.explore.checkpoint.bytes-max": "2500"})
    slot = world.container(0)
    for value in (0.1, 0.4, 0.2):
        await world.run_to_rung(slot, value, b"x" * 1000)
    kept = {trial.number for trial in (await world.status()).trials if trial.HasField("checkpoint_iteration")}
    assert len(kept) == len(world.checkpoints()) == 2 and 1 in kept
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    await world.report(slot, trial, 1, 0.05)
    assert not await world.keep(slot, trial, 1, b"x" * 3000)
    assert "do not fit" in world.notes[-1]


async def test_checkpoints_of_another_iteration_are_nobodys(made: Callable[..., World]) -> None:
    world = made()
    slot = world.container(0)
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    await world.report(slot, trial, 1, 0.2)
    assert not await world.keep(slot, trial, 2, b"later")
    assert not await world.keep(slot, pb.TrialRef(number=trial.number, lap=trial.lap - 1), 1, b"earlier lap")
    assert await world.keep(slot, trial, 1, b"")


async def test_a_slot_that_is_lost_gives_its_trial_to_another(made: Callable[..., World]) -> None:
    world = made()
    slots = [world.container(0), world.container(1)]
    trials = [await world.next_trial(slot) for slot in slots]
    world.dispatch(ev.ContainerCompleted(str(container_id(0, 0)), -100, "lost", None))
    slot = world.container(0)
    trial = await world.next_trial(slot)
    assert (trial.number, trial.lap) == (trials[0].number, 2)
    assert (await world.report(slots[0], trials[0], 1, 0.5)).order == Order.LEAVE


async def test_the_target_ends_the_job_with_the_best_trial(made: Callable[..., World]) -> None:
    world = made(replace(TERMS, target=0.6))
    slot = world.container(0)
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    answer = await world.report(slot, trial, 1, 0.7)
    assert answer.order == Order.STOP and answer.wants_checkpoint
    assert await world.keep(slot, trial, 1, b"best")
    await world.over(slot, trial)
    assert world.finish is not None and world.finish.state is JobState.SUCCEEDED
    said = world.service.said(JobEnd(JobState.SUCCEEDED, world.finish.diagnostics))
    assert said.startswith(f"trial {trial.number} reached the target; best is trial {trial.number}: accuracy 0.7 in")
    again = made(replace(TERMS, target=0.6))
    await asyncio.wait((again.service._loaded,))
    assert again.finish is not None and again.finish.diagnostics == world.finish.diagnostics


@pytest.mark.parametrize(
    "changes, said",
    (
        ({"space": "x = 1 = 2"}, "the exploration cannot begin"),
        ({"policy": "no-such"}, "no-such"),
        ({"generator": "magic"}, "magic"),
        ({"resumes": "job_1_0077"}, "nothing to resume"),
    ),
)
async def test_what_cannot_begin_fails_the_job(
    made: Callable[..., World], changes: Mapping[str, str], said: str
) -> None:
    world = made(replace(TERMS, **changes))  # type: ignore[arg-type]
    await asyncio.wait((world.service._loaded,))
    assert world.finish is not None and world.finish.state is JobState.FAILED and said in world.finish.diagnostics


async def test_a_job_that_resumes_another_with_other_terms_fails(made: Callable[..., World]) -> None:
    first = made()
    await first.run_to_rung(first.container(0), 0.3)
    other = made(replace(TERMS, resumes="job_1_0001", epochs=9), 2)
    await asyncio.wait((other.service._loaded,))
    assert other.finish is not None and "another epochs" in other.finish.diagnostics
    same = made(replace(TERMS, resumes="job_1_0001", target=0.9), 3)
    trials = {trial.number: list(trial.values) for trial in (await after_load(same)).trials}
    assert trials[0] == [0.3]


async def test_a_checkpoint_lives_through_any_number_of_resumes(made: Callable[..., World]) -> None:
    first = made()
    slots = [first.container(0), first.container(1)]
    trials = [await first.run_to_rung(slot, 0.3, b"%d" % slot.index) for slot in slots]
    for job in (2, 3, 4):
        again = made(replace(TERMS, resumes=f"job_1_{job - 1:04d}"), job)
        await after_load(again)
        assert again.service._begun is not None
        kept = again.service._begun.checkpoints
        assert [kept.load(trial.number, 1) for trial in trials] == [b"0", b"1"], f"job {job}"


async def test_a_target_that_was_reached_before_ends_a_resumed_job_at_once(made: Callable[..., World]) -> None:
    terms = replace(TERMS, limits=(("memory", "<=", 5.0),))
    first = made(terms)
    slots = [first.container(0), first.container(1)]
    trials = [await first.next_trial(slot) for slot in slots]
    for slot, trial, value, memory in zip(slots, trials, (0.4, 0.3), (9.0, 1.0), strict=True):
        await first.begin(slot, trial)
        await first.report(slot, trial, 1, value, metrics=[pb.NamedNumber(name="memory", value=memory)])
    more = made(replace(terms, resumes="job_1_0001", target=0.35), 2)
    assert not (await after_load(more)).is_over, "what breaks a limit has reached nothing"
    again = made(replace(terms, resumes="job_1_0001", target=0.25), 3)
    status = await after_load(again)
    assert again.finish is not None and again.finish.diagnostics == "trial 1 reached the target"
    assert (status.is_over, status.winner) == (True, 1)
    _, standing = past_of(read_records(again.conf, again.folder))
    assert (standing.winner, standing.ending) == (1, "trial 1 reached the target")
    restarted = made(replace(terms, resumes="job_1_0001", target=0.25), 3)
    assert (await after_load(restarted)).winner == 1


async def test_a_winner_goes_on_to_a_higher_target(made: Callable[..., World]) -> None:
    terms = replace(TERMS, policy="default", target=0.5)
    first = made(terms)
    slot = first.container(0)
    trial = await first.next_trial(slot)
    await first.begin(slot, trial)
    assert (await first.report(slot, trial, 1, 0.6)).order == Order.STOP
    assert await first.keep(slot, trial, 1, b"best")
    await first.over(slot, trial)
    again = made(replace(terms, resumes="job_1_0001", target=0.9), 2)
    await after_load(again)
    slot = again.container(0)
    trial = await again.next_trial(slot)
    begun = await again.begin(slot, trial)
    assert (trial.number, begun.checkpoint, begun.checkpoint_epoch) == (0, b"best", 1)


@pytest.mark.parametrize(
    "first, changes, said",
    (
        ({}, {"max_time_s": 1e-9}, "the time is over: 1e-09 s; resume it with a longer --max-time"),
        ({"trials": 1, "epochs": 1}, {}, "all trials have ended, so none can go on; begin a new exploration"),
    ),
)
async def test_a_job_that_cannot_go_on_says_what_to_give(
    made: Callable[..., World], first: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    terms = replace(TERMS, policy="default", **first)
    begun = made(terms)
    slot = begun.container(0)
    trial = await begun.next_trial(slot)
    await begun.begin(slot, trial)
    await begun.report(slot, trial, 1, 0.2)
    again = made(replace(terms, resumes="job_1_0001", **changes), 2)
    await after_load(again)
    assert again.finish is not None and again.finish.diagnostics.startswith(said)


async def test_a_job_whose_trials_all_failed_fails_again_where_it_is_resumed(made: Callable[..., World]) -> None:
    terms = replace(TERMS, trials=1)
    first = made(terms)
    slot = first.container(0)
    trial = await first.next_trial(slot)
    await first.begin(slot, trial)
    await first.over(slot, trial)
    assert first.finish is not None and first.finish.state is JobState.FAILED
    again = made(replace(terms, resumes="job_1_0001"), 2)
    await after_load(again)
    assert again.finish is not None and again.finish.state is JobState.FAILED


async def test_reports_without_the_metric_end_the_job(made: Callable[..., World]) -> None:
    world = made()
    slot = world.container(0)
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    names = [pb.NamedNumber(name="acuracy", value=0.5)]
    assert (await world.report(slot, trial, 1, None, left_out=1, metrics=names)).order == Order.CONTINUE
    assert world.notes == ["a report of trial 0 has no accuracy and is left out: it has acuracy"]
    assert (await world.report(slot, trial, 4, None, left_out=4, metrics=names)).order == Order.STOP
    assert world.finish is not None and world.finish.state is JobState.FAILED
    said = "trial 0 failed: none of its first 4 reports has accuracy: they have acuracy"
    assert said in world.finish.diagnostics


async def test_values_that_a_program_draws_are_its_trials(made: Callable[..., World]) -> None:
    world = made()
    slot = world.container(0)
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    for iteration in (1, 2):
        await world.report(slot, trial, iteration, 0.2, drawn='{"momentum": 0.5}')
    (told,) = (found for found in (await world.status()).trials if found.number == trial.number)
    assert json.loads(told.params)["momentum"] == 0.5
    records = read_records(world.conf, world.folder)
    assert [record["values"] for record in records if record["do"] == "drawn"] == [{"momentum": 0.5}]
    trials, _ = past_of(records)
    assert trials[0].params["momentum"] == 0.5 and "level" in trials[0].params
    again = made()
    (told,) = (found for found in (await after_load(again)).trials if found.number == trial.number)
    assert json.loads(told.params)["momentum"] == 0.5


async def after_load(world: World) -> pb.ExplorationStatusResponse:
    await asyncio.wait((world.service._loaded,))
    return await world.status()


async def test_a_status_tells_what_has_changed(made: Callable[..., World]) -> None:
    world = made()
    slot = world.container(0)
    await world.run_to_rung(slot, 0.3)
    first = await world.status()
    assert json.loads(first.terms)["metric"] == "accuracy"
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    await world.report(slot, trial, 1, 0.2)
    second = await world.status(first.version)
    # the next one for the slot is chosen already
    assert {found.number for found in second.trials} == {trial.number, trial.number + 1} and not second.terms


async def test_another_attempt_tells_a_client_all(made: Callable[..., World]) -> None:
    first = made()
    await first.run_to_rung(first.container(0), 0.3)
    seen = await first.status()
    again = made()
    again.service._versions_from += 1 << 24  # as a second later
    told = await after_load(again)
    told = await again.status(seen.version)
    assert {trial.number for trial in told.trials} == {0, 1} and told.terms
    assert not (await again.status(told.version)).trials


class Broken:
    """A generator that fails after its first trials."""

    size = None
    is_adaptive = True

    def propose(self, number: int) -> dict[str, float]:
        if number > 1:
            raise ZeroDivisionError("no such luck")
        return {"level": 0.5, "speed": 0.5}

    def told(self, number: int, params: Any, value: float, is_final: bool) -> None:
        raise ValueError("not interested")

    def close(self) -> None:
        pass


async def test_a_generator_that_raises_ends_the_pool_and_is_said(
    made: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tez_adapter.exploration.beginnings.make_generator", lambda *given, **more: Broken())
    world = made(replace(TERMS, policy="default", epochs=1))
    slot = world.container(0)
    for value in (0.1, 0.2):
        trial = await world.next_trial(slot)
        await world.begin(slot, trial)
        assert (await world.report(slot, trial, 1, value)).order == Order.STOP
        await world.over(slot, trial)
    await asyncio.wait_for(world.finished.wait(), 20)
    assert world.finish is not None and world.finish.state is JobState.SUCCEEDED
    assert "the generator fails, so trials after 2 are left out: no such luck" in world.notes[0]


async def test_a_container_that_is_wanted_back_is_left_with_a_checkpoint(made: Callable[..., World]) -> None:
    world = made(replace(TERMS, policy="default"))
    slots = [world.container(0), world.container(1)]
    trials = [await world.next_trial(slot) for slot in slots]
    for slot, trial in zip(slots, trials, strict=True):
        await world.begin(slot, trial)
    response = service.AllocateResponse()
    convert.put_container_id(response.preempt.contract.container.add().id, container_id(0, 0))
    world.service.hear(response)
    await asyncio.sleep(0)
    assert (await world.report(slots[1], trials[1], 1, 0.2)).order == Order.CONTINUE
    assert (await world.report(slots[0], trials[0], 1, 0.2)).order == Order.SUSPEND
    assert await world.keep(slots[0], trials[0], 1, b"one")
    await world.over(slots[0], trials[0])
    world.service._ticked = -10.0
    world.service.tick()
    assert (await world.turn(slots[0], 5000)).leave
    # the other slot is free again after three more epochs
    for iteration in (2, 3, 4):
        await world.report(slots[1], trials[1], iteration, 0.3)
    await world.over(slots[1], trials[1])
    moved = await world.next_trial(slots[1])
    begun = await world.begin(slots[1], moved)
    assert moved.number == trials[0].number and begun.checkpoint == b"one"
