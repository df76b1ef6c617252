"""Hadoop's words for what its ContainerScheduler does to containers, which masters and proxies may look for."""

from typing import Final

QUEUE_FULL: Final = "Opportunistic container queue is full."
MAKE_ROOM: Final = "Container Killed to make room for Guaranteed Container."
DEQUEUED: Final = "Container De-queued to meet NM queuing limits."
#: ours, of what has waited for too long
WAITED_TOO_LONG: Final = "Container preempted before it ran:"
#: of containers that have not run
NEVER_RAN: Final = (QUEUE_FULL, DEQUEUED, WAITED_TOO_LONG)
