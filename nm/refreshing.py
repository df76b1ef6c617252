"""Keys that the node reads again when the administrator has the ResourceManager refresh the queues.

`yarn rmadmin -refreshQueues` reaches the ResourceManager alone; it tells nodes of ours with their next heartbeat when
it read its files last, and each reads its own again: the order of its queue, how it estimates waits there, and how its
proxy places containers.
"""

import asyncio
import logging
import math
from collections.abc import Callable

from nm.amrm_proxy.proxy import AmrmProxy
from nm.amrm_proxy.settings import read_limits
from nm.distributed import DistributedLimits
from nm.node_queue import NodeQueueSettings
from nm.settings import read_queue_settings, read_wait_estimate
from yaqd.config import ConfigError, Configuration
from yaqd.ipc.tasks import TaskSet

log = logging.getLogger(__name__)


class Refreshing:
    def __init__(
        self,
        conf: Configuration,
        proxy: AmrmProxy | None,
        *,
        queue_changed: Callable[[NodeQueueSettings], None],
        wait_changed: Callable[[str], None],
    ) -> None:
        """`wait_changed`: told the name of the policy that estimates waits."""
        self._conf = conf
        self._proxy = proxy
        self._queue_changed = queue_changed
        self._wait_changed = wait_changed
        #: the last word of the ResourceManager
        self._read_ms = 0
        self._tasks = TaskSet()

    def told(self, read_ms: int) -> None:
        """Notes when the ResourceManager read its files last, epoch ms. A new time has the node read its own."""
        if read_ms == self._read_ms:
            return
        self._read_ms = read_ms
        if not self._tasks:
            self._tasks.start(self._read())

    async def _read(self) -> None:
        """Once more where it was told again meanwhile."""
        done_for = -1
        while done_for != self._read_ms:
            done_for = self._read_ms
            try:
                conf = await asyncio.to_thread(self._conf.reread)
                settings, limits = read_queue_settings(conf), read_limits(conf)
                wait = read_wait_estimate(conf)
            except ConfigError as error:
                log.error("the queues of this node stay as they are: %s", error)
                continue
            self._queue_changed(settings)
            self._wait_changed(wait)
            if self._proxy is not None:
                self._proxy.change(limits)
            proxied = limits if self._proxy is not None else None
            log.info("the files were read again: %s", _words(settings, wait, proxied))

    async def stop(self) -> None:
        await self._tasks.end()


def _words(own: NodeQueueSettings, wait: str, proxy: DistributedLimits | None) -> str:
    """What was read, for people. `proxy` None: there is none."""
    order = "arrival"
    if (by := own.ordering) is not None:
        order = by.name if by.starve_s == math.inf else f"{by.name}, first those that have waited {by.starve_s:g} s"
    parts = [
        f"where the ResourceManager does not fill this node's queue, opportunistic containers start by {order} "
        "(yaq.nm.queue.order) and guaranteed ones by arrival",
        f"waits are estimated by {wait} (yaq.nm.queue.wait-estimate)",
    ]
    if proxy is not None:
        longest = f"{proxy.wait_max_s:g} s" if proxy.wait_max_s < math.inf else "any time"
        parts.append(
            f"the proxy places by {proxy.placement}, where containers wait {longest} at most, "
            f"{_number(proxy.tasks_max)} of a job at a time and {_number(proxy.per_beat)} in a heartbeat"
        )
    return "; ".join(parts)


def _number(count: int) -> str:
    return "any number" if count < 0 else str(count)
