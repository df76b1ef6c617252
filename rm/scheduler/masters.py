"""Application masters where nodes' queues are filled: they never wait there, and what waits there does not delay them.

A node that always has something to start is never seen with room. So one node keeps room for a master whose turn it
is (`NodeQueues.hold`, or a reservation): it is told so, starts nothing that waits in that room, says what those that
run leave free, and gets the master as soon as that is enough. Room is kept until the master is known to have started,
so that nothing takes it while the master is on its way. Where that goes wrong (the node registered anew, say) the
master starts all the same, beyond what is free.
"""

from rm.scheduler.asks import Ask
from rm.scheduler.nodes import NodeView
from rm.scheduler.view import ClusterView
from yaqd.model import ApplicationId, Resource


def has_room_before_queue(view: ClusterView, ask: Ask, node: NodeView) -> bool:
    """Is there room on the node for this master, were it not for what waits there?"""
    room = node.queue.room if node.queue is not None else None
    return ask.is_master and room is not None and view.calculator.fits(ask.capability, room)


def masters_to_come(view: ClusterView, node: NodeView) -> dict[ApplicationId, Resource]:
    """Those for which room is kept at the node, and those that were sent there and are not known to have started."""
    queue, rooms = node.queue, dict[ApplicationId, Resource]()
    if queue is None or not queue.keeps_room or not queue.length:
        return rooms
    if queue.held_for is not None:
        attempt = view.attempt(queue.held_for[0])
        _add(rooms, queue.held_for[0].application_id, attempt.asks.get(queue.held_for[1]) if attempt else None)
    reservation = view.reservations.get(node.id)
    if reservation is not None:
        _add(rooms, reservation.attempt.id.application_id, reservation.ask)
    if not node.masters.is_zero():
        for container_id, resource in node.containers.items():
            if container_id not in queue.started and view.containers[container_id].is_master:
                rooms[container_id.application_id] = resource
    return rooms


def _add(rooms: dict[ApplicationId, Resource], app_id: ApplicationId, ask: Ask | None) -> None:
    if ask is not None and ask.is_master:
        rooms[app_id] = ask.capability
