"""Letting masters start: as far as the shares for masters go, and again where a cluster has shrunk or grown."""

from bisect import insort
from collections.abc import Iterator

from rm.scheduler.assign.assigner import Assigner
from rm.scheduler.decisions import Outcome
from rm.scheduler.queues.admission import admissible
from rm.scheduler.queues.user_limits import masters_limit
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AttemptView, QueueView


class Starting:
    def __init__(self, view: ClusterView, assigner: Assigner) -> None:
        self._view = view
        self._assigner = assigner

    def admit(self, leaf: QueueView, now: float) -> Iterator[Outcome]:
        """Let masters start while the shares for masters last; the first one always may."""
        for attempt, need in admissible(self._view, leaf):
            leaf.inactive.remove((-attempt.app.priority, attempt.app.sequence))
            attempt.master = need
            self._view.count_master(attempt, need, 1)
            if any(ask.is_master for ask in attempt.asks):
                self._view.masters_wanted.add(attempt.id)
            yield from self._assigner.place(attempt, list(attempt.asks), {}, now)

    def admit_everywhere(self, now: float) -> Iterator[Outcome]:
        for queue in self._view.queues.values():
            if queue.inactive:
                yield from self.admit(queue, now)

    def shrunk(self, now: float) -> Iterator[Outcome]:
        """Take a smaller cluster in. Where masters have more than their share, those that hold nothing yet wait for it
        again."""
        view = self._view
        for leaf in {attempt.app.leaf.path: attempt.app.leaf for attempt in self._wanted()}.values():
            if leaf.masters > 1 and not view.calculator.fits(leaf.masters_used, masters_limit(view, leaf)):
                for attempt in [one for one in self._wanted() if one.app.leaf is leaf]:
                    yield from self._withdraw(attempt)
                yield from self.admit(leaf, now)

    def _wanted(self) -> list[AttemptView]:
        found = [self._view.attempt(attempt_id) for attempt_id in sorted(self._view.masters_wanted)]
        return [attempt for attempt in found if attempt is not None]

    def _withdraw(self, attempt: AttemptView) -> Iterator[Outcome]:
        """Let the attempt wait again that was let start."""
        view, leaf, app = self._view, attempt.app.leaf, attempt.app
        assert attempt.master is not None, f"{attempt.id} was not let start"
        view.masters_wanted.discard(attempt.id)
        view.unfile(attempt)
        for hold in view.holds.of_attempt(attempt):
            yield from view.holds.end(hold, "masters have more than their share of a smaller cluster")
        view.count_master(attempt, attempt.master, -1)
        attempt.master = None
        insort(leaf.inactive, (-app.priority, app.sequence))
