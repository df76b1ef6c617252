"""Why an ask waits, in words: the checks of the policy gone through again for one ask; for people, not per decision."""

import math
from bisect import bisect_left

from rm.scheduler.asks import Ask
from rm.scheduler.opportunistic import Opportunistic
from rm.scheduler.users import may_take
from rm.scheduler.view import AttemptView, ClusterView
from yaqd.model import ANY_HOST
from yaqd.model.values import value


@value()
class WhyWaiting:
    reason: str
    #: applications of its queue that are served before it, for a container of this size
    ahead: int
    #: seconds that a container would wait at the node where it waits least; None: nowhere, or for ever
    shortest_wait_s: float | None


def why_waits(view: ClusterView, attempt: AttemptView, ask: Ask) -> WhyWaiting:
    """What keeps this pending ask from a container."""
    leaf, shape = attempt.app.leaf, ask.capability
    ahead = 0
    if attempt.filed_at is not None:
        whose = attempt.app.user if leaf.limits_users else ""
        ahead = bisect_left(leaf.lines.get((shape, whose), []), attempt.filed_at)
    waits = [queue.expected_wait() for queue in view.node_queues.all()] if view.node_queues is not None else []
    shortest = min(waits, default=math.inf)
    return WhyWaiting(_reason(view, attempt, ask, ahead), ahead, shortest if math.isfinite(shortest) else None)


def why_no_node_takes(opportunistic: Opportunistic, attempt: AttemptView, ask: Ask) -> WhyWaiting:
    """The same for an opportunistic ask, which looks at the nodes' queues alone."""
    loads = opportunistic.loads()
    known = [load for load in loads if load.length is not None and load.capacity != 0 and attempt.accepts(load.node)]
    if not known:
        reason = f"none of {len(loads)} nodes lets opportunistic containers wait, as far as they have said"
    elif not any(load.takes(ask.capability) for load in known):
        reason = f"the queues at all {len(known)} nodes that let opportunistic containers wait are full"
    elif not ask.allows(ANY_HOST):
        reason = "no node of those that it insists on takes it"
    else:
        reason = "nodes take it: it gets a container when its master calls next"
    waits = [load.wait_ms / 1000 for load in known if load.wait_ms >= 0]
    return WhyWaiting(reason, 0, min(waits, default=None))


def _reason(view: ClusterView, attempt: AttemptView, ask: Ask, ahead: int) -> str:
    leaf, shape, fits = attempt.app.leaf, ask.capability, view.calculator.fits
    if attempt.master is None:
        return f"queue {leaf.path} lets no further application master start until one of those that run has ended"
    for queue in leaf.upwards():
        if queue.limit is not None and not fits(queue.used + shape, queue.limit):
            return f"queue {queue.path} holds {queue.used} of at most {queue.limit}"
    if not may_take(view, attempt.app):
        return f"user {attempt.app.user} holds as much of queue {leaf.path} as one user may"
    if not fits(shape, view.nodes.largest):
        return f"no node is as large as {shape}"
    if view.nodes.emptiest(shape, attempt.accepts, ANY_HOST) is not None:
        if ask.prefers_places:
            return f"it waits for one of the places that it prefers ({ask.missed} other offers passed up so far)"
        return "there is room, which it gets at that node's next heartbeat"
    return "no node has room for it: " + _at_queues(view, attempt, ask, ahead)


def _at_queues(view: ClusterView, attempt: AttemptView, ask: Ask, ahead: int) -> str:
    queues = view.node_queues
    if queues is None or queues.spec is None:
        return f"{ahead} applications of its queue come before it"
    held = queues.holds(attempt, ask)
    draining = f"; {held} nodes let their queues drain for it" if held else ""
    if ask.is_master:
        return "application masters never wait at nodes" + draining
    if attempt.app.leaf.path in queues.spec.leaves_without:
        return f"containers of queue {attempt.app.leaf.path} never wait at nodes"
    if not queues.may_wait(attempt, ask):
        return "nobody knows how long it runs, so it waits at no node" + draining
    known = queues.all()
    endless = sum(1 for queue in known if not math.isfinite(queue.expected_wait()))
    full = sum(1 for queue in known if queue.length >= queue.bound)
    said = [f"{full} of {len(known)} queues at nodes are as long as their bounds"]
    if endless:
        said.append(f"at {endless} nobody knows when anything ends")
    limit_s = queues.wait_limit(attempt)
    long = sum(1 for queue in known if limit_s <= queue.expected_wait() < math.inf)
    if long:
        why = "" if attempt.tolerates_waiting else ", as its master does not say that its containers may wait"
        said.append(f"at {long} it would wait for longer than it may ({limit_s:g} s{why})" + draining)
    if ahead:
        said.append(f"{ahead} applications of its queue come before it")
    return ", ".join(said)
