"""The machine of explorations: which trial runs where, what reports are answered, what a restart leaves as it was."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, nan

import pytest

from tests.tez_exploration.exploration_world import POLICIES, Process, World, curve, two_slots
from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.runs import Run
from yaqd.policies.explore.facts import TrialState, Why
from yaqd.policies.explore.metric import Limit, Metric, Solved


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_comes_to_an_end_and_no_epoch_is_reported_twice(policy: str) -> None:
    world = two_slots(World.of(policy))
    world.run()
    assert world.end is not None and world.end.succeeded
    assert len(set(world.reports())) == len(world.reports())
    assert not world.processes and not world.lines
    for number, run in world.machine.runs.items():
        assert run.shown == [curve(number, epoch) for epoch in range(1, len(run.shown) + 1)]


def test_it_ends_where_the_target_is_reached_and_the_others_are_killed() -> None:
    world = two_slots(World.of(target=0.5))
    world.run()
    winner = world.machine.winner
    assert winner is not None and world.end == ev.EndExploration(True, f"trial {winner} reached the target")
    run = world.machine.run(winner)
    assert run.shown[-1] >= 0.5 > max(run.shown[:-1]) and run.verdict is not None and run.verdict.why is Why.REACHED
    assert world.checkpoints[winner] == len(run.shown)
    assert world.machine.reached_s is not None


def test_a_trial_that_is_parked_and_chosen_again_at_once_goes_on() -> None:
    world = World.of("pop", trials=1, epochs=9)
    world.do(ev.SlotCame("0.0", "h"))
    world.run()
    assert [record["do"] for record in world.records].count("begin") == 1
    assert world.machine.run(0).lap == 1


def disturbed(seed: int, policy: str) -> Callable[[World], None]:
    """Kill trials, take slots and the job manager away, give slots back."""
    draw = random.Random(seed)
    slots = {"0.0", "1.0"}
    made = 0

    def disturb(world: World) -> None:
        nonlocal made
        what = draw.random()
        if what < 0.05 and world.running():
            process = draw.choice(world.running())
            if world.machine.run(process.number).losses < world.machine.rules.losses_max:
                world.kill(process.number, process.lap)
        elif what < 0.1 and slots:
            name = draw.choice(sorted(slots))
            slots.remove(name)
            world.lose_slot(name)
        elif what < 0.13:
            slots.clear()
            world.restart(policy, ())
        while len(slots) < 2 and (draw.random() < 0.5 or not slots):
            made += 1
            slots.add(f"0.{made}")
            world.do(ev.SlotCame(f"0.{made}", draw.choice(("h", "g"))))

    return disturb


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "can_checkpoint, frozen_mb, freezes", ((True, 0, False), (False, 250, False), (True, 150, True))
)
def test_kills_and_lost_slots_lose_no_trial(policy: str, can_checkpoint: bool, frozen_mb: int, freezes: bool) -> None:
    for seed in range(6):
        more = {"frozen_mb": frozen_mb, "freezes_first": freezes}
        world = two_slots(World.of(policy, can_checkpoint=can_checkpoint, **more), "h", "g")
        world.run(disturb=disturbed(seed, policy))
        assert world.end is not None and world.end.succeeded
        assert len(set(world.reports())) == len(world.reports())
        for number, run in world.machine.runs.items():
            assert run.shown == [curve(number, epoch) for epoch in range(1, len(run.shown) + 1)]
            assert world.machine.trials.states[number] != TrialState.RUNNING
        assert not world.processes


@pytest.mark.parametrize("policy", POLICIES)
def test_with_one_slot_kills_change_no_decision(policy: str) -> None:
    def alone() -> World:
        world = World.of(policy, trials=10)
        world.do(ev.SlotCame("0.0", "h"))
        return world

    calm, shaken = alone(), alone()
    calm.run()
    draw = random.Random(5)

    def disturb(world: World) -> None:
        what = draw.random()
        if what < 0.2 and world.running():
            process = draw.choice(world.running())
            if world.machine.run(process.number).losses < world.machine.rules.losses_max:
                world.kill(process.number, process.lap)
        elif what < 0.3:
            world.restart(policy, ("0.0",))

    shaken.run(disturb=disturb)
    assert shaken.reports() == calm.reports()
    assert shaken.machine.best == calm.machine.best
    assert (shaken.machine.trials.priority == calm.machine.trials.priority).all()


def test_reports_of_an_earlier_lap_are_nobodys() -> None:
    world = two_slots(World.of(epochs=20))
    process = world.running()[0]
    world.kill(process.number, process.lap)
    stale = ev.TrialReported(process.number, process.lap, 1, 0.5, 1.0)
    assert world.do(stale).answer.order is ev.Order.LEAVE
    assert world.machine.trials.counts[process.number] == 0


def test_a_report_that_is_made_again_is_answered_again() -> None:
    world = two_slots(World.of("default", epochs=3))
    process = world.running()[0]
    report = ev.TrialReported(process.number, process.lap, 1, 0.5, 1.0)
    first = world.do(report)
    again = world.do(report)
    assert again.answer == first.answer and not again.records
    assert world.machine.trials.counts[process.number] == 1


def test_a_trial_that_is_killed_too_often_has_failed_and_one_that_fails_is_not_begun_again() -> None:
    world = two_slots(World.of("default", trials=3, losses_max=1, hopeless=9))
    first = world.running()[0].number
    for _ in range(2):
        process = next(p for p in world.running() if p.number == first)
        world.kill(process.number, process.lap)
    assert world.machine.trials.states[first] == TrialState.ENDED
    assert world.machine.run(first).error == "killed by signal 9"
    second = world.running()[0]
    world.processes.pop((second.number, second.lap))
    world.do(ev.TrialOver(second.number, second.lap, "ZeroDivisionError"))
    run = world.machine.run(second.number)
    assert run.error == "ZeroDivisionError" and run.verdict is not None and run.verdict.why is Why.FAILED


def test_a_trial_that_ends_its_containers_has_failed_and_the_others_go_on() -> None:
    world = two_slots(World.of("default", trials=3, epochs=3, losses_max=2, hopeless=9))
    for number in range(3):
        slot = next(process.slot for process in world.running() if process.number == 0)
        world.lose_slot(slot, "beyond physical memory")
        world.do(ev.SlotCame(f"0.{number + 1}", "h"))
    assert world.machine.trials.states[0] == TrialState.ENDED
    assert world.machine.run(0).error == "beyond physical memory"
    world.run()
    assert {number for number, _ in world.reports()} == {1, 2}


def test_a_trial_that_somebody_else_stops_goes_on() -> None:
    world = two_slots(World.of("default", epochs=3))
    process = world.running()[0]
    process.is_stopped = True
    outcome = world.do(ev.TrialStopped(process.number, process.lap, 10))
    assert outcome.decisions == [ev.ThawTrial(process.slot, process.number, process.lap)]
    assert not process.is_stopped and not world.do(ev.TrialStopped(process.number, process.lap + 1, 10)).decisions


def test_an_exploration_whose_first_trials_all_fail_has_failed() -> None:
    world = two_slots(World.of(trials=20, hopeless=5))
    while world.end is None:
        process = world.running()[0]
        world.processes.pop((process.number, process.lap))
        world.do(ev.TrialOver(process.number, process.lap, "no module named torch"))
    assert not world.end.succeeded and "5 trials failed" in world.end.text and "torch" in world.end.text


def test_a_generator_without_more_values_ends_the_pool() -> None:
    world = World.of("default", trials=6)
    world.carry_out = _no_more_after(world, 2)  # type: ignore[method-assign, assignment]
    two_slots(world)
    world.run()
    assert world.end is not None and world.end.text == "all trials have ended"
    assert {number for number, _ in world.reports()} == {0, 1}


def _no_more_after(world: World, most: int) -> Callable[[ev.Decision], None]:
    carry_out = world.carry_out

    def carried(decision: ev.Decision) -> None:
        if isinstance(decision, ev.Propose) and decision.number >= most:
            world.events.append(ev.ParamsCame(decision.number, None))
        else:
            carry_out(decision)

    return carried


def test_odd_metrics_count_as_the_lowest_and_are_said_once() -> None:
    world = two_slots(World.of("default", epochs=4, target=0.5))
    process = world.running()[0]
    for value in (0.2, nan, inf, -inf):
        world.step(process, value)
    assert len(world.lines) == 1 and "nan" in world.lines[0]
    assert world.machine.trials.values[process.number].tolist() == [0.2] * 4
    assert world.end is None


def test_limits_and_conditions_say_what_counts_as_reached() -> None:
    limited = two_slots(World.of(target=0.5, limits=(Limit.parse("memory <= 100"),)))
    process = limited.running()[0]
    report = ev.TrialReported(process.number, process.lap, 1, 0.9, 1.0, {"memory": 101.0})
    assert limited.do(report).answer.order is not ev.Order.STOP and limited.machine.winner is None
    report = ev.TrialReported(process.number, process.lap, 2, 0.9, 1.0, {"memory": 100.0})
    assert limited.do(report).answer.order is ev.Order.STOP and limited.machine.winner == process.number

    solved = two_slots(World.of("default", epochs=9, metric=Metric("min"), solved=Solved.parse("mean(2) <= 1")))
    process = solved.running()[0]
    for value in (1.4, 0.2):
        solved.step(process, value)
    assert solved.machine.winner == process.number and len(solved.machine.run(process.number).shown) == 2


def test_a_stop_parks_what_runs_and_a_resumed_one_goes_on() -> None:
    world = two_slots(World.of(epochs=20, trials=4))
    for _ in range(3):
        for process in world.running():
            world.step(process)
    world.do(ev.StopAsked("stopped by me"))
    assert world.end is None
    for process in world.running():
        answer = world.step(process)
        assert answer is not None and answer.order is ev.Order.SUSPEND
    assert world.end == ev.EndExploration(True, "stopped by me")


def test_a_stop_waits_no_longer_than_it_may() -> None:
    world = two_slots(World.of(epochs=20, trials=4, end_wait_s=5.0))
    world.do(ev.StopAsked("stopped by me"))
    world.now = 6.0
    world.do(ev.ClockTicked())
    assert world.end is not None and not world.processes


def test_a_trial_that_does_not_stop_is_killed() -> None:
    world = two_slots(World.of("default", epochs=1, trials=2, stop_wait_s=10.0))
    process = world.running()[0]
    report = ev.TrialReported(process.number, process.lap, 1, 0.5, 1.0)
    assert world.do(report).answer.order is ev.Order.STOP
    world.now = 9.0
    world.do(ev.ClockTicked())
    assert process in world.processes.values()
    world.now = 10.0
    world.do(ev.ClockTicked())
    assert process not in world.processes.values()


def test_the_time_ends_it() -> None:
    world = two_slots(World.of(epochs=100, trials=40, max_time_s=20.0))
    world.run()
    assert world.end is not None and world.end.text == "the time is over: 20 s" and world.now < 25


def test_slots_that_no_trial_needs_are_given_back() -> None:
    world = two_slots(World.of("default", trials=3, epochs=6))
    world.run()
    assert world.end is not None and len(world.released) == 1
    assert len(world.machine.placing.slots) == 1


@pytest.mark.parametrize("can_checkpoint", (True, False))
def test_a_slot_that_is_wanted_back_is_left_and_given_back(can_checkpoint: bool) -> None:
    world = two_slots(World.of("default", trials=4, epochs=9, can_checkpoint=can_checkpoint))
    for process in world.running():
        world.step(process)
    moved = next(process for process in world.running() if process.slot == "0.0")
    world.do(ev.SlotClosing("0.0"))
    world.do(ev.SlotClosing("0.0"))
    world.step(moved)
    world.do(ev.ClockTicked())
    if not can_checkpoint:
        assert moved in world.running() and not world.released
        world.lose_slot("0.0")
    else:
        assert moved not in world.running() and world.released == ["0.0"]
    world.run()
    assert len(set(world.reports())) == len(world.reports()) == 36
    begun = [r["slot"] for r in world.records if r["do"] == "begin" and r["number"] == moved.number]
    assert begun == ["0.0", "1.0"]


def test_what_stands_stopped_in_a_slot_that_is_wanted_back_makes_a_checkpoint() -> None:
    world = World.of("asha-promote", trials=6, epochs=9, frozen_mb=1000, freezes_first=True)
    two_slots(world, "h", "g")
    while not any(process.is_stopped and process.slot == "0.0" for process in world.processes.values()):
        for process in world.running():
            world.step(process)
    stopped = [process.number for process in world.processes.values() if process.is_stopped and process.slot == "0.0"]
    world.do(ev.SlotClosing("0.0"))
    assert set(stopped) <= world.checkpoints.keys()
    assert not [process for process in world.processes.values() if process.is_stopped and process.slot == "0.0"]


def test_a_program_that_ends_without_a_report_has_failed_and_one_that_ends_early_has_not() -> None:
    world = two_slots(World.of("default", trials=4, epochs=5, hopeless=9))
    silent, early = world.running()
    world.processes.pop((silent.number, silent.lap))
    world.do(ev.TrialOver(silent.number, silent.lap))
    assert world.machine.run(silent.number).error == "its program ended and reported no accuracy"
    world.step(early)
    world.processes.pop((early.number, early.lap))
    world.do(ev.TrialOver(early.number, early.lap))
    run = world.machine.run(early.number)
    assert not run.error and run.verdict is not None and run.verdict.why is Why.LEFT


def test_trials_that_stand_stopped_get_their_own_slots_back_before_others_choose() -> None:
    world = two_slots(World.of("default", trials=6, epochs=9, frozen_mb=1000, freezes_first=True), "h", "g")
    first, second = world.running()
    for process in (first, second):
        run = world.machine.run(process.number)
        world.machine.placing.leave(run, ev.Answer(ev.Order.FREEZE), 60.0)
        process.is_stopped = True
        world.do(ev.TrialStopped(process.number, process.lap, 10))
    third = Run(5, params={"x": 5})
    placing = world.machine.placing
    placing.place_all([third, world.machine.run(first.number)], placing.slots.free())
    assert {slot.name: slot.following and slot.following.number for slot in world.machine.placing.slots} == {
        first.slot: first.number,
        second.slot: third.number,
    }


@pytest.mark.parametrize("frozen_mb", (0, 150, 1000))
def test_checkpoints_that_cannot_be_kept_leave_trials_stopped_while_memory_fits(frozen_mb: int) -> None:
    world = two_slots(World.of("asha-promote", trials=6, epochs=9, frozen_mb=frozen_mb))
    world.is_full = True
    world.run()
    found = [record["do"] for record in world.records]
    assert world.end is not None and "checkpoint" not in found
    assert ("frozen" in found) == (frozen_mb > 0)
    assert found.count("begin") == 6 if frozen_mb == 1000 else found.count("begin") > 6
    assert len(set(world.reports())) == len(world.reports())


def test_a_stop_ends_what_can_keep_no_checkpoint() -> None:
    world = two_slots(World.of("default", trials=4, epochs=9, frozen_mb=1000))
    world.is_full = True
    world.do(ev.StopAsked("stopped by me"))
    for process in world.running():
        world.step(process)
    assert world.end is not None and not world.processes


@pytest.mark.parametrize("is_late", [False, True])
def test_a_program_that_fails_as_it_is_suspended_goes_on_a_few_times(is_late: bool) -> None:
    for most in (0, 1, 9):
        world = _FailingWorld.of("asha-promote", trials=9, epochs=20, losses_max=most, hopeless=99)
        world.is_late = is_late
        world.do(ev.SlotCame("0.0", "h"))
        world.do(ev.SlotCame("0.1", "h"))
        world.run()
        runs = world.machine.runs.values()
        assert len(world.lines) == sum(run.losses for run in runs) and max(run.losses for run in runs) <= most
        assert all("failed as it was suspended: no such file" in line for line in world.lines)
        assert any(run.error == "no such file" for run in runs) == (most < 9)


def test_a_checkpoint_that_fails_as_all_is_stopped_costs_no_trial_its_life() -> None:
    world = _FailingWorld.of("index", trials=4, epochs=20, losses_max=0, hopeless=99)
    for slot in ("0.0", "1.0"):
        world.do(ev.SlotCame(slot, "h"))
    world.do(ev.StopAsked("stopped"))
    world.run()
    assert world.end is not None and not world.lines
    assert not any(run.error or run.losses for run in world.machine.runs.values())


@dataclass
class _FailingWorld(World):
    """Checkpoints fail."""

    #: that is known once something else was heard, and the trial may have been chosen again
    is_late: bool = False
    waiting: list[ev.Event] = field(default_factory=list)

    def follow(self, process: Process, answer: ev.Answer) -> None:
        self.events += self.waiting
        self.waiting.clear()
        if answer.order is not ev.Order.SUSPEND:
            super().follow(process, answer)
            return
        self.processes.pop((process.number, process.lap))
        over = ev.TrialOver(process.number, process.lap, "no such file")
        (self.waiting if self.is_late and self.processes else self.events).append(over)
