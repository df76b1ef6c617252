"""The bucket of core-seconds: what is given is used and no more, whoever asks for more, and nobody is held for long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.throttle.bucket import HELD_LOOK_S, HELD_MOST_S, LOOK_S, OWED_MOST_S, SHORT_LOOK_S, SLICE_S, Bucket


class Run:
    """An application that uses `width` processors whenever it is not held, looked at when the bucket says."""

    def __init__(self, cores: float, width: float, processors: int = 8, late_s: float = 0.0) -> None:
        self.bucket = Bucket(cores, 0.0, 0.0, processors=processors)
        self.width, self.late_s = width, late_s
        self.now = self.used_s = self.held_s = self.longest_held_s = 0.0
        self.looks = 0

    def until(self, end: float) -> None:
        while self.now < end:
            passed = self.bucket.turn(self.now, self.used_s) + self.late_s
            self.looks += 1
            self.now += passed
            if self.bucket.is_held:
                self.held_s += passed
                self.longest_held_s = max(self.longest_held_s, self.held_s)
            else:
                self.held_s = 0.0
                self.used_s += passed * self.width


@pytest.mark.parametrize("width", [1.0, 2.0, 8.0])
@pytest.mark.parametrize("cores", [0.05, 0.2, 0.5, 0.95])
def test_a_busy_application_uses_what_it_is_given(cores: float, width: float) -> None:
    run = Run(cores, width)
    run.until(30.0)
    assert 0.97 <= run.used_s / (30.0 * cores) <= 1.01
    assert run.longest_held_s <= HELD_MOST_S + 2 * LOOK_S


@pytest.mark.slow
@given(st.floats(0.02, 4.0), st.floats(0.5, 8.0), st.floats(0.0, 0.03))
def test_looks_that_come_late_are_made_good(cores: float, width: float, late_s: float) -> None:
    run = Run(cores, width, late_s=late_s)
    run.until(60.0)
    spell = width * (LOOK_S + late_s + 0.005)
    # who may have more than it can use has all of that; the least slice each second is let through whatever it owes
    slices = 60.0 / HELD_MOST_S * (SLICE_S + width * (late_s + SHORT_LOOK_S))
    assert run.used_s <= max(60.0 * cores, slices) + 2 * spell
    assert run.used_s >= min(0.9 * 60.0 * cores, 0.98 * 60.0 * width) - 2 * spell - 0.2
    assert run.longest_held_s <= HELD_MOST_S + 2 * (LOOK_S + late_s)


def test_looks_are_few() -> None:
    run = Run(0.2, 2.0)
    run.until(10.0)
    assert run.looks <= 70 * 10


def test_tokens_of_one_second_are_kept() -> None:
    bucket = Bucket(0.5, 0.0, 0.0, processors=2)
    for tick in range(500):
        bucket.turn(tick * LOOK_S, 0.0)
    assert bucket.tokens_s == pytest.approx(0.5)


def test_what_is_owed_is_bounded() -> None:
    bucket = Bucket(0.1, 0.0, 0.0, processors=64)
    bucket.turn(10.0, 640.0)
    assert bucket.tokens_s == -OWED_MOST_S and bucket.is_held


def test_no_cores_at_all_still_answer() -> None:
    run = Run(0.0, 1.0)
    run.until(20.0)
    assert 0.05 < run.used_s < 0.5 and run.longest_held_s <= HELD_MOST_S + 2 * LOOK_S


def test_more_cores_let_it_go_on_soon() -> None:
    run = Run(0.05, 2.0)
    run.until(10.0)
    run.bucket.change(1.0, run.now, run.used_s)
    before, since = run.used_s, run.now
    run.until(since + 5.0)
    assert run.used_s - before == pytest.approx(5.0, rel=0.1)


def test_a_clock_that_goes_back_harms_nothing() -> None:
    bucket = Bucket(0.5, 100.0, 5.0, processors=2)
    for now, used_s in [(101.0, 5.2), (99.0, 5.3), (101.5, 4.0), (102.0, 5.4)]:
        assert SHORT_LOOK_S <= bucket.turn(now, used_s) <= HELD_LOOK_S
    assert 0.0 <= bucket.tokens_s <= 0.5
