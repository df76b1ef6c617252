"""The queues that an ask may wait in, against a look at every node for each of its containers."""

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.assign.candidates import Candidates
from rm.scheduler.events import NodeDraining
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.calculators import AllocationBounds
from rm.scheduler.view.node import NodeQueue, NodeView
from tests.examples import examples
from tests.rm.rm_world import ONE_QUEUE, SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId
from yaqd.policies.asks.rows import AskRow, Locality
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing.place import choose
from yaqd.policies.queueing.place_scores import Affinity

APP = ApplicationId(1, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
HOSTS = ["a", "b", "c", "d", "e", "f"]
RACKS = ["/r", "/s"]

#: of each host: its rack, how many wait, how long one waits, and whether it is drained
nodes = st.tuples(
    st.sampled_from(RACKS),
    st.integers(0, 5),
    st.sampled_from([0.0, 1.0, 1.2, 2.5, 3.1, 9.0, inf]),
    st.sampled_from([0, 0, 0, 1]),
)
clusters = st.fixed_dictionaries({}, optional=dict.fromkeys(HOSTS, nodes))
rows = st.dictionaries(st.sampled_from([*HOSTS, *RACKS]), st.tuples(st.integers(1, 3), st.booleans()), max_size=5)


class Full(World):
    """A cluster where nothing is free, so that an ask without an estimate stays what it is."""

    def __init__(self, cluster: dict[str, tuple[str, int, float, int]], spec: QueueingSpec) -> None:
        tree = queues(ONE_QUEUE, maximum_am_resource_percent="1")
        super().__init__(tree, bounds=AllocationBounds(SLOT, SLOT * 4), queueing=spec)
        for host, (rack, queued, wait_s, drains) in cluster.items():
            node_id = self.join(host, SLOT, rack=rack)
            self.report(host, queued, wait_s)
            if drains:
                self.tell(NodeDraining(node_id))
        assert self.begin() == ATTEMPT
        self._ask(1, row(count=len(cluster)))

    def report(self, host: str, queued: int, wait_s: float) -> None:
        self.reports(NodeId(host, 1), 1, queued, wait_s)

    def _ask(self, priority: int, *asked: AskRow) -> Ask:
        self.asks(ATTEMPT, *asked)
        asks = self.attempt_of(ATTEMPT).asks
        return next((ask for ask in asks if ask.key[0] == priority), None)  # type: ignore[return-value]

    def ask(self, count: int, named: dict[str, tuple[int, bool]]) -> Ask:
        places = (AskRow(2, -1, name, SLOT, wanted, relax) for name, (wanted, relax) in named.items())
        return self._ask(2, *places, AskRow(2, -1, "*", SLOT, count, True))

    def looked_at(self, ask: Ask) -> list[tuple[NodeQueue, float, float, int]]:
        """Every node with room where the ask may go."""
        queues, found = self.scheduler.node_queues, []
        for node in self.scheduler.view.nodes.all():
            near = ask.locality(node.id.host, node.rack)
            if node.queue is not None and queues.open.has_room(node.queue) and near is not None:
                worth = queues.affinity(node.queue, near, APP, 2)
                found.append((node.queue, worth, queues.open.load(node.queue), node.queue.length))
        return found


def everything(_: NodeView) -> bool:
    return True


def worth(candidates: list[tuple[NodeQueue, float, float, int]]) -> float:
    """Affinity / load of the one that is chosen; -1: there is none."""
    best = choose(candidates)
    found = next((one for one in candidates if one[0] is best), None)
    return -1.0 if found is None else found[1] / found[2] if found[2] > 0 else inf


@settings(max_examples=examples(80), deadline=None)
@given(clusters, rows, st.integers(1, 6), st.sampled_from([0.0, 0.7]))
def test_the_best_is_among_them_for_each_container(
    cluster: dict[str, tuple[str, int, float, int]], named: dict[str, tuple[int, bool]], count: int, interference: float
) -> None:
    full = Full(cluster, QueueingSpec(bound=4, affinity=Affinity(interference=interference)))
    ask = full.ask(count, named)
    full.validates = False  # what is taken below is given to nobody
    candidates = Candidates(full.scheduler.view.nodes, full.scheduler.node_queues, APP, ask, everything)
    while ask.pending:
        assert worth(candidates.all()) == worth(full.looked_at(ask))
        queue = choose(candidates.all())
        if queue is None:
            return
        host = queue.node.id.host
        near = ask.locality(queue.node.id.host, queue.node.rack) or Locality.NONE
        ask.take(host, queue.node.rack, near, 0.0)
        full.report(host, queue.queued + 1, queue.wait_s + 3.0)
        candidates.changed(queue)


def test_who_does_not_accept_a_node_is_not_offered_its_queue() -> None:
    full = Full({"a": ("/r", 0, 1.0, 0), "b": ("/r", 0, 2.0, 0), "c": ("/s", 0, 3.0, 0)}, QueueingSpec(bound=4))
    ask = full.ask(3, {"a": (1, True), "/r": (1, True)})
    view, queues = full.scheduler.view, full.scheduler.node_queues
    found = Candidates(view.nodes, queues, APP, ask, lambda node: node.id.host != "a").all()
    assert {queue.node.id.host for queue, *_ in found} == {"b"}, "the best of the rack, and of all"
    assert Candidates(view.nodes, queues, APP, ask, lambda node: False).all() == []


def test_a_place_that_is_used_up_is_no_longer_near() -> None:
    full = Full({"a": ("/r", 0, 3.0, 0), "b": ("/s", 0, 2.9, 0)}, QueueingSpec(bound=4))
    ask = full.ask(2, {"a": (1, True), "/r": (1, True)})
    candidates = Candidates(full.scheduler.view.nodes, full.scheduler.node_queues, APP, ask, everything)
    queue = choose(candidates.all())
    assert queue is not None and queue.node.id.host == "a", "a little longer, but near its data"
    ask.take("a", "/r", Locality.NODE, 0.0)
    candidates.changed(queue)
    again = choose(candidates.all())
    assert again is not None and again.node.id.host == "b"


def test_the_right_rack_is_worth_a_little_waiting() -> None:
    for wait_s, expected in ((1.2, "b"), (1.6, "a")):
        full = Full({"a": ("/s", 0, 1.0, 0), "b": ("/r", 0, wait_s, 0), "c": ("/r", 0, 9.0, 0)}, QueueingSpec(bound=4))
        ask = full.ask(1, {"d": (1, True), "/r": (1, True)})
        queue = choose(Candidates(full.scheduler.view.nodes, full.scheduler.node_queues, APP, ask, everything).all())
        assert queue is not None and queue.node.id.host == expected


def test_with_all_nodes_drained_what_is_asked_for_waits() -> None:
    full = Full({"a1": ("/r1", 0, 0.0, 0), "a2": ("/r1", 0, 0.0, 1)}, QueueingSpec())
    assert full.scheduler.maximum_allocation().memory_mb == SLOT.memory_mb
    full.tell(NodeDraining(NodeId("a1", 1)))
    assert full.scheduler.maximum_allocation() == SLOT * 4
