"""Hold nodes for attempts that are given no opportunistic containers because all queues are long.

Some masters take what they have started for running. Nothing of theirs is sent where it would wait for longer than
`unaware_wait_s`. Masters that tolerate waiting could keep every queue longer than that for ever. So a node is held for
an attempt that wants opportunistic containers and has been given none for the starvation threshold (`starve_s`). Nobody
else's are sent there, and its queue gets shorter by itself. What is free in the end is found as any free room is,
whatever the estimates are. When the queue does not get short in time, all may use it again, and it is another node's
turn. The next node is held after another wait of the threshold.

At most a tenth of the nodes is held at a time, and at least one, in the order in which the attempts have waited.
"""

import math
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from rm.scheduler.decisions import Note
from rm.scheduler.holds.choice import opportunistic_holds
from rm.scheduler.holds.ends import why_opportunistic_given_up
from rm.scheduler.holds.table import Holds
from rm.scheduler.opportunistic.room import lets_wait
from rm.scheduler.opportunistic.unplaced import Unplaced, Want
from rm.scheduler.view.node import NodeView, OpportunisticHold
from rm.scheduler.view.records import AttemptView
from yaqd.model import ApplicationAttemptId, NodeId

#: one node of so many is held at most, and one at least
_PART: Final = 10
#: how often is looked for nodes to hold, s
_LOOK_S: Final = 1.0


class Starved:
    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._wants: dict[ApplicationAttemptId, Want] = {}
        #: when nodes were held last
        self._last: dict[NodeId, float] = {}
        self._looked_at = -math.inf
        #: moves whenever a hold begins or ends
        self.version = 0
        #: what the decision log has not been told of yet
        self.news: list[Note] = []

    def wants(self, attempt: AttemptView, unplaced: Unplaced, now: float) -> None:
        """Hear that these containers of the attempt found no node."""
        if unplaced.number > 0:
            self._wants.setdefault(attempt.id, Want(attempt, unplaced, now)).unplaced = unplaced
        else:
            self.forget(attempt.id)

    def given(self, attempt_id: ApplicationAttemptId, node_id: NodeId, now: float) -> None:
        """Hear that one was sent to this node."""
        want, hold = self._wants.get(attempt_id), self._holds.opportunistic.get(node_id)
        if want is not None:
            want.since = now
            want.in_vain.clear()
        if hold is not None and hold.attempt.id == attempt_id:
            hold.left -= 1
            if hold.left <= 0:
                self._end(hold, "as many as run there at once were sent there for it")

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        """Hear that the attempt wants nothing."""
        if self._wants.pop(attempt_id, None) is not None:
            for hold in self._holds.opportunistic_of(attempt_id):
                self._end(hold, "no opportunistic container of it waits for a node any more")

    def node_left(self, node_id: NodeId) -> None:
        hold = self._holds.opportunistic.get(node_id)
        if hold is not None:
            self._end(hold, "the node has left")
        self._last.pop(node_id, None)

    def clear(self) -> None:
        for attempt_id in list(self._wants):
            self.forget(attempt_id)

    def look(self, nodes: Collection[NodeView], starve_s: float, now: float) -> None:
        """Hold nodes where that is due, and give up those that need not be held any more."""
        if not self._wants or 0.0 <= now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        for hold in list(self._holds.opportunistic.values()):
            want = self._wants[hold.attempt.id]
            why = why_opportunistic_given_up(hold, want, starve_s, now)
            if why is not None:
                self._end(hold, why)
        most = max(1, len(nodes) // _PART) - len(self._holds.opportunistic)
        due = [want for want in self._wants.values() if now - want.since >= starve_s] if most > 0 else []
        for want in sorted(due, key=lambda want: want.since):
            if most <= 0:
                break
            for hold in islice(self._due(want, nodes, starve_s, now), most):
                self.news += self._holds.begin(hold)
                self._last[hold.node.id] = now
                self.version += 1
                most -= 1

    def _due(self, want: Want, nodes: Iterable[NodeView], starve_s: float, now: float) -> Iterable[OpportunisticHold]:
        """Choose nodes for an attempt that has waited for too long, best first."""
        missing = want.unplaced.number - sum(hold.left for hold in self._holds.opportunistic_of(want.attempt.id))
        takes, accepts = want.unplaced.may_start, want.attempt.accepts
        possible = [
            node
            for node in (nodes if missing > 0 else ())
            if node.opportunistic_hold is None and lets_wait(node.queue) and takes(node) and accepts(node)
        ]
        untried = [node for node in possible if node.id not in want.in_vain]
        if possible and not untried:
            want.since = now  # what holds them does not end: they are the others' for another threshold
            want.in_vain.clear()
        return opportunistic_holds(want, untried, self._last, missing, starve_s, now)

    def _end(self, hold: OpportunisticHold, why: str) -> None:
        self.version += 1
        self.news += self._holds.end(hold, why)

    def validate(self, nodes: Iterable[NodeId]) -> None:
        """Assert every invariant."""
        held = self._holds.opportunistic
        assert self._last.keys() <= set(nodes)
        assert all(hold.attempt.id in self._wants for hold in held.values())
        assert all(want.unplaced.number > 0 for want in self._wants.values())
