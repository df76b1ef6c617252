"""Which queues give tasks back, and to whom: corrections of placements that did not turn out (Yaq, section 3.2).

`queue_limit` is Hadoop's ContainerQueuingLimit (QueueLimitCalculator): nodes whose queue is longer than the cluster's
mean and some deviations drop the rest, and their masters ask again. A queue's length says little about its wait, and
what is dropped may come back, so there is a finer version: `rebalance` moves tasks from the node where the last of them
would wait longest to the one where it would wait least, as long as that gains `least_gain_s`, and no more than
`most_moves` at a time because the numbers are old by then. Work stealing and copies of tasks were not taken: the former
loses locality, the latter capacity.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heapreplace
from math import inf, sqrt
from typing import Any, Final

from yaqd.model import NodeId
from yaqd.model.values import value
from yaqd.policies.queueing import limits
from yaqd.policies.registry import PolicyTable, calls


@value()
class NodeQueueLoad:
    """One node's queue, as last reported."""

    node: NodeId
    #: until one more would start, s; inf never
    wait_s: float
    #: tasks that wait and may leave
    queued: int
    #: tasks that run there at once
    slots: int
    #: mean duration of its tasks, s; of a queue that says nothing of them, as of most
    mean_s: float
    #: tasks that may still come
    room: int


@value()
class NodeQueueSaid:
    """The same as a node said it and its ResourceManager believes it."""

    node: NodeId
    #: until one more would start, s; inf never
    wait_s: float
    #: tasks that wait, and how many of them may leave
    waiting: int
    queued: int
    #: tasks that run there at once
    slots: int
    #: tasks that may wait; None: it did not say
    capacity: int | None


@value()
class Move:
    """So many tasks from the end of one queue to another."""

    source: NodeId
    target: NodeId
    tasks: int
    #: what the last of them gains, s
    gain_s: float


def queue_limit(lengths: Iterable[float], deviations: float, least: float, most: float) -> float:
    """Return what a queue may be at most: mean + deviations x standard deviation of all, within [least, most].

    `lengths` are tasks or seconds; those that are no numbers, negative or infinite are left out. Without any it is
    `most`.
    """
    known = [length for length in lengths if 0.0 <= length <= limits.LONGEST_S]
    if not known:
        return most
    mean = sum(known) / len(known)
    spread = sqrt(sum((length - mean) ** 2 for length in known) / len(known))
    return max(least, min(most, mean + deviations * spread))


def queue_loads(said: Iterable[NodeQueueSaid], most_queued: int, typical_s: float) -> list[NodeQueueLoad]:
    """Return what policies go by. No more than `most_queued` may wait anywhere, whatever nodes say that they take: what
    is beyond comes back (`queue_limit`).

    How long tasks last can be read where they wait, from the wait and how many share it. It cannot from the wait of a
    node without a queue: that is what is left of the next task to end, and a node of which one is about to end would
    seem to take any number at no cost. Such a node is taken to run what most queues hold: the median, which one that
    lies does not move as it moves a mean; a queue counts for as many tasks as run beside each other at its node. Where
    nothing is known, tasks last `typical_s`.
    """
    known = list(said)
    means = [(one, _mean_s(one)) for one in known]
    usual_s = _median([(mean_s, min(one.waiting, one.slots)) for one, mean_s in means if mean_s < inf], typical_s)
    return [
        NodeQueueLoad(
            one.node,
            one.wait_s,
            max(0, one.queued),
            one.slots,
            mean_s if mean_s < inf else usual_s,
            max(0, min(most_queued, one.capacity if one.capacity is not None else most_queued) - max(0, one.queued)),
        )
        for one, mean_s in means
    ]


def _mean_s(said: NodeQueueSaid) -> float:
    """How long its tasks last, s; inf: nobody knows."""
    wait_s = limits.duration(said.wait_s)
    if said.waiting <= 0 or wait_s <= 0.0:
        return inf
    # a newcomer waits for those before it, and for the end of one that runs
    return wait_s * max(1, limits.slots(said.slots)) / (said.waiting + 1)


def _median(weighted: list[tuple[float, int]], default: float) -> float:
    """The least value that, with all below it, has more than half of the weight."""
    half = sum(weight for _, weight in weighted) / 2
    for each, weight in sorted(weighted):
        half -= weight
        if half < 0:
            return each
    return default


def rebalance(loads: Iterable[NodeQueueLoad], least_gain_s: float, most_moves: int = 1000) -> list[Move]:
    """Return which queues give how many tasks to which, the largest gain first; never more than there are, or have
    room.

    A queue where nothing starts any more (wait inf) gives away all it has. Takes O(moves log nodes) steps.
    """
    sources, targets = [], []
    kept: dict[NodeId, NodeQueueLoad] = {}
    for load in loads:
        kept[load.node] = load
        wait_s = limits.duration(load.wait_s)
        if load.queued > 0:
            sources.append((-wait_s, load.node, min(load.queued, limits.LONGEST_QUEUE)))
        if load.room > 0 and wait_s < inf:
            targets.append((wait_s, load.node, load.room))
    heapify(sources)
    heapify(targets)
    least_gain_s = limits.threshold(least_gain_s)
    moves: dict[tuple[NodeId, NodeId], tuple[int, float]] = {}
    for _ in range(max(0, most_moves)):
        if not sources or not targets:
            break
        (negative, source, queued), (wait_s, target, room) = sources[0], targets[0]
        # the last in line waits for those before it: one step less than who would come after it
        leaves = _step(kept[source])
        gain = -negative - leaves - wait_s
        if queued == 0 or room == 0 or source == target or not gain > least_gain_s:
            break
        tasks, _ = moves.get((source, target), (0, 0.0))
        moves[source, target] = tasks + 1, gain
        heapreplace(sources, (negative + leaves, source, queued - 1) if queued > 1 else (inf, source, 0))
        after_s = wait_s + _longer_by(kept[target], kept[source])
        heapreplace(targets, (after_s, target, room - 1) if room > 1 else (inf, target, 0))
    return [Move(source, target, tasks, gain) for (source, target), (tasks, gain) in moves.items()]


#: (all queues, what a move must gain, s) -> moves, each from a queue to another one
Rebalance = Callable[[Iterable[NodeQueueLoad], float], list[Move]]


def _moves(answer: Any) -> list[Move]:
    moves = list(answer)
    if not all(isinstance(move, Move) and _is_node(move.source) and _is_node(move.target) for move in moves):
        raise TypeError("not all that it returned are moves from one node to another")
    if not all(isinstance(move.tasks, int) and move.tasks > 0 for move in moves):
        raise ValueError("not all moves that it returned are of a number of tasks")
    return moves


def _is_node(given: Any) -> bool:
    """Nodes are looked up by it; not all tuples can be, whatever class they have."""
    return isinstance(given, NodeId) and isinstance(given.host, str) and isinstance(given.port, int)


REBALANCES: Final[PolicyTable[Rebalance]] = PolicyTable(
    "rebalance", {"gain": rebalance}, instead="gain", guard=calls(_moves)
)


def _step(load: NodeQueueLoad) -> float:
    """What one task of its own less changes of a node's wait, s."""
    mean = limits.duration(load.mean_s)
    return mean / max(1, limits.slots(load.slots)) if mean < inf else 0.0


def _longer_by(target: NodeQueueLoad, source: NodeQueueLoad) -> float:
    """What a task that comes from elsewhere adds to a node's wait, s.

    It lasts as long as those that it waited with, however short the target's own are said to be. Where those are longer
    they count: a target that is behind more than it says must not be filled for it.
    """
    known = [mean_s for load in (target, source) if (mean_s := limits.duration(load.mean_s)) < inf]
    return max(known) / max(1, limits.slots(target.slots)) if known else inf
