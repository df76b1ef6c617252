"""One policy, two worlds: what the simulator calls ours is what a cluster does that configures nothing.

The paper's experiments differ in what they are about: heartbeats every 3 s, and decisions at heartbeats alone.
"""

import math
from dataclasses import replace
from typing import Any

import click
import pytest

from rm.scheduler.limits import SchedulerLimits
from rm.settings.containers import ContainerSettings
from rm.settings.queues import QueueSettings
from rm.settings.rebalancing import RebalanceSettings
from yaqd.cli.simulation import commands as sim
from yaqd.cli.simulation.systems import comparison, parse_system
from yaqd.config import Configuration
from yaqd.sim.distributed import _DEVIATIONS, _TYPICAL_S
from yaqd.sim.experiments import Case
from yaqd.sim.experiments.ground import HIVE_SHAPE, OURS_D, SHIPPED
from yaqd.sim.queues import ordering
from yaqd.sim.simulation import ClusterShape
from yaqd.sim.workload import Workload
from yaqd.sim.workloads import Arrivals, Drawn
from yaqd.sim.yaq_c import YaqC

CONF = Configuration.load(environ={})


def test_queues_are_filled_ordered_and_guarded_alike() -> None:
    live = QueueSettings.read(CONF)
    assert live.spec is not None
    spec = replace(live.spec, unaware_wait_s=math.inf)  # masters that know that their containers may wait, unless told
    shape = ClusterShape(heartbeat_s=CONF.get_int("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms") / 1000)
    assert YaqC(shape, Workload(()), SHIPPED, 1).limits().queueing == spec
    assert YaqC(shape, Workload(()), replace(SHIPPED, aware=False), 1).limits().queueing == live.spec
    assert ordering(SHIPPED) == live.orderings.cluster
    assert SHIPPED.max_wait_s * 1000 == live.max_wait_ms
    assert SHIPPED.job_order == live.job_order


def commanded(command: click.Command, system: str) -> Case:
    """What the command runs of whom nobody has said anything."""
    unsaid = {p.name: p.get_default(click.Context(command)) for p in command.params}
    shape: dict[str, Any] = {name: unsaid[name] for name in ("nodes", "slots", "heartbeat", "polling", "start")}
    drawn = Drawn("hive-ms", 1, Arrivals("burst"))
    (case,) = comparison("unsaid", drawn, **shape, systems=(system,)).cases
    assert isinstance(case, Case)
    return case


@pytest.mark.parametrize("command", [sim.compare, sim.replay])
def test_compare_and_replay_decide_when_a_live_cluster_does(command: click.Command) -> None:
    case, live = commanded(command, "yaq-c"), QueueSettings.read(CONF)
    assert live.spec is not None
    limits = YaqC(case.shape, Workload(()), case.system, 1).limits()
    assert case.system.out_of_turn == CONF.get_bool("yaq.nm.out-of-turn-heartbeats")
    assert limits.at_asks == SchedulerLimits(limits.bounds).at_asks, "the live ResourceManager does not say"
    assert limits.job_starvation == live.job_starvation
    assert limits.queueing == replace(live.spec, unaware_wait_s=math.inf)
    assert ordering(case.system) == live.orderings.cluster
    assert case.system.job_order == live.job_order
    for system in ("yarn", "yaq-c", "yaq-d"):
        heartbeat_ms = CONF.get_int("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms")
        assert commanded(command, system).shape.heartbeat_s * 1000 == heartbeat_ms


def test_the_papers_experiments_decide_at_heartbeats_alone() -> None:
    assert HIVE_SHAPE.heartbeat_s == 3.0
    assert not SHIPPED.out_of_turn and not SHIPPED.at_asks
    assert parse_system("yaq-c,out_of_turn=off,at_asks=off") == SHIPPED
    stock = parse_system("yarn")
    assert not stock.out_of_turn and not stock.at_asks


def test_the_starvation_threshold_can_make_a_difference() -> None:
    """What has waited for the longest wait is given back, so a threshold above it would never be reached."""
    live = QueueSettings.read(CONF)
    starve_ms = live.orderings.cluster.starve_s * 1000
    assert starve_ms <= live.max_wait_ms
    assert CONF.get_duration_ms("yaq.nm.queue.starve-ms") == starve_ms, "under a stock ResourceManager too"


def test_distributed_queues_are_ordered_and_corrected_alike() -> None:
    assert ordering(OURS_D) == QueueSettings.read(CONF).orderings.cluster
    assert OURS_D.place == CONF.get("yaq.queue.placement")
    moves = RebalanceSettings.read(CONF)
    assert moves.least_gain_s == (OURS_D.rebalance_gain_s or math.inf)
    assert moves.typical_s == _TYPICAL_S
    on = CONF.with_overrides({"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"})
    limits = ContainerSettings.read(on).opportunistic
    assert limits is not None
    assert OURS_D.rebalance
    assert (limits.queue_min, limits.queue_max) == (OURS_D.rebalance_least, OURS_D.rebalance_most)
    assert limits.deviations == _DEVIATIONS
