"""When what waits at a node is placed again (`rm.node_queues.rebalancing`)."""

import math
from dataclasses import dataclass

from yaqd.config import Configuration
from yaqd.policies.queueing.rebalance import REBALANCES

_PREFIX = "yaq.distributed.rebalance"


@dataclass(frozen=True, slots=True)
class RebalanceSettings:
    #: what a move must gain, s; inf: nothing is moved
    least_gain_s: float
    #: what waits for ever is given up after this, s; inf: never
    stuck_s: float
    #: how long a task without an estimate is taken to run
    typical_s: float
    interval_s: float = 1.0
    #: a name in REBALANCES
    policy: str = "gain"

    @classmethod
    def read(cls, conf: Configuration) -> "RebalanceSettings":
        """Raises ConfigError."""

        def seconds(key: str) -> float:
            value = conf.get_int(key, minimum=-1)
            return value / 1000 if value >= 0 else math.inf

        typical = conf.get_int("yaq.distributed.typical-task-ms", minimum=1)
        return cls(
            seconds(f"{_PREFIX}.min-gain-ms"),
            seconds(f"{_PREFIX}.stuck-ms"),
            typical / 1000,
            policy=conf.get_named(f"{_PREFIX}.policy", REBALANCES.check),
        )
