"""How many mergers a job starts for itself where its nodes have none: each takes the place of one of its tasks.

A merger beside a NodeManager costs nobody a place, so there is one at each node. One in a container holds a task's
place while the maps run: it is worth that only where the nodes' disks are spared more time than it takes to start it. A
few do for many nodes.
"""

from typing import Final

#: nodes whose outputs one merger reads
_NODES_EACH: Final = 4
#: until a container is granted, started and merges, s
_START_S: Final = 2.0


def own_mergers(maps: int, nodes: int, gain_s: float | None, *, most: int) -> int:
    """Return how many mergers a job starts, `most` at most.

    `gain_s`: predicted disk and request time that merging saves on all nodes together; None where merging was told, not
    chosen.
    """
    wanted = min(most, maps // 2, -(-max(1, nodes) // _NODES_EACH))
    if gain_s is not None:
        wanted = min(wanted, int(gain_s / _START_S))
    return max(0, wanted)
