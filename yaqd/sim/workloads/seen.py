"""How large the cluster was that a history is of, as far as it says: where its tasks ran, and how many at a time.

A history names nodes and not slots. What is found is the least that the cluster can have been, so nothing may count
twice. A node may have another port, and so another name, each time it starts: of one host's names those count that were
in use at a time. Hosts are counted under each start of the ResourceManager, of which a job's id tells, and most of them
count. A job manager hears that a task ended after the node does, which has given the slot to the next one by then.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from yaqd.sim.workload import ClusterSeen

#: of what is later, in the year 5138, nothing is learnt; epoch ms
_LAST_MS: Final = 1e14
#: of a file's name: when the ResourceManager started, and the number of the job
_JOB: Final = re.compile(r"job_(\d+)_\d+", re.ASCII)
#: An attempt's last so many ms, and no more than this part of it, are not counted: the slot may be the next one's
#: already. 4 to 190 ms were seen between tasks on two busy cores; the end of a program that speaks to nobody comes with
#: its master's next poll, 1 s as shipped. A part, since of short tasks none would be left to run beside another: with a
#: third they may be told of late by half of what they take.
_LATE_MS: Final = 1_000.0
_LATE_PART: Final = 1 / 3

#: when it began and when it was over, epoch ms
_Span = tuple[float, float]


class Sightings:
    """Which node ran something, and when."""

    def __init__(self) -> None:
        #: the ResourceManager's start that the job is of; empty: unknown
        self._start = ""
        #: by that and node
        self._held: dict[tuple[str, str], list[_Span]] = {}
        #: likewise, from the first to the last sign that the node was there
        self._used: dict[tuple[str, str], _Span] = {}

    def job(self, file_name: str) -> None:
        """Note that what follows is of the job whose history has this name."""
        found = _JOB.match(file_name)
        self._start = found[1] if found else ""

    def ran(self, node: object, started: object, finished: object, *, killed: bool = False) -> None:
        """Note an attempt that held a slot there, epoch ms; what does not say all three says nothing.

        `killed`: when it let go is not known. Of a lost node nobody hears until it has been missed for minutes. By then
        it may be back, under its old name or another.
        """
        since, until = _moment(started), _moment(finished)
        if not isinstance(node, str) or not node or since is None or until is None or since > until:
            return
        name = self._start, node
        until = since if killed else until - min(_LATE_MS, (until - since) * _LATE_PART)
        self._held.setdefault(name, []).append((since, until))
        first, last = self._used.get(name, (since, until))
        self._used[name] = min(first, since), max(last, until)

    def cluster(self) -> ClusterSeen | None:
        """Return the size of the cluster; None: no node was named."""
        if not self._used:
            return None
        hosts: dict[tuple[str, str], list[_Span]] = {}
        for (start, node), used in self._used.items():
            hosts.setdefault((start, _host(node)), []).append(used)
        nodes: Counter[str] = Counter()
        for (start, _), spans in hosts.items():
            nodes[start] += _most(spans)
        return ClusterSeen(max(nodes.values()), max(map(_most, self._held.values())))


def _host(node: str) -> str:
    """Without the port; MapReduce's histories have none."""
    host, _, port = node.rpartition(":")
    return host if host and port.isdecimal() else node


def _most(spans: Iterable[_Span]) -> int:
    """How many at a time; one that begins when another ends has its place."""
    running = most = 0
    for _, change in sorted(change for since, until in spans for change in ((since, 1), (until, -1))):
        running += change
        most = max(most, running)
    return max(1, most)


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LAST_MS else None
