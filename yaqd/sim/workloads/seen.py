"""How large the cluster was that a history is of, as far as it says: where its tasks ran, and how many at a time.

A history names nodes and not slots. What is found is the least that the cluster can have been. A node may have another
port, and so another name, each time it starts: nodes are counted under each start of the ResourceManager, of which a
job's id tells, and most of them count.
"""

import re
from collections import Counter
from typing import Final

from yaqd.sim.workload import ClusterSeen

#: of what is later, in the year 5138, nothing is learnt; epoch ms
_LAST_MS: Final = 1e14
#: of a file's name: when the ResourceManager started, and the number of the job
_JOB: Final = re.compile(r"job_(\d+)_\d+", re.ASCII)


class Sightings:
    """Which node ran something, and when."""

    def __init__(self) -> None:
        #: the ResourceManager's start that the job is of; empty: unknown
        self._start = ""
        #: by that and node: (epoch ms, one more or one less)
        self._changes: dict[tuple[str, str], list[tuple[float, int]]] = {}

    def job(self, file_name: str) -> None:
        """What follows is of the job whose history has this name."""
        found = _JOB.match(file_name)
        self._start = found[1] if found else ""

    def ran(self, node: object, started: object, finished: object) -> None:
        """An attempt that held a slot there, epoch ms; what does not say all three says nothing."""
        since, until = _moment(started), _moment(finished)
        if isinstance(node, str) and node and since is not None and until is not None and since <= until:
            self._changes.setdefault((self._start, node), []).extend(((since, 1), (until, -1)))

    def cluster(self) -> ClusterSeen | None:
        """None: no node was named."""
        if not self._changes:
            return None
        nodes = Counter(start for start, _ in self._changes)
        return ClusterSeen(max(nodes.values()), max(map(_most, self._changes.values())))


def _most(changes: list[tuple[float, int]]) -> int:
    """Attempts at a time; one that begins when another ends has its slot."""
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return max(1, most)


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LAST_MS else None
