"""One policy, two worlds: what the simulator calls ours is what a cluster does that configures nothing."""

import math
from dataclasses import replace

from rm.container_settings import ContainerSettings
from rm.queue_settings import QueueSettings
from rm.rebalancing import RebalanceSettings
from yaqd.config import Configuration
from yaqd.sim.cluster import ClusterShape
from yaqd.sim.distributed import _DEVIATIONS, _TYPICAL_S
from yaqd.sim.experiments.ground import OURS, OURS_D
from yaqd.sim.queues import ordering
from yaqd.sim.workload import Workload
from yaqd.sim.yaq_c import YaqC

CONF = Configuration.load(environ={})


def test_queues_are_filled_ordered_and_guarded_alike() -> None:
    live = QueueSettings.read(CONF)
    assert live.spec is not None
    spec = replace(live.spec, unaware_wait_s=math.inf)  # simulated masters know that their containers may wait
    shape = ClusterShape(heartbeat_s=CONF.get_int("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms") / 1000)
    assert YaqC(shape, Workload(()), OURS, 1).limits().queueing == spec
    assert ordering(OURS) == live.orderings.cluster
    assert OURS.max_wait_s * 1000 == live.max_wait_ms
    assert OURS.job_order == live.job_order


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
