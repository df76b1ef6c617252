"""The stock `yarn` command against our ResourceManager: what it prints, and how it fails."""

import re
import time

import pytest

from benchmarks.interop_cluster import InteropCluster

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "yarn command"


@pytest.fixture(scope="module")
def application(interop: InteropCluster) -> str:
    """A finished application of one master and one container."""
    run = interop.clients.distributed_shell(
        *("-shell_command", "true", "-num_containers", "1", "-container_memory", "128", "-master_memory", "256")
    ).checked()
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None
    return found[0]


def _rows(printed: str, start: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.strip().startswith(start)]


def test_nodes(interop: InteropCluster) -> None:
    listing = interop.clients.yarn("node", "-list").checked().stdout
    assert "Total Nodes:2" in listing
    nodes = _rows(listing, "127.0.0.")
    assert [row[1] for row in nodes] == ["RUNNING", "RUNNING"]
    status = interop.clients.yarn("node", "-status", nodes[0][0]).checked().stdout
    assert f"Node-Id : {nodes[0][0]}" in status
    assert "Memory-Capacity : 4096MB" in status
    assert "CPU-Capacity : 4 vcores" in status


@pytest.mark.representative
def test_application_its_attempt_and_its_containers(interop: InteropCluster, application: str) -> None:
    listing = interop.clients.yarn("application", "-list", "-appStates", "FINISHED").checked().stdout
    assert application in [row[0] for row in _rows(listing, "application_")]
    status = interop.clients.yarn("application", "-status", application).checked().stdout
    for line in ("State : FINISHED", "Final-State : SUCCEEDED", "Progress : 100%", "Application-Type : YARN"):
        assert line in status
    state, deadline = "FINISHING", time.monotonic() + 60.0
    while state == "FINISHING" and time.monotonic() < deadline:  # its master has said goodbye, and its process ends
        ((attempt, state, container, *_),) = _rows(
            interop.clients.yarn("applicationattempt", "-list", application).checked().stdout, "appattempt_"
        )
    assert (state, attempt.split("_")[1]) == ("FINISHED", application.split("_")[1])
    assert container.endswith("_01_000001")


def test_queue(interop: InteropCluster) -> None:
    status = interop.clients.yarn("queue", "-status", "default").checked().stdout
    for line in ("Queue Name : default", "State : RUNNING", "Capacity : 100.00%", "Maximum Capacity : 100.00%"):
        assert line in status


def test_queues_and_nodes_are_refreshed(interop: InteropCluster) -> None:
    interop.clients.yarn("rmadmin", "-refreshQueues").checked()
    interop.clients.yarn("rmadmin", "-refreshNodes").checked()


def test_unknown_application_is_told_as_hadoop_tells_it(interop: InteropCluster) -> None:
    run = interop.clients.yarn("application", "-status", "application_1_0001")
    assert run.exit_code == 255  # stock ResourceManager: the same
    assert "doesn't exist in RM" in run.stdout + run.stderr
