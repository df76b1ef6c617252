"""Giving containers away as stock Hadoop does: at nodes' heartbeats alone, by `rm.scheduler.assign.stock_rules`."""

from collections.abc import Iterable, Iterator
from typing import Final

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.asks.updates import Updates
from rm.scheduler.assign.assigner import Assigner
from rm.scheduler.assign.capacity import CapacityPolicy
from rm.scheduler.assign.found import Found, Pick
from rm.scheduler.assign.stock_limits import Reservation
from rm.scheduler.assign.stock_rules import StockRules
from rm.scheduler.decisions import Outcome, Reserve, Unreserve
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AttemptView
from yaqd.model import Resource
from yaqd.policies.asks.table import Ask

_WHY: Final = "the node had room, by stock's rules"


class StockAssigner(Assigner):
    def __init__(
        self,
        view: ClusterView,
        policy: CapacityPolicy,
        updates: Updates,
        *,
        largest: Resource,
        starvation: JobStarvation = JobStarvation(),
    ) -> None:
        """`policy` only answers questions about why somebody waits. `largest`: the largest container."""
        super().__init__(view, policy, updates, at_asks=False, starvation=starvation)
        self.rules: Final = StockRules(view, largest)
        view.hears_of_use = self.rules.ratios.changed
        view.reserved_for = self.rules.reservations.attempts

    @property
    def has_work(self) -> bool:
        return super().has_work or bool(self.rules.reservations.at)

    def place(
        self, attempt: AttemptView, asks: list[Ask], hosts: dict[tuple[int, int], list[str]], now: float
    ) -> Iterator[Outcome]:
        """Have the attempt wait for heartbeats."""
        self._view.jobs.touch(attempt.app.id)
        self.starving.waits(attempt, now)
        self._view.file(attempt)
        yield from ()

    def fill(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Leave the node to its next heartbeat."""
        return ()

    def beat(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Give away what the node has, as far as one heartbeat may."""
        return self._beat(node, now) if self.has_work else ()

    def _beat(self, node: NodeView, now: float) -> Iterator[Outcome]:
        if self._updates.any_waiting:
            yield from self._updates.settle(node)
        limits, given, off_switch = self._view.spec.heartbeat, 0, 0
        while True:
            reserved = self.rules.reservations.at.get(node.id)
            if reserved is not None:
                yield from self._fulfil(reserved, now)
                return
            found = self.rules.look(node)
            if found is None:
                break
            yield from self._carry(found, now)
            given += 1
            off_switch += found.is_off_switch
            if found.is_reserved or not limits.goes_on(given, off_switch):
                break
        self.starving.find(now)

    def offer(self, node: NodeView, now: float) -> Iterable[Outcome]:
        """Give away one container, as a pass over all nodes does."""
        return self._offer(node, now) if self.has_work else ()

    def _offer(self, node: NodeView, now: float) -> Iterator[Outcome]:
        reserved = self.rules.reservations.at.get(node.id)
        if reserved is not None:
            yield from self._fulfil(reserved, now)
            return
        found = self.rules.look(node)
        if found is not None:
            yield from self._carry(found, now)

    def _carry(self, found: Found, now: float) -> Iterator[Outcome]:
        if found.is_refused:
            return
        if found.freed is not None:
            yield self._unreserve(found.freed, "room was found elsewhere")
        if not found.is_reserved:
            yield from self._give(Pick(found.attempt, found.ask, found.node, found.locality), now, _WHY)
            return
        one = Reservation(found.node, found.attempt, found.ask, found.ask.capability)
        self.rules.reservations.add(one)
        self.rules.ratios.changed(found.attempt.app)
        why = f"it came first, and the node lacks room for {one.size}"
        yield Reserve(found.node.id, found.attempt.id, *found.ask.key, why)

    def _fulfil(self, one: Reservation, now: float) -> Iterator[Outcome]:
        """Give the node to whom it is reserved for, where it has room by now. Nobody else gets anything."""
        ask = one.wanted
        if ask is None:
            yield self._unreserve(one, "the ask is gone")
            return
        found = self.rules.look_reserved(one, ask)
        if found is None:
            return
        if found.is_reserved:
            self.rules.reservations.renew(one)
            return
        # what was reserved counts as held until the container does, as in Hadoop, so nobody hears of less meanwhile
        self.rules.reservations.remove(one)
        yield Unreserve(one.node.id, one.attempt.id, "the ask got its container")
        yield from self._give(Pick(found.attempt, found.ask, found.node, found.locality), now, _WHY)

    def _unreserve(self, one: Reservation, why: str) -> Outcome:
        self.rules.reservations.remove(one)
        self.rules.ratios.changed(one.attempt.app)
        return Unreserve(one.node.id, one.attempt.id, why)

    def settle(self, attempt: AttemptView, now: float) -> Iterator[Outcome]:
        """Leave reservations of asks that are gone to the nodes' heartbeats."""
        yield from ()

    def ended(self, attempt: AttemptView, now: float) -> Iterator[Outcome]:
        for one in self.rules.reservations.of_attempt(attempt):
            yield self._unreserve(one, "the attempt has ended")
        self.rules.forget(attempt)

    def left(self, node: NodeView) -> Iterator[Outcome]:
        one = self.rules.reservations.at.get(node.id)
        if one is not None:
            yield self._unreserve(one, "the node left")

    def validate(self) -> None:
        reservations = self.rules.reservations
        assert reservations.attempts.keys() == reservations.at.keys()
        for node_id, one in reservations.at.items():
            assert self._view.nodes.get(node_id) is one.node, node_id
            assert one.attempt.app.attempt is one.attempt, one.attempt.id
