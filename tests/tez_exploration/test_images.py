"""Trials whose memory is wanted and that make no checkpoints: which become images, and what follows where one fails."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tez_exploration.exploration_world import World, curve, rules_for
from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.placing import Placing
from tez_adapter.core.exploration.runs import Run, Slot
from yaqd.policies.explore.facts import TrialState

POLICIES = ("index", "default", "asha-promote", "hyperband", "median")


def alone(policy: str = "asha-promote", *, can_dump: bool = True, cannot_dump: str = "", **more: Any) -> World:
    world = World.of(policy, trials=9, can_checkpoint=False, **{"frozen_mb": 150, "images_mb": 10_000, **more})
    world.do(ev.SlotCame("0.0", "h", can_dump, cannot_dump))
    return world


def begins(world: World) -> Counter[int]:
    return Counter(record["number"] for record in world.records if record["do"] == "begin")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("frozen_mb", (0, 150))
def test_no_trial_begins_anew_where_images_can_be_made_and_decisions_are_the_same(policy: str, frozen_mb: int) -> None:
    world, roomy, small = (
        alone(policy, frozen_mb=frozen_mb),
        alone(policy, frozen_mb=10_000),
        alone(policy, frozen_mb=frozen_mb, can_dump=False),
    )
    for one in (world, roomy, small):
        one.run()
        assert one.end is not None and one.end.succeeded and not one.processes
    assert world.reports() == roomy.reports() == small.reports()
    assert set(begins(world).values()) == {1}
    moves = max(begins(small).values()) > 1
    assert ("dumped" in [record["do"] for record in world.records]) == moves
    assert not [record for one in (roomy, small) for record in one.records if record["do"] == "dumped"]


def test_some_policy_makes_images() -> None:
    world = alone()
    world.run()
    assert sum(record["do"] == "dumped" for record in world.records) > 3


@pytest.mark.parametrize("images_mb", (0, 99, 100, 250))
def test_images_keep_to_the_disk_that_they_may_take(images_mb: int) -> None:
    world = alone(images_mb=images_mb)
    most = 0

    def look(world: World) -> None:
        nonlocal most
        most = max(most, sum(run.image_mb for run in world.machine.placing.live()))
        assert sum(p.is_stopped and not p.is_image for p in world.processes.values()) <= 1

    world.run(disturb=look)
    # an image of a trial of 100 MB takes 60
    assert most == {0: 0, 99: 0, 100: 60, 250: 180}[images_mb]
    assert world.end is not None and max(begins(world).values()) > 1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("fails", ("", "dump", "restore", "hang"))
def test_whatever_becomes_of_images_no_trial_is_lost(policy: str, fails: str) -> None:
    for seed in range(4):
        world = World.of(policy, can_checkpoint=False, frozen_mb=150, images_mb=400, suspend_wait_s=3.0)
        world.image_fails = fails
        for number, host in enumerate("hg"):
            world.do(ev.SlotCame(f"{number}.0", host, True))
        world.run(disturb=_disturbed(seed, policy))
        assert world.end is not None and world.end.succeeded
        assert len(set(world.reports())) == len(world.reports())
        for number, run in world.machine.runs.items():
            assert run.shown == [curve(number, epoch) for epoch in range(1, len(run.shown) + 1)]
            assert world.machine.trials.states[number] != TrialState.RUNNING and not run.error
        assert not world.processes


def _disturbed(seed: int, policy: str) -> Callable[[World], None]:
    """Take slots and the job manager away, and give slots back."""
    draw = random.Random(seed)
    slots = ["0.0", "1.0"]

    def disturb(world: World) -> None:
        what = draw.random()
        if what < 0.05 and slots:
            world.lose_slot(slots.pop(draw.randrange(len(slots))))
        elif what < 0.07:
            slots.clear()
            world.restart(policy, ())
        while len(slots) < 2:
            slots.append(f"0.{draw.randrange(1 << 30)}")
            world.do(ev.SlotCame(slots[-1], draw.choice("hg"), True))

    return disturb


@pytest.mark.parametrize("fails, why", (("dump", "no room"), ("restore", "pid taken"), ("hang", "killed by signal 9")))
def test_an_image_that_fails_is_said_once_and_its_trial_begins_anew_without_blame(fails: str, why: str) -> None:
    world = alone(losses_max=0, suspend_wait_s=3.0)
    world.image_fails = fails
    calm = alone(frozen_mb=10_000)
    calm.run()
    world.run()
    assert world.reports() == calm.reports()
    # an image that was made before the first one failed may fail, too
    assert world.lines and all(line.endswith(f"begins anew, as its image fails: {why}") for line in world.lines)
    assert len(world.lines) == 1 or fails != "dump"
    made = [record["do"] for record in world.records]
    assert made.count("dumped") == len(world.lines) * (fails != "dump")
    assert "loss" not in made and max(begins(world).values()) > 1


def test_a_slot_without_a_working_criu_is_said_once_when_it_matters() -> None:
    world, roomy = alone(can_dump=False, cannot_dump="check fails"), alone(cannot_dump="x", frozen_mb=10_000)
    for one in (world, roomy):
        one.run()
    told = "CRIU cannot be used on h: check fails: trials without checkpoints are stopped in memory only"
    assert world.lines == [told] and roomy.lines == []
    silent = alone(can_dump=False)
    silent.run()
    assert silent.lines == [] and silent.records == world.records


def test_a_trial_that_went_on_from_its_image_is_as_any_other_once_it_has_reported() -> None:
    world = alone(suspend_wait_s=3.0)
    killed: list[int] = []

    def disturb(world: World) -> None:
        for process in world.running():
            own = [record["do"] for record in world.records if record.get("number") == process.number]
            if own[-2:] == ["thaw", "report"] and own[-3] == "dumped" and not killed:
                killed.append(process.number)
                world.kill(process.number, process.lap)

    world.run(disturb=disturb)
    assert world.lines == [f"trial {killed[0]} is taken up again: killed by signal 9"]
    # nor is one killed because an epoch takes longer than a suspension may
    assert sum(begins(world).values()) == 9 + 1
    assert world.machine.runs[killed[0]].losses == 1


def test_images_that_are_being_made_count_as_what_they_may_take() -> None:
    decided: list[ev.Decision] = []
    placing = Placing(rules_for(frozen_mb=250, images_mb=150), decided.append, lambda record: None)
    placing.slots.add(Slot("0.0", "h", can_dump=True))
    runs = [Run(number, params={}) for number in range(3)]
    for run in runs:
        placing.place(run, placing.slots.free())
        placing.advance()
        run.memory_mb = 240
        if run is not runs[-1]:
            placing.leave(run, ev.Answer(ev.Order.FREEZE), 60.0)
            stopped = ev.TrialStopped(run.number, 1, 100)
            placing.hear(stopped, 0.0)
            placing.frozen(run, stopped)
    decided.clear()
    assert placing.suspension(runs[-1], np.array([0.1, 0.2, 0.3])).order is ev.Order.FREEZE
    assert decided == [ev.DumpTrial("0.0", 0, 1), ev.KillTrial("0.0", 1, 1)]
