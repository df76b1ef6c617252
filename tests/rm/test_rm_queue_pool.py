"""The pool of nodes' queues finds those with the least load, whatever was entered before."""

from hypothesis import given
from hypothesis import strategies as st

from rm.scheduler.node_queue import NodeQueue
from rm.scheduler.nodes import NodeView
from rm.scheduler.queue_pool import QueuePool
from yaqd.model import NodeId, Resource

NODES = 12


@given(
    st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 9), st.booleans()), max_size=400), st.integers(1, 8)
)
def test_best_are_those_of_the_last_entries_that_are_accepted(changes: list[tuple[int, int, bool]], most: int) -> None:
    pool = QueuePool()
    queues = [NodeQueue(NodeView(NodeId(f"n{n:02d}", 1), "/r", Resource(1024, 1))) for n in range(NODES)]
    loads: dict[NodeQueue, float] = {}
    for turn, (number, load, stays) in enumerate(changes, 1):
        queue = queues[number]
        queue.turn = turn if stays else 0
        loads.pop(queue, None)
        if stays:
            loads[queue] = float(load)
            pool.add((float(load), 0, queue.name, turn, queue))
        ranked = sorted((load, queue.name) for queue, load in loads.items())
        found = pool.best(lambda queue: True, most)
        assert [(loads[queue], queue.name) for queue in found] == ranked[:most]
        odd = [name for _, name in ranked if int(name.split(":")[0][1:]) % 2]
        assert [queue.name for queue in pool.best(lambda q: bool(queues.index(q) % 2), most)] == odd[:most]
        assert all(pool.entered(queue) == (queue in loads) for queue in queues)
