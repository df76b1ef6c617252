"""`yaq app logs` on a cluster whose nodes upload their logs, while an application runs and after its end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.cli_live import Yaq, yaq
from yaqd.cli.local.processes import processes_working_under

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("logs") / "c"
    remote = f"yarn.nodemanager.remote-app-log-dir={directory}/remote"
    done = yaq(
        *("cluster", "start", "--dir", directory, "--nodes", 2, "-D", "yarn.log-aggregation-enable=true", "-D", remote)
    )
    assert done.returncode == 0, done.stderr
    yield directory
    assert yaq("cluster", "stop", "--dir", directory).returncode == 0
    assert processes_working_under(directory) == []


@pytest.fixture
def on(directory: Path, tmp_path: Path) -> Yaq:
    return lambda *words: yaq(*words, conf=directory / "conf", cwd=tmp_path)


def test_what_a_command_wrote_is_there_while_and_after_it_moves(on: Yaq, directory: Path) -> None:
    done = on("run", "-n", "3", "--logs", "--", "sh", "-c", "echo hello; echo oops >&2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": stdout <==\nhello\n") == 3
    (application,) = json.loads(on("app", "list", "--all", "--json").stdout)
    # until the nodes have reported; each answer on the way is whole
    for _ in range(100):
        listed = json.loads(on("app", "logs", application["id"], "--file", "stderr", "--json").stdout)
        texts = [file["text"] for container in listed for file in container["files"]]
        assert texts.count("oops\n") == 3
        if not list((directory / "nodes").glob("*/logs/application_*")):
            break
    else:
        pytest.fail("the nodes keep their copies")
    assert len(list((directory / "remote").glob(f"*/bucket-logs-tfile/0001/{application['id']}/127.0.0.1_*"))) >= 1
    assert on("app", "logs", application["id"], "--list").stdout.count("stderr") == 4


def test_follow_from_the_first_line_to_the_last(on: Yaq, directory: Path, tmp_path: Path) -> None:
    waits = f"echo 1; until [ -e {tmp_path}/go ]; do sleep .05; done; echo 2; echo 3; echo 4"
    job = json.loads(on("run", "-n", "1", "--no-wait", "--json", "--", "sh", "-c", waits).stdout)
    words = (
        "app",
        "logs",
        "--conf",
        directory / "conf",
        job["application_id"],
        "--follow",
        "--file",
        "stdout",
        "--json",
    )
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        lines = [following.stdout.readline()]
        (tmp_path / "go").touch()
        lines += following.stdout.read().splitlines()
    assert following.returncode == 0
    pieces = [json.loads(line) for line in lines]
    assert "".join(piece["text"] for piece in pieces) == "1\n2\n3\n4\n"
    assert [piece["offset"] for piece in pieces] == sorted({piece["offset"] for piece in pieces})
    assert len(pieces) > 1


def test_logs_of_a_node_that_was_killed_are_uploaded_when_it_starts_again(tmp_path: Path) -> None:
    directory, go = tmp_path / "c", tmp_path / "go"
    settings = (
        "-D",
        "yarn.log-aggregation-enable=true",
        "-D",
        f"yarn.nodemanager.remote-app-log-dir={tmp_path}/remote",
    )
    start = ("cluster", "start", "--dir", directory, "--nodes", 1, *settings)
    assert yaq(*start).returncode == 0
    try:
        on: Yaq = lambda *words: yaq(*words, conf=directory / "conf", cwd=tmp_path)  # noqa: E731
        job = json.loads(on("run", "--no-wait", "--json", "--", "sh", "-c", f"echo early; touch {go}; sleep 60").stdout)
        _until(go.exists)
        daemons = json.loads(yaq("cluster", "status", "--dir", directory, "--json").stdout)["daemons"]
        os.kill(next(daemon["pid"] for daemon in daemons if daemon["name"] == "nodemanager-1"), signal.SIGKILL)
        yaq("cluster", "stop", "--dir", directory)
        assert not list((tmp_path / "remote").rglob("127.0.0.1_*"))
        assert yaq(*start).returncode == 0
        _until(lambda: bool(list((tmp_path / "remote").rglob("127.0.0.1_*"))))
        assert "early\n" in on("app", "logs", job["application_id"], "--file", "stdout").stdout
    finally:
        yaq("cluster", "stop", "--dir", directory)
    assert processes_working_under(directory) == []


def test_logs_are_read_from_nodes_that_were_stopped_and_started_at_other_ports(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    words = ("cluster", "start", "--dir", directory, "--nodes", 2)
    on: Yaq = lambda *words: yaq(*words, conf=directory / "conf", cwd=tmp_path)  # noqa: E731
    try:
        assert yaq(*words).returncode == 0
        assert on("run", "-n", "3", "--", "sh", "-c", "echo hello").returncode == 0
        (application,) = json.loads(on("app", "list", "--all", "--json").stdout)
        before = on("app", "logs", application["id"], "--list", "--json").stdout
        assert yaq("cluster", "stop", "--dir", directory).returncode == 0
        assert yaq(*words).returncode == 0
        done = on("app", "logs", application["id"])
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(": stdout <==\nhello\n") == 3
        # the application master's too, which no history file names
        after = on("app", "logs", application["id"], "--list", "--json").stdout
        assert _files(after) == _files(before)
        followed = on("app", "logs", application["id"], "--follow", "--file", "stdout")
        assert followed.stdout.count("hello\n") == 3
    finally:
        yaq("cluster", "stop", "--dir", directory)


def test_attempts_and_logs_of_before_a_restart_are_there_after_it(tmp_path: Path) -> None:
    directory, stop = tmp_path / "c", tmp_path / "stop"
    words = ("cluster", "start", "--dir", directory, "--nodes", 2)
    on: Yaq = lambda *words: yaq(*words, conf=directory / "conf", cwd=tmp_path)  # noqa: E731
    script = f'echo "said in $CONTAINER_ID" | tee {tmp_path}/ran.$$; until [ -e {stop} ]; do sleep .05; done'
    try:
        assert yaq(*words).returncode == 0
        job = json.loads(on("run", "-n", "2", "--no-wait", "--json", "--", "sh", "-c", script).stdout)
        _until(lambda: len(list(tmp_path.glob("ran.*"))) == 2)
        assert yaq("cluster", "stop", "--dir", directory).returncode == 0
        assert yaq(*words).returncode == 0
        _until(lambda: len(list(tmp_path.glob("ran.*"))) == 4)
        stop.touch()
        assert on("app", "logs", job["application_id"], "--follow").returncode == 0
        for _ in range(2):
            listed = json.loads(on("app", "logs", job["application_id"], "--json").stdout)
            assert {one["container"].split("_")[-2] for one in listed} == {"01", "02"}
            done = on("app", "logs", job["application_id"], "--file", "stdout")
            assert done.returncode == 0 and done.stdout.count("said in container_") == 4, done.stdout + done.stderr
            attempts = json.loads(on("app", "status", job["application_id"], "--json").stdout)["attempts"]
            assert [(a["attempt"], a["state"]) for a in attempts] == [(1, "FAILED"), (2, "FINISHED")]
            assert "ended with the ResourceManager" in attempts[0]["diagnostics"]
            assert yaq("cluster", "stop", "--dir", directory).returncode == 0
            assert yaq(*words).returncode == 0
    finally:
        yaq("cluster", "stop", "--dir", directory)


def _until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """What a container has begun to do tells nobody: it is looked for."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _files(listed: str) -> list[tuple[str, str, int]]:
    found = json.loads(listed)
    return sorted((one["container"], file["name"], file["bytes"]) for one in found for file in one["files"])
