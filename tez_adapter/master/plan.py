"""From a job specification to the DAG that its machine runs."""

from typing import Any

from tez_adapter.client.sizes import command_size, sort_mb, task_size
from tez_adapter.core.dag import DagSpec, EdgeSpec, Limits, VertexSpec
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.merging.settings import on_hdfs
from yaqd.config import Configuration
from yaqd.storage import output_codec

#: of the asks; smaller is served first, so that sources never wait for their targets
_FIRST_PRIORITY = 10
_NEXT_PRIORITY = 20


def plan(spec: JobSpec, conf: Configuration, splits: list[dict[str, Any]]) -> DagSpec:
    if spec.kind is JobKind.COMMAND:
        return DagSpec((_command(spec, conf),), limits=_limits(conf))
    hosts = tuple(tuple(str(h) for h in split.get("hosts", ())) for split in splits)
    maps = VertexSpec(
        "map",
        len(splits),
        task_size("map", conf).resource,
        _FIRST_PRIORITY,
        max_attempts=conf.get_int("mapreduce.map.maxattempts", 4, minimum=1),
        failures_max_percent=failures_max_percent("map", conf),
        timeout_s=conf.get_int("mapreduce.task.timeout", 600_000, minimum=0) / 1000,
        hosts=hosts if any(hosts) else (),
        opportunistic=_opportunistic(conf),
        outputs_stay=on_hdfs(conf),
    )
    if not spec.reduces:
        return DagSpec((maps,), limits=_limits(conf))
    reduces = VertexSpec(
        "reduce",
        spec.reduces,
        task_size("reduce", conf).resource,
        _NEXT_PRIORITY,
        max_attempts=conf.get_int("mapreduce.reduce.maxattempts", 4, minimum=1),
        failures_max_percent=failures_max_percent("reduce", conf),
        timeout_s=maps.timeout_s,
    )
    slow_start = conf.get_float("mapreduce.job.reduce.slowstart.completedmaps", 0.05, minimum=0, maximum=1)
    return DagSpec((maps, reduces), (EdgeSpec(0, 1, slow_start),), _limits(conf))


def failures_max_percent(phase: str, conf: Configuration) -> int:
    """Of the tasks of a phase, map or reduce, as many may fail for good."""
    return conf.get_int(f"mapreduce.{phase}.failures.maxpercent", 0, minimum=0, maximum=100)


def check_plan(reduces: int, conf: Configuration) -> None:
    """What the job manager and its tasks read of a MapReduce job's settings. Raises ConfigError."""
    plan(JobSpec("", "", "", JobKind.MAPREDUCE, {}, "", reduces=reduces), conf, [])
    sort_mb(conf)
    output_codec(conf)


def _command(spec: JobSpec, conf: Configuration) -> VertexSpec:
    resource = command_size(conf).resource
    # a command's exit status is the user's answer: it is not asked twice, and nothing reports its progress
    return VertexSpec(
        "command",
        spec.tasks,
        resource,
        _FIRST_PRIORITY,
        max_attempts=1,
        timeout_s=0.0,
        reusable=False,
        hosts=tuple((spec.nodes[task % len(spec.nodes)],) for task in range(spec.tasks)) if spec.nodes else (),
        only_on_hosts=bool(spec.nodes),
        opportunistic=_opportunistic(conf),
    )


def _opportunistic(conf: Configuration) -> float:
    return conf.get_int("mapreduce.job.num-opportunistic-maps-percent", 0, minimum=0, maximum=100) / 100


def _limits(conf: Configuration) -> Limits:
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
