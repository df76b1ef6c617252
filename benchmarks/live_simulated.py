"""The live benchmark's workloads in the simulator: what it says of the same cluster, and how far reality is from that.

The simulator knows each variant's settings. Of this machine it is told what `benchmarks.live_twins` measured in
the very run that it is held against. Heartbeats fall differently in every run, live or simulated, so it is asked with
several seeds, and the median of what they say is compared.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rm.settings.queues import QueueSettings
from yaqd.config import Configuration
from yaqd.sim.shape import LivedTimes
from yaqd.sim.simulation import ClusterShape, System, simulate
from yaqd.sim.workload import Workload

from .live_cluster import JOB_ORDER, NODES, STOCK_OFF_SWITCH, Variant

SEEDS: Final = range(1, 8)


@dataclass(frozen=True, slots=True)
class Foretold:
    """Job completion times from submission, of each seed, s."""

    by_seed: list[list[float]]

    def at(self, share: float) -> float:
        """The value that this share of the jobs stays within, s."""
        return statistics.median(quantile(times, share) for times in self.by_seed)


def foretell(
    variant: Variant,
    workload: Workload,
    slots: int,
    *,
    poll_s: float,
    gap_s: float,
    aware: bool = True,
    lived: LivedTimes = LivedTimes(hears_by_polls=True),
) -> Foretold:
    """Simulates the workload; `slots`: of a node, `poll_s`: of the masters, `gap_s`: until a process runs, `aware`: the
    masters say that their containers may wait, `lived`: what else was measured."""
    shape = shape_of(variant, slots, poll_s=poll_s, gap_s=gap_s, lived=lived)
    system = system_of(variant, aware=aware)
    return Foretold([list(simulate(shape, workload, system, seed).completion_times()) for seed in SEEDS])


def shape_of(variant: Variant, slots: int, *, poll_s: float, gap_s: float, lived: LivedTimes) -> ClusterShape:
    """The live benchmark's cluster; `slots`: of a node."""
    return ClusterShape(
        nodes=NODES,
        slots=slots,
        heartbeat_s=variant.heartbeat_ms / 1000,
        am_poll_s=poll_s,
        start_gap_s=gap_s,
        lived=lived,
    )


def system_of(variant: Variant, *, aware: bool) -> System:
    """A variant of either side; `aware`: the masters say that their containers may wait."""
    return replace(simulated(variant), aware=aware) if variant.is_ours else _stock(variant)


def _stock(variant: Variant) -> System:
    if variant.opportunistic:
        return System("yarn-opportunistic", bound=variant.queue_length, out_of_turn=variant.out_of_turn)
    order = str(variant.site.get(JOB_ORDER, "fifo"))
    return System(
        "yarn",
        rules="stock",
        off_switch_max=STOCK_OFF_SWITCH,
        job_order=order,
        out_of_turn=variant.out_of_turn,
    )


def simulated(variant: Variant) -> System:
    """One of ours, by the keys that the daemons read, shipped defaults below the variant's own."""
    conf = Configuration.load(environ={}, overrides={key: str(text) for key, text in variant.site.items()})
    queues = QueueSettings.read(conf)
    job_order = conf.get(JOB_ORDER) or queues.job_order
    starve_s = conf.get_duration_ms("yaq.rm.scheduler.job-starve-ms") / 1000
    if queues.spec is None:
        return System(
            "yarn",
            estimates=queues.estimates,
            out_of_turn=variant.out_of_turn,
            at_asks=variant.at_asks,
            job_order=job_order,
            job_starve_s=starve_s,
        )
    return System(
        "yaq-c",
        estimates=queues.estimates,
        out_of_turn=variant.out_of_turn,
        at_asks=variant.at_asks,
        job_order=job_order,
        job_starve_s=starve_s,
        bound_target=1.0 - queues.spec.tuning.idle,
        bound_policy=queues.spec.tuning.policy,
        bound_least=queues.spec.tuning.least,
        free_min=queues.spec.free_share,
        order=queues.orderings.cluster.strategy,
        starve_s=queues.orderings.cluster.starve_s,
        starve_ratio=queues.orderings.cluster.starve_ratio,
        order_scope=queues.orderings.cluster.scope,
        max_wait_s=queues.max_wait_ms / 1000,
        max_wait_unaware_s=queues.spec.unaware_wait_s,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of all stays within."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
