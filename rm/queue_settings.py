"""What the ResourceManager reads about queues at the nodes: the keys `yaq.queue.*`, from `yaq-site.xml` as a rule."""

import math
from dataclasses import dataclass, replace
from typing import Final

from rm.scheduler.queueing_spec import QueueingSpec, Tuning
from rm.scheduler.queues import LEAF_ORDERINGS
from yaqd.config import Configuration
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.job_order import JOB_ORDERS
from yaqd.policies.queueing.order import Ordering
from yaqd.policies.queueing.place_scores import Affinity, place_name
from yaqd.policies.queueing.registry import UnknownPolicy

_NODE: Final = "yaq.queue.node."
_LEAF: Final = "yaq.queue.leaf."
#: no queue is longer
_BOUND_MAX: Final = limits.LONGEST_QUEUE
#: a longer time is none, and would not fit the messages to the nodes
_MS_MAX: Final = int(limits.LONGEST_S * 1000)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    #: None: nothing is sent to wait
    spec: QueueingSpec | None
    #: how nodes order what waits
    ordering: Ordering
    #: how long a guaranteed container waits before it goes back
    max_wait_ms: int
    #: the ordering policy of leaf queues that name none
    job_order: str

    @classmethod
    def read(cls, conf: Configuration) -> "QueueSettings":
        """Raises ConfigError."""
        scope = conf.get_choice("yaq.queue.scope", ("all", "queue", "user"))
        starve_s = conf.get_duration_ms("yaq.queue.starve-ms", minimum=0, maximum=_MS_MAX) / 1000
        ratio = conf.get_float("yaq.queue.starve-ratio", math.inf, minimum=0.0)
        ordering = conf.get_named("yaq.queue.order", lambda name: Ordering(name, starve_s, ratio, scope))
        max_wait_ms = conf.get_duration_ms("yaq.queue.max-wait", minimum=100, maximum=_MS_MAX)
        unaware_ms = conf.get_duration_ms("yaq.queue.max-wait-unaware", minimum=0, maximum=_MS_MAX)
        spec = replace(_spec(conf), overdue_s=max_wait_ms / 1000, unaware_wait_s=unaware_ms / 1000)
        job_order = conf.get_named("yaq.queue.job-order", _job_order)
        is_enabled = conf.get_bool("yaq.queue.enabled")
        return cls(
            spec if is_enabled else None,
            ordering,
            max_wait_ms,
            job_order if is_enabled else LEAF_ORDERINGS[0],
        )


def _job_order(name: str) -> str:
    """Raises UnknownPolicy."""
    known = (*LEAF_ORDERINGS, *JOB_ORDERS.names())
    if name not in known:
        raise UnknownPolicy(JOB_ORDERS.kind, name, f"there is none; known: {', '.join(known)}")
    if name not in LEAF_ORDERINGS:
        JOB_ORDERS[name]
    return name


def _spec(conf: Configuration) -> QueueingSpec:
    target = conf.get_float("yaq.queue.target-utilization", minimum=0.0, maximum=1.0)
    tuning = Tuning(
        policy=conf.get_named("yaq.queue.bound-policy", _bound_policy),
        idle=1.0 - target,
        heartbeat_s=conf.get_duration_ms("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", minimum=1) / 1000,
        poll_s=conf.get_duration_ms("yaq.queue.poll-gap", minimum=0, maximum=_MS_MAX) / 1000,
    )
    return QueueingSpec(
        bound=_bound(conf, "yaq.queue.bound") if conf.get("yaq.queue.bound") else None,
        host_bounds={host: _bound(conf, key) for host, key in _family(conf, _NODE, ".bound")},
        tuning=tuning,
        placement=conf.get_named("yaq.queue.placement", place_name),
        affinity=Affinity(interference=conf.get_float("yaq.queue.interference", minimum=0.0)),
        free_share=conf.get_float("yaq.queue.free-share", minimum=0.0, maximum=1.0),
        wait_max_s=_seconds(conf, "yaq.queue.max-wait-estimate"),
        default_estimate_s=_seconds(conf, "yaq.queue.default-estimate"),
        leaves_without=frozenset(path for path, key in _family(conf, _LEAF, ".enabled") if not conf.get_bool(key)),
    )


def _bound_policy(name: str) -> str:
    """Raises UnknownPolicy."""
    BOUNDS[name]
    return name


def _bound(conf: Configuration, key: str) -> int:
    return conf.get_int(key, minimum=0, maximum=_BOUND_MAX)


def _seconds(conf: Configuration, key: str) -> float | None:
    is_set = bool((conf.get(key) or "").strip())
    return conf.get_duration_ms(key, minimum=0, maximum=_MS_MAX) / 1000 if is_set else None


def _family(conf: Configuration, prefix: str, suffix: str) -> list[tuple[str, str]]:
    """What stands between, and the key. One without a value sets nothing, as everywhere."""
    keys = [key for key, text in conf.items() if key.startswith(prefix) and key.endswith(suffix) and text.strip()]
    return [(key[len(prefix) : -len(suffix)], key) for key in keys]
