from nm.queue.node_queue import (
    Arrived,
    CapacityChanged,
    Decision,
    Ended,
    Event,
    Launch,
    NodeQueue,
    QueueStatistics,
    Refuse,
    Resized,
)

__all__ = [
    "Arrived",
    "CapacityChanged",
    "Decision",
    "Ended",
    "Event",
    "Launch",
    "NodeQueue",
    "QueueStatistics",
    "Refuse",
    "Resized",
]
