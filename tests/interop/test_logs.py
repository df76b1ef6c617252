"""Aggregated logs across the border: ours read by stock programs, stock ones read by `yaq`, byte for byte."""

import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.ours import yaq_program
from benchmarks.stock.clients import ClientRun, StockClients
from benchmarks.stock.daemons import StockHdfs, StockYarn

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
#: what each container of the distributed shell writes: several lines, no newline at the end, not only ASCII
SCRIPT = "echo first line; printf 'Umlaut \\303\\274 %s' \"$CONTAINER_ID\"; seq 1 20000 >&2; exit 0\n"
NUMBERS = "".join(f"{number}\n" for number in range(1, 20001))
SMALL = ("-container_memory", "128", "-master_memory", "256")


def _stdout(container: str) -> str:
    return f"first line\nUmlaut ü {container}"


def _application(run: ClientRun) -> str:
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None, run.stdout + run.stderr
    return found[0]


def _shell(clients: StockClients, script: Path, *more: str) -> str:
    script.write_text(SCRIPT)
    run = clients.distributed_shell("-shell_script", str(script), "-num_containers", "2", *SMALL, *more).checked()
    return _application(run)


def _await(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.1)


def _yaq(conf: Path, *words: str) -> Any:
    done = subprocess.run(
        [yaq_program(), *words, "--json"],
        env={**os.environ, "HADOOP_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _await_upload(conf: Path, application: str) -> None:
    _await(lambda: bool(_yaq(conf, "app", "status", application)["logs"] == "uploaded"), 60)


def _contents(printed: str) -> dict[tuple[str, str], str]:
    """What `yarn logs` printed, by container and file."""
    pattern = re.compile(
        r"Container: (container_\S+) on \S+\nLogAggregationType: \w+\n=+\n"
        r"LogType:(\S+)\n[^\n]+\nLogLength:(\d+)\nLogContents:\n"
    )
    found = {}
    for heading in pattern.finditer(printed):
        data = printed[heading.end() :].encode()
        found[heading[1], heading[2]] = data[: int(heading[3])].decode()
    return found


def _get(url: str) -> tuple[str, str]:
    """The text and the address that it came from in the end."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode(), answer.url


def _yaq_logs(conf: Path, *words: str) -> dict[tuple[str, str], str]:
    return {
        (container["container"], file["name"]): file["text"]
        for container in _yaq(conf, "app", "logs", *words)
        for file in container["files"]
    }


@pytest.fixture(scope="module")
def application(interop: InteropCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A finished distributed shell of two containers, its logs uploaded."""
    application = _shell(interop.clients, tmp_path_factory.mktemp("script") / "script.sh")
    _await_upload(interop.ours.conf_dir, application)
    shown = interop.clients.yarn("application", "-status", application).checked().stdout
    assert "Log Aggregation Status : SUCCEEDED" in shown
    return application


def _written(logs: dict[tuple[str, str], str]) -> list[str]:
    """The containers that ran the script; fails unless each wrote exactly what it should."""
    containers = sorted(container for container, name in logs if name == "stdout" and not container.endswith("_000001"))
    for container in containers:
        assert logs[container, "stdout"] == _stdout(container)
        assert logs[container, "stderr"] == NUMBERS
    return containers


def test_yarn_logs_and_yaq_show_what_containers_wrote(interop: InteropCluster, application: str) -> None:
    printed = interop.clients.yarn("logs", "-applicationId", application).checked().stdout
    theirs = _contents(printed)
    assert len(_written(theirs)) == 2
    ours = _yaq_logs(interop.ours.conf_dir, application)
    assert _written(ours) == _written(theirs)
    assert {key: text for key, text in ours.items() if text} == {key: theirs[key] for key, text in ours.items() if text}


def test_yarn_logs_of_masters_and_lists(interop: InteropCluster, application: str) -> None:
    master = interop.clients.yarn("logs", "-applicationId", application, "-am", "1").checked().stdout
    assert {container[-7:] for container, _ in _contents(master)} == {"_000001"}
    listed = interop.clients.yarn("logs", "-applicationId", application, "-show_application_log_info").checked().stdout
    assert len(re.findall(r"Container: container_\S+ on \S+", listed)) == 3


def test_history_server_shows_logs_and_nodes_send_browsers_there(interop: InteropCluster, application: str) -> None:
    attempt = application.replace("application", "container")
    container = f"{attempt}_01_000002"
    listed = interop.ours.yaq("app", "logs", application, "--list", "--container", container).stdout
    node = listed.splitlines()[1].split()[1]
    text, _ = _get(f"{interop.history_web}/ws/v1/history/containerlogs/{container}/stdout?nm.id={node}")
    assert f"LogContents:\n{_stdout(container)}" in text
    (web,) = [
        found["http_address"]
        for found in json.loads(interop.ours.yaq("node", "list", "--json").stdout)
        if found["id"] == node
    ]
    page, address = _get(f"http://{web}/node/containerlogs/{container}/root/stdout/?start=0")
    assert address.startswith(f"{interop.history_web}/jobhistory/logs/{node}/{container}/{container}/root/stdout")
    assert f"first line\nUmlaut &uuml; {container}</pre>" in page


@pytest.mark.full
def test_a_mapreduce_jobs_logs_at_the_history_server(interop: InteropCluster) -> None:
    application = _application(interop.clients.example("pi", "1", "1").checked())
    _await_upload(interop.ours.conf_dir, application)
    job = application.replace("application", "job")
    history = f"{interop.history_web}/ws/v1/history/mapreduce/jobs/{job}/tasks/{job.replace('job', 'task')}_m_000000"
    (attempt,) = json.loads(_get(f"{history}/attempts")[0])["taskAttempts"]["taskAttempt"]
    rest = f"{interop.history_web}/ws/v1/history/containers/{attempt['assignedContainerId']}/logs"
    assert '"syslog"' in _get(rest)[0]
    page, _ = _get(f"{interop.history_web}/jobhistory/attempts/{job}/m/SUCCESSFUL")
    link = re.search(r'(/jobhistory/logs/[^"\'\\ ]+)', page)
    assert link is not None, page[:2000]
    assert "Task" in _get(f"{interop.history_web}{link[1]}/syslog/?start=0")[0]


@pytest.mark.full
def test_logs_of_a_running_application(interop: InteropCluster, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text("echo begun; while [ ! -e GO ]; do sleep 0.2; done; echo over\n".replace("GO", f"{tmp_path}/go"))
    words = ("-shell_script", str(script), "-num_containers", "1", *SMALL)
    main = "org.apache.hadoop.yarn.applications.distributedshell.Client"
    jar = str(interop.jars.jar("hadoop-yarn-applications-distributedshell"))
    before = set(_known(interop))
    with _Background(interop, main, ["-jar", jar, *words]) as running:
        _await(lambda: bool(set(_known(interop)) - before))
        (application,) = set(_known(interop)) - before
        _await(lambda: "begun\n" in _yaq_logs(interop.ours.conf_dir, application).values())
        printed = interop.clients.yarn("logs", "-applicationId", application).checked().stdout
        assert "begun\n" in _contents(printed).values()
        assert "belongs to a running container" in printed
        assert "begun\nover\n" not in printed
        (tmp_path / "go").touch()
        assert running.wait(60) == 0
    followed = interop.ours.yaq("app", "logs", application, "--follow", "--file", "stdout").stdout
    assert "begun\nover\n" in followed


def _known(interop: InteropCluster) -> Iterator[str]:
    for found in json.loads(interop.ours.yaq("app", "list", "--all", "--json").stdout):
        yield found["id"]


class _Background:
    """A stock client that runs while the test does something else."""

    def __init__(self, interop: InteropCluster, main: str, args: list[str]) -> None:
        from benchmarks.stock.processes import CLIENT_JVM, java_command, java_environment

        self._command = java_command(interop.jars, interop.clients.conf_dir, CLIENT_JVM, main, args)
        self._environment = java_environment(interop.jars, interop.clients.conf_dir)

    def __enter__(self) -> "subprocess.Popen[bytes]":
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.full
def test_another_users_files_are_that_users(interop: InteropCluster, tmp_path: Path) -> None:
    interop.clients.fs("-mkdir", "-p", "/user/bob").checked()
    interop.clients.fs("-chown", "bob", "/user/bob").checked()
    bob = StockClients(interop.jars, interop.ours.conf_dir, user="bob")
    application = _shell(bob, tmp_path / "script.sh")
    _await_upload(interop.ours.conf_dir, application)
    listing = interop.clients.fs("-ls", "-R", "/tmp/logs/bob").checked().stdout
    rows = [line.split() for line in listing.splitlines()]
    assert {row[2] for row in rows} == {"bob"}
    assert {row[0] for row in rows} == {"drwxrwx---", "-rw-r-----"}
    assert len(_written(_contents(bob.yarn("logs", "-applicationId", application).checked().stdout))) == 2
    refused = StockClients(interop.jars, interop.ours.conf_dir, user="eve").yarn("logs", "-applicationId", application)
    assert "first line" not in refused.stdout


@pytest.mark.full
def test_logs_wait_for_a_namenode_that_is_away(interop: InteropCluster, hdfs: StockHdfs, tmp_path: Path) -> None:
    script = tmp_path / "wait.sh"
    script.write_text(f"echo early; touch {tmp_path}/runs; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done\n")
    command = [yaq_program(), "run", "-n", "1", "--", "sh", str(script)]
    environment = {**os.environ, "HADOOP_CONF_DIR": str(interop.ours.conf_dir)}
    before = set(_known(interop))
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        _await((tmp_path / "runs").exists)
        (application,) = set(_known(interop)) - before
        hdfs.daemons["namenode"].stop()
        try:
            interop.ours.yaq("app", "kill", application)
            nodes = json.loads(interop.ours.yaq("node", "list", "--json").stdout)
            assert [node["state"] for node in nodes] == ["RUNNING", "RUNNING"]
        finally:
            hdfs.start_namenode()
        run.wait(60)
    _await_upload(interop.ours.conf_dir, application)
    assert "early\n" in _yaq_logs(interop.ours.conf_dir, application).values()


def test_yaq_reads_what_stock_nodes_have_uploaded_and_what_they_still_have(
    stock_yarn: StockYarn, tmp_path: Path
) -> None:
    (tmp_path / "script.sh").write_text(SCRIPT)
    environment = {**os.environ, "HADOOP_CONF_DIR": str(stock_yarn.conf_dir)}
    command = [yaq_program(), "run", "-n", "2", "--json", "--", "bash", str(tmp_path / "script.sh")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    application = _application(ClientRun("run", done.returncode, done.stdout, done.stderr, 0))
    # on their way from the nodes' disks to the file system: whole at any moment
    for _ in range(2):
        assert len(_written(_yaq_logs(stock_yarn.conf_dir, application))) == 2
    clients = StockClients(stock_yarn.jars, stock_yarn.conf_dir)
    _await_upload(stock_yarn.conf_dir, application)
    ours = _yaq_logs(stock_yarn.conf_dir, application)
    assert len(_written(ours)) == 2
    theirs = _contents(clients.yarn("logs", "-applicationId", application).checked().stdout)
    launching = ("prelaunch.out", "prelaunch.err", "launch_container.sh", "directory.info")
    ours |= _yaq_logs(stock_yarn.conf_dir, application, *(word for name in launching for word in ("--file", name)))
    assert {key: text for key, text in ours.items() if text} == {key: text for key, text in theirs.items() if text}
