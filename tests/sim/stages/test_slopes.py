"""The backward pass of the compiled network, held against finite differences of the forward pass."""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("numba")

from yaqd.policies.clotho.shapes import AT, SHAPES, SIZE
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.network import limit_logarithm, mind_of, score
from yaqd.sim.stages.compiled.run import step
from yaqd.sim.stages.compiled.sampling import Chances, advantage, choice_slopes, course_of, drawn, run_drawn, softmax
from yaqd.sim.stages.compiled.slopes import (
    limit_slopes,
    look_with_slopes,
    score_slopes,
    settle_all,
    settle_cluster,
    tape_of,
)
from yaqd.sim.stages.compiled.state import ACTIVE, FREE, LEFT, live_of, plan_of
from yaqd.sim.stages.compiled.world import give
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.training.advantages import advantages
from yaqd.sim.stages.training.begin import beginning
from yaqd.sim.workloads.graphs import GraphLoad, draw_graphs, draw_load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_GRAPHS = draw_graphs(3, 12)
_RULES = Rules(6, 1.0)


def _weights(seed: int) -> Floats:
    return beginning(seed) + 0.3 * np.random.default_rng(seed).normal(size=SIZE)


def _follow(weights: Floats, load: GraphLoad, seed: int) -> tuple[float, Floats]:
    """Run a load by choices that no weight has a say in.

    Return a sum of scores and limits on the way, each times a number that was drawn for it, and its slopes.
    """
    rng = np.random.default_rng(seed)
    plan = plan_of(load, _RULES)
    live, mind, tape = live_of(plan, load), mind_of(weights, plan), tape_of(plan)
    total, next_job = 0.0, 0
    while live.counts[LEFT]:
        now_s, next_job, _ = step(plan, live, next_job)
        for source in (-1, *live.active[: live.counts[ACTIVE]].tolist()):
            while idle := int(live.counts[FREE] if source < 0 else live.jobs["idle"][source]):
                mean_s = look_with_slopes(plan, live, mind, tape)
                for job in live.active[: live.counts[ACTIVE]].tolist():
                    live.jobs["limit"][job] = float(rng.integers(1, 7))
                    up = float(rng.normal())
                    total += up * limit_logarithm(plan, live, mind, job, mean_s)
                    limit_slopes(mind, tape, job, up)
                active = np.isin(plan.stages["job"], live.active[: live.counts[ACTIVE]])
                found = np.flatnonzero((live.stages["claimable"] > 0) & active)
                for stage in found.tolist():
                    up = float(rng.normal())
                    total += up * score(plan, live, mind, int(plan.stages["job"][stage]), stage, source, idle)
                    score_slopes(plan, mind, tape, stage, up)
                settle_cluster(live, mind, tape)
                if not len(found):
                    break
                stage = int(rng.choice(found))
                give(plan, live, source, stage, min(idle, int(live.stages["claimable"][stage])), now_s)
    settle_all(plan, mind, tape)
    return total, tape.gradient


def _differs(function: Callable[[Floats], float], at: Floats, way: Floats, by: float = 1e-6) -> float:
    return (function(at + by * way) - function(at - by * way)) / (2.0 * by)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slopes_of_every_array_are_those_of_finite_differences(seed: int) -> None:
    weights, load = _weights(seed), draw_load(_GRAPHS, seed, 3, 5.0, 0.4)
    rng = np.random.default_rng(seed)
    _, gradient = _follow(weights, load, seed)
    for name, shape in SHAPES:
        many = int(np.prod(shape))
        way = np.zeros(SIZE)
        way[AT[name] : AT[name] + many] = rng.normal(size=many)
        found = _differs(lambda at: _follow(at, load, seed)[0], weights, way)
        assert found != 0.0
        assert gradient @ way == pytest.approx(found, rel=1e-5), name


def test_slopes_of_a_choice_are_those_of_its_logarithm_and_of_the_entropy() -> None:
    rng = np.random.default_rng(5)

    def worth(scores: Floats) -> float:
        parts = np.exp(scores) / np.exp(scores).sum()
        return float(1.7 * np.log(parts[2]) - 0.3 * (parts * np.log(parts)).sum())

    scores = rng.normal(size=6)
    slopes = scores.copy()
    softmax(slopes)
    choice_slopes(slopes, 2, 1.7, 0.3)
    for at in range(6):
        assert slopes[at] == pytest.approx(_differs(worth, scores, np.eye(6)[at]), rel=1e-6)


def test_a_score_far_below_all_others_has_no_chance_and_no_slope() -> None:
    parts = np.array([0.0, -5_000.0, 1.0])
    softmax(parts)
    assert parts[1] == 0.0
    assert [drawn(parts, at) for at in (0.0, 0.2, 0.999999, 1.0)] == [0, 0, 2, 2]
    choice_slopes(parts, 2, 1.0, 1.0)
    assert parts[1] == 0.0
    assert np.isfinite(parts).all()


def _slopes(load: GraphLoad, weights: Floats, seed: int) -> Floats:
    """Return the slope of the logarithm of all that was drawn in a run."""
    plan = plan_of(load, _RULES)
    live, tape = live_of(plan, load), tape_of(plan)
    always = Chances(seed, 0.3, 0.0, True, np.array([0.0, 1e9]), np.zeros(2), np.ones(2), float("inf"))
    run_drawn(plan, live, mind_of(weights, plan), tape, course_of(plan), always, float("inf"))
    assert not live.counts[LEFT]
    return tape.gradient


def test_slopes_of_what_is_drawn_are_none_in_the_mean() -> None:
    """So it is for chances that are those drawn by: the sum of all chances is 1 whatever the weights are."""
    load, weights = draw_load(_GRAPHS, 1, 2, 5.0), beginning(1, imitates=False)
    found = np.array([_slopes(load, weights, seed) for seed in range(400)])
    ways = np.random.default_rng(1).normal(size=(SIZE, 20))
    ways[:, :2] = 0.0
    ways[AT["limit_linear"], 0] = ways[AT["score_linear"] + 1, 1] = 1.0
    each = found @ ways
    errors = each.mean(axis=0) / (each.std(axis=0) / np.sqrt(len(each)))
    assert np.abs(errors).max() < 3.5
    assert each.std(axis=0).min() > 0.0


@pytest.mark.parametrize("horizon_s", [float("inf"), 7.0])
def test_advantages_are_returns_less_their_mean_at_the_same_time(horizon_s: float) -> None:
    arrive_s = np.array([0.0, 2.0, 9.0])
    ends_s = np.array([[5.0, 6.0, 12.0], [3.0, 11.0, 12.0], [4.5, 7.0, 10.0]])
    found = advantages(ends_s, arrive_s, horizon_s=horizon_s)
    grid = np.arange(0.0, 12.0, 1e-3) + 5e-4
    there = ((arrive_s <= grid[:, None]) & (grid[:, None] < ends_s[:, None, :])).sum(axis=2)
    for now_s in (0.0, 1.0, 4.9, 6.0, 11.5, 13.0):
        later = np.where(grid >= now_s, np.exp(-(grid - now_s) / horizon_s), 0.0)
        returns = -(there * later).sum(axis=1) * 1e-3
        for number in range(3):
            chances = Chances(1, 1.0, 0.0, True, found.times, found.falls[number], found.worth[number], horizon_s)
            assert advantage(chances, now_s) == pytest.approx(returns[number] - returns.mean(), abs=1e-2)


def test_the_makespan_counts_the_last_job_and_the_mean_rate_cancels_in_equal_episodes() -> None:
    ends_s = np.array([[5.0, 6.0], [1.0, 10.0]])
    found = advantages(ends_s, np.zeros(2), makespan=True)
    assert found.times.tolist() == [0.0, 6.0, 10.0]
    assert found.worth.tolist() == [[2.0, 2.0, 0.0], [-2.0, -2.0, 0.0]]
    equal = np.array([[5.0, 10.0], [1.0, 10.0]])
    plain = advantages(equal, np.zeros(2))
    assert (advantages(equal, np.zeros(2), differential=True).worth == plain.worth).all()
    assert plain.worth[:, 0] == pytest.approx([-2.0, 2.0])
    # the same integral, but one rollout is over sooner: of the mean rate it is spared less
    rate = 11.0 / 8.0
    apart = advantages(ends_s, np.zeros(2), differential=True).worth[:, 0]
    assert apart == pytest.approx([-2.0 * rate, 2.0 * rate])
