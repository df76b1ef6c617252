"""The gap that bounds count with for masters' calls: what most of them do, whatever one of them does."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.model import ApplicationId
from yaqd.policies.queueing.polling import PollGaps


def app(number: int) -> ApplicationId:
    return ApplicationId(1, number)


@given(st.floats(0.05, 20.0), st.floats(0.01, 30.0))
def test_it_is_what_most_applications_do(usual_s: float, odd_s: float) -> None:
    polls = PollGaps()
    for call in range(20):
        for number in range(3):
            polls.called(app(number), call * usual_s)
        polls.called(app(9), call * odd_s)
        polls.called(app(8), call * usual_s)
    assert polls.median(1000.0) == pytest.approx(usual_s)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats() | st.sampled_from([nan, inf, -inf])), max_size=40))
def test_clocks_that_jump_leave_it_between_nothing_and_a_minute(calls: list[tuple[int, float]]) -> None:
    polls = PollGaps()
    for number, now in calls:
        polls.called(app(number), now)
        found = polls.median(now)
        assert found is None or 0.0 <= found <= 60.0
    for number in range(4):
        polls.forget(app(number))


def test_it_is_kept_for_some_seconds_and_outlives_the_applications() -> None:
    polls = PollGaps()
    assert polls.median(0.0) is None
    for call in range(9):
        polls.called(app(1), call * 2.0)
    assert polls.median(20.0) == pytest.approx(2.0)
    polls.forget(app(1))
    assert polls.median(30.0) == pytest.approx(2.0)
