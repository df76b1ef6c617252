"""The scheduler is told things through `handle`, and asked through `facts`: nobody outside reaches into its parts."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rm.scheduler.decisions import Allocate
from rm.scheduler.events import Asked, Elapsed, WantedElsewhere
from tests.rm.rm_kept_nodes import ONE, SPARE, Life
from yaqd.model import ApplicationId
from yaqd.policies.asks.rows import AskRow

ROOT = Path(__file__).parents[2]
#: what others may use of a scheduler
DOORS = {"handle", "facts", "maximum_allocation", "normalized", "parts", "has_waiting", "validate", "log"}


def reached_through(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Attribute) or node.attr in DOORS:
            continue
        owner = node.value
        name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        if name == "scheduler":
            yield f"{path.relative_to(ROOT)}:{node.lineno} uses scheduler.{node.attr}"


@pytest.mark.slow
def test_nobody_reaches_through_the_scheduler() -> None:
    files = [path for room in ("rm", "yaqd") for path in (ROOT / room).rglob("*.py")]
    outside = [path for path in files if "scheduler" not in path.relative_to(ROOT).parts]
    assert len(outside) > 100
    assert [line for path in outside for line in reached_through(path)] == []


def test_a_question_about_an_application_that_is_not_there_leaves_nothing_behind() -> None:
    life = Life(2)
    facts, gone = life.scheduler.facts, ApplicationId(1, 999)
    known = dict(life.scheduler.node_queues.jobs._jobs)
    assert facts.elsewhere(gone) == facts.held(gone) == facts.estimates(gone) == {}
    assert facts.job_version(gone) == 0 and facts.application(gone) is None
    assert life.scheduler.node_queues.jobs._jobs == known


def test_who_asks_which_nodes_are_ranked_changes_no_decision() -> None:
    """The same events, with questions between them and without; it was asking that kept a node for somebody."""

    def decided(*, asks: bool) -> list[object]:
        life, decisions = Life(4), list[object]()
        starving = life.app()
        for step in range(60):
            life.now += 1.0
            if asks:
                for _ in range(3):
                    life.scheduler.facts.ranked(starving)
                assert life.scheduler.facts.queue_limit
            decisions += life.tell(WantedElsewhere(starving.application_id, ((1, 2),)))
            if step % 7 == 0:
                decisions += life.reports_opportunistic(life.nodes[step % 4], 5, 9000, 10)
            if step % 10 == 0:
                decisions += life.tell(Elapsed())
            if step == 50:
                rows = (AskRow(1, -1, "*", ONE, 1, True, SPARE),)
                decisions += life.tell(Asked(life.app(tolerates_waiting=True), rows))
        return decisions

    plain, asked = decided(asks=False), decided(asks=True)
    assert plain == asked and any(isinstance(one, Allocate) for one in plain)
