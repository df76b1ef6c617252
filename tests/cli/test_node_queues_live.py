"""A real cluster whose nodes' queues are filled: what waited at a node that is lost runs elsewhere."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SETTINGS = {
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": "6",
    "yaq.queue.default-estimate": "2s",
    "yarn.nodemanager.resource.memory-mb": "1024",
    "yarn.nodemanager.resource.cpu-vcores": "64",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.app.mapreduce.am.resource.mb": "256",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "3000",
    "yaq.nm.out-of-turn-heartbeats": "false",
}
TASKS = 30


def command(conf: Path | None, *words: object) -> tuple[list[str], dict[str, str]]:
    environment = {key: value for key, value in os.environ.items() if key != "HADOOP_CONF_DIR"}
    if conf is not None:
        environment["HADOOP_CONF_DIR"] = str(conf)
    return [sys.executable, "-m", "yaqd.cli", *map(str, words)], environment


def yaq(conf: Path | None, *words: object) -> str:
    program, environment = command(conf, *words)
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "c"
    settings = [word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}")]
    yaq(None, "cluster", "start", "--dir", directory, "--nodes", 2, *settings)
    yield directory
    yaq(None, "cluster", "stop", "--dir", directory)


def containers(node: dict[str, Any]) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"http://{node['http_address']}/ws/v1/node/containers", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["containers"]["container"]
    return found


def waiting_without_master(nodes: list[dict[str, Any]], until: float) -> tuple[str, set[str]]:
    """A node that does not run the job's master and has some waiting: its id and theirs."""
    while time.monotonic() < until:
        for node in nodes:
            here = containers(node)
            waiting = {c["id"] for c in here if c["queue"] is not None}
            if len(waiting) > 3 and not any(c["id"].endswith("_01_000001") for c in here):
                return node["id"], waiting
    raise AssertionError("no container ever waited")


def node_process(directory: Path, node_id: str) -> int:
    """Who listens at the node's port."""
    status = json.loads(yaq(None, "cluster", "status", "--dir", directory, "--json"))
    (pid,) = [
        daemon["pid"]
        for daemon in status["daemons"]
        if daemon["name"].startswith("nodemanager")
        and f"as {node_id} with" in (directory / "logs" / f"{daemon['name']}.log").read_text()
    ]
    return int(pid)


def test_what_waited_at_a_lost_node_runs_elsewhere_and_never_there(cluster: Path, tmp_path: Path) -> None:
    conf, marks = cluster / "conf", tmp_path / "marks"
    marks.mkdir()
    task = tmp_path / "task.sh"
    task.write_text(f"#!/bin/bash\nsleep 1\necho x >> {marks}/$CONTAINER_ID\n")
    task.chmod(0o755)
    nodes = json.loads(yaq(conf, "node", "list", "--json"))
    program, environment = command(conf, "run", "-n", TASKS, "--memory", 256, "--", task)
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as job:
        lost, waiting = waiting_without_master(nodes, time.monotonic() + 60)
        os.kill(node_process(cluster, lost), signal.SIGKILL)
        waiting -= {mark.name for mark in marks.iterdir()}  # started between the look and the kill
        job.communicate(timeout=100)
    assert job.returncode == 0
    done = {mark.name: mark.read_text() for mark in marks.iterdir()}
    assert len(done) >= TASKS and set(done.values()) == {"x\n"}
    assert not waiting & done.keys()
