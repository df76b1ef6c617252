"""Each heuristic on small scenes whose answer can be worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.policies.clotho.scenes import chain, job, scene
from yaqd.policies.clotho.facts import StageChoice, StagePolicy, graph_of
from yaqd.policies.clotho.heuristics import Capped, Fair, Fifo, Packing, Shortest, Trouble, WeightedFair
from yaqd.policies.clotho.policies import STAGES

LONG, SHORT = job(chain(1), [100]), job(chain(1), [2])


def _chosen(policy: StagePolicy, *jobs: object, **more: int) -> tuple[int, int, int] | None:
    found = policy.choose(scene(*jobs, **more))  # type: ignore[arg-type]
    return None if found is None else (found.job, found.stage, found.containers)


def test_fifo_serves_the_oldest_job_and_shortest_the_shortest() -> None:
    assert _chosen(Fifo(), LONG, SHORT) == (0, 0, 5)
    assert _chosen(Shortest(), LONG, SHORT) == (1, 0, 2)


def test_fair_sharing_gives_a_job_its_part_and_no_more() -> None:
    assert _chosen(Fair(), LONG, SHORT, free=20) == (0, 0, 10)
    full = job(chain(1), [100], containers=10)
    assert _chosen(Fair(), full, SHORT, free=10) == (1, 0, 2)


def test_as_published_a_container_stays_and_leaves_only_where_it_was_told_to() -> None:
    rich = job(chain(1), [100], containers=15)
    assert _chosen(Fair(), rich, LONG, source=0) == (0, 0, 5)
    assert _chosen(Fair(leaves=True), rich, LONG, source=0) == (1, 0, 5)


def test_weighted_fair_sharing_follows_the_exponent() -> None:
    small = WeightedFair(-1.0).choose(scene(LONG, SHORT, free=20))
    large = WeightedFair(1.0).choose(scene(LONG, SHORT, free=20))
    assert small is not None and large is not None
    assert (small.limit, large.limit) == (1, 20)


def test_containers_wait_for_a_stage_that_is_about_to_open_only_with_those_that_hold() -> None:
    claimed = replace(job(chain(2), [3, 5], containers=3), unclaimed=np.array([0, 5]))
    assert _chosen(Fair(), claimed, source=0) == (0, 1, 5)
    assert _chosen(Shortest(), claimed, source=0) is None


def test_capped_remaining_work_leaves_for_clearly_less_and_spills_when_all_are_capped() -> None:
    policy = Capped(1.0, 0.5, clearly_s=50.0)
    assert _chosen(policy, LONG, SHORT, source=0) == (1, 0, 2)
    assert _chosen(policy, LONG, job(chain(1), [60]), source=0) == (0, 0, 5)
    full = job(chain(1), [100], containers=10)
    assert policy.choose(scene(full)) == StageChoice(0, 0, 1, 10, spills=True)


def test_the_longest_chain_goes_first_and_packing_takes_what_fits() -> None:
    fork = graph_of(3, [(0, 2)])
    forked = job(fork, [2, 9, 50])
    assert _chosen(Shortest(), forked) == (0, 0, 2)
    assert _chosen(Packing(), forked) == (0, 1, 5)
    assert _chosen(Trouble(), forked) == (0, 0, 2)


@pytest.mark.parametrize("name", STAGES.names())
def test_nothing_is_chosen_where_there_is_nothing_to_do(name: str) -> None:
    assert STAGES[name]().choose(scene()) is None
    assert STAGES[name]().choose(scene(job(chain(1), [0]))) is None
