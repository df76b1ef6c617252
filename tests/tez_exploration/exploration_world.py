"""A machine of explorations with slots and trials that do what they are told, in simulated time."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, inf
from typing import Any, Self

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.recall import recall
from tez_adapter.core.exploration.rules import Rules
from yaqd.policies.curves.reach import LibraryReach
from yaqd.policies.explore.facts import ExplorePolicy, Terms, Trials
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.metric import Metric
from yaqd.policies.explore.policies import EXPLORE

REACH = LibraryReach(shapes=100)
POLICIES = ("index", "default", "pop", "asha-stop", "asha-promote", "hyperband", "median", "patience", "bandit")


def rules_for(**more: Any) -> Rules:
    terms = Terms(more.pop("target", None), more.pop("epochs", 9), more.pop("slots", 2), more.pop("max_time_s", inf))
    return Rules(terms, more.pop("metric", Metric()), "accuracy", **more)


def policy_of(name: str, rules: Rules) -> ExplorePolicy:
    return EXPLORE[name](rules.terms, Predicted(REACH))


def curve(number: int, epoch: int) -> float:
    """Return the metric of a trial after an epoch: levels and speeds spread by number."""
    draw = random.Random(number)
    return draw.uniform(0.1, 0.9) * (1 - exp(-draw.uniform(0.05, 1.0) * epoch))


@dataclass
class Process:
    """A trial's process: reports one epoch after another."""

    number: int
    lap: int
    slot: str
    epoch: int
    known: int
    is_stopped: bool = False
    is_told_to_stop: bool = False
    #: it is an image alone
    is_image: bool = False


@dataclass
class World:
    machine: ExplorationMachine
    can_checkpoint: bool = True
    #: checkpoints are made, and none can be kept
    is_full: bool = False
    #: what becomes of images: "dump": none can be made; "restore": none goes on; "hang": nor is that told
    image_fails: str = ""
    now: float = 0.0
    processes: dict[tuple[int, int], Process] = field(default_factory=dict)
    checkpoints: dict[int, int] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    end: ev.EndExploration | None = None
    events: list[ev.Event] = field(default_factory=list)
    curve: Callable[[int, int], float] = curve
    #: of a trial, beside the one that is looked for
    metrics: Callable[[int], dict[str, float]] = lambda number: {}

    @classmethod
    def of(cls, policy: str = "index", trials: int = 8, *, can_checkpoint: bool = True, **more: Any) -> Self:
        rules = rules_for(**more)
        machine = ExplorationMachine(policy_of(policy, rules), Trials(trials, rules.terms.epochs), rules)
        return cls(machine, can_checkpoint)

    def do(self, event: ev.Event) -> ev.Outcome:
        outcome = self.machine.handle(event, self.now)
        self.records += outcome.records
        for decision in outcome.decisions:
            self.carry_out(decision)
        while self.events:
            self.do(self.events.pop(0))
        return outcome

    def carry_out(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Propose(number):
                self.events.append(ev.ParamsCame(number, {"x": number}))
            case ev.BeginTrial(slot, number, lap):
                assert not [p for p in self.processes.values() if p.number == number], "a trial runs twice at once"
                run = self.machine.run(number)
                done = self.checkpoints.get(number, 0) if run.checkpoint is not None else 0
                known = max(0, run.iteration)
                self.processes[number, lap] = Process(number, lap, slot, done, known)
            case ev.ThawTrial(slot, number, lap):
                process = self.processes[number, lap]
                assert process.is_stopped and process.slot == slot
                if not process.is_image or not self.image_fails:
                    process.is_image = False
                    self.follow(process, self.machine.woken(number, lap))
                elif self.image_fails == "restore":
                    self.over(process, "pid taken")
            case ev.DumpTrial(slot, number, lap):
                process = self.processes[number, lap]
                assert process.is_stopped and process.slot == slot and not process.is_image
                process.is_image = self.image_fails != "dump"
                failed = ev.TrialStopped(number, lap, 100, error="no room")
                self.events.append(ev.TrialStopped(number, lap, 0, 60) if process.is_image else failed)
            case ev.KillTrial(_, number, lap):
                self.kill(number, lap, told=True)
            case ev.ReleaseSlot(slot):
                self.released.append(slot)
            case ev.Say(line):
                self.lines.append(line)
            case ev.EndExploration():
                assert self.end is None
                self.end = decision

    def kill(self, number: int, lap: int, *, told: bool = False) -> None:
        if (process := self.processes.get((number, lap))) is not None:
            self.over(process, "killed by signal 9")
            if not told:
                self.do(self.events.pop(0))

    def over(self, process: Process, error: str) -> None:
        del self.processes[process.number, process.lap]
        self.events.append(ev.TrialOver(process.number, process.lap, error, True))

    def follow(self, process: Process, answer: ev.Answer) -> None:
        """Do what a report was answered."""
        without = self.is_full or not self.can_checkpoint
        process.is_stopped = answer.order is ev.Order.FREEZE or (answer.order is ev.Order.SUSPEND and without)
        if process.is_stopped:
            self.events.append(ev.TrialStopped(process.number, process.lap, 100))
            return
        if self.can_checkpoint and not self.is_full and (answer.order is ev.Order.SUSPEND or answer.wants_checkpoint):
            self.checkpoints[process.number] = process.epoch
            self.events.append(ev.CheckpointKept(process.number, process.epoch, 1000))
        if answer.order in (ev.Order.SUSPEND, ev.Order.LEAVE, ev.Order.STOP):
            self.processes.pop((process.number, process.lap), None)
            self.events.append(ev.TrialOver(process.number, process.lap))

    def step(self, process: Process, value: float | None = None) -> ev.Answer | None:
        """Let a trial end an epoch; return the answer, None where it was answered by the trial's channel."""
        process.epoch += 1
        if process.epoch <= process.known:
            return None
        process.known = process.epoch
        shown = self.curve(process.number, process.epoch) if value is None else value
        report = ev.TrialReported(
            process.number,
            process.lap,
            process.epoch,
            shown,
            1.0,
            self.metrics(process.number),
            self.can_checkpoint,
            memory_mb=100,
        )
        outcome = self.machine.handle(report, self.now)
        self.records += outcome.records
        self.follow(process, outcome.answer)
        for decision in outcome.decisions:
            self.carry_out(decision)
        while self.events:
            self.do(self.events.pop(0))
        return outcome.answer

    def running(self) -> list[Process]:
        return [process for process in self.processes.values() if not process.is_stopped]

    def run(self, *, disturb: Callable[["World"], None] = lambda world: None, steps: int = 10_000) -> None:
        """Go on until the end, one epoch after another in turns."""
        for _ in range(steps):
            if self.end is not None:
                return
            self.now += 1.0
            for process in self.running():
                if (process.number, process.lap) in self.processes and self.end is None:
                    self.step(process)
            if self.end is None:
                disturb(self)
            self.do(ev.ClockTicked())
        raise AssertionError("no end")

    def lose_slot(self, name: str, error: str = "") -> None:
        for key in [key for key, process in self.processes.items() if process.slot == name]:
            del self.processes[key]
        self.do(ev.SlotGone(name, error))

    def restart(self, policy: str, slots: Sequence[str] = ("0.0", "1.0")) -> None:
        """Lose the job manager with all slots, and begin again from the records."""
        old = self.machine
        again = ExplorationMachine(policy_of(policy, old.rules), Trials(len(old.trials), old.trials.epochs), old.rules)
        recall(again, self.records)
        assert (again.trials.counts == old.trials.counts).all() and (again.trials.states == old.trials.states).all()
        assert [replace_nan(again.runs[n].shown) for n in again.runs] == [
            replace_nan(old.runs[n].shown) for n in again.runs
        ]
        self.machine = again
        self.processes.clear()
        for name in slots:
            self.do(ev.SlotCame(name, "h"))

    def reports(self) -> list[tuple[int, int]]:
        return [(record["number"], record["iteration"]) for record in self.records if record["do"] == "report"]


def replace_nan(values: Sequence[float]) -> list[float | None]:
    return [None if value != value else value for value in values]


def two_slots(world: World, *hosts: str) -> World:
    for number, host in enumerate(hosts or ("h", "h")):
        world.do(ev.SlotCame(f"{number}.0", host))
    return world
