"""A ResourceManager killed under a command that waits: tried again, it ends with its job, or names it."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.cli_cluster import kill_resource_manager, started, waiting_yaq, yaq
from tez_adapter.client.follow import SubmittedJob
from yaqd.config import Configuration
from yaqd.model import ApplicationId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MAX_WAIT = "yarn.resourcemanager.connect.max-wait.ms"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    with started(tmp_path / "c") as directory:
        yield directory


def _waiting(cluster: Path, command: str, *options: str) -> "tuple[subprocess.Popen[str], str]":
    """`yaq run` of a command, waiting, and its application's id."""
    waiting, said = waiting_yaq("run", "--conf", cluster / "conf", *options, "--", "sh", "-c", command)
    application, verb = said.split()
    assert verb == "submitted"
    return waiting, application


def test_a_waiting_command_outlasts_it_or_names_its_application(cluster: Path, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = f"until [ -e {flag} ]; do sleep 0.1; done"
    patient, application = _waiting(cluster, command, "-D", f"{MAX_WAIT}=60000")
    hasty, other = _waiting(cluster, command, "-D", f"{MAX_WAIT}=1000")
    kill_resource_manager(cluster)

    _, said = hasty.communicate(timeout=60)
    assert hasty.returncode == 3, said
    assert "yaq: no ResourceManager at " in said
    assert f"{other} may go on, and does once the ResourceManager is back: yaq app status {other}" in said

    assert patient.stderr is not None
    line = "the ResourceManager does not answer, trying for 60 s\n"
    assert any(said == line for said in patient.stderr)
    assert yaq("cluster", "start", "--dir", cluster).returncode == 0
    flag.touch()
    _, said = patient.communicate(timeout=60)
    assert (patient.returncode, said.count(line)) == (0, 0), said
    assert f"{application} SUCCEEDED" in said
    with closing(SubmittedJob(Configuration.load(cluster / "conf"), ApplicationId.parse(other))) as left:
        assert left.wait(timeout_s=60).succeeded
