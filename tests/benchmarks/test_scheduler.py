"""The scheduler's benchmark plays by the rules: masters count as the scheduler does, and a replay decides the same."""

import pytest

from benchmarks.scheduler import Play, replay
from rm.scheduler.events import ContainerEnded
from yaqd.model import Resource


@pytest.mark.slow
@pytest.mark.parametrize(("gb", "queues"), [(32, False), (4, False), (4, True)])
def test_masters_get_what_they_asked_for_and_count_as_the_scheduler_does(gb: int, queues: bool) -> None:
    def play() -> Play:
        return Play(12, Resource(gb * 1024, gb), applications=6, per_heartbeat=8, queues=queues)

    first = play()
    counts = first.run(requests=6 * 8 * 5)
    assert counts.given == 6 * 8 * 5 and 0 < counts.node_local < counts.given
    assert counts.released == sum(isinstance(event, ContainerEnded) for event, _ in first.events) > 0
    first.scheduler.validate()
    own_mb = 1024 * len(first.masters)
    root = first.scheduler.view.root
    counted_mb = root.used_mb + root.sent.used_mb - own_mb
    assert first.held_mb == counted_mb <= counts.held_mb, "as the scheduler counts, which has the masters too"
    assert (counts.queued > 0) is queues, "sent to wait where there are queues, and where they fill"
    for master in first.masters.values():
        attempt = first.scheduler.view.attempt(master.attempt_id)
        assert attempt is not None
        told = {key: count for key, count in master.rows.items() if count and key not in master.changed}
        kept = {(ask.key[0], name): count for ask in attempt.asks for name, count in ask.counts.items()}
        assert told.items() <= kept.items()

    again = play().scheduler
    assert all(seconds >= 0.0 for seconds in replay(again, first.events))
    assert [entry.decision for entry in again.log] == [entry.decision for entry in first.scheduler.log]
