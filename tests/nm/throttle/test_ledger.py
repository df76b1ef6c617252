"""The ledger of a container's processor time: nothing is missed, nothing counted twice."""

import pytest

from nm.throttle.ledger import Ledger, SeenProcess


class Clocks:
    def __init__(self) -> None:
        self.own_s: dict[int, float] = {}
        self.ledger = Ledger(self.own_s.get)

    def look(self, *processes: tuple[int, int, float]) -> list[SeenProcess]:
        """Each with its number, its parent, and what its count of children says, s."""
        return self.ledger.take_in(
            SeenProcess(pid, 7, parent, 1, waited_s, True) for pid, parent, waited_s in processes
        )


def test_clocks_are_read_between_looks() -> None:
    clocks = Clocks()
    clocks.own_s |= {1: 0.5, 2: 1.0}
    assert [one.pid for one in clocks.look((1, 0, 0.0), (2, 1, 0.0))] == [1, 2]
    assert clocks.ledger.total_s() == pytest.approx(1.5)
    clocks.own_s[2] = 3.0
    assert clocks.ledger.total_s() == pytest.approx(3.5)


def test_a_child_that_was_seen_is_not_counted_again_when_its_parent_has_waited() -> None:
    clocks = Clocks()
    clocks.own_s |= {1: 0.0, 2: 1.0}
    clocks.look((1, 0, 0.0), (2, 1, 0.0))
    del clocks.own_s[2]
    clocks.look((1, 0, 1.0))
    assert clocks.ledger.total_s() == pytest.approx(1.0)


def test_what_a_child_used_after_the_last_look_counts() -> None:
    clocks = Clocks()
    clocks.own_s |= {1: 0.0, 2: 1.0}
    clocks.look((1, 0, 0.0), (2, 1, 0.0))
    del clocks.own_s[2]
    clocks.look((1, 0, 1.13))
    assert clocks.ledger.total_s() == pytest.approx(1.13)


def test_children_that_nobody_saw_count() -> None:
    clocks = Clocks()
    clocks.own_s[1] = 0.0
    clocks.look((1, 0, 0.0))
    for looks in range(1, 6):
        clocks.look((1, 0, 0.1 * looks))
    assert clocks.ledger.total_s() == pytest.approx(0.5)


def test_a_parent_that_shows_it_one_look_later() -> None:
    clocks = Clocks()
    clocks.own_s |= {1: 0.0, 2: 1.0}
    clocks.look((1, 0, 0.0), (2, 1, 0.0))
    del clocks.own_s[2]
    clocks.look((1, 0, 0.0))
    clocks.look((1, 0, 1.0))
    assert clocks.ledger.total_s() == pytest.approx(1.0)


def test_a_parent_that_waits_for_nobody_hides_no_more_than_the_rounding() -> None:
    """What it does not wait for is not set off against what others used unseen."""
    clocks = Clocks()
    clocks.own_s[1] = 0.0
    for number in range(2, 12):
        clocks.own_s[number] = 1.0
        clocks.look((1, 0, 0.0), (number, 1, 0.0))
    clocks.look((1, 0, 0.0))
    clocks.look((1, 0, 0.0))
    clocks.look((1, 0, 5.0))
    assert 14.9 <= clocks.ledger.total_s() <= 15.0


def test_many_short_children_are_not_counted_twice_for_the_rounding() -> None:
    """Each was seen, uses 3 ms, and its parent's count goes by hundredths of a second."""
    clocks = Clocks()
    clocks.own_s[1] = 0.0
    for number in range(1, 301):
        clocks.own_s[1 + number] = 0.003
        clocks.look((1, 0, int(0.3 * (number - 1)) / 100), (1 + number, 1, 0.0))
        del clocks.own_s[1 + number]
    assert clocks.ledger.total_s() == pytest.approx(0.9, rel=0.05)


def test_grandchildren_count_once() -> None:
    clocks = Clocks()
    clocks.own_s |= {1: 0.0, 2: 0.2, 3: 1.0}
    clocks.look((1, 0, 0.0), (2, 1, 0.0), (3, 2, 0.0))
    clocks.look((1, 0, 0.0), (2, 1, 1.0))
    clocks.look((1, 0, 1.2))
    assert clocks.ledger.total_s() == pytest.approx(1.2)


def test_another_process_with_the_same_number_is_another() -> None:
    ledger = Ledger({5: 0.25}.get)
    ledger.take_in([SeenProcess(5, 7, 1, 1, 0.0, True)])
    assert [one.started for one in ledger.take_in([SeenProcess(5, 8, 1, 1, 0.0, True)])] == [8]
    assert ledger.total_s() == pytest.approx(0.5)
