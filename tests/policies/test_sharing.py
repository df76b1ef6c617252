"""Deficits over actual use: what is owed evens out, is bounded, and belongs to nobody who wants nothing."""

from math import isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import hostile_s
from yaqd.policies.queueing.sharing import DeficitCounters

GROUPS = ["a", "b", "c"]
shares = st.floats(0.01, 1.0)


def wanting(most_owed_s: float = 1e6, **parts: float) -> DeficitCounters:
    counters = DeficitCounters(most_owed_s)
    for group, share in parts.items():
        counters.want(group, share)
    return counters


@pytest.mark.slow
@given(st.tuples(shares, shares, shares), st.lists(st.floats(0.1, 5.0), min_size=60, max_size=200))
def test_whoever_is_owed_most_of_its_share_goes_first_and_all_get_their_part(
    parts: tuple[float, float, float], tasks: list[float]
) -> None:
    share = dict(zip(GROUPS, parts, strict=True))
    counters = wanting(**share)
    given_to = dict.fromkeys(GROUPS, 0.0)
    for work in tasks:
        group = max(GROUPS, key=lambda g: counters.deficit(g) / share[g])
        counters.give(group, work)
        given_to[group] += work
    for group in GROUPS:
        due = sum(tasks) * share[group] / sum(share.values())
        assert abs(given_to[group] - due) <= 3 * max(tasks)
        assert counters.deficit(group) == pytest.approx(due - given_to[group], abs=1e-6)


@given(
    st.lists(st.tuples(st.sampled_from(GROUPS), st.floats(-20.0, 20.0), st.booleans()), max_size=60),
    st.floats(0.1, 10.0),
)
def test_nobody_is_owed_or_owes_more_than_its_bound_and_all_add_up_to_nothing(
    entries: list[tuple[str, float, bool]], most_owed_s: float
) -> None:
    share = {"a": 0.5, "b": 0.3, "c": 0.2}
    counters = wanting(most_owed_s, **share)
    for group, work, rests in entries:
        if rests:
            counters.rest(group)
            counters.want(group, share[group])
        counters.give(group, work)
        assert sum(-counters._ahead(account) for account in counters._accounts.values()) == pytest.approx(0, abs=1e-6)
        for each, part in share.items():
            assert abs(counters.deficit(each)) <= most_owed_s * part * (1 + 1e-9)


def test_who_comes_back_begins_as_if_it_had_been_served() -> None:
    counters = wanting(a=0.5, b=0.5)
    counters.give("a", 10.0)
    assert counters.deficit("b") == pytest.approx(5.0)
    counters.rest("b")
    assert counters.deficit("a") == pytest.approx(0.0), "nobody else was kept from anything"
    counters.give("a", 100.0)
    assert counters.deficit("a") == pytest.approx(0.0), "alone it may have everything"
    counters.want("b", 0.5)
    assert counters.deficit("b") == pytest.approx(0.0)


def test_a_changed_share_keeps_what_is_owed() -> None:
    counters = wanting(a=0.5, b=0.5)
    counters.give("a", 4.0)
    counters.want("a", 0.9)
    assert counters.deficit("a") == pytest.approx(-2.0)
    assert counters.deficit("b") == pytest.approx(2.0)


@given(st.lists(st.tuples(st.sampled_from(GROUPS), hostile_s, hostile_s), max_size=30), hostile_s)
def test_numbers_that_say_nothing_do_no_harm(
    entries: list[tuple[str, float | None, float | None]], most_owed_s: float | None
) -> None:
    counters = DeficitCounters(most_owed_s if most_owed_s is not None else nan)
    for group, share, work in entries:
        counters.want(group, share if share is not None else nan)
        counters.give(group, work if work is not None else nan)
        assert all(isfinite(counters.deficit(each)) for each in GROUPS)
    assert counters.deficit("nobody") == 0.0
    counters.rest("nobody")
