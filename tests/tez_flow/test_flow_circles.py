"""Steps that wait for what comes after their own tasks: which get tasks of their own, and that no more do."""

from collections.abc import Iterator
from typing import Any

import pytest

from tez_adapter.flow import plan
from tez_adapter.flow.plan import plan_flow
from yaqd.mapreduce import Flow, Job
from yaqd.mapreduce.flow import NODES_MAX


class Count(Job):
    def reduce(self, key: Any, values: Any) -> Iterator[tuple[Any, Any]]:
        yield key, sum(values)


class First(Job):
    pass


class Second(Job):
    pass


def begun(flow: Flow) -> list[str]:
    """Return the steps that stages begin with, but for those that count."""
    heads = [flow.nodes[stage.head] for stage in plan_flow(flow).stages]
    return [node.name for node in heads if node.job not in (None, Count)]


def test_many_steps_that_wait_for_one_total_are_set_apart_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[set[int]] = []

    class Counted(plan._Planner):
        def __init__(self, flow: Flow, apart: set[int]) -> None:
            made.append(set(apart))
            super().__init__(flow, apart)

    monkeypatch.setattr(plan, "_Planner", Counted)
    flow = Flow()
    words = flow.read("in")
    total, many = words.then(Count), (NODES_MAX - 2) // 2
    for number in range(many):
        words.then(First, sides={"total": total}).write(f"out{number}")
    assert begun(flow) == ["First"] * many
    assert [len(apart) for apart in made] == [0, many]


def test_of_two_steps_that_wait_for_each_other_one_is_set_apart() -> None:
    flow = Flow()
    one, two = flow.read("one"), flow.read("two")
    of_one, of_two = one.then(Count), two.then(Count)
    one.then(First, sides={"total": of_two}).write("a")
    two.then(Second, sides={"total": of_one}).write("b")
    assert begun(flow) == ["First"]


def test_steps_behind_one_that_is_set_apart_go_with_it() -> None:
    flow = Flow()
    words = flow.read("in")
    total = words.then(Count)
    first = words.then(First, sides={"total": total})
    for number in range(3):
        first.then(Second, sides={"total": total}).write(f"out{number}")
    assert begun(flow) == ["First"]


def test_a_step_that_waits_for_nothing_of_its_own_stays_where_it_is() -> None:
    flow = Flow()
    words, other = flow.read("in"), flow.read("other")
    total = words.then(Count)
    total.then(Second, sides={"other": other}).write("a")
    words.then(First, sides={"total": total}).write("b")
    assert begun(flow) == ["First"]


def test_each_of_a_chain_that_waits_for_a_total_of_the_one_before_is_set_apart() -> None:
    flow = Flow()
    stream = flow.read("in")
    for _ in range(20):
        stream = stream.then(First, sides={"total": stream.then(Count)})
    stream.write("out")
    assert begun(flow) == ["First"] * 20
