"""Jobs of which nobody knows anything, beside known ones that fill the nodes' queues: how soon they begin."""

import math

import pytest

from tests.rm.rm_newcomers import BEAT_S, BOUND, LONG_S, SLOTS, Cluster


@pytest.mark.parametrize("phase_s", [0.0, 1.0, 2.5, 4.0, 5.5])
def test_a_new_job_begins_once_a_queue_has_drained_beside_one_that_fills_all(phase_s: float) -> None:
    cluster = Cluster()
    cluster.app(40, LONG_S, estimate=LONG_S, master=False)
    cluster.run(8.0 + phase_s)
    zeta = cluster.app(4, 2.0)
    cluster.run(40.0)
    assert cluster.masters[zeta] <= math.ceil(BOUND / SLOTS) * LONG_S, "what waits at one node runs first"
    assert cluster.started[zeta][0] - cluster.masters[zeta] <= LONG_S + BEAT_S, "its turn goes on"
    assert cluster.started[zeta][-1] <= 4 * LONG_S


@pytest.mark.parametrize("phase_s", [0.0, 1.0, 2.5, 4.0, 5.5])
def test_a_master_comes_to_the_room_of_what_ends_next_at_a_node_that_keeps_it(phase_s: float) -> None:
    """No node runs more than fits meanwhile, which `at_node` asserts."""
    cluster = Cluster(keeps_room=True)
    cluster.app(40, LONG_S, estimate=LONG_S, master=False)
    cluster.run(8.0 + phase_s)
    zeta = cluster.app(4, 2.0)
    cluster.run(40.0)
    assert cluster.masters[zeta] <= LONG_S + BEAT_S, "one task's time, however many wait"
    assert not cluster.passed, "nothing that waited at its node started before it once the node had been told"
    assert cluster.started[zeta][-1] <= 4 * LONG_S


@pytest.mark.parametrize("phase_s", [0.0, 2.5, 5.5])
def test_an_unknown_job_is_neither_last_nor_first(phase_s: float) -> None:
    cluster = Cluster()
    alpha = cluster.app(30, LONG_S, estimate=LONG_S, master=False)
    cluster.run(8.0 + phase_s)
    beta, large = cluster.app(8, 3.0, master=False), cluster.app(60, 3.0, master=False)
    cluster.run(60.0)
    assert cluster.started[beta][0] <= 2 * LONG_S, "eight tasks as long as others lately are less than alpha has left"
    assert min(cluster.started[large]) + phase_s > cluster.started[alpha][-1] - 8.0 - LONG_S, "sixty are more"


def test_what_is_typical_moves_with_what_runs() -> None:
    """Two jobs that came before anything was seen: the unknown one's place is found again when something is."""
    cluster = Cluster()
    known = cluster.app(30, 4.0, estimate=4.0, master=False)
    unknown = cluster.app(20, 4.0, master=False)
    cluster.run(30.0)
    assert cluster.started[unknown][0] <= 4 * 4.0 < cluster.started[known][-1]
