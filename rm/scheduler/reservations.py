"""Room kept on a node for an ask that has waited too long: begun, given up, and no longer needed."""

from rm.scheduler.asks import Ask
from rm.scheduler.decisions import Reserve, Unreserve
from rm.scheduler.nodes import NodeView
from rm.scheduler.view import AttemptView, ClusterView, Reservation

#: room that grows is kept for so many times as long at most
_LONGER_MAX = 8


def reserve(view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView, now: float) -> Reserve:
    reservation = Reservation(attempt, ask, node, now, now, node.free_mb)
    attempt.reservation = reservation
    attempt.app.leaf.turns_changed()
    view.reservations[node.id] = reservation
    view.nodes.set_reserved(node, reservation)
    waited = now - ask.waiting_since
    why = f"{ask.capability} has waited {waited:.1f} s, so what ends on this node leaves room for it"
    return Reserve(node.id, attempt.id, *ask.key, why)


def unreserve(view: ClusterView, reservation: Reservation, reason: str) -> Unreserve:
    reservation.attempt.reservation = None
    reservation.attempt.app.leaf.turns_changed()
    del view.reservations[reservation.node.id]
    view.nodes.set_reserved(reservation.node, None)
    if reservation.node.queue is not None and view.node_queues is not None:
        view.node_queues.enter_again(reservation.node.queue)
    return Unreserve(reservation.node.id, reservation.attempt.id, reason)


def stands_still(reservation: Reservation, seconds: float, now: float) -> bool:
    """Has nothing ended on the node for so long? Longer where something has: giving it up wastes what was gathered,
    and the last of those that run there takes longest to end."""
    free_mb = reservation.node.free_mb
    if free_mb > reservation.free_mb:
        reservation.stands_still_at, reservation.free_mb = now, free_mb
        reservation.grown += 1
    return now - reservation.stands_still_at > seconds * min(1 << reservation.grown, _LONGER_MAX)


def is_void(view: ClusterView, reservation: Reservation) -> bool:
    """The ask is gone, or can no longer fit that node."""
    attempt, ask, node = reservation.attempt, reservation.ask, reservation.node
    wanted = ask.pending and attempt.asks.get(ask.key) is ask
    return not (wanted and view.calculator.fits(ask.capability, node.total) and attempt.accepts(node))
