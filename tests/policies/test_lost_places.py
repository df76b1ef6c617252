"""What has waited once has waited, wherever its container comes to lie next."""

from math import nan

from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import job_id
from yaqd.policies.queueing.lost_places import LostPlaces


def test_the_longest_wait_goes_along_first_and_once() -> None:
    places = LostPlaces()
    for since in (7.0, 3.0, 5.0):
        places.lost(job_id(1), 20, since)
    assert [places.take(job_id(1), 20, 9 - n, may_wait=True) for n in range(4)] == [3.0, 5.0, 7.0, None]
    assert not places


def test_stages_and_jobs_are_told_apart() -> None:
    places = LostPlaces()
    places.lost(job_id(1), 20, 3.0)
    assert places.take(job_id(1), 10, 5, may_wait=True) is None
    assert places.take(job_id(2), 20, 5, may_wait=True) is None
    places.forget(job_id(2))
    places.forget(job_id(1))
    assert places.take(job_id(1), 20, 5, may_wait=True) is None


def test_what_is_overdue_goes_where_nothing_waits() -> None:
    places = LostPlaces()
    places.lost(job_id(1), 20, 3.0, is_overdue=True)
    places.lost(job_id(1), 20, 5.0)
    assert places.overdue(job_id(1), 20) == 1
    assert places.take(job_id(1), 20, 9, may_wait=True) == 5.0
    assert places.take(job_id(1), 20, 8, may_wait=True) is None
    assert places.take(job_id(1), 20, 7, may_wait=False) == 3.0
    assert places.overdue(job_id(1), 20) == 0


def test_what_no_place_is_kept_for_may_wait_again_after_as_long_as_it_had_waited() -> None:
    places = LostPlaces()
    places.lost(job_id(1), 20, 3.0, 9.0, is_overdue=True)
    for now, overdue in ((14.9, 1), (15.0, 0)):
        places.forgive(job_id(1), 20, now)
        assert places.overdue(job_id(1), 20) == overdue
    assert places.take(job_id(1), 20, 9, may_wait=True) == 3.0, "and has waited since"
    places.lost(job_id(1), 20, 3.0, is_overdue=True)
    places.forgive(job_id(1), 20, 1e9)
    assert places.overdue(job_id(1), 20) == 1, "where one is kept it is for as long as it takes"


def test_no_more_have_lost_their_place_than_are_asked_for() -> None:
    places = LostPlaces()
    for since in range(50):
        places.lost(job_id(1), 20, float(since), is_overdue=True)
    assert places.take(job_id(1), 20, 2, may_wait=False) == 0.0
    assert places.overdue(job_id(1), 20) == 1


losses = st.tuples(
    st.just("lost"), st.integers(1, 3), st.integers(0, 2), st.floats(allow_nan=True), st.booleans(), st.just(0)
)
takes = st.tuples(
    st.just("take"), st.integers(1, 3), st.integers(0, 2), st.just(0.0), st.booleans(), st.integers(-1, 8)
)


@given(st.lists(st.one_of(losses, takes), max_size=60))
def test_nothing_is_handed_out_that_was_not_lost(steps: list[tuple[str, int, int, float, bool, int]]) -> None:
    places = LostPlaces()
    known: list[tuple[int, int, float]] = []
    for what, job, priority, since, flag, wanted in steps:
        if what == "lost":
            places.lost(job_id(job), priority, since, is_overdue=flag)
            known.append((job, priority, since))
        else:
            found = places.take(job_id(job), priority, wanted, may_wait=flag)
            if found is not None:
                known.remove((job, priority, found))
        places.validate()


def test_it_stays_bounded() -> None:
    places = LostPlaces()
    for n in range(5000):
        places.lost(job_id(1), 20, float(n))
    places.lost(job_id(1), 20, nan)
    taken = 0
    while places.take(job_id(1), 20, 10**6, may_wait=True) is not None:
        taken += 1
    assert taken == 1000
