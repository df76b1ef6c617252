"""The plain simulator: what follows from its rules on jobs small enough to follow by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yaqd.policies.clotho.facts import Scene, StageChoice
from yaqd.policies.clotho.heuristics import Capped, Fair
from yaqd.sim.stages.draws import point_of, uniform
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.graphs import GraphSet, draw_graphs, draw_load, graph_set

_GRAPHS = draw_graphs(1, 12)


def _two_stages(fresh: float, first: float, rest: float, tasks: tuple[int, int]) -> GraphSet:
    """Return one graph of two stages, one after the other, each duration the same at all counts; ms."""
    waves = [[fresh], [first], [rest]] * 8
    return graph_set(
        {
            "graphs": np.array([[2, 1, 0, 2]]),
            "edges": np.array([[0, 0, 1]]),
            "stages": np.array([[tasks[0], rest], [tasks[1], rest]]),
            "lengths": np.array([len(one) for one in waves] * 2),
            "values": np.array([took for one in waves * 2 for took in one]),
        }
    )


def test_a_job_alone_moves_runs_waves_and_goes_on_in_its_next_stage() -> None:
    load = draw_load(_two_stages(3000.0, 2000.0, 1000.0, (4, 1)), 1, 1)
    found = run_load(load, Fair(), Rules(slots=2, move_s=5.0), trace=9)
    # two containers move for 5 s, run a fresh task of 3 s and one of 1 s each; one goes on for 2 s, new to the stage
    assert found.took_s.tolist() == [5.0 + 3.0 + 1.0 + 2.0]
    assert found.tasks == 5
    assert found.trace.tolist() == [[-1, 0, 2], [0, 1, 1]]


def test_a_warm_up_is_added_where_nothing_fresh_is_recorded() -> None:
    graphs = _two_stages(3000.0, 2000.0, 1000.0, (1, 1))
    cold = replace(graphs, is_cold=np.ones_like(graphs.is_cold))
    assert run_load(draw_load(cold, 1, 1), Fair(), Rules(1, 0.0, warm_s=7.0)).took_s.tolist() == [10.0 + 9.0]


def test_jobs_that_get_nothing_for_ever_are_said() -> None:
    class _Nobody:
        def choose(self, scene: Scene) -> StageChoice | None:
            return None

    with pytest.raises(ValueError, match="3 jobs never end"):
        run_load(draw_load(_GRAPHS, 1, 3), _Nobody())


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1_000), st.sampled_from([1, 3, 50]), st.floats(0.0, 5.0))
def test_every_task_runs_once_and_no_job_ends_before_its_longest_chain(seed: int, slots: int, move_s: float) -> None:
    load = draw_load(_GRAPHS, seed, 3, 5.0)
    found = run_load(load, Capped(), Rules(slots, move_s))
    assert found.tasks == sum(int(_GRAPHS.tasks[_GRAPHS.rows(int(g))].sum()) for g in load.graph)
    assert (found.took_s >= move_s).all()
    assert (run_load(load, Capped(), Rules(slots, move_s)).took_s == found.took_s).all()


def test_draws_belong_to_the_task_and_counts_between_are_drawn() -> None:
    assert uniform(1, 2, 3, 0) == uniform(1, 2, 3, 0)
    drawn = [uniform(1, stage, task, which) for stage in range(9) for task in range(90) for which in (0, 1)]
    assert len(set(drawn)) == len(drawn)
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.03)
    assert [point_of(many, 0.5) for many in (0, 5, 10, 20, 100, 400)] == [0, 0, 1, 2, 7, 7]
    # of ten recorded steps from 10 to 20, the part below the count takes the smaller one
    parts = np.mean([point_of(13, (step + 0.5) / 1000) == 1 for step in range(1000)])
    assert parts == pytest.approx(0.3)
