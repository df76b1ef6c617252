"""Which node queues have room, found by their load: of all nodes, and of each rack that was asked for.

Where something waits best is the placement policy's to say (`yaqd.policies.queueing.place`), at the same cost however
many nodes there are. Most queues change several times between two looks. So they are entered when somebody looks.
"""

from collections.abc import Callable, Iterable
from typing import Final

from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.node import NodeQueue, NodeView
from yaqd.policies.queueing.place import Placer
from yaqd.policies.queueing.place_scores import Load

#: queues that have changed before they are entered, though nobody looks for one: so much work at a time
_CHANGED_MAX: Final = 256


class OpenQueues:
    """Empty without a spec."""

    def __init__(self, spec: QueueingSpec | None) -> None:
        self.change(spec)
        #: queues that are not to be found yet as they are now
        self._changed: dict[NodeQueue, None] = {}

    def change(self, spec: QueueingSpec | None) -> None:
        """Go by another configuration. The caller enters all queues again."""
        self._spec = spec
        self._everywhere = self._new_placer()
        #: those of racks that were asked for
        self._racks: dict[str, Placer[NodeQueue]] = {}

    def remove(self, queue: NodeQueue) -> None:
        """Let the queue not be found any more."""
        self._changed.pop(queue, None)
        for placer in self._placers_of(queue):
            placer.remove(queue)

    def _new_placer(self) -> Placer[NodeQueue]:
        return Placer(self._spec.placement) if self._spec is not None else Placer()

    def _placers_of(self, queue: NodeQueue) -> Iterable[Placer[NodeQueue]]:
        rack = self._racks.get(queue.node.rack)
        return (self._everywhere,) if rack is None else (self._everywhere, rack)

    def enter(self, queue: NodeQueue) -> None:
        """Note that the queue has changed. It is entered when somebody looks, as most queues change several times
        before that. Where nothing may wait, and nobody finds it, there is nothing to enter."""
        queue.score = None
        if not queue.bound and not queue.is_listed:
            return
        self._changed[queue] = None
        if len(self._changed) > _CHANGED_MAX:
            self._enter_changed()

    def _enter_changed(self) -> None:
        for queue in self._changed:
            if not self.has_room(queue):
                if queue.is_listed:
                    queue.is_listed = False
                    for placer in self._placers_of(queue):
                        placer.remove(queue)
                continue
            at = queue.length, queue.expected_wait(), queue.slots
            if queue.is_listed and queue.listed_at == at:
                continue  # as it is to be found already
            queue.is_listed, queue.listed_at = True, at
            score = self.load(queue)
            for placer in self._placers_of(queue):
                placer.put_scored(queue, queue.name, score, at[0])
        self._changed.clear()

    def enter_again(self, queue: NodeQueue) -> None:
        """Let the queue be found that has room though the same waits in it: its node is no longer drained, or held."""
        if not queue.is_listed and self.has_room(queue):
            self.enter(queue)

    def has_room(self, queue: NodeQueue) -> bool:
        return self._spec is not None and queue.no_room(self._spec.wait_max_s) is None

    @staticmethod
    def _load(queue: NodeQueue) -> Load:
        return Load(queue.length, queue.expected_wait(), queue.slots)

    def load(self, queue: NodeQueue) -> float:
        """Return the queue's load by the strategy: the higher it is, the worse is the node."""
        score = queue.score
        if score is None:
            score = queue.score = self._everywhere.load(self._load(queue))
        return score

    def best(self, accepts: Callable[[NodeView], bool], most: int) -> list[NodeQueue]:
        """List queues with room to choose among: up to `most` with the least load, or as many as the strategy draws."""
        if self._changed:
            self._enter_changed()
        return self._everywhere.candidates(lambda queue: self.has_room(queue) and accepts(queue.node), most)

    def best_of(self, rack: str, nodes: Iterable[NodeView], accepts: Callable[[NodeView], bool]) -> NodeQueue | None:
        """Return the best queue with room in a rack, whose nodes these are; None: there is none."""
        if self._changed:
            self._enter_changed()
        placer = self._racks.get(rack)
        if placer is None:
            placer = self._racks[rack] = self._new_placer()
            for node in nodes:
                queue = node.queue
                if queue.is_listed:
                    placer.put(queue, queue.name, self._load(queue))
                    queue.listed_at = None  # not everywhere the same, maybe
        found = placer.candidates(lambda queue: self.has_room(queue) and accepts(queue.node), 1)
        return found[0] if found else None

    def validate(self, queue: NodeQueue) -> None:
        """Assert every invariant of this queue."""
        for placer in self._placers_of(queue):
            assert queue.is_listed is (queue in placer), queue.name
            assert queue in placer or queue in self._changed or not self.has_room(queue), queue.name
            placer.validate()
