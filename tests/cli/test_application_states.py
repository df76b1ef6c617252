"""What `yaq app list --state` finds, and what it says when that is nothing."""

import dataclasses

import pytest

from tez_adapter.client.rm_client import ApplicationReport, _application
from yaqd.cli.applications.states import CHOICES, matches, none_found, states_to_ask_for
from yaqd.model import FinalApplicationStatus, YarnApplicationState
from yaqd.proto import yarn_common_pb2 as common


def report(state: str, final: str) -> ApplicationReport:
    empty = _application(common.ApplicationReport(yarn_application_state=common.RUNNING))
    return dataclasses.replace(empty, state=YarnApplicationState[state], final_status=FinalApplicationStatus[final])


@pytest.mark.parametrize(
    ("state", "final", "found_by"),
    [
        ("RUNNING", "UNDEFINED", {"RUNNING"}),
        ("FINISHED", "SUCCEEDED", {"FINISHED", "SUCCEEDED"}),
        ("FINISHED", "KILLED", {"FINISHED", "KILLED"}),
        ("FINISHED", "FAILED", {"FINISHED", "FAILED"}),
        ("KILLED", "KILLED", {"KILLED"}),
        ("FAILED", "FAILED", {"FAILED"}),
    ],
)
def test_states_and_final_statuses_find_an_application(state: str, final: str, found_by: set[str]) -> None:
    application = report(state, final)
    assert {name for name in CHOICES if matches(application, [name])} == found_by
    # the ResourceManager is asked for it by each of them
    assert all(application.state in states_to_ask_for([name]) for name in found_by)


def test_only_what_can_match_is_asked_for() -> None:
    assert states_to_ask_for([]) == []
    assert states_to_ask_for(["RUNNING"]) == [YarnApplicationState.RUNNING]
    assert states_to_ask_for(["SUCCEEDED"]) == [YarnApplicationState.FINISHED]


def test_an_empty_list_names_the_filters() -> None:
    assert none_found({"state": (), "user": ()}, show_all=True) == "no applications"
    assert none_found({"state": ()}, show_all=False) == "no applications wait or run (--all: ended)"
    assert none_found({"state": ("KILLED", "FAILED")}, show_all=False) == (
        "no application matches --state KILLED --state FAILED"
    )
    assert none_found({"state": (), "user": ("bob",), "queue": ("a",)}, show_all=False) == (
        "no application that waits or runs matches --user bob --queue a (--all: ended)"
    )
    assert none_found({"user": ("bob",)}, show_all=True) == "no application matches --user bob"
