"""What a ResourceManager's orders say to a node's queue."""

import math
from typing import Any

import pytest

from nm.node_queue import JobsReported, SettingsChanged
from nm.node_queue_wire import NodeQueueCommands, task_facts
from yaqd.model import ApplicationId
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.order import Ordering
from yaqd.proto import yarn_server_pb2 as server


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({}, JobFacts()),
        ({"remaining_work_ms": 5000, "remaining_tasks": 3, "critical_path_ms": 2500}, JobFacts(5.0, 3, 2.5)),
        ({"remaining_work_ms": -1, "remaining_tasks": -1, "critical_path_ms": -1}, JobFacts()),
    ],
)
def test_what_is_left_of_a_job(fields: dict[str, Any], facts: JobFacts) -> None:
    (event,) = NodeQueueCommands(max_length=9).events(server.NodeQueueOrders(jobs=[server.JobFacts(**fields)]))
    assert isinstance(event, JobsReported)
    assert event.jobs[0].facts == facts


def test_an_order_comes_as_it_was_named() -> None:
    said = Ordering("srjf+pack", 5.0, 2.0, "user")
    settings = server.NodeQueueSettings(
        enabled=True, max_queued=3, order=said.name, scope=said.scope, starve_ms=5000, starve_ratio=2.0
    )
    (event,) = NodeQueueCommands(max_length=9).events(server.NodeQueueOrders(settings=settings))
    assert isinstance(event, SettingsChanged)
    assert event.settings.ordering == said


@pytest.mark.parametrize(("scope", "taken"), [("queue", "queue"), ("user", "user"), ("", "all"), ("moon", "all")])
def test_one_that_nobody_knows_leaves_the_turns_alone(scope: str, taken: str) -> None:
    settings = server.NodeQueueSettings(enabled=True, order="by-luck", scope=scope, starve_ms=5000, starve_ratio=2.0)
    (event,) = NodeQueueCommands(max_length=9).events(server.NodeQueueOrders(settings=settings))
    assert isinstance(event, SettingsChanged)
    assert event.settings.ordering == Ordering("fifo", 5.0, 2.0, taken)


@pytest.mark.parametrize(("said_ms", "most_s"), [(None, math.inf), (2500, 2.5), (0, 0.1), (-(2**62), 0.1)])
def test_a_token_says_how_long_it_may_wait(said_ms: int | None, most_s: float) -> None:
    token = server.ContainerTokenIdentifier(yaq_task=server.TaskFacts(most_wait_ms=said_ms))
    assert task_facts(token, ApplicationId(1, 1)).most_wait_s == most_s


@pytest.mark.parametrize(("said_ms", "waited_s"), [(None, 0.0), (2500, 2.5), (-(2**62), 0.0)])
def test_a_token_says_how_long_its_task_waited_elsewhere(said_ms: int | None, waited_s: float) -> None:
    token = server.ContainerTokenIdentifier(yaq_task=server.TaskFacts(waited_ms=said_ms))
    assert task_facts(token, ApplicationId(1, 1)).waited_s == waited_s


@pytest.mark.parametrize(
    ("said_ms", "estimate_s"), [(None, None), (0, 0.0), (2500, 2.5), (-1, None), (2**63 - 1, None), (-(2**63), None)]
)
def test_an_estimate_that_cannot_be_is_none(said_ms: int | None, estimate_s: float | None) -> None:
    token = server.ContainerTokenIdentifier(yaq_task=server.TaskFacts(estimate_ms=said_ms))
    assert task_facts(token, ApplicationId(1, 1)).estimate == estimate_s
    job = server.JobFacts(estimates=[server.StageEstimate(priority=19, estimate_ms=said_ms)])
    (event,) = NodeQueueCommands(max_length=9).events(server.NodeQueueOrders(jobs=[job]))
    assert isinstance(event, JobsReported) and event.jobs[0].estimates == {19: estimate_s}
