"""Say when a node that is held is given up, and why.

What is known of nodes changes: a task runs on beyond its estimate, or its job turns out to be a long one. So a node is
given up where nothing ends, and where room comes much later than elsewhere by then. Each time that happens to an
attempt that was given nothing since, the next node is held for twice as long at least. So estimates that jump let no
ask wander for ever. A node that was reserved in vain is not reserved for the same ask again for a while.
"""

import math
from functools import partial
from typing import Final

from rm.scheduler.holds.choice import HoldChoice
from rm.scheduler.node_queues.soonest import as_good_as, room_comes
from rm.scheduler.opportunistic.room import has_room, lets_wait
from rm.scheduler.opportunistic.unplaced import Want
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import AskHold, HoldKind, OpportunisticHold

GOT: Final = "the ask got its container"
#: a reservation on a node that gains room lasts this many times as long at most
_LONGER_MAX: Final = 8
#: a node that was reserved in vain is not reserved for the same ask for this many times `reservation_s`
_LEFT_FOR: Final = 2.0
#: room comes much later where that takes this many times longer than what is as good
_MUCH_LATER: Final = 2.0
#: how long a node is held at least, s, and how often that doubles
_HELD_AT_LEAST_S: Final = 1.0
_DOUBLED_MAX: Final = 6


def why_given_up(view: ClusterView, choice: HoldChoice, hold: AskHold, now: float) -> str | None:
    """Say why the node is no good place for the ask any more; None where it is. The ask and its attempt remember it."""
    attempt, ask = hold.attempt, hold.ask
    if hold.kind is HoldKind.RESERVED and _stands_still(choice, hold, now):
        if len(view.nodes) > 1:
            ask.leave(hold.node.id, now + _LEFT_FOR * choice.reservation_s)
        ask.waiting_since = now
        return "nothing ended on the node for too long"
    if _is_lost(view, choice, hold, now):
        attempt.gave_up(now)
        return "room comes much sooner at other nodes, by what is known by now"
    return None


def _stands_still(choice: HoldChoice, hold: AskHold, now: float) -> bool:
    """Tell whether nothing has ended on the node for too long.

    Where something has ended it may take longer. To give the node up would waste what was gathered, and the last one
    that runs there takes longest to end.
    """
    free_mb = hold.node.free_mb
    if free_mb > hold.free_mb:
        hold.free_mb, hold.grown = free_mb, hold.grown + 1
        hold.until = now + choice.reservation_s * min(1 << hold.grown, _LONGER_MAX)
    return now > hold.until


def _is_lost(view: ClusterView, choice: HoldChoice, hold: AskHold, now: float) -> bool:
    """Tell whether room comes so much sooner at another node with a queue that this one is given up for it."""
    queues, queue, attempt = view.node_queues, hold.node.queue, hold.attempt
    # an ask that wants many containers has many nodes held
    least_s = _HELD_AT_LEAST_S * 2.0 ** min(_DOUBLED_MAX, attempt.moved // max(1, hold.ask.pending))
    if not queue.is_filled or now - hold.since < least_s:
        return False
    suits = partial(choice.suits, view, hold, now)
    queues.soonest.refresh(now)
    wait_s = room_comes(queue, is_held=True) if suits(hold.node) else math.inf
    if wait_s <= _MUCH_LATER * as_good_as(0.0):
        return False
    elsewhere_s = queues.soonest.elsewhere(hold, suits)
    return elsewhere_s is not None and wait_s > _MUCH_LATER * as_good_as(elsewhere_s)


def is_void(view: ClusterView, hold: AskHold) -> bool:
    """Tell whether the ask is gone, or can no longer fit the node."""
    return not (hold.is_wanted and view.calculator.fits(hold.size, hold.node.total) and hold.attempt.accepts(hold.node))


def why_opportunistic_given_up(hold: OpportunisticHold, want: Want, starve_s: float, now: float) -> str | None:
    """Say the same of a node that is held for opportunistic containers. The attempt's `want` remembers it."""
    queue = hold.node.queue
    hold.room_since = min(hold.room_since, now) if has_room(queue) else math.inf
    if now - hold.room_since > starve_s:
        want.since = now
        return f"it had room for {starve_s:g} s and was not used"
    if now > hold.until:
        want.in_vain.add(hold.node.id)
        return "its queue has not become short in time"
    return None if lets_wait(queue) else "it takes no opportunistic containers, or has not been heard of"
