"""The learned policy: it keeps what it worked out, decides the same each time, and gives way with a reason."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policies.clotho.scenes import chain, job, random_job, scene
from yaqd.policies.clotho.heuristics import WeightedFair
from yaqd.policies.clotho.learned import FallBack, Learned
from yaqd.policies.clotho.network import Network, allowed, limit_chances, softmax
from yaqd.policies.clotho.shapes import AT, HEAD, SIZE
from yaqd.policies.clotho.weights import arrays_of, pack

WEIGHTS = 0.3 * np.random.default_rng(2).normal(size=SIZE)
DATA = pack(WEIGHTS, {})


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8), st.integers(0, 1_000))
def test_kept_embeddings_give_the_scores_of_a_fresh_network(seeds: list[int], other: int) -> None:
    jobs = [random_job(seed) for seed in seeds]
    kept = Network(arrays_of(WEIGHTS))
    kept.scores(scene(*jobs))
    jobs[0] = random_job(other)
    found, fresh = kept.scores(scene(*jobs, source=0)), Network(arrays_of(WEIGHTS)).scores(scene(*jobs, source=0))
    assert np.allclose(found.score, fresh.score, rtol=0, atol=1e-9)
    assert np.allclose(found.logarithm, fresh.logarithm, rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8))
def test_layers_that_count_for_nothing_change_no_score(seeds: list[int]) -> None:
    """They are left out where all weights of both heads' hidden layers are 0."""
    linear = WEIGHTS.copy()
    for name in ("score_out", "limit_out"):
        linear[AT[name] : AT[name] + HEAD] = 0.0
    all_layers = linear.copy()
    all_layers[AT["score_out"]] = all_layers[AT["limit_out"]] = 1e-200
    found = scene(*map(random_job, seeds), source=0)
    short, whole = (Network(arrays_of(weights)).scores(found) for weights in (linear, all_layers))
    assert (short.score == whole.score).all()
    assert (short.logarithm == whole.logarithm).all()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=6), st.integers(-1, 0))
def test_what_is_chosen_is_possible_and_the_same_each_time(seeds: list[int], source: int) -> None:
    jobs = [random_job(seed) for seed in seeds]
    found = scene(*jobs, source=source)
    first, second = Learned(DATA).choose(found), Learned(DATA).choose(found)
    assert first == second
    if first is not None:
        stage = jobs[first.job]
        assert 1 <= first.containers <= min(found.free, int(stage.unclaimed[first.stage]))
        assert 1 <= first.limit <= found.slots


def test_nothing_to_do_is_no_choice() -> None:
    assert Learned(DATA).choose(scene()) is None
    assert Learned(DATA).choose(scene(job(chain(1), [0]))) is None


def test_weights_that_do_not_load_give_way_with_a_reason_said_once() -> None:
    said: list[str] = []
    policy = Learned(DATA[:100], note=said.append)
    found = scene(random_job(3), random_job(4))
    for _ in range(3):
        assert policy.choose(found) == WeightedFair(-1.0).choose(found)
    assert policy.fallbacks[FallBack.NO_WEIGHTS] == 3
    assert len(said) == 1
    assert "no .npz" in said[0]


def test_scores_that_are_not_finite_give_way() -> None:
    huge = WEIGHTS.copy()
    huge[:] = 1e30
    policy = Learned(pack(huge, {}))
    found = scene(random_job(3), random_job(4))
    with np.errstate(all="ignore"):
        assert policy.choose(found) == WeightedFair(-1.0).choose(found)
    assert policy.fallbacks[FallBack.NOT_FINITE] == 1


def test_a_late_decision_and_the_next_one_give_way() -> None:
    times = iter((0.0, 1.0, 2.0, 2.0))
    policy = Learned(DATA, clock=lambda: next(times), late_s=0.5)
    found = scene(random_job(3), random_job(4))
    for _ in range(2):
        assert policy.choose(found) == WeightedFair(-1.0).choose(found)
    assert policy.choose(found) == Learned(DATA).choose(found)
    assert policy.fallbacks[FallBack.LATE] == 2


def test_the_longer_decisions_stay_late_the_fewer_are_made() -> None:
    now, looks = 0.0, 0

    def clock() -> float:
        nonlocal now, looks
        now, looks = now + 0.6, looks + 1
        return now

    policy = Learned(DATA, clock=clock, late_s=0.5)
    found = scene(random_job(3), random_job(4))
    for _ in range(1000):
        policy.choose(found)
    assert policy.fallbacks[FallBack.LATE] == 1000
    # one late decision, then 1, 2, 4 and so on without, 256 at most
    assert looks == 2 * 11
    policy._late_s = 0.7
    for _ in range(300):
        policy.choose(found)
    before = policy.fallbacks[FallBack.LATE]
    policy.choose(found)
    assert policy.fallbacks[FallBack.LATE] == before, "one in time ends it"


def test_chances_are_masked_and_the_likeliest_limit_is_the_one_that_is_meant() -> None:
    chances = softmax(np.array([1.0, 900.0, 2.0]), np.array([True, False, True]))
    assert chances[1] == 0.0
    assert chances.sum() == pytest.approx(1.0)
    assert not softmax(np.ones(2), np.zeros(2, dtype=bool)).any()
    limits = limit_chances(float(np.log(7.0)), 1, 20)
    assert limits.argmax() == 6
    assert limit_chances(float(np.log(7.0)), 12, 20).argmax() == 11


def test_a_job_at_its_limit_gets_nothing_from_others_and_keeps_its_own() -> None:
    full, empty = job(chain(1), [50], containers=20), job(chain(1), [50])
    network = Network(arrays_of(WEIGHTS))
    for source, expected in ((-1, [False, True]), (0, [True, True])):
        scores = network.scores(scene(full, empty, source=source))
        assert allowed(scores, source).tolist() == expected
