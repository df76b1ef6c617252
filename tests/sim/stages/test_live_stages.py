"""The live scheduler and job machines end jobs when the plain simulator says they do."""

import numpy as np
import pytest

from benchmarks.clotho.live_rows import stages_of
from tests.sim.stages.live_stages import LiveStages
from yaqd.config.stage_weights import shipped_weights
from yaqd.policies.clotho.facts import StagePolicy
from yaqd.policies.clotho.heuristics import Capped, Shortest, WeightedFair
from yaqd.policies.clotho.learned import Learned
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.graphs import GraphLoad, draw_graphs, draw_load

pytestmark = pytest.mark.slow

_JOBS, _SLOTS, _MOVE_S = 12, 10, 0.1
_WITHIN = 0.07


def _policy(name: str) -> StagePolicy:
    if name == "clotho":
        return Learned(shipped_weights())
    return {"weighted-fair": WeightedFair, "capped": Capped, "shortest": Shortest}[name]()


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("policy", ["clotho", "weighted-fair", "capped", "shortest"])
def test_jobs_end_live_as_in_the_plain_simulator(policy: str, seed: int) -> None:
    graphs = draw_graphs(seed, 20).even(4.0)
    drawn = draw_load(graphs, seed, _JOBS)
    load = GraphLoad(graphs, drawn.graph, np.zeros(_JOBS), drawn.error, seed)
    plain = run_load(load, _policy(policy), Rules(_SLOTS, _MOVE_S, 0.0))
    live = LiveStages(policy, stages_of(load), _SLOTS, _MOVE_S)
    assert abs(live.mean_s() / plain.took_s.mean() - 1.0) <= _WITHIN
