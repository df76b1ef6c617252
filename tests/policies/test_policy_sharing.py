"""Deficits over actual use: nobody is kept from its share for longer than ST while tasks can be taken from others."""

from math import nan

from hypothesis import given
from hypothesis import strategies as st
from policy_facts import hostile_s

from yaqd.policies.queueing.sharing import DeficitCounters

SLOTS = 20


def longest_violation(seed_order: list[int], starve_s: float, preempts: bool) -> float:
    """Two backlogged queues at 70 % / 30 % and an order that would serve one of them alone; for how long either holds
    a whole slot less than its share, at most, s. Each second some tasks end and their slots are given again."""
    shares = {"a": 0.7, "b": 0.3}
    counters = DeficitCounters(shares, starve_s, capacity=SLOTS)
    used = {"a": 14, "b": 6}
    below = dict.fromkeys(shares, 0)
    worst = 0
    for group in shares:
        counters.use(group, used[group], 0)
        counters.want(group, 1000, 0)
    for now, ending in enumerate(seed_order, start=1):
        favourite = "b" if ending % 2 else "a"
        for ended in ("a", "b"):
            gone = min(used[ended], ending // 2)
            used[ended] -= gone
            counters.use(ended, used[ended], now)
            for _ in range(gone):
                group = counters.turn(shares, now) or favourite
                used[group] += 1
                counters.use(group, used[group], now)
        while preempts and (debtor := counters.turn(shares, now)) is not None:
            giver = counters.surplus(set(shares) - {debtor})
            assert giver is not None
            used[giver] -= 1
            used[debtor] += 1
            counters.use(giver, used[giver], now)
            counters.use(debtor, used[debtor], now)
        assert sum(used.values()) == SLOTS
        for group, share in shares.items():
            below[group] = below[group] + 1 if used[group] <= share * SLOTS - 1 + 1e-9 else 0
            worst = max(worst, below[group])
    return worst


@given(st.lists(st.integers(0, 9), max_size=80), st.integers(0, 12))
def test_no_deficit_outlasts_st_where_tasks_may_be_preempted(ends, starve_s) -> None:
    assert longest_violation(ends, starve_s, preempts=True) <= starve_s + 1


def test_until_then_the_order_is_free() -> None:
    everything_to_b = [9] * 40
    assert longest_violation(everything_to_b, 10, preempts=True) == 11
    assert longest_violation(everything_to_b, 1000, preempts=True) == 40


def test_without_preemption_the_next_ends_are_the_debtors() -> None:
    counters = DeficitCounters({"a": 1, "b": 1}, starve_s=5, capacity=10)
    counters.use("a", 10, 0)
    counters.want("b", 100, 0)
    assert counters.turn(["a", "b"], 5) is None
    assert counters.turn(["a", "b"], 6) == "b"
    assert counters.deficit("b") == 6 * 5.0
    assert counters.turn(["a"], 6) is None  # who is not there has no turn
    for given_back in range(1, 6):
        assert counters.turn(["a", "b"], 7) == "b"
        counters.use("a", 10 - given_back, 7)
        counters.use("b", given_back, 7)
    assert counters.turn(["a", "b"], 1000) is None


def test_an_idle_groups_share_is_the_others() -> None:
    counters = DeficitCounters({"a": 0.7, "b": 0.2, "c": 0.1}, starve_s=0, capacity=10)
    counters.use("a", 7, 0)
    counters.use("b", 3, 0)
    assert counters.turn("abc", 100) is None
    counters.want("c", 5, 100)  # a tenth of ten slots
    assert counters.turn("abc", 100) is None
    assert counters.turn("abc", 101) == "c"
    assert counters.surplus("ab") == "b"
    counters.resize(20, 101)
    assert counters.surplus("ab") is None


def test_nobody_lacks_what_it_does_not_want() -> None:
    counters = DeficitCounters({}, starve_s=0, capacity=11)
    counters.use("a", 10, 0)
    counters.use("b", 1, 0)
    counters.want("b", 0.5, 0)
    assert counters.turn("ab", 100) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["use", "want", "turn"]), st.sampled_from("abc"), hostile_s, hostile_s), max_size=30
    ),
    hostile_s,
    hostile_s,
)
def test_hostile_counts_shares_and_clocks(events, share, starve_s) -> None:
    counters = DeficitCounters({"a": share, "b": 1.0}, starve_s, capacity=share, default_share=nan)
    for name, group, slots, now in events:
        if name == "turn":
            counters.resize(slots, now)
            assert counters.turn("abc", now) in {None, "a", "b", "c"}
        elif name == "use":
            counters.use(group, slots, now)
        else:
            counters.want(group, slots, now)
        assert counters.surplus("abc") in {None, "a", "b", "c"}


def test_a_clock_that_goes_back_keeps_nobody_waiting_longer_than_st_again() -> None:
    counters = DeficitCounters({}, starve_s=5, capacity=10)
    counters.use("a", 10, 1e6)
    counters.want("b", 5, 1e6)
    assert counters.turn("ab", 10.0) is None
    assert counters.turn("ab", 16.0) == "b"
