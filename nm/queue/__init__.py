from nm.queue.events import (
    Arrived,
    Began,
    CapacityChanged,
    Decision,
    Ended,
    EstimateChanged,
    Event,
    JobReport,
    JobsReported,
    Launch,
    OpportunisticLimit,
    Preempt,
    QueueStatistics,
    Refuse,
    SettingsChanged,
    Tick,
    Updated,
)
from nm.queue.held import HeldStarts
from nm.queue.node_queue import NodeQueue, OpportunisticPolicy
from nm.queue.settings import NodeQueueSettings
from nm.queue.snapshot import QueueSnapshot, WaitingView

__all__ = [
    "Arrived",
    "Began",
    "CapacityChanged",
    "Decision",
    "Ended",
    "EstimateChanged",
    "Event",
    "HeldStarts",
    "JobReport",
    "JobsReported",
    "Launch",
    "NodeQueue",
    "NodeQueueSettings",
    "OpportunisticLimit",
    "OpportunisticPolicy",
    "Preempt",
    "QueueSnapshot",
    "QueueStatistics",
    "Refuse",
    "SettingsChanged",
    "Tick",
    "Updated",
    "WaitingView",
]
