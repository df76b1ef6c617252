"""The simulated twin of a live trace: the same jobs, with what this machine needs beside them measured in that run.

What is measured is of single tasks and jobs: how long a start takes, how long the machine is busy with it where many
start at once, how long a job takes until its first ask. No figure is chosen so that the jobs' times agree.
"""

import heapq
import statistics
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from yaqd.sim.shape import LivedTimes
from yaqd.sim.workload import Workload

from .live_cluster import Variant
from .live_runs import Traced
from .live_simulated import Foretold, foretell, quantile
from .live_tasks import TaskRecord
from .report import Row, make_row

#: what masters are given within so long comes in one burst, s
_BURST_S: Final = 0.1
#: a burst of so many and more shows how long the machine is busy with each
_BURST: Final = 8
SHARES: Final = {"median": 0.5, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class Lived:
    """A workload's runs on one variant."""

    what: str
    workload: Workload
    variant: Variant
    #: of a node
    slots: int
    runs: list[Traced]


@dataclass(frozen=True, slots=True)
class Twin:
    """What the simulator says of such runs, and what it was told of them."""

    lived: Lived
    foretold: Foretold
    gap_s: float
    times: LivedTimes

    @property
    def name(self) -> str:
        return f"{self.lived.what}: {self.lived.variant.name}"

    def live(self, share: float) -> list[float]:
        """Of each run, the time that this share of the jobs stays within, s."""
        return [quantile(traced.from_submission_s, share) for traced in self.lived.runs]

    def rows(self) -> list[Row]:
        """Live stands in the column of ours, simulated in that of theirs: the ratio is simulated over live."""
        return [
            make_row(
                f"twin of {self.name}: {word}",
                self.live(share),
                [self.foretold.at(share)],
                "s",
                higher_is_better=False,
            )
            for word, share in SHARES.items()
        ]

    def facts(self) -> str:
        """For people: what was measured, and how far the seeds are apart."""
        spans = []
        for word, share in SHARES.items():
            found = [quantile(times, share) for times in self.foretold.by_seed]
            spans.append(f"{word} {min(found):.1f} to {max(found):.1f} s")
        return (
            f"a start takes {1000 * (self.gap_s + self.times.start_turn_s):.0f} ms and keeps others from starting for "
            f"{1000 * self.times.start_turn_s:.1f} ms of these, a job asks {1000 * self.times.register_s:.0f} ms after "
            f"its submission; simulated by seed: {', '.join(spans)}"
        )


def twin(lived: Lived, *, poll_s: float, aware: bool) -> Twin:
    """Simulate what was run; `poll_s`: of the masters, `aware`: they say that their containers may wait."""
    turn_s = statistics.median(start_turn(traced.tasks) for traced in lived.runs)
    gap_s = max(statistics.median(traced.gap_s for traced in lived.runs) - turn_s, 0.0)
    ready_s = statistics.median(ready for traced in lived.runs for ready in traced.ready_s)
    times = LivedTimes(register_s=ready_s, hears_by_polls=True, start_turn_s=turn_s)
    foretold = foretell(
        lived.variant, lived.workload, lived.slots, poll_s=poll_s, gap_s=gap_s, aware=aware, lived=times
    )
    return Twin(lived, foretold, gap_s, times)


def start_turn(tasks: Sequence[TaskRecord]) -> float:
    """Return how long one start keeps the machine from the next, s; 0 where too few start at once to show it.

    It is of tasks that did not wait at their nodes: the time between the first and the last start of a burst over the
    starts between, the median over bursts. The time in which the burst was given does not count, as starts that keep
    none from starting are as far apart as that. It is no longer than the machine's busiest second allows.
    """
    bursts: list[list[TaskRecord]] = []
    for task in sorted(at_once(tasks), key=lambda task: task.given_s):
        if not bursts or task.given_s - bursts[-1][0].given_s > _BURST_S:
            bursts.append([])
        bursts[-1].append(task)
    turns = []
    for burst in bursts:
        if len(burst) >= _BURST:
            started, given = _span(task.started_s for task in burst), _span(task.given_s for task in burst)
            turns.append(max(started - given, 0.0) / (len(burst) - 1))
    return min(statistics.median(turns), 1.0 / _most_a_second(tasks)) if turns else 0.0


def _span(moments: Iterable[float]) -> float:
    """The time between the first and the last."""
    ordered = sorted(moments)
    return ordered[-1] - ordered[0]


def _most_a_second(tasks: Iterable[TaskRecord]) -> int:
    """The most starts of any second."""
    recent: deque[float] = deque()
    most = 0
    for start in sorted(task.started_s for task in tasks):
        recent.append(start)
        while recent[0] <= start - 1.0:
            recent.popleft()
        most = max(most, len(recent))
    return most


def at_once(tasks: Iterable[TaskRecord]) -> Iterator[TaskRecord]:
    """Yield those that had a free slot when they came: each start takes the earliest end that no other has taken."""
    by_node: dict[str, list[TaskRecord]] = {}
    for task in tasks:
        by_node.setdefault(task.node, []).append(task)
    for found in by_node.values():
        freed: list[float] = []
        for task in sorted(found, key=lambda task: task.started_s):
            if not freed or freed[0] > task.started_s or heapq.heappop(freed) <= task.given_s:
                yield task
            heapq.heappush(freed, task.started_s + task.duration_s)
