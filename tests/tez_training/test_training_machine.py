"""Who computes which partitions: the pure machine of training jobs."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tez_adapter.core.training import (
    Decision,
    Event,
    GiveLeave,
    GiveStep,
    PartialsCame,
    StepAsked,
    StepDone,
    TrainingMachine,
    WorkerGone,
    WorkerReady,
    WorkersWanted,
    deal,
)


@given(
    partitions=st.integers(1, 40),
    owned=st.lists(st.lists(st.integers(0, 50), unique=True, max_size=12), min_size=1, max_size=10),
)
def test_a_deal_is_even_whole_and_moves_little(partitions: int, owned: list[list[int]]) -> None:
    dealt = deal(partitions, owned)
    assert sorted(p for part in dealt for p in part) == list(range(partitions))
    sizes = [len(part) for part in dealt]
    assert max(sizes) - min(sizes) <= 1
    assert all(part == sorted(part) for part in dealt)
    assert deal(partitions, dealt) == dealt


class Workers:
    """Workers that are killed, come, and compute."""

    def __init__(self, partitions: int, wanted: int) -> None:
        self.machine = TrainingMachine(partitions, wanted=wanted, gather_s=1.0)
        self.tasks: dict[str, GiveStep] = {}
        self.there: set[str] = set()
        self.left: set[str] = set()
        self.done: list[int] = []
        self.computed: set[tuple[int, int]] = set()
        self.now = 0.0

    def tell(self, event: Event) -> list[Decision]:
        self.now += 0.3
        decisions = self.machine.handle(event, self.now)
        for decision in decisions:
            match decision:
                case GiveStep():
                    assert decision.worker in self.there and decision.worker not in self.tasks
                    assert set(decision.partitions) <= set(decision.keep)
                    self.tasks[decision.worker] = decision
                case GiveLeave():
                    self.there.remove(decision.worker)
                    self.left.add(decision.worker)
                case StepDone():
                    self.done.append(decision.step)
        return decisions

    def come(self, name: str) -> None:
        self.there.add(name)
        self.tell(WorkerReady(name))

    def compute(self, name: str) -> None:
        task = self.tasks.pop(name)
        self.computed |= {(task.step, p) for p in task.partitions}
        self.tell(PartialsCame(name, task.step, task.partitions))
        if name in self.there:
            self.tell(WorkerReady(name))

    def kill(self, name: str) -> None:
        self.there.remove(name)
        self.tasks.pop(name, None)
        self.tell(WorkerGone(name))


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 10**6), partitions=st.integers(1, 12), wanted=st.integers(1, 9))
def test_every_step_ends_whoever_dies(seed: int, partitions: int, wanted: int) -> None:
    chance = random.Random(seed)
    workers, named = Workers(partitions, wanted), 0
    for step in range(6):
        workers.tell(StepAsked(step))
        for _ in range(10_000):
            if step in workers.done:
                break
            act = chance.random()
            if act < 0.3 or not workers.there:
                if len(workers.there) < workers.machine.wanted + 1:
                    named += 1
                    workers.come(f"w{named}")
            elif act < 0.4:
                workers.kill(chance.choice(sorted(workers.there)))
            elif act < 0.45:
                workers.tell(WorkersWanted(chance.randint(1, 9)))
            elif workers.tasks:
                workers.compute(chance.choice(sorted(workers.tasks)))
        assert step in workers.done
        assert {p for s, p in workers.computed if s == step} == set(range(partitions))


def test_the_first_step_waits_for_workers_and_not_for_ever() -> None:
    workers = Workers(4, 2)
    workers.tell(StepAsked(0))
    workers.come("a")
    assert not workers.tasks
    workers.come("b")
    assert [workers.tasks[name].partitions for name in "ab"] == [(0, 1), (2, 3)]
    alone = Workers(4, 2)
    alone.tell(StepAsked(0))
    alone.come("a")
    for _ in range(4):
        alone.tell(WorkersWanted(2))
    assert alone.tasks["a"].partitions == (0, 1, 2, 3)


def test_partitions_stay_and_workers_go_between_steps() -> None:
    workers = Workers(4, 2)
    workers.come("a")
    workers.come("b")
    workers.tell(StepAsked(0))
    workers.tell(WorkersWanted(1))
    assert not workers.left
    workers.compute("b")
    workers.compute("a")
    assert workers.done == [0] and not workers.left
    workers.tell(StepAsked(1))
    assert workers.left == {"b"}
    assert workers.tasks["a"].keep == (0, 1, 2, 3)


def test_what_a_lost_worker_had_is_done_by_those_that_wait() -> None:
    workers = Workers(4, 2)
    workers.come("a")
    workers.come("b")
    workers.tell(StepAsked(0))
    workers.compute("a")
    workers.kill("b")
    assert workers.tasks["a"].partitions == (2, 3)
    assert workers.tasks["a"].keep == (0, 1, 2, 3)
    workers.compute("a")
    assert workers.done == [0]


def test_partials_of_a_step_that_is_no_longer_wanted_count_for_nothing() -> None:
    workers = Workers(2, 1)
    workers.come("a")
    workers.tell(StepAsked(0))
    old = workers.tasks.pop("a")
    workers.tell(StepAsked(1))
    workers.tell(PartialsCame("a", 0, old.partitions))
    assert not workers.done
    workers.tell(WorkerReady("a"))
    workers.compute("a")
    assert workers.done == [1]
