"""The merger's queue: the budget always holds, nobody starves, jobs are served alike."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.merger.queue import MergeQueue, Request

REQUESTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 100), st.integers(0, 1000)), min_size=1, max_size=40
)


@given(REQUESTS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_all_run_once_within_the_budget(requests: list[tuple[str, int, int]], running_max: int, random: Random) -> None:
    queue: MergeQueue[int] = MergeQueue(budget_bytes=100, running_max=running_max)
    running: list[int] = []
    started: list[int] = []
    for key, (job, memory, work) in enumerate(requests):
        queue.add(Request(key, job, memory, work))
        if random.random() < 0.5:
            new = [request.key for request in queue.start()]
            running += new
            started += new
        assert queue.running == len(running) <= running_max
        assert queue.used_bytes == sum(requests[k][1] for k in running) <= 100
    while True:
        new = [request.key for request in queue.start()]
        running += new
        started += new
        assert queue.used_bytes == sum(requests[k][1] for k in running) <= 100
        if not running:
            break
        queue.finished(running.pop(random.randrange(len(running))))
    assert sorted(started) == list(range(len(requests)))
    assert (queue.waiting, queue.waiting_bytes, queue.used_bytes) == (0, 0, 0)
    for job in "abc":
        own = [key for key in started if requests[key][0] == job]
        assert own == sorted(own)


def test_a_job_that_comes_late_takes_its_turn_at_once() -> None:
    queue: MergeQueue[str] = MergeQueue(budget_bytes=10, running_max=1)
    for number in range(10):
        queue.add(Request(f"a{number}", "a", 10, 100))
    order = []
    for step in range(14):
        (request,) = queue.start()
        order.append(request.key)
        queue.finished(request.key)
        if step == 3:
            for number in range(4):
                queue.add(Request(f"b{number}", "b", 10, 100))
    assert order[4:12] == ["b0", "a4", "b1", "a5", "b2", "a6", "b3", "a7"]


def test_small_requests_of_others_do_not_overtake_a_large_one() -> None:
    queue: MergeQueue[str] = MergeQueue(budget_bytes=10, running_max=9)
    queue.add(Request("small", "a", 2, 1))
    assert len(queue.start()) == 1
    queue.add(Request("large", "b", 10, 1))
    queue.add(Request("other", "a", 2, 1))
    assert queue.start() == []
    queue.finished("small")
    assert [request.key for request in queue.start()] == ["large"]


def test_cancel_takes_out_what_waits_and_only_that() -> None:
    queue: MergeQueue[str] = MergeQueue(budget_bytes=10, running_max=1)
    for key in "xyz":
        queue.add(Request(key, "a", 1, 5))
    queue.add(Request("w", "b", 1, 5))
    assert [request.key for request in queue.start()] == ["x"]
    assert queue.cancel("a", ["x", "y", "nobody"]) == ["y"]
    assert queue.counts("a") == (1, 1)
    assert queue.cancel("a") == ["z"]
    assert queue.cancel("nobody") == []
    queue.finished("x")
    assert [request.key for request in queue.start()] == ["w"]
    assert queue.waiting == 0
