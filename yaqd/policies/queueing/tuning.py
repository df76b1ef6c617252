"""A node's queue bound that finds itself: the operator names a target, the node's own past gives the rest.

The bound formulas (Yaq, section 3.1) want the tasks' mean duration and the gap between refills. Both differ from node
to node and from hour to hour, and nobody knows them. They are observed here, and the bound follows.

The gap has three parts. The first is for how long an end may go untold: the time between two heartbeats, or next to
nothing where nodes tell of ends at once. The second is what the node takes to get a container ready and the
ResourceManager to answer. The third is half of the interval in which masters poll. A container that waits at its node
has all three behind it.

A container that would wait for longer than that gap may be sent later as well: the slot idles no more for it. Where
ends are told at once the next look is up to a heartbeat later. (Reports of ends come in between, but in bursts.)
Sent now it sees slots elsewhere become free, and others come that would have gone first. So a bound that may be 0 goes
with a longest wait.

The bound may be 0. Where a slot is refilled soon, beside how long tasks run, queues gain nothing, and what is bound to
a node early may be bound to the wrong one.
"""

from math import inf
from typing import Final

from yaqd.policies.queueing import limits
from yaqd.policies.queueing.bounds import BOUNDS, QueueBound
from yaqd.policies.queueing.means import RecentMean

#: tasks and gaps that the means remember
_TASKS: Final = 64
_GAPS: Final = 16
#: a bound is kept until the tasks served between refills have changed by this part, so that it does not flutter
_STEADY: Final = 0.05
#: a container may be expected to wait for so many gaps: they are means, and longer ones are hidden too
_WAITED_GAPS: Final = 1.5


class BoundTuner:
    """One node's bound. Observations in, `bound` out; it costs a formula only when they have moved."""

    __slots__ = (
        "_at_gap",
        "_at_mean",
        "_at_slots",
        "_bound",
        "_formula",
        "_heartbeat_s",
        "_idle",
        "_least",
        "_most",
        "_policy",
        "_polls",
        "_tasks",
        "_tells",
        "_tells_at_once",
    )

    def __init__(
        self,
        *,
        policy: str = "poisson",
        idle: float = 0.05,
        mean_s: float = 30.0,
        heartbeat_s: float = 3.0,
        poll_s: float = 1.0,
        least: int = 0,
        most: int = 1000,
    ) -> None:
        """`policy` names a formula of BOUNDS (UnknownPolicy otherwise) and `idle` what it is asked for. The mean, the
        heartbeat and the polling interval are taken until they have been observed, but for the heartbeat where ends are
        told at once. The bound stays in [least, most]."""
        self._policy = policy
        self._formula: QueueBound = BOUNDS[policy]
        self._idle = idle
        # each is replaced by the node's own when something is observed: until then nodes that begin alike share them
        self._tasks = RecentMean(_TASKS, mean=mean_s)
        self._tells = RecentMean(_GAPS, mean=heartbeat_s)
        self._polls = RecentMean(_GAPS, mean=poll_s)
        self._heartbeat_s = self._tells.mean
        #: the heartbeat is in what the node tells otherwise
        self._tells_at_once = False
        self._most = limits.queue_length(most)
        self._least = limits.queue_length(least, self._most)
        #: what `_bound` was computed for
        self._at_slots, self._at_mean, self._at_gap = -1, 0.0, 0.0
        self._bound = 0

    def another(self) -> "BoundTuner":
        """Return a tuner that begins as this one did, of which nothing may have been observed.

        A cluster has thousands of tuners, so those that begin alike share what they begin with.
        """
        other = BoundTuner(
            policy=self._policy, idle=self._idle, heartbeat_s=self._heartbeat_s, least=self._least, most=self._most
        )
        other._tasks, other._tells, other._polls = self._tasks, self._tells, self._polls
        other._at_slots, other._at_mean, other._at_gap = self._at_slots, self._at_mean, self._at_gap
        other._bound = self._bound
        return other

    @property
    def mean_s(self) -> float:
        """Mean duration of the node's tasks."""
        return self._tasks.mean

    @property
    def has_seen_tasks(self) -> bool:
        """Is that what was observed, and no guess?"""
        return self._tasks.count > 0

    @property
    def gap_s(self) -> float:
        """Time from a task's end until the next one could start that did not wait at the node, at most: tau_eff, s."""
        return self._tells.mean + self._polls.mean / 2.0

    @property
    def wait_max_s(self) -> float:
        """How long a container may be expected to wait that is sent there now, s; inf where some always wait."""
        return inf if self._least else _WAITED_GAPS * (self.gap_s + (self._heartbeat_s if self._tells_at_once else 0.0))

    def ran(self, seconds: float) -> None:
        """Note that a task of this node has ended after so long."""
        if not self._tasks.count:
            self._tasks = self._tasks.another()
        self._tasks.add(seconds)

    def told(self, gap_s: float, *, at_once: bool = False) -> None:
        """Note for how long ends may have gone untold, with what it takes to get the next container ready, s.

        `at_once`: the node told of them when they came, so that no heartbeat is in that.
        """
        self._tells_at_once = at_once
        if not self._tells.count:
            self._tells = self._tells.another()
        self._tells.add(gap_s)

    def polls(self, gap_s: float) -> None:
        """Note that masters call in such intervals (`yaqd.policies.queueing.polling`)."""
        if not self._polls.count:
            self._polls = self._polls.another()
        self._polls.add(gap_s)

    def bound(self, slots: int) -> int:
        """Return how many tasks may wait at a node that runs `slots` at once."""
        mean, gap = self._tasks.mean, self._tells.mean + self._polls.mean / 2.0
        at_mean, at_gap = self._at_mean, self._at_gap
        if slots == self._at_slots:
            if mean == at_mean and gap == at_gap:
                return self._bound
            is_steady = abs(gap * at_mean - at_gap * mean) <= _STEADY * at_gap * mean
        else:
            is_steady = False
        if not is_steady:
            self._at_slots, self._at_mean, self._at_gap = slots, mean, gap
            wanted = limits.queue_length(self._formula(slots, mean, gap, self._idle), self._most)
            self._bound = max(self._least, wanted)
        return self._bound
