"""Explorations in simulated time: hand-worked timelines, and what no policy may do."""

from itertools import pairwise

import numpy as np
import pytest

from tests.policies.explore.explore_facts import GivenForesight, TrueForesight
from yaqd.policies.curves.samples import Floats
from yaqd.policies.explore.facts import Action, ExplorePolicy, Start, Terms, Trials, Verdict, Why
from yaqd.policies.explore.ordered import Bandit, Default
from yaqd.policies.explore.policies import EXPLORE
from yaqd.policies.explore.pop import Pop
from yaqd.sim.exploration.trace import Lap, Log, explore
from yaqd.sim.workloads.exploration import Recorded, orders

NOBODY = GivenForesight({})


def recorded(values: list[list[float]] | Floats, epoch_s: list[float] | Floats | None = None) -> Recorded:
    found = np.array(values, dtype=np.float64)
    times = np.full(len(found), 60.0) if epoch_s is None else np.array(epoch_s)
    return Recorded("made", found, times, np.zeros((len(found), 0)))


def curves(seed: int, rows: int = 40, epochs: int = 12) -> Recorded:
    rng = np.random.default_rng(seed)
    rise = rng.uniform(0, 1, (rows, 1)) * (rng.random((rows, 1)) < 0.6)
    values = 0.1 + rise * -np.expm1(-rng.uniform(0.05, 0.6, (rows, 1)) * np.arange(1.0, epochs + 1))
    return recorded(values + rng.normal(0, 0.005, values.shape), 60 * rng.lognormal(0, 0.2, rows))


def test_two_slots_run_three_trials_in_order() -> None:
    """Trial 0 (10 s an epoch) ends at 30 s; trial 2 follows it and reaches 0.9 in its second epoch of 5 s, at 40 s."""
    set_ = recorded([[0.1, 0.2, 0.3], [0.1, 0.1, 0.1], [0.1, 0.9, 0.9]], [10.0, 40.0, 5.0])
    log = Log()
    terms = Terms(0.9, 3, 2)
    found = explore(set_, np.arange(3), terms, Default(terms, NOBODY), log=log)
    assert (found.time_s, found.winner, found.is_lost) == (40.0, 2, False)
    assert (found.started, found.epochs, found.parked) == (3, 3 + 2 + 1, 0)
    assert log.laps == [Lap(0, 0.0, 30.0, 3), Lap(2, 30.0, 40.0, 2)]


def test_the_order_says_which_row_a_trial_is() -> None:
    set_ = recorded([[0.1, 0.2, 0.3], [0.1, 0.1, 0.1], [0.1, 0.9, 0.9]])
    terms = Terms(0.9, 3, 1)
    assert explore(set_, np.array([2, 0, 1]), terms, Default(terms, NOBODY)).time_s == 120.0
    assert explore(set_, np.array([0, 2, 1]), terms, Default(terms, NOBODY)).time_s == 300.0


def test_a_pool_that_ends_without_the_target_is_lost() -> None:
    """Bandit ends the late starter at its boundary of two epochs: 0.1 * 1.5 is not above 0.5."""
    set_ = recorded([[0.5, 0.5, 0.5, 0.5], [0.1, 0.1, 0.95, 0.95]])
    terms = Terms(0.9, 4, 1, boundary=2)
    found = explore(set_, np.arange(2), terms, Bandit(terms, NOBODY))
    assert (found.is_lost, found.winner, found.time_s, found.epochs) == (True, -1, 360.0, 6)
    assert found.reasons[Why.FAR_FROM_BEST] == 1


def test_turns_of_pop_by_hand() -> None:
    """One slot, boundary 2, nobody promising: 0 and 1 take turns, as no slot is deserved by a chance of 0.06 alone."""
    set_ = recorded([[0.5] * 6, [0.5] * 4 + [0.95] * 2])
    terms = Terms(0.9, 6, 1, boundary=2)
    log = Log()
    found = explore(set_, np.arange(2), terms, Pop(terms, GivenForesight({0: 0.06, 1: 0.05})), log=log)
    assert not found.is_lost
    assert [lap.number for lap in log.laps][-1] == 1
    assert sum(lap.epochs for lap in log.laps) == found.epochs


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLORE.names())
@pytest.mark.parametrize("slots", [1, 4])
def test_no_policy_runs_a_trial_twice_at_once_or_more_than_there_are_slots(name: str, slots: int) -> None:
    for seed in range(4):
        set_ = curves(seed)
        terms = Terms(2.0, set_.epochs, slots, kill=0.15, boundary=3)
        order = orders(len(set_), 1, seed)[0]
        log = Log()
        policy = EXPLORE[name](terms, TrueForesight(set_.values[order]))
        found = explore(set_, order, terms, policy, log=log)
        assert found.is_lost
        at = sorted({lap.begin_s for lap in log.laps})
        assert max(sum(lap.begin_s <= moment < lap.end_s for lap in log.laps) for moment in at) <= slots
        by_trial: dict[int, list[Lap]] = {}
        for lap in log.laps:
            by_trial.setdefault(lap.number, []).append(lap)
        for laps in by_trial.values():
            laps.sort(key=lambda lap: lap.begin_s)
            assert all(one.end_s <= other.begin_s for one, other in pairwise(laps))
            assert sum(lap.epochs for lap in laps) <= set_.epochs
        assert sum(lap.epochs for lap in log.laps) == found.epochs


@pytest.mark.parametrize("name", EXPLORE.names())
def test_the_same_exploration_comes_out_the_same(name: str) -> None:
    set_ = curves(7)
    terms = Terms(float(np.sort(set_.values.max(axis=1))[-2]), set_.epochs, 3, kill=0.15, boundary=3)
    order = orders(len(set_), 1, 1)[0]
    first, second = (
        explore(set_, order, terms, EXPLORE[name](terms, TrueForesight(set_.values[order]))) for _ in range(2)
    )
    assert first == second


def test_ours_tries_everything_before_it_gives_up_and_wins_with_true_foresight() -> None:
    set_ = curves(5)
    order = orders(len(set_), 1, 2)[0]
    lost = Terms(2.0, set_.epochs, 3, kill=0.15)
    found = explore(set_, order, lost, EXPLORE["index"](lost, TrueForesight(set_.values[order])))
    assert found.epochs == len(set_) * set_.epochs
    assert found.parked > 0
    terms = Terms(float(np.sort(set_.values.max(axis=1))[-2]), set_.epochs, 3, kill=0.15)
    ours, plain = (
        explore(set_, order, terms, EXPLORE[name](terms, TrueForesight(set_.values[order])))
        for name in ("index", "default")
    )
    assert ours.time_s < plain.time_s


class _Greedy(Default):
    """Starts whatever is there, slots or not, and ends nobody."""

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        return [Start(number, Why.NEXT) for number in range(free + 1)]

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        return Verdict(Action.CONTINUE, Why.NEXT)


def test_a_policy_that_starts_too_many_is_told() -> None:
    terms = Terms(2.0, 3, 1)
    policy: ExplorePolicy = _Greedy(terms, NOBODY)
    with pytest.raises(ValueError, match="starts 2 trials in 1 slots"):
        explore(recorded([[0.1] * 3] * 3), np.arange(3), terms, policy)


def test_orders_are_those_that_were_shipped() -> None:
    """What is reported is of these orders: another generator of random numbers would be another experiment."""
    first = orders(1000, 2, 1)
    assert first[0][:6].tolist() == ORDER_1
    assert sorted(first[1].tolist()) == list(range(1000))
    assert orders(1000, 25, 1)[1].tolist() == first[1].tolist()
    assert orders(1000, 1, 2)[0].tolist() != first[0].tolist()


ORDER_1 = [866, 11, 101, 19, 906, 25]
