"""What a generation of training is tried on: so many of each kind, the same for the same seed, and none that is held
out or measured."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("numba")

from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.settings import MEASURED_SEED
from yaqd.sim.stages.training.evolution import SearchTerms
from yaqd.sim.stages.training.gradient import GradientTerms
from yaqd.sim.stages.training.settings import HELD_OUT_SEEDS, TRAINING_SEEDS, Setting, TrainingTerms, even, sequences
from yaqd.sim.stages.training.trainer import held_out
from yaqd.sim.workloads.graphs import draw_graphs

_GRAPHS = draw_graphs(3, 12)
_ALL = np.arange(len(_GRAPHS))


def _kinds(settings: list[Setting]) -> Counter[tuple[int, int, bool, bool]]:
    """Count them by jobs, slots, whether they come at once, and whether estimates are right."""
    return Counter(
        (len(one.load), one.rules.slots, not one.load.arrive_s.any(), bool((one.load.error == 1.0).all()))
        for one in settings
    )


def test_a_generation_has_so_many_of_each_kind() -> None:
    terms = SearchTerms(batches=4, estimates=2, hundreds=3, streams=5, stream_jobs=90, anything=0, even=0)
    found = sequences(_GRAPHS, _ALL, terms, 7)
    assert _kinds(found) == {
        (20, 50, True, True): 4,
        (20, 50, True, False): 2,
        (10, 100, True, True): 3,
        (90, 50, False, True): 5,
    }
    again = sequences(_GRAPHS, _ALL, terms, 7)
    assert [one.load.seed for one in again] == [one.load.seed for one in found]
    assert [one.load.graph.tolist() for one in again] == [one.load.graph.tolist() for one in found]


def test_no_two_generations_and_no_two_runs_share_a_sequence() -> None:
    seeds = [
        one.load.seed
        for seed in (1, 2)
        for generation in range(6)
        for one in sequences(_GRAPHS, _ALL, SearchTerms(seed=seed, stream_jobs=5), generation)
    ]
    assert len(set(seeds)) == len(seeds)
    others = [one.load.seed for settings in held_out(_GRAPHS, _ALL).values() for one in settings]
    assert len(set(others)) == len(others)
    assert MEASURED_SEED + 10_000 < HELD_OUT_SEEDS <= min(others) <= max(others) < TRAINING_SEEDS <= min(seeds)


@pytest.mark.parametrize("terms", [SearchTerms(slots=30, stream_jobs=5), GradientTerms(slots=30, stream_jobs=5)])
def test_where_slots_are_given_only_what_is_nominal_has_others(terms: TrainingTerms) -> None:
    slots = Counter(one.rules.slots for one in sequences(_GRAPHS, _ALL, terms, 1))
    nominal = terms.batches + terms.estimates + terms.streams
    assert slots == {50: nominal, 30: terms.anything + terms.even + terms.hundreds}


def test_what_is_held_out_has_no_other_slots_either() -> None:
    assert {one.rules.slots for each in held_out(_GRAPHS, _ALL, 50).values() for one in each} == {50}
    assert {one.rules.slots for each in held_out(_GRAPHS, _ALL).values() for one in each} == {20, 35, 50, 100}


def test_even_graphs_run_as_long_whoever_runs_them() -> None:
    slower = _GRAPHS.even(4.0)
    assert (slower.wave_at == slower.wave_at[:, :1, :1]).all() and (slower.wave_len == slower.wave_len[:, :1, :1]).all()
    for stage in range(len(_GRAPHS.tasks)):
        at, many = int(slower.wave_at[stage, 0, 0]), int(slower.wave_len[stage, 0, 0])
        recorded = _GRAPHS.values[at : at + many]
        assert slower.values[at : at + many].tolist() == (4.0 * recorded).tolist()
        assert slower.mean_s[stage] == pytest.approx(4.0 * recorded.mean())
    assert not slower.is_cold.any() and _GRAPHS.tasks is slower.tasks


def test_even_sequences_are_of_many_sizes_and_have_no_warm_up() -> None:
    found = [even(_GRAPHS, seed, _ALL) for seed in range(40)]
    assert {one.rules.slots for one in found} == {20, 35, 50, 100}
    assert {len(one.load) for one in found} == {20, 60}
    assert {one.rules.warm_s for one in found} == {0.0}
    assert all(isinstance(one.rules, Rules) and one.mean_s > 0.0 for one in found)
    assert {even(_GRAPHS, seed, _ALL, 30).rules.slots for seed in range(5)} == {30}
