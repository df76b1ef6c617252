"""The state machines as tables: every state is reached, ends are ends, and nothing else happens."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from rm.applications.states import (
    APPLICATION_TRANSITIONS,
    ATTEMPT_TRANSITIONS,
    CONTAINER_TRANSITIONS,
    PUBLIC_STATE,
    AppStage,
    ContainerEvent,
    ContainerStage,
)
from rm.nodes.node import NODE_TRANSITIONS
from rm.transitions import Machine
from yaqd.model import NodeState, YarnApplicationAttemptState

Table = Mapping[tuple[Enum, Enum], Enum]

TABLES: list[tuple[Any, Enum, set[Enum], set[Enum]]] = [
    (APPLICATION_TRANSITIONS, AppStage.NEW, {AppStage.FINISHED, AppStage.FAILED, AppStage.KILLED}, set()),
    (
        ATTEMPT_TRANSITIONS,
        YarnApplicationAttemptState.NEW,
        {
            YarnApplicationAttemptState.FINISHED,
            YarnApplicationAttemptState.FAILED,
            YarnApplicationAttemptState.KILLED,
        },
        # Hadoop's names for steps that are one here
        {YarnApplicationAttemptState.SUBMITTED, YarnApplicationAttemptState.ALLOCATED_SAVING},
    ),
    (
        CONTAINER_TRANSITIONS,
        ContainerStage.ALLOCATED,
        {ContainerStage.COMPLETED, ContainerStage.EXPIRED, ContainerStage.RELEASED, ContainerStage.KILLED},
        set(),
    ),
    (NODE_TRANSITIONS, NodeState.NEW, set(), {NodeState.REBOOTED}),
]


@pytest.mark.parametrize(("table", "start", "ends", "unused"), TABLES)
def test_every_state_is_reached_and_ends_are_ends(
    table: Table, start: Enum, ends: set[Enum], unused: set[Enum]
) -> None:
    reached = {start}
    while True:
        more = {target for (state, _), target in table.items() if state in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(type(start)) - unused
    assert {state for state in reached if not any(s is state for s, _ in table)} == ends


def test_every_stage_of_an_application_has_a_public_name() -> None:
    assert set(PUBLIC_STATE) == set(AppStage) - {AppStage.FINAL_SAVING}


def test_illegal_event_is_logged_with_both_names_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine("container_1", CONTAINER_TRANSITIONS, ContainerStage.COMPLETED)
    assert not machine.advance(ContainerEvent.RELEASE)
    assert machine.state is ContainerStage.COMPLETED
    assert "event RELEASE does not belong to state COMPLETED" in caplog.text
