"""`yaq.compat`: one key that has all of what Hadoop does not do turned off, by giving other keys other defaults.

A key that a site file, a job or `-D` sets keeps its value. `docs/operating/stock.md` says what each does, and what
remains different.
"""

from collections.abc import Mapping
from typing import Final

KEY: Final = "yaq.compat"
#: everything as this project ships it
OURS: Final = "yaq"
#: as stock Hadoop
STOCK: Final = "stock"

_STOCK_DEFAULTS: Final = {
    # the ResourceManager
    "yaq.queue.enabled": "false",
    "yaq.queue.job-order": "fifo",
    "yaq.rm.scheduler.at-asks": "false",
    "yaq.rm.scheduler.rules": "stock",
    "yaq.rm.scheduler.masters-yield-after": "-1",
    "yaq.quality.enabled": "false",
    "yaq.distributed.rebalance.stuck-ms": "-1",
    # the NodeManagers
    "yaq.nm.queue.enabled": "false",
    "yaq.nm.containers.start-moment": "0",
    "yaq.nm.containers.batch-class": "false",
    "yaq.nm.throttle": "off",
    "yaq.nm.warm-start.enabled": "false",
    # merging
    "yaq.riffle.enabled": "false",
    "yaq.riffle.shuffle.policy": "off",
    # what the shipped capacity-scheduler.xml has otherwise than Hadoop's
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.1",
}
#: by value of `KEY`: what has another default than the shipped one
PRESETS: Final[Mapping[str, Mapping[str, str]]] = {OURS: {}, STOCK: _STOCK_DEFAULTS}
