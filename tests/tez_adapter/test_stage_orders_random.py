"""Jobs on random clusters whose ResourceManagers order anything about their stages, or what is sensible."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tez_adapter.tez_driver import SMALL, mapreduce
from tests.tez_adapter.tez_random_cluster import RandomCluster
from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import JobState
from yaqd.model.stages import StagesOrder


class OrderingCluster(RandomCluster):
    """Its ResourceManager orders what it likes, or what is sensible, when it likes."""

    sensible = False

    def _step(self) -> None:
        super()._step()
        chance = 1.0 if self.sensible else 0.3
        while self.machine.state is JobState.RUNNING and self.rng.random() < chance:
            chance *= 0.5
            self.send(ev.StagesOrdered(self._sensible() if self.sensible else self._any()))

    def _any(self) -> StagesOrder:
        rng = self.rng
        priorities = [vertex.spec.priority for vertex in self.machine.vertices]
        shares = [(rng.choice([*priorities, -1]), rng.choice([0, 1, 2, 10**7])) for _ in range(rng.randrange(4))]
        return StagesOrder(1, rng.random() < 0.9, rng.choice([None, 0, 1, 3, 10**7]), tuple(shares))

    def _sensible(self) -> StagesOrder:
        """As many as wait, for the stages that have tasks, the last ones first."""
        left = self.machine.held.undecided()
        shares = []
        for stage in reversed(self.machine.left(self.now)):
            count = min(left, max(0, stage.tasks - stage.running))
            shares.append((stage.priority, count))
            left -= count
        return StagesOrder(1, True, None, tuple(shares))


def graph(rng: random.Random) -> DagSpec:
    many = rng.randint(1, 6)
    vertices = tuple(VertexSpec(f"v{at}", rng.randint(0, 4), SMALL, 10 + at, timeout_s=30.0) for at in range(many))
    edges = [
        EdgeSpec(source, target, rng.choice([0.0, 0.5, 1.0]))
        for target in range(1, many)
        for source in rng.sample(range(target), rng.randint(0, min(2, target)))
    ]
    return DagSpec(vertices, tuple(edges))


@given(seed=st.integers(0, 2**32), slots=st.integers(1, 6), sensible=st.booleans(), faults=st.sampled_from([0, 100]))
@settings(max_examples=examples(120), deadline=None)
def test_any_orders_at_any_time_end_the_job(seed: int, slots: int, sensible: bool, faults: int) -> None:
    rng = random.Random(seed)
    cluster = OrderingCluster(JobMachine(graph(rng)), rng, slots=slots, faults=faults)
    cluster.sensible = sensible
    cluster.run_to_the_end()
    cluster.check_end()
    if not faults:
        assert cluster.machine.state is JobState.SUCCEEDED
        assert not cluster.machine.containers


@given(seed=st.integers(0, 2**32), slots=st.integers(1, 6), slow_start=st.sampled_from([0.0, 0.05, 0.5, 1.0]))
@settings(max_examples=examples(60), deadline=None)
def test_a_mapreduce_job_in_such_a_queue_ends(seed: int, slots: int, slow_start: float) -> None:
    rng = random.Random(seed)
    spec = mapreduce(rng.randint(0, 12), rng.randint(0, 5), slow_start=slow_start)
    cluster = OrderingCluster(JobMachine(spec), rng, slots=slots, faults=0)
    cluster.sensible = True
    cluster.run_to_the_end()
    assert cluster.machine.state is JobState.SUCCEEDED
    assert not cluster.machine.containers
