"""At which node an opportunistic container waits where queues at nodes are filled: by the rule that others wait by.

Hadoop's allocator takes any node of the wanted host or rack, however long its queue is, before all others, and the
others by its comparator. Here nearness, likes at the node and its load are weighed as for every container that waits
(`yaqd.policies.queueing.place_scores`), among the nodes that are near and the least loaded ones.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

from rm.scheduler.asks.table import Ask
from rm.scheduler.decisions import Locality
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic.node_load import NodeLoad
from yaqd.model import Resource
from yaqd.policies.queueing.place import choose, load_of
from yaqd.policies.queueing.place_scores import PLACES, Load

#: steps in which a node's use is compared
_SHARES: Final = 1000


def best_place(
    spec: QueueingSpec,
    ask: Ask,
    nodes: Iterable[NodeLoad],
    need_fits: "Callable[[NodeLoad], bool]",
    alike: "Callable[[NodeLoad], int]",
) -> "tuple[NodeLoad, Locality] | None":
    """Of nodes that would all take it; `alike`: how many of the same stage one has."""
    policy = PLACES[spec.placement]

    def weighed(node: NodeLoad) -> "tuple[NodeLoad, float, float, int]":
        near, queue = nearness(ask, node), node.node.queue
        slots = queue.slots if queue is not None else 0
        worth = {Locality.RACK: spec.affinity.rack, Locality.OFF_SWITCH: spec.affinity.elsewhere}.get(near, 1.0)
        if spec.affinity.interference > 0.0:
            worth = spec.affinity.fought_for(worth, alike(node), slots)
        length = (node.length or 0) + node.given
        load = 0.0 if need_fits(node) else load_of(policy, Load(length, _wait_s(node), slots))
        # what is equal in all that goes to who holds less
        return node, worth, load, _SHARES * length + min(_SHARES - 1, int(_SHARES * min(1.0, node.share())))

    best = choose(weighed(node) for node in dict.fromkeys(nodes))
    return (best, nearness(ask, best)) if best is not None else None


def nearness(ask: Ask, node: NodeLoad) -> Locality:
    """Of a node that the ask allows."""
    if not ask.prefers_places:
        return Locality.NONE
    if node.node.id.host in ask.counts:
        return Locality.NODE
    return Locality.RACK if ask.allows(node.node.rack) else Locality.OFF_SWITCH


def takes(node: NodeLoad, need: Resource, wait_limit_s: float) -> bool:
    """Tell whether it has room, now or in its queue, and what waits there is known to start within `wait_limit_s`.

    What a node says of its wait while it has room tells nothing of that. What was sent there since runs before it.
    """
    if not node.takes(need):
        return False
    if wait_limit_s == math.inf or node.fits(need):
        return True
    return node.wait_ms > 0 and node.expected_wait() < wait_limit_s


def _wait_s(node: NodeLoad) -> float:
    """As it said, longer by what was sent there since, each as long as those that wait."""
    if node.wait_ms < 0:
        return math.inf
    waiting = (node.length or 0) + 1
    return node.wait_ms / 1000 * (waiting + node.given) / waiting
