from nm.queue.events import (
    Arrived,
    CapacityChanged,
    Decision,
    Ended,
    Event,
    Launch,
    OpportunisticLimit,
    Preempt,
    QueueStatistics,
    Refuse,
    Updated,
)
from nm.queue.node_queue import NodeQueue, OpportunisticPolicy

__all__ = [
    "Arrived",
    "CapacityChanged",
    "Decision",
    "Ended",
    "Event",
    "Launch",
    "NodeQueue",
    "OpportunisticLimit",
    "OpportunisticPolicy",
    "Preempt",
    "QueueStatistics",
    "Refuse",
    "Updated",
]
