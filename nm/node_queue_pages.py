"""The node queue for people and programs that look at the node: who waits, in which place, and when it should start."""

import math
from collections.abc import Mapping
from typing import Any

from nm.node_queue import NodeQueueSettings, NodeQueueSnapshot
from yaqd.model import ContainerId

#: places told of a longer queue
SHOWN_MAX = 200


def queue_dict(queue: NodeQueueSnapshot, settings: NodeQueueSettings) -> dict[str, Any]:
    """Returns the node's queue as REST shows it; a time that nobody can tell is null."""
    ordering = settings.ordering
    return {
        "running": queue.running,
        "queued": queue.queued,
        "waitMs": _milliseconds(queue.wait_s),
        "filledByResourceManager": settings.enabled,
        "maxQueued": settings.max_queued if settings.enabled else None,
        "maxWaitMs": _milliseconds(settings.max_wait_s) if settings.enabled else None,
        "order": ordering.name if ordering is not None else "fifo",
    }


def queue_text(queue: NodeQueueSnapshot) -> str:
    if not queue.queued:
        return f"{queue.running} run, none waits"
    return f"{queue.running} run, {queue.queued} wait; one more would start {_when(queue.wait_s)}"


def places(queue: NodeQueueSnapshot) -> Mapping[ContainerId, dict[str, Any]]:
    """Returns, of the first containers that wait, the place from 1, the time waited and the time until the start."""
    return {
        view.container_id: {
            "place": place,
            "waitedMs": _milliseconds(view.waited_s),
            "expectedMs": _milliseconds(view.expected_s),
        }
        for place, view in enumerate(queue.waiting, 1)
    }


def place_text(place: Mapping[str, Any] | None) -> str:
    if place is None:
        return ""
    expected_ms = place["expectedMs"]
    return f"{place['place']}. to start, {_when(math.inf if expected_ms is None else expected_ms / 1000)}"


def _when(seconds: float) -> str:
    return f"in {seconds:.1f} s" if math.isfinite(seconds) else "nobody knows when"


def _milliseconds(seconds: float) -> int | None:
    return round(1000 * seconds) if math.isfinite(seconds) else None
