"""What settings say of any kind's job as a whole."""

from tez_adapter.core.dag import Limits
from yaqd.config import Configuration

#: of the asks; smaller is served first, so that sources never wait for their targets
FIRST_PRIORITY = 10
NEXT_PRIORITY = 20


def opportunistic_share(conf: Configuration) -> float:
    """Return the share of the first vertex's containers that may be opportunistic, 0..1."""
    return conf.get_int("mapreduce.job.num-opportunistic-maps-percent", 0, minimum=0, maximum=100) / 100


def job_limits(conf: Configuration) -> Limits:
    return Limits(
        node_failures=conf.get_int("mapreduce.job.maxtaskfailures.per.tracker", 3, minimum=1),
        blacklist_share=conf.get_int(
            "yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent", 33, minimum=0, maximum=100
        )
        / 100,
        idle_release_s=conf.get_duration_ms("yaq.job.container.idle-release-ms", 2000, minimum=0) / 1000,
        reuse_max_s=conf.get_duration_ms("yaq.job.container.reuse-max-ms", 15_000, minimum=0) / 1000,
        ramp_up=conf.get_float("yarn.app.mapreduce.am.job.reduce.rampup.limit", 0.5, minimum=0, maximum=1),
        preempt_after_s=conf.get_duration_ms("yaq.job.reduce.preempt-delay-ms", 1000, minimum=0) / 1000,
        silence_s=conf.get_duration_ms("yaq.job.task.silence-ms", 60_000, minimum=0) / 1000,
        fetch_failures=conf.get_int("mapreduce.reduce.shuffle.maxfetchfailures", 3, minimum=1),
    )
