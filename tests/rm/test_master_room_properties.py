"""Room that nodes say they keep for masters, told truly or not: no invariant of the scheduler breaks."""

import math

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from rm.scheduler.events import NodeBeat, NodeQueueReported
from tests.examples import examples
from tests.rm.rm_random_queueing import STOCK, QueueingLife
from yaqd.model import Resource

pytestmark = pytest.mark.slow


class KeptRooms(QueueingLife):
    @precondition(lambda self: self.nodes)
    @rule(
        data=st.data(),
        running=st.integers(-3, 8),
        queued=st.sampled_from([-5, 0, 0, 1, 2, 10**9]),
        wait_s=st.sampled_from([0.0, 1.0, 7.5, math.inf]),
        keeps_room=st.booleans(),
        free_mb=st.sampled_from([None, 0, 1024, 4096, 10**12]),
    )
    def node_keeps_room(
        self, data: st.DataObject, running: int, queued: int, wait_s: float, keeps_room: bool, free_mb: int | None
    ) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.nodes)))
        if node_id == STOCK:
            return
        view = self.scheduler.view
        here = sorted(c for c, held in view.containers.items() if held.node_id == node_id)
        some = st.frozensets(st.sampled_from(here)) if here else st.just(frozenset())
        waiting, started = data.draw(some), data.draw(some)
        free = None if free_mb is None else Resource(free_mb, min(free_mb, 1 << 30) // 1024)
        self.tell(NodeQueueReported(node_id, running, queued, wait_s, waiting, started, None, keeps_room, free))
        self.tell(NodeBeat(node_id))
        rooms = self.scheduler.facts.masters_to_come(node_id)
        assert all(not room.is_zero() for room in rooms.values())

    @invariant()
    def no_node_is_overcommitted(self) -> None:
        """A node that lies of its room may be: it is told so by what runs there."""

    @invariant()
    def masters_that_are_wanted_are_known(self) -> None:
        view = self.scheduler.view
        attempts = (app.attempt for app in view.applications.values())
        admitted = [attempt for attempt in attempts if attempt is not None and attempt.master is not None]
        wanted = {a.id for a in admitted if any(ask.is_master and ask.pending for ask in a.asks)}
        assert wanted == view.masters_wanted


KeptRooms.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestKeptRooms = KeptRooms.TestCase
