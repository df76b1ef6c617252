"""How nodes are filled beyond their size, as it is configured."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from yaqd.policies.queueing.place_scores import Affinity
from yaqd.policies.queueing.tuning import BoundTuner

#: heartbeats that a node may be late with before anybody wonders
MISSED_BEATS: Final = 3.0
#: a node that was heard of so long ago is not silent, s: a busy one misses some heartbeats when they are short
_LATE_S: Final = 5.0


def silent_after(heartbeat_s: float) -> float:
    """Return for how long a node may be unheard of, s. After that nothing is expected of it."""
    return max(_LATE_S, MISSED_BEATS * heartbeat_s)


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a bound that finds itself starts from (yaqd.policies.queueing.tuning)."""

    #: formula by name, and the part of time or of intervals that may idle
    policy: str = "poisson"
    idle: float = 0.05
    #: until they have been observed: how long tasks run, and between a node's heartbeats, s. The second for good where
    #: nodes tell of ends at once
    mean_s: float = 30.0
    heartbeat_s: float = 3.0
    #: from a placement until the master starts it, s
    poll_s: float = 1.0
    least: int = 0
    most: int = 1000

    def begin(self) -> BoundTuner:
        """Return a tuner that begins so. Raises UnknownPolicy."""
        return BoundTuner(
            policy=self.policy,
            idle=self.idle,
            mean_s=self.mean_s,
            heartbeat_s=self.heartbeat_s,
            poll_s=self.poll_s,
            least=self.least,
            most=self.most,
        )


@dataclass(frozen=True, slots=True)
class QueueingSpec:
    """How nodes are filled beyond their size."""

    #: containers that may wait at a node; None: as many as keep it busy, found by `tuning`
    bound: int | None = 8
    #: the same of nodes on single hosts
    host_bounds: Mapping[str, int] = field(default_factory=dict)
    tuning: Tuning = Tuning()
    #: the same of nodes on single hosts
    host_tunings: Mapping[str, Tuning] = field(default_factory=dict)
    #: at which node what finds no room waits: a name in PLACES (yaqd.policies.queueing.place_scores)
    placement: str = "wait"
    #: how near data makes a longer wait worth it, and how much tasks of one stage fight for the same resource of a node
    affinity: Affinity = Affinity()
    #: nothing waits while more than this part of the cluster is free and the ask fits somewhere (the paper's Rf_min)
    free_share: float = 0.1
    #: a node where a newcomer would wait longer is given nothing, s; None: only the bound counts
    wait_max_s: float | None = None
    #: seconds that a task may wait at nodes in all; after that it is not sent to wait again
    overdue_s: float = math.inf
    #: seconds that a container may wait whose master takes what it has started for running; 0: not at all
    unaware_wait_s: float = math.inf
    #: seconds after which what waits at a node goes first there. Where containers are preempted no queue is kept below
    #: its guarantee for longer
    starve_s: float = math.inf
    #: how long a task is taken to run that nobody knows anything of, s; None: for ever
    default_estimate_s: float | None = None
    #: leaf queues by path whose containers never wait
    leaves_without: frozenset[str] = frozenset()

    @property
    def gives_way(self) -> bool:
        """Tell whether nothing waits anywhere where that gains nothing: no host is said to hold any in any case."""
        tunings = (self.tuning, *self.host_tunings.values())
        return self.bound is None and not any(self.host_bounds.values()) and not any(one.least for one in tunings)

    def bound_of(self, host: str) -> int | None:
        """Return the fixed bound of nodes on the host; None: `tuning_of` says how it is found."""
        if host in self.host_tunings and host not in self.host_bounds:
            return None
        return self.host_bounds.get(host, self.bound)

    def tuning_of(self, host: str) -> Tuning:
        return self.host_tunings.get(host, self.tuning)
