"""Stock distributed shell on our daemons: what it ships, how it retries, times out and is killed."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.clients import ClientRun
from tests.interop.interop_checks import application_of, final_state
from tests.interop.interop_master import await_value

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "distributed shell"
SMALL = ("-container_memory", "128", "-master_memory", "256")


def test_command_runs_in_every_container(interop: InteropCluster, tmp_path: Path) -> None:
    command = f"touch {tmp_path}/$CONTAINER_ID"
    run = interop.clients.distributed_shell("-shell_command", command, "-num_containers", "3", *SMALL).checked()
    number = application_of(run).removeprefix("application_")
    assert len(sorted(tmp_path.glob(f"container_*{number}_01_*"))) == 3


@pytest.mark.full
def test_failing_command_is_reported(interop: InteropCluster) -> None:
    run = interop.clients.distributed_shell("-shell_command", "exit 3", "-num_containers", "1", *SMALL)
    assert run.exit_code != 0
    assert final_state(interop, application_of(run)) == "FAILED"


@pytest.mark.representative
def test_script_and_its_arguments_are_shipped(interop: InteropCluster, tmp_path: Path) -> None:
    script = tmp_path / "hello.sh"
    script.write_text(f"#!/bin/bash\necho $1 $FROM > {tmp_path}/$CONTAINER_ID\n")
    options = ("-shell_script", str(script), "-shell_args", "shipped", "-shell_env", "FROM=client")
    interop.clients.distributed_shell(*options, "-num_containers", "2", *SMALL).checked()
    assert [said.read_text() for said in tmp_path.glob("container_*")] == ["shipped client\n"] * 2


@pytest.mark.full
def test_files_are_shipped(interop: InteropCluster, tmp_path: Path) -> None:
    names = ("one.txt", "two.txt")
    for name in names:
        (tmp_path / name).write_text(f"this is {name}\n")
    files = ",".join(str(tmp_path / name) for name in names)
    command = f"cat one.txt two.txt | tee {tmp_path}/$CONTAINER_ID"
    options = ("-shell_command", command, "-localize_files", files, "-num_containers", "2", *SMALL)
    interop.clients.distributed_shell(*options).checked()
    assert [said.read_text() for said in tmp_path.glob("container_*")] == ["this is one.txt\nthis is two.txt\n"] * 2


def _counting_script(folder: Path, then: str) -> tuple[str, ...]:
    """Notes each run in a file, has their number in RUNS, and ends as `then` says."""
    script = folder / "count.sh"
    script.write_text(f"#!/bin/bash\necho run >> {folder}/runs\nRUNS=$(wc -l < {folder}/runs)\n{then}\n")
    return ("-shell_script", str(script), "-num_containers", "1")


@pytest.mark.full
def test_container_is_run_again_as_its_retry_policy_says(interop: InteropCluster, tmp_path: Path) -> None:
    script = _counting_script(tmp_path, "test $RUNS -ge 3")
    policy = ("-container_retry_policy", "1", "-container_max_retries", "5", "-container_retry_interval", "100")
    interop.clients.distributed_shell(*script, *policy, *SMALL).checked()
    assert (tmp_path / "runs").read_text() == "run\n" * 3


@pytest.mark.full
def test_retries_are_for_the_named_exit_codes_alone(interop: InteropCluster, tmp_path: Path) -> None:
    script = _counting_script(tmp_path, "test $RUNS -ge 2 || exit 4; exit 5")
    policy = ("-container_retry_policy", "2", "-container_retry_error_codes", "4", "-container_max_retries", "9")
    assert interop.clients.distributed_shell(*script, *policy, *SMALL).exit_code != 0
    assert (tmp_path / "runs").read_text() == "run\n" * 2


@pytest.mark.full
def test_opportunistic_containers_are_asked_for_and_come_where_the_feature_is_off(interop: InteropCluster) -> None:
    kind = ("-container_type", "OPPORTUNISTIC")
    interop.clients.distributed_shell("-shell_command", "true", "-num_containers", "4", *kind, *SMALL).checked()


@pytest.mark.full
def test_client_kills_what_takes_too_long(interop: InteropCluster) -> None:
    timeout = ("-timeout", "6000")
    run = interop.clients.distributed_shell("-shell_command", "sleep 300", "-num_containers", "1", *timeout, *SMALL)
    assert run.exit_code != 0
    assert final_state(interop, application_of(run)) == "KILLED"


class RunningShell:
    """A distributed shell that a thread has submitted, until it runs."""

    def __init__(self, interop: InteropCluster, name: str, *options: str) -> None:
        self._runs: list[ClientRun] = []
        arguments = ("-appname", name, *options, *SMALL)
        self._thread = threading.Thread(target=lambda: self._runs.append(interop.clients.distributed_shell(*arguments)))
        self._thread.start()

        def running() -> str | None:
            listing = interop.clients.yarn("application", "-list").checked().stdout
            found = re.search(rf"(application_\d+_\d+)\s+{name}.*RUNNING", listing)
            return found[1] if found else None

        self.application = await_value("the application", running)

    def ended(self) -> ClientRun:
        self._thread.join(60)
        (run,) = self._runs
        return run


@pytest.mark.full
@pytest.mark.parametrize("end", ["kill", "lifetime"])
def test_running_application_is_ended_by(end: str, interop: InteropCluster) -> None:
    shell = RunningShell(interop, f"until-{end}", "-shell_command", "sleep 300", "-num_containers", "1")
    how: dict[str, Callable[[], ClientRun]] = {
        "kill": lambda: interop.clients.yarn("application", "-kill", shell.application),
        "lifetime": lambda: interop.clients.yarn("application", "-appId", shell.application, "-updateLifetime", "1"),
    }
    how[end]().checked()
    assert shell.ended().exit_code != 0
    assert final_state(interop, shell.application) == "KILLED"
