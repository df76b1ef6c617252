"""Estimates from what was observed, and bounds that tune themselves by it."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import hostile_s, job_id
from yaqd.policies.queueing.bounds import poisson_bound
from yaqd.policies.queueing.estimates import Estimator, ask_key, recurring_name, stage_key
from yaqd.policies.queueing.tuning import BoundTuner
from yaqd.policies.registry import UnknownPolicy


@pytest.mark.parametrize(
    ("name", "recurring"),
    [
        ("etl-2026-11-21", "etl-#"),
        ("etl-2026-11-22T04:00:01Z", "etl-#"),
        ("daily_report_20261121", "daily_report_#"),
        ("SELECT * FROM t...1(Stage-3)", "SELECT * FROM t...#(Stage-#)"),
        ("oozie:launcher:T=pig:W=a:A=b:ID=0000012-261121-oozie-W", "oozie:launcher:T=pig:W=a:A=b:ID=#-oozie-W"),
        ("insert 3f2a9c1b77de", "insert #"),
        ("deadbeef decade", "deadbeef decade"),
        ("  word   count ", "word count"),
        ("", ""),
    ],
)
def test_names_of_one_recurring_job(name: str, recurring: str) -> None:
    assert recurring_name(name) == recurring


def test_a_key_is_of_bounded_length_and_by_user_and_stage() -> None:
    assert len(stage_key("x" * 10**6, "u" * 10**6, "s" * 10**6)) < 1000
    keys = {stage_key(n, u, s) for n in ("a 1", "b 1") for u in ("ann", "bob") for s in (10, 20)}
    assert len(keys) == 8
    assert stage_key("a 1", "ann", 10) == stage_key("a 2", "ann", 10)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=60))
def test_the_estimate_lies_among_what_was_seen(seconds: list[float]) -> None:
    estimator = Estimator()
    for run in seconds:
        estimator.observe("k", run)
    found = estimator.estimate("k")
    assert found is not None
    assert min(seconds) - 1e-6 <= found <= max(seconds) + 1e-6


def test_it_is_the_mean_and_later_follows_a_change() -> None:
    estimator = Estimator(memory=10)
    for run in (4.0, 5.0, 9.0):
        estimator.observe("k", run)
    assert estimator.estimate("k") == pytest.approx(6.0)
    for _ in range(60):
        estimator.observe("k", 30.0)
    assert estimator.estimate("k") == pytest.approx(30.0, rel=0.01)


def test_what_the_run_shows_outweighs_its_history_bit_by_bit() -> None:
    run, stage = ask_key(job_id(1), 20), stage_key("etl 7", "ann", 20)
    estimator = Estimator(default_s=60.0)
    assert estimator.estimate(run, stage) == 60.0
    estimator.observe(stage, 100.0)
    assert estimator.estimate(run, stage) == 100.0
    estimator.observe(run, 10.0)
    assert estimator.estimate(run, stage) == pytest.approx((100 * 3 + 10) / 4)
    for _ in range(27):
        estimator.observe(run, 10.0)
    assert estimator.estimate(run, stage) == pytest.approx(19, abs=0.5)


def test_the_default_does_not_outlive_the_first_observation() -> None:
    estimator = Estimator(default_s=60.0)
    estimator.observe("run", 2.0)
    assert estimator.estimate("run", "stage") == 2.0
    assert Estimator().estimate("run", "stage") is None
    assert Estimator(default_s=nan).estimate("run") is None
    assert Estimator(default_s=inf).estimate("run") is None


def test_one_lie_moves_it_ten_times_the_mean_at_most() -> None:
    estimator = Estimator()
    for _ in range(9):
        estimator.observe("k", 2.0)
    estimator.observe("k", 9e8)
    assert estimator.estimate("k") == pytest.approx((9 * 2 + 20) / 10)


@given(st.lists(st.tuples(st.integers(0, 9).map(str), hostile_s), max_size=60), st.integers(-1, 4))
def test_hostile_durations_and_a_bounded_table(seen: list[tuple[str, float]], most_keys: int) -> None:
    estimator = Estimator(most_keys=most_keys)
    for key, seconds in seen:
        estimator.observe(key, seconds)
        assert len(estimator) <= max(1, most_keys)
        found = estimator.estimate(key)
        assert found is None or 0 <= found < inf


def test_what_is_used_is_kept() -> None:
    estimator = Estimator(most_keys=2)
    estimator.observe("a", 1.0)
    estimator.observe("b", 2.0)
    estimator.estimate("a")
    estimator.observe("c", 3.0)
    assert (estimator.estimate("a"), estimator.estimate("b"), estimator.estimate("c")) == (1.0, None, 3.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100))))
def test_it_survives_a_restart(seen: list[tuple[str, float]]) -> None:
    estimator, restarted = Estimator(), Estimator()
    for key, seconds in seen:
        estimator.observe(key, seconds)
    restarted.load(estimator.dump())
    assert restarted.dump() == estimator.dump()
    restarted.load([("bad", 3, nan), ("worse", -1, 2.0), ("more", 10**30, 5.0)])
    assert restarted.estimate("bad") is None and restarted.estimate("worse") is None
    assert restarted.estimate("more") == 5.0


def test_a_tuner_starts_with_what_it_was_told_and_ends_with_what_it_saw() -> None:
    tuner = BoundTuner(policy="poisson", idle=0.05, mean_s=30.0, heartbeat_s=3.0, poll_s=0.0)
    assert tuner.bound(10) == 3
    for _ in range(100):
        tuner.ran(5.0)
        tuner.told(3.0)
        tuner.polls(1.0)
    assert tuner.mean_s == pytest.approx(5.0)
    assert tuner.gap_s == pytest.approx(3.5)
    assert tuner.bound(10) == poisson_bound(10, 5.0, 3.5, 0.05)


@pytest.mark.parametrize("name", ["ran", "told", "polls"])
def test_nodes_that_begin_alike_find_their_own_bounds(name: str) -> None:
    first = BoundTuner(mean_s=30.0, heartbeat_s=3.0, poll_s=1.0)
    one, other = first.another(), first.another()
    for _ in range(3):
        getattr(one, name)(9.0)
    assert one.mean_s + one.gap_s > 9.0 and (one.mean_s, one.gap_s) != (30.0, 3.5)
    assert [(tuner.mean_s, tuner.gap_s) for tuner in (first, other)] == [(30.0, 3.5)] * 2
    assert other.bound(10) == BoundTuner(mean_s=30.0, heartbeat_s=3.0, poll_s=1.0).bound(10)


def test_a_bound_does_not_flutter_with_its_means() -> None:
    tuner = BoundTuner(policy="fixed", mean_s=5.0, heartbeat_s=3.0, poll_s=0.0)
    bounds = set()
    for seconds in (5.0, 5.2, 4.9, 5.1, 4.8, 5.0) * 10:
        tuner.ran(seconds)
        bounds.add(tuner.bound(10))
    assert bounds == {6}


@given(st.lists(st.tuples(st.sampled_from(["ran", "told", "polls"]), hostile_s)), st.integers(-9, 10**9))
def test_whatever_is_observed_the_bound_stays_bounded(seen: list[tuple[str, float]], slots: int) -> None:
    tuner = BoundTuner(least=2, most=50, mean_s=nan, heartbeat_s=-1.0, poll_s=inf)
    for name, seconds in seen:
        getattr(tuner, name)(seconds)
        assert 2 <= tuner.bound(slots) <= 50


@given(hostile_s, hostile_s, st.booleans())
def test_whatever_the_heartbeat_is_said_to_be_something_may_wait(
    heartbeat_s: float, gap_s: float, at_once: bool
) -> None:
    tuner = BoundTuner(heartbeat_s=heartbeat_s)
    tuner.told(gap_s, at_once=at_once)
    assert tuner.wait_max_s >= 0.0, "no number, or below 0"


def test_slots_that_are_refilled_soon_need_no_queue_and_others_do() -> None:
    """Of slots that idle a tenth of the time nothing is gained; of those that idle half of it much is."""
    tuner = BoundTuner(policy="utilization", idle=0.2, mean_s=30.0, heartbeat_s=3.0, poll_s=0.0)
    assert tuner.bound(8) == 0
    for _ in range(64):
        tuner.ran(3.0)
    assert tuner.bound(8) > 0
    for _ in range(64):
        tuner.told(0.01)
    assert tuner.bound(8) == 0
    at_least_one = BoundTuner(policy="utilization", idle=0.2, mean_s=30.0, heartbeat_s=3.0, poll_s=0.0, least=1)
    assert at_least_one.bound(8) == 1


def test_a_formula_that_is_none() -> None:
    with pytest.raises(UnknownPolicy, match="poisson"):
        BoundTuner(policy="guess")
