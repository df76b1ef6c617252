"""What a node queue says of itself: who waits, how long, and until when by the estimates at hand.

Expected starts are Algorithm 2 of Yaq over what runs and what waits before: they assume that nothing else comes, that
the order stays, and that what has overrun its estimate by much or never had one never ends.
"""

import math
from collections.abc import Sequence
from typing import Final

from nm.node_queue.held import HeldStarts
from nm.node_queue.said import NodeQueueSnapshot, WaitingView
from yaqd.model import Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import QueuedTask, RunningTask
from yaqd.policies.queueing.wait import WaitPolicy, expected_starts

#: for an estimate nobody needs more of them; a queue is bounded far below
_CONSIDERED_MAX: Final = 200


def snapshot(
    capacity: Resource,
    free: Resource,
    running: Sequence[RunningTask],
    waiting: Sequence[QueuedTask],
    *,
    usual: Resource,
    first: int,
    estimate: WaitPolicy,
    held: HeldStarts,
    now: float,
) -> NodeQueueSnapshot:
    """Describes the queue: who waits, for how long, and when each should start.

    `waiting`: in the order of their turns. `usual`: what a newcomer is taken to need. `estimate`: how long it would
    wait until its turn. `held`: how long its program would not start then.
    """
    shown = waiting[: min(first, _CONSIDERED_MAX)]
    starts = expected_starts(capacity, free, running, shown, now) if shown else []
    views = [
        WaitingView(
            task.container_id, max(0.0, now - (task.since if task.came is None else task.came)), held.begins(turn_s)
        )
        for task, turn_s in zip(shown, starts, strict=True)
    ]
    considered = waiting[:_CONSIDERED_MAX]
    wait_s = limits.duration(estimate(capacity, free, running, considered, usual, now))
    if len(considered) < len(waiting) and math.isfinite(wait_s):
        wait_s *= len(waiting) / len(considered)
    if wait_s > 0.0:  # 0 says more than a time, that there is room
        wait_s = held.begins(wait_s)
    return NodeQueueSnapshot(len(running), len(waiting), wait_s, tuple(views))
