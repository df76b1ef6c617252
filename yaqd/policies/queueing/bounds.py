"""How many tasks may wait at a node: Yaq, section 3.1, as functions of the node and its tasks.

A node with r run slots is filled up every tau seconds: its heartbeat interval and the gap until the master has polled
and started what it was given. With tasks of mean duration 1/mu it serves x = r mu tau of them in between, and so many
must wait for no slot to idle. `fixed_bound` takes durations as equal, the others as exponential; `poisson_bound` is
exact, `chernoff_bound` the closed form of the paper, which asks for a little more.

`utilization` is the paper's Proposition 2 with the term that its print drops: before the queue runs empty the node is
busy. A simulation agrees with this form.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, exp, inf, lgamma, log, sqrt
from typing import Any, Final

import numpy as np

from yaqd.policies.queueing import limits
from yaqd.policies.registry import PolicyTable, calls

#: (slots, mean task duration s, gap between refills s, part of intervals or time that may idle) -> tasks
QueueBound = Callable[[int, float, float, float], float]

#: a value is taken for whole when it misses the next whole number by this part
_ROUNDING: Final = 1e-9
#: what may idle at the least: nothing at all would need an endless queue
_LEAST_IDLE: Final = 1e-9
_DEFAULT_IDLE: Final = 0.05
#: results remembered: nodes are alike, and each asks for its own
_BOUNDS_KEPT: Final = 1024


def fixed_bound(slots: int, mean_s: float, gap_s: float, idle: float = 0.0) -> int:
    """Return ceil(r mu tau): tasks of one duration, whose ends spread over it, find a waiting one each."""
    served = _served(slots, mean_s, gap_s)
    return limits.queue_length(_ceil(served))


def aligned_bound(slots: int, mean_s: float, gap_s: float, idle: float = 0.0) -> int:
    """Return r ceil(mu tau): tasks of one duration that all started together, so that they also end together."""
    rounds = _served(1, mean_s, gap_s)
    return limits.queue_length(limits.slots(slots) * _ceil(rounds))


@lru_cache(maxsize=_BOUNDS_KEPT)
def poisson_bound(slots: int, mean_s: float, gap_s: float, idle: float = _DEFAULT_IDLE) -> int:
    """Return the smallest b with P[N >= b + 1] <= idle, N Poisson with mean r mu tau: no slot idles in 1 - idle of
    intervals.

    This is condition (3.2), P[Erlang(b + 1, r mu) < tau] <= idle, counted in tasks.
    """
    served, idle = _served(slots, mean_s, gap_s), _idle(idle)
    if served > limits.LONGEST_QUEUE or idle >= 1.0 or served == 0.0:
        return limits.queue_length(served) if idle < 1.0 else 0
    # from far in the tail downwards, where every term adds to the sum before it; 12 sigma out nothing is left
    count = ceil(served + 12 * sqrt(served) + 30)
    term = exp(count * log(served) - served - lgamma(count + 1))
    tail = 0.0
    while count > 0:
        tail += term
        if tail > idle:
            break
        term *= count / served
        count -= 1
    return limits.queue_length(count)


def chernoff_bound(slots: int, mean_s: float, gap_s: float, idle: float = _DEFAULT_IDLE) -> int:
    """Return the smallest b >= x - 1 with x (1 + (b+1)/x (ln((b+1)/x) - 1)) >= ln(1/idle), x = r mu tau: inequality
    (3.1)."""
    served, wanted = _served(slots, mean_s, gap_s), log(1 / _idle(idle))
    if served > limits.LONGEST_QUEUE or served == 0.0:
        return limits.queue_length(served)
    low, high = max(0, ceil(served) - 1), limits.LONGEST_QUEUE
    while low < high:
        middle = (low + high) // 2
        ratio = (middle + 1) / served
        if served * (1 + ratio * (log(ratio) - 1)) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def utilization_bound(slots: int, mean_s: float, gap_s: float, idle: float = _DEFAULT_IDLE) -> int:
    """Return the smallest b that keeps the slots busy for 1 - idle of the time, by Proposition 2: idle slots are
    allowed in many intervals as long as they are few, so that it asks for less than `poisson_bound`."""
    low, high = 0, poisson_bound(slots, mean_s, gap_s, idle)
    while low < high:
        middle = (low + high) // 2
        if utilization(slots, mean_s, gap_s, middle) >= 1 - idle:
            high = middle
        else:
            low = middle + 1
    return low


def utilization(slots: int, mean_s: float, gap_s: float, queued: int) -> float:
    """Return the part of time that the slots are busy, filled up to r running and b queued every tau; exponential
    durations.

    u = P[E > tau] + int_0^tau [y/tau + (1 - exp(-mu(tau-y)))/(mu tau)] dF_E(y), E ~ Erlang(b, r mu) the time until the
    queue is empty. With N ~ Poisson(x), x = r mu tau, and p its probabilities, the three parts of the integral are
    b/x P[N > b], r/x P[N >= b], and r/x p(b) sum_k ((r-1) mu tau)^k b!/(b+k)!.
    """
    slots = max(1, limits.slots(slots))
    served, queued = _served(slots, mean_s, gap_s), limits.queue_length(queued)
    if served == 0.0:
        return 1.0
    if served > limits.LONGEST_QUEUE:
        # everything there ends within the interval
        return min(1.0, (queued + slots) / served)
    counts = np.arange(queued, queued + ceil(served + 12 * sqrt(served) + 30))
    logs = log(served) * queued - served - lgamma(queued + 1)
    steps = np.zeros(len(counts))
    steps[1:] = np.log(counts[1:])
    at_least = np.exp(logs + np.arange(len(counts)) * log(served) - np.cumsum(steps))
    emptied = min(1.0, float(at_least.sum()))
    late = float(at_least[0])
    if slots > 1:
        part = log(served * (slots - 1) / slots)
        late = float(np.exp(logs + np.arange(len(counts)) * part - np.cumsum(steps)).sum())
    busy_before = queued / served * (emptied - float(at_least[0]))
    return min(1.0, max(0.0, 1 - emptied + busy_before + slots / served * (emptied - late)))


def _served(slots: int, mean_s: float, gap_s: float) -> float:
    """x: tasks that a busy node ends between two refills. Tasks that never end or end at once, and gaps that are none,
    are those of a node that needs no queue or of one that has no bound."""
    mean, gap = limits.duration(mean_s), limits.duration(gap_s)
    if mean == inf or gap == inf or gap == 0.0:
        return 0.0
    return limits.slots(slots) * gap / mean if mean > 0 else inf


def _ceil(served: float) -> float:
    return inf if served == inf else ceil(served * (1 - _ROUNDING))


def _idle(part: float) -> float:
    return max(_LEAST_IDLE, limits.fraction(part, _DEFAULT_IDLE))


def _tasks(answer: Any) -> float:
    """Raises ValueError for NaN and -inf, which would silently mean no queue at all; inf is as many as may be."""
    found = float(answer)
    if not found > -inf:
        raise ValueError(f"{found} is no number of tasks")
    return found


BOUNDS: Final[PolicyTable[QueueBound]] = PolicyTable(
    "bound",
    {
        "utilization": utilization_bound,
        "poisson": poisson_bound,
        "chernoff": chernoff_bound,
        "fixed": fixed_bound,
        "aligned": aligned_bound,
    },
    instead="utilization",
    guard=calls(_tasks),
)
