"""What the ResourceManager reads about queues at the nodes: the keys `yaq.queue.*`, from `yaq-site.xml` as a rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rm.node_queues.orderings import MS_MAX, Orderings, family, named_hosts
from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.limits import Rules
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from rm.scheduler.queues.spec import LEAF_ORDERINGS
from rm.settings.rebalancing import RebalanceSettings
from yaqd.config import Configuration
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES
from yaqd.policies.queueing.job_order import JOB_ORDERS
from yaqd.policies.queueing.place_scores import PLACES, Affinity
from yaqd.policies.registry import UnknownPolicy

_NODE: Final = "yaq.queue.node."
_LEAF: Final = "yaq.queue.leaf."
#: what `yaq.queue.enabled` may be: nodes hold containers ready where that gains something, in any case, or never
ENABLED: Final = ("auto", "true", "false")
#: no queue is longer
_BOUND_MAX: Final = limits.LONGEST_QUEUE


@dataclass(frozen=True, slots=True)
class QueueSettings:
    #: None: nothing is sent to wait
    spec: QueueingSpec | None
    #: how nodes order what waits
    orderings: Orderings
    #: how long a guaranteed container waits before it goes back
    max_wait_ms: int
    #: the ordering policy of leaf queues that name none
    job_order: str
    #: where a leaf queue's ordering policy is an order of jobs
    job_starvation: JobStarvation
    #: containers are given when they are asked for too, and not at nodes' heartbeats alone
    at_asks: bool
    #: by which containers are given away at heartbeats; they stay for as long as the daemon runs
    rules: Rules
    #: of queues that proxies fill
    rebalance: RebalanceSettings
    #: how estimates are made: a name in ESTIMATES (yaqd.policies.queueing.estimates)
    estimates: str
    #: hosts with settings of their own, and where the first of each stands; none while nothing is sent to wait
    named_hosts: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, conf: Configuration) -> "QueueSettings":
        """Raises ConfigError."""
        max_wait_ms = conf.get_duration_ms("yaq.queue.max-wait", minimum=100, maximum=MS_MAX)
        unaware_ms = conf.get_duration_ms("yaq.queue.max-wait-unaware", minimum=0, maximum=MS_MAX)
        spec = replace(_spec(conf), overdue_s=max_wait_ms / 1000, unaware_wait_s=unaware_ms / 1000)
        orderings = Orderings.read(conf)
        spec = replace(spec, starve_s=orderings.cluster.starve_s)
        job_order = conf.get_named("yaq.queue.job-order", _job_order)
        is_enabled = conf.get_choice("yaq.queue.enabled", ENABLED) != "false"
        return cls(
            spec if is_enabled else None,
            orderings,
            max_wait_ms,
            job_order,
            JobStarvation(
                conf.get_duration_ms("yaq.rm.scheduler.job-starve-ms", minimum=0) / 1000,
                conf.get_float("yaq.rm.scheduler.job-starve-ratio", minimum=0.0),
                conf.get_duration_ms("yaq.clotho.starve", minimum=0) / 1000,
            ),
            conf.get_bool("yaq.rm.scheduler.at-asks"),
            _rules(conf),
            RebalanceSettings.read(conf),
            conf.get_named("yaq.queue.estimates", ESTIMATES.check),
            {host: f"{conf.origin(key)}: {key}" for host, key in named_hosts(conf).items()} if is_enabled else {},
        )

    def with_rules(self, rules: Rules) -> "QueueSettings":
        """Return them as a daemon takes them that decides by these rules until it is started again."""
        if rules is self.rules:
            return self
        if rules is Rules.STOCK:
            return replace(self, rules=rules, spec=None, at_asks=False, named_hosts={})
        return replace(self, rules=rules)


def _rules(conf: Configuration) -> Rules:
    """Raises ConfigError where something is on that stock's rules do not know."""
    key = "yaq.rm.scheduler.rules"
    rules = Rules(conf.get_choice(key, tuple(Rules)))
    for ours in ("yaq.queue.enabled", "yaq.rm.scheduler.at-asks") if rules is Rules.STOCK else ():
        if (conf.get(ours) or "").strip().lower() != "false":
            raise conf.error(ours, f"is not for {key}={rules}", f"set it to false, or {key} to {Rules.YAQ}")
    return rules


def _job_order(name: str) -> str:
    """Raises UnknownPolicy."""
    known = (*LEAF_ORDERINGS, *JOB_ORDERS.names())
    if name not in known:
        raise UnknownPolicy(JOB_ORDERS.kind, name, f"there is none; known: {', '.join(known)}")
    if name not in LEAF_ORDERINGS:
        JOB_ORDERS[name]
    return name


def _spec(conf: Configuration) -> QueueingSpec:
    least = int(conf.get_choice("yaq.queue.enabled", ENABLED) == "true")

    def tuning(key: str) -> Tuning:
        heartbeat_ms = conf.get_duration_ms("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", minimum=1)
        return Tuning(
            policy=conf.get_named("yaq.queue.bound-policy", BOUNDS.check),
            idle=1.0 - conf.get_float(key, minimum=0.0, maximum=1.0),
            heartbeat_s=heartbeat_ms / 1000,
            poll_s=conf.get_duration_ms("yaq.queue.poll-gap", minimum=0, maximum=MS_MAX) / 1000,
            least=least,
        )

    return QueueingSpec(
        bound=_bound(conf, "yaq.queue.bound") if conf.get("yaq.queue.bound") else None,
        host_bounds={host: _bound(conf, key) for host, key in family(conf, _NODE, ".bound")},
        host_tunings={host: tuning(key) for host, key in family(conf, _NODE, ".target-utilization")},
        tuning=tuning("yaq.queue.target-utilization"),
        placement=conf.get_named("yaq.queue.placement", PLACES.check),
        affinity=Affinity(interference=conf.get_float("yaq.queue.interference", minimum=0.0)),
        free_share=conf.get_float("yaq.queue.free-share", minimum=0.0, maximum=1.0),
        wait_max_s=_seconds(conf, "yaq.queue.max-wait-estimate"),
        default_estimate_s=_seconds(conf, "yaq.queue.default-estimate"),
        leaves_without=frozenset(path for path, key in family(conf, _LEAF, ".enabled") if not conf.get_bool(key)),
    )


def _bound(conf: Configuration, key: str) -> int:
    return conf.get_int(key, minimum=0, maximum=_BOUND_MAX)


def _seconds(conf: Configuration, key: str) -> float | None:
    is_set = bool((conf.get(key) or "").strip())
    return conf.get_duration_ms(key, minimum=0, maximum=MS_MAX) / 1000 if is_set else None
