"""How long a task will run: Yaq, chapter 3, "Task duration estimates".

More than half of a cluster's jobs come again every hour or day, so the mean of the same stage in earlier runs is a good
first guess; what the run itself shows refines it. Both are the same table under different keys: `stage_key` for what
recurs, `ask_key` for the application that runs, whose master may tell nothing but its asks. An estimate of the latter
takes the former for its first few observations, since those of a stage's tasks that end first are its shortest.

The table forgets what was neither observed nor asked for longest.
"""

import math
import re
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

from yaqd.model import ApplicationId
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.means import RecentMean
from yaqd.policies.registry import PolicyTable, calls

#: longest part of a key, characters; names come from users
_LONGEST_NAME: Final = 200
#: observations that the estimate of a fallback counts for
_PRIOR: Final = 3
#: tasks of a stage that count
MEMORY: Final = 64
#: an estimate that has moved by a smaller part is not told anew
_TOLD_CHANGE: Final = 0.1
# What differs from run to run in a job's name: dates, times, counters, hexadecimal ids of 8 digits and more.
_CHANGING = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\d+([-:./_T]\d+)*Z?", re.ASCII | re.IGNORECASE)


#: (what was seen of this stage itself, what earlier runs of the same job say; one of them at least) -> how long its
#: tasks run, s; what says nothing (None, NaN, negative) counts as no finite estimate
EstimatePolicy = Callable[[RecentMean | None, float | None], float | None]


def blended(seen: RecentMean | None, before: float | None) -> float | None:
    """Return what was seen, as soon as it is much; `before` counts for the first few observations."""
    if seen is None or before is None:
        return before if seen is None else seen.mean
    if seen.count >= seen.memory:
        return seen.mean
    return (seen.mean * seen.count + before * _PRIOR) / (seen.count + _PRIOR)


def observed(seen: RecentMean | None, before: float | None) -> float | None:
    """Return what was seen, from the first task on."""
    return before if seen is None else seen.mean


def earlier(seen: RecentMean | None, before: float | None) -> float | None:
    """Return what was known before, for as long as the job runs; what was seen only where that is nothing."""
    return before if before is not None or seen is None else seen.mean


def _seconds(answer: Any) -> float | None:
    return None if answer is None else float(answer)


ESTIMATES: Final[PolicyTable[EstimatePolicy]] = PolicyTable(
    "estimate",
    {"blended": blended, "observed": observed, "earlier": earlier},
    instead="blended",
    guard=calls(_seconds),
)


def is_news(told_s: float | None, estimate_s: float) -> bool:
    """Tell whether whoever goes by an estimate has to hear of it, having been told `told_s` last."""
    return told_s is None or not math.isclose(told_s, estimate_s, rel_tol=_TOLD_CHANGE)


def recurring_name(name: str) -> str:
    """Return a job's name without what changes from run to run: dates, times, numbers and ids."""
    return " ".join(_CHANGING.sub("#", name[: 4 * _LONGEST_NAME]).split())[:_LONGEST_NAME]


def stage_key(name: str, user: str, stage: str | int) -> str:
    """Return the stage of a recurring job: by the job's name, its user, and the stage's name or the priority of its
    asks."""
    return f"stage\t{user[:_LONGEST_NAME]}\t{recurring_name(name)}\t{str(stage)[:_LONGEST_NAME]}"


def ask_key(application_id: ApplicationId, priority: int) -> str:
    """Return the stage of one application as its scheduler sees it."""
    return f"ask\t{application_id}\t{priority}"


class Estimator:
    """Means of observed durations by key."""

    def __init__(
        self,
        *,
        default_s: float | None = None,
        most_keys: int = 10_000,
        memory: int = MEMORY,
        policy: EstimatePolicy = blended,
    ) -> None:
        """`default_s` is the estimate of what nobody knows, None for no finite one; a key remembers `memory` tasks."""
        #: how what was seen and what was known before make an estimate
        self.policy = policy
        default = limits.duration(default_s)
        self._default = default if default < inf else None
        self._most_keys = max(1, most_keys)
        self._memory = memory
        #: the least recently used first
        self._means: dict[str, RecentMean] = {}

    def __len__(self) -> int:
        return len(self._means)

    def observe(self, key: str, seconds: float) -> None:
        """Note that a task of this stage ran so long to its good end. What says nothing (NaN, negative, inf) is left
        out."""
        seen = self._means.pop(key, None) or RecentMean(self._memory)
        if seen.add(seconds) or seen.count:
            self._keep(key, seen)

    def estimate(self, key: str, *fallbacks: str) -> float | None:
        """Return seconds, from this key and, as long as it has seen little, from the next; the default where no key is
        known.

        None is no finite one.
        """
        found = self._known(key, *fallbacks)
        # the default is a guess about nothing in particular: it does not outlive the first observation
        return self._default if found is None else found

    def _known(self, key: str, *fallbacks: str) -> float | None:
        before = self._known(*fallbacks) if fallbacks else None
        seen = self._means.pop(key, None)
        if seen is not None:
            self._means[key] = seen
        elif before is None:
            return None
        found = limits.duration(self.policy(seen, before))
        return found if found < inf else None

    def forget(self, key: str) -> None:
        self._means.pop(key, None)

    def dump(self) -> list[tuple[str, int, float]]:
        """Return keys with their counts and means, the least recently used first, for a state store."""
        return [(key, seen.count, seen.mean) for key, seen in self._means.items()]

    def load(self, rows: Iterable[tuple[str, int, float]]) -> None:
        """Take in what `dump` gave; rows that make no sense are left out."""
        for key, count, mean in rows:
            if count > 0 and limits.duration(mean) < inf:
                self._means.pop(key, None)
                self._keep(key, RecentMean(self._memory, count=count, mean=mean))

    def _keep(self, key: str, seen: RecentMean) -> None:
        self._means[key] = seen
        if len(self._means) > self._most_keys:
            del self._means[next(iter(self._means))]
