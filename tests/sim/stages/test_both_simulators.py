"""Graphs of stages in simulated time: the compiled simulator and the plain one are one."""

from math import inf, prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from yaqd.policies.clotho.facts import StagePolicy
from yaqd.policies.clotho.heuristics import Capped, Fair, Fifo, Packing, Shortest, Trouble, WeightedFair
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.clotho.weights import arrays_of, flat_of, pack, unpack
from yaqd.sim.stages.rules import DECIMA, Finished, Rules
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.graphs import GraphLoad, draw_graphs, draw_load

pytest.importorskip("numba")

from yaqd.policies.clotho.shapes import AT, SHAPES
from yaqd.sim.stages.compiled import heuristics as compiled
from yaqd.sim.stages.compiled.network import OF_EMBEDDINGS, mind_of
from yaqd.sim.stages.compiled.run import decide_all, finished, heuristic_run, learned_run, run_learned, step
from yaqd.sim.stages.compiled.state import LEFT, live_of, plan_of
from yaqd.sim.stages.compiled.world import waits_in_vain
from yaqd.sim.stages.training.begin import beginning

_GRAPHS = draw_graphs(1, 12)
_TRACE = 100_000

PAIRS: list[tuple[StagePolicy, int, compiled.Knobs]] = [
    (Fifo(), compiled.FIFO, (0.0, 0.0, inf, 1.0, 1.0, 1.0)),
    (Shortest(), compiled.SHORTEST, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    (Fair(), compiled.WEIGHTED, (0.0, 0.0, inf, 1.0, 0.0, 0.0)),
    (Fair(leaves=True), compiled.FAIR, (0.0, 0.0, inf, 1.0, 1.0, 1.0)),
    (WeightedFair(-0.75), compiled.WEIGHTED, (-0.75, 0.0, inf, 1.0, 0.0, 0.0)),
    (Packing(), compiled.PACKING, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    (Trouble(), compiled.TROUBLE, (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)),
    (Capped(), compiled.CAPPED, (1.5, 0.35, 300.0, 1.0, 1.0, 1.0)),
]
RULES = [DECIMA, Rules(20, 0.1), Rules(7, 0.0)]


def _same(plain: Finished, fast: Finished) -> None:
    at = next((n for n, (a, b) in enumerate(zip(plain.trace, fast.trace, strict=False)) if (a != b).any()), None)
    assert at is None, f"decision {at}: {plain.trace[at]} and {fast.trace[at]}"
    assert (plain.took_s == fast.took_s).all()
    assert (plain.decisions, plain.tasks) == (fast.decisions, fast.tasks)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(("policy", "kind", "knobs"), PAIRS)
def test_heuristics_decide_the_same_in_both_simulators(
    policy: StagePolicy, kind: int, knobs: compiled.Knobs, rules: Rules
) -> None:
    for seed in range(3):
        load = draw_load(_GRAPHS, seed, 8, 20.0 * seed, 0.4)
        _same(run_load(load, policy, rules, _TRACE), heuristic_run(load, kind, knobs, rules, _TRACE))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_network_decides_the_same_in_both_simulators(seed: int, rules: Rules) -> None:
    rng = np.random.default_rng(seed)
    data = pack(beginning(seed) + 0.3 * rng.normal(size=len(beginning(seed))), {})
    policy = Learned(data)
    load = draw_load(_GRAPHS, seed, 8, 15.0, 0.4)
    weights = flat_of(unpack(data).arrays)
    assert (arrays_of(weights)["enter"] == unpack(data).arrays["enter"]).all()
    _same(run_load(load, policy, rules, _TRACE), learned_run(load, weights, rules, _TRACE))
    assert not any(policy.fallbacks.values())


_MANY = draw_graphs(2)
#: small enough for the plain simulator to run many
_SMALL = np.flatnonzero(np.add.reduceat(_MANY.tasks, _MANY.first[:-1]) <= 150)
_ANY_RULES = st.builds(Rules, st.integers(1, 30), st.floats(0.0, 10.0), st.floats(0.0, 3.0))
_ANY_LOAD = st.builds(
    lambda seed, jobs, gap_s, sigma: draw_load(_MANY, seed, jobs, gap_s, sigma, _SMALL),
    st.integers(0, 2**31),
    st.integers(1, 6),
    st.floats(0.0, 40.0),
    st.floats(0.0, 1.5),
)

_NEAR = Rules(4, 8.26544742548415, 1.9726068888590116)


def _weighted(exponent: float, leaves: bool, holds: bool) -> tuple[StagePolicy, int, compiled.Knobs]:
    knobs = (exponent, 0.0, inf, float(holds), float(leaves), float(leaves))
    return WeightedFair(exponent, leaves, holds), compiled.WEIGHTED, knobs


def _capped(c: float, e: float, clearly_s: float, holds: bool) -> tuple[StagePolicy, int, compiled.Knobs]:
    return Capped(c, e, clearly_s, holds), compiled.CAPPED, (c, e, clearly_s, float(holds), 1.0, 1.0)


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(60))
@given(
    st.builds(_weighted, st.floats(-2.0, 1.0), st.booleans(), st.booleans())
    | st.builds(_capped, st.floats(0.0, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 1000.0) | st.just(inf), st.booleans())
    | st.sampled_from(PAIRS),
    _ANY_LOAD,
    _ANY_RULES,
)
def test_heuristics_of_any_options_decide_the_same(
    pair: tuple[StagePolicy, int, compiled.Knobs], load: GraphLoad, rules: Rules
) -> None:
    policy, kind, knobs = pair
    _same(run_load(load, policy, rules, _TRACE), heuristic_run(load, kind, knobs, rules, _TRACE))


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 2**31), st.floats(0.0, 2.5), st.booleans(), _ANY_LOAD, _ANY_RULES)
# scores of -7e10, three of them in turn nearer to each other than counts, and the first not near to the last
@example(6431394, 1.3444026174395183, False, draw_load(_MANY, 6431394, 4, 0.7, 1.3444026174395183, _SMALL), _NEAR)
def test_any_network_decides_the_same(seed: int, noise: float, imitates: bool, load: GraphLoad, rules: Rules) -> None:
    start = beginning(seed, imitates)
    data = pack(start + noise * np.random.default_rng(seed).normal(size=len(start)), {})
    policy = Learned(data)
    _same(run_load(load, policy, rules, _TRACE), learned_run(load, unpack(data).flat(), rules, _TRACE))
    assert not any(policy.fallbacks.values())


@pytest.mark.parametrize(
    ("seed", "gap_s", "noise", "rules"),
    [
        (5, 15.0, 2.5, DECIMA),
        (4, 0.0, 0.5, DECIMA),
        (0, 0.0, 0.5, Rules(20, 5.0)),
        (5, 15.0, 2.5, Rules(20, 5.0)),
        (56, 0.0, 2.5, Rules(20, 5.0)),
    ],
)
def test_containers_do_not_wait_for_stages_whose_parents_have_lost_theirs(
    seed: int, gap_s: float, noise: float, rules: Rules
) -> None:
    rng, start = np.random.default_rng(seed), beginning(seed)
    data = pack(start + noise * rng.normal(size=len(start)), {})
    load = draw_load(_GRAPHS, seed, 8, gap_s, 0.4)
    # containers on their way to a stage come when others, let go meanwhile, have left its parents. Where these waited,
    # all may have, for ever, or eighty of a hundred for an hour and a half
    weights = unpack(data).flat()
    plan = plan_of(load, rules)
    live, mind = live_of(plan, load), mind_of(weights, plan, skips=True)
    next_job = waited = 0
    while live.counts[LEFT]:
        now_s, next_job, asks = step(plan, live, next_job)
        assert now_s < inf
        if asks:
            decide_all(plan, live, mind, now_s)
        held = np.flatnonzero(live.stages["held"])
        waited += len(held)
        assert not any(waits_in_vain(plan, live, stage) for stage in held.tolist())
    assert waited, "some wait for stages to open"
    fast = learned_run(load, weights, rules, _TRACE)
    assert fast.took_s.tolist() == (live.jobs["done_s"] - load.arrive_s).tolist()
    _same(run_load(load, Learned(data), rules, _TRACE), fast)


@pytest.mark.parametrize("without", [(), OF_EMBEDDINGS, ("score_out", "limit_out")], ids=["all", "wide", "linear"])
def test_layers_that_count_for_nothing_are_left_out_and_change_nothing(without: tuple[str, ...]) -> None:
    rng = np.random.default_rng(7)
    weights = beginning(7) + 0.2 * rng.normal(size=len(beginning(7)))
    for name, shape in SHAPES:
        if name in without:
            weights[AT[name] : AT[name] + prod(shape)] = 0.0
    found = []
    for skips in (True, False):
        load = draw_load(_GRAPHS, 7, 8, 5.0, 0.4)
        plan = plan_of(load)
        live, mind = live_of(plan, load, _TRACE), mind_of(weights, plan, skips=skips)
        assert (mind.is_linear, mind.has_graph) == (skips and len(without) == 2, not (skips and without))
        run_learned(plan, live, mind, 0)
        found.append(finished(plan, live))
    _same(*found)
