"""A cluster of real daemons as a test has it: started and stopped by the command, its ResourceManager killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from yaqd.cli.local.processes import ProcessIdentity, wait_for_end


def yaq(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def waiting_yaq(*words: object) -> "tuple[subprocess.Popen[str], str]":
    """A command that waits for its application, and the first line that it says."""
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    waiting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    return waiting, waiting.stderr.readline()


@contextmanager
def started(directory: Path, *settings: str, nodes: int = 1) -> Iterator[Path]:
    words = [word for setting in settings for word in ("-D", setting)]
    done = yaq("cluster", "start", "--dir", directory, "--nodes", nodes, *words)
    assert done.returncode == 0, done.stderr
    yield directory
    assert yaq("cluster", "stop", "--dir", directory).returncode == 0


def kill_resource_manager(cluster: Path) -> None:
    kill_daemon(cluster, "resourcemanager")


def kill_daemon(cluster: Path, name: str) -> None:
    """As `kill -9`; returns when it is gone."""
    found = json.loads(yaq("cluster", "status", "--dir", cluster, "--json").stdout)
    (pid,) = (daemon["pid"] for daemon in found["daemons"] if daemon["name"] == name)
    dead = ProcessIdentity.of(pid)
    assert dead is not None
    psutil.Process(pid).kill()
    assert wait_for_end([dead], 5.0) == []


def until(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    """What daemons write tells nobody that it has come: it is looked for."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
