"""The fetch plan on a clock of its own."""

from tez_adapter.data import FetchSettings, MapLocation
from tez_adapter.data.fetchplan import FetchPlan

SETTINGS = FetchSettings(maps_per_request=2, retry_delay_s=1.0, retry_delay_max_s=3.0)


def at(index: int, host: str = "a", number: int = 0) -> MapLocation:
    return MapLocation(index, f"m{index}_{number}", host, 1)


def test_one_request_a_host_with_several_maps() -> None:
    plan = FetchPlan(4, SETTINGS)
    for location in (at(0), at(1), at(2), at(3, "b")):
        plan.add(location)
    first = plan.next_batch(0.0)
    assert first is not None and first.locations == (at(0), at(1))
    second = plan.next_batch(0.0)
    assert second is not None and second.locations == (at(3, "b"),)
    assert plan.next_batch(0.0) is None  # host a is busy
    for location in first.locations:
        assert plan.succeeded(location)
    plan.finished(first, 0.0, failed=False)
    third = plan.next_batch(0.0)
    assert third is not None and third.locations == (at(2),)
    assert plan.done == 2 and not plan.is_complete


def test_a_failing_host_waits_longer_each_time_up_to_a_bound() -> None:
    plan = FetchPlan(1, SETTINGS)
    plan.add(at(0))
    now, delays = 0.0, []
    for _ in range(4):
        batch = plan.next_batch(now)
        assert batch is not None
        plan.failed(at(0))
        plan.finished(batch, now, failed=True)
        assert plan.next_batch(now) is None
        again = plan.next_time()
        assert again is not None
        delays.append(again - now)
        now = again
    assert delays == [1.0, 2.0, 3.0, 3.0]


def test_what_a_cut_request_did_not_bring_is_asked_for_again() -> None:
    plan = FetchPlan(2, SETTINGS)
    plan.add(at(0))
    plan.add(at(1))
    batch = plan.next_batch(0.0)
    assert batch is not None
    plan.succeeded(at(0))
    plan.failed(at(1))
    plan.finished(batch, 0.0, failed=True)
    again = plan.next_batch(10.0)
    assert again is not None and again.locations == (at(1),)


def test_a_withdrawn_attempt_is_never_asked_for_again() -> None:
    plan = FetchPlan(1, SETTINGS)
    plan.add(at(0))
    batch = plan.next_batch(0.0)
    assert batch is not None
    plan.withdraw("m0_0")
    plan.failed(at(0))
    plan.finished(batch, 0.0, failed=True)
    assert plan.next_batch(100.0) is None and plan.next_time() is None
    plan.add(at(0, "b", 1))
    other = plan.next_batch(100.0)
    assert other is not None and other.locations == (at(0, "b", 1),)


def test_two_attempts_of_one_map_count_once() -> None:
    plan = FetchPlan(1, SETTINGS)
    plan.add(at(0))
    plan.add(at(0, "b", 1))
    first, second = plan.next_batch(0.0), plan.next_batch(0.0)
    assert first is not None and second is not None
    assert plan.succeeded(at(0)) is True
    assert plan.succeeded(at(0, "b", 1)) is False
    assert plan.is_complete and plan.done == 1
