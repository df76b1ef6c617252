"""A ResourceManager killed under a command that waits: tried again, it ends with its job, or names it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tez_adapter.follow import SubmittedJob
from yaqd.cli.local.processes import ProcessIdentity, wait_for_end
from yaqd.config import Configuration
from yaqd.model import ApplicationId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MAX_WAIT = "yarn.resourcemanager.connect.max-wait.ms"


def _yaq(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "c"
    started = _yaq("cluster", "start", "--dir", directory)
    assert started.returncode == 0, started.stderr
    yield directory
    assert _yaq("cluster", "stop", "--dir", directory).returncode == 0


def _waiting(cluster: Path, command: str, *options: str) -> "tuple[subprocess.Popen[str], str]":
    """`yaq run` of a command, waiting, and its application's id."""
    words = ("run", "--conf", str(cluster / "conf"), *options, "--", "sh", "-c", command)
    waiting = subprocess.Popen([sys.executable, "-m", "yaqd.cli", *words], stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    application, verb = waiting.stderr.readline().split()
    assert verb == "submitted"
    return waiting, application


def _kill_resource_manager(cluster: Path) -> None:
    found = json.loads(_yaq("cluster", "status", "--dir", cluster, "--json").stdout)
    (pid,) = (daemon["pid"] for daemon in found["daemons"] if daemon["name"] == "resourcemanager")
    dead = ProcessIdentity.of(pid)
    assert dead is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_for_end([dead], 5.0) == []


def test_a_waiting_command_outlasts_it_or_names_its_application(cluster: Path, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = f"until [ -e {flag} ]; do sleep 0.1; done"
    patient, application = _waiting(cluster, command, "-D", f"{MAX_WAIT}=60000")
    hasty, other = _waiting(cluster, command, "-D", f"{MAX_WAIT}=1000")
    _kill_resource_manager(cluster)

    _, said = hasty.communicate(timeout=60)
    assert hasty.returncode == 3, said
    assert "yaq: no ResourceManager at " in said
    assert f"{other} may go on, and does once the ResourceManager is back: yaq app status {other}" in said

    assert patient.stderr is not None
    line = "the ResourceManager does not answer, trying for 60 s\n"
    assert any(said == line for said in patient.stderr)
    assert _yaq("cluster", "start", "--dir", cluster).returncode == 0
    flag.touch()
    _, said = patient.communicate(timeout=60)
    assert (patient.returncode, said.count(line)) == (0, 0), said
    assert f"{application} SUCCEEDED" in said
    with closing(SubmittedJob(Configuration.load(cluster / "conf"), ApplicationId.parse(other))) as left:
        assert left.wait(timeout_s=60).succeeded
