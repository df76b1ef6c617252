"""What the commands tell of an application that the ResourceManager does not let the user view."""

import json
from collections.abc import Callable
from types import TracebackType

import pytest
from click.testing import CliRunner, Result

import yaqd.cli.client
from tez_adapter.client.rm_client import ApplicationReport, _application
from yaqd.cli.app import yaq
from yaqd.proto import yarn_common_pb2 as pb

APP = "application_1700000000000_0007"


def hidden() -> pb.ApplicationReport:
    """As a ResourceManager, ours or stock, answers whoever may not view it."""
    message = pb.ApplicationReport(
        user="alice",
        queue="root.default",
        name="secret",
        applicationType="YAQ",
        host="N/A",
        rpc_port=-1,
        diagnostics="N/A",
        trackingUrl="N/A",
        yarn_application_state=pb.RUNNING,
        startTime=1,
        finishTime=2,
    )
    message.applicationId.id, message.applicationId.cluster_timestamp = 7, 1700000000000
    message.currentApplicationAttemptId.attemptId = -1
    message.app_resource_Usage.num_used_containers = -1
    return message


class Rm:
    """Answers as the ResourceManager's client does."""

    user = "bob"

    def __enter__(self) -> "Rm":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def report(self, application_id: object) -> ApplicationReport:
        return _application(hidden())

    def applications(self, **_: object) -> list[ApplicationReport]:
        return [_application(hidden())]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setattr(yaqd.cli.client, "rm_client", lambda conf: Rm())
    return lambda *words: CliRunner().invoke(yaq, ["app", *words])


@pytest.mark.parametrize("words", [(), ("--json",), ("--list",), ("--follow",), ("--file", "stdout")])
def test_logs_are_refused_and_not_said_to_be_missing(run: Callable[..., Result], words: tuple[str, ...]) -> None:
    result = run("logs", APP, *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"yaq: bob may not view {APP}, which is alice's")


def test_the_status_names_what_is_kept_back(run: Callable[..., Result]) -> None:
    result = run("status", APP)
    assert result.exit_code == 0, result.output
    labels = [line.split("  ")[0].rstrip(":") for line in result.stdout.splitlines()]
    assert labels[-1] == "not shown" and "state" in labels
    assert not {"progress", "in use", "used", "tracking", "logs", "diagnostics"} & set(labels)
    assert "bob may not view it" in result.stdout


def test_json_has_null_for_it(run: Callable[..., Result]) -> None:
    shown = json.loads(run("status", APP, "--json").stdout)
    assert (shown["may_view"], shown["name"], shown["progress"], shown["logs"]) == (False, "secret", None, None)
    (listed,) = json.loads(run("list", "--json").stdout)
    assert listed["containers"] is None
    assert "0%" not in run("list").stdout
