"""Jobs on a real cluster whose map outputs are merged, and what is said of it."""

import json
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.history import read_history
from yaqd.config import Configuration

COUNT = """
from yaqd.mapreduce import Job
class Count(Job):
    def map(self, key, value):
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""
#: a map that waits for a file while reduces read what the others made; every task's process says that it is there
HELD = """
import os, pathlib, time
from yaqd.mapreduce import Job
HERE = pathlib.Path({here!r})
if not os.environ.get("CONTAINER_ID", "_000001").endswith("_000001"):  # a task, not its master nor the client
    (HERE / f"process-{{os.getpid()}}").touch()
class Count(Job):
    def map(self, key, value):
        if value == "held":
            (HERE / f"holds-{{os.getpid()}}").touch()
            while not (HERE / "go").exists():
                time.sleep(0.02)
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""
MERGED = {"yaq.riffle.policy": "files", "yaq.riffle.files": "4", "yaq.riffle.best-effort": "1.0"}
WORDS = "".join(f"a b c{i % 10} d{i % 7}\n" for i in range(4000))
SPLIT = str(len(WORDS) // 24 + 1)


def until(condition: Callable[[], Any], timeout_s: float = 30.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def run(conf: Configuration, write: Callable[[str, str], str], output: Path, reduces: int = 3) -> SubmittedJob:
    return submit_mapreduce(
        conf, write("count.py", COUNT), inputs=[write("in.txt", WORDS)], output=str(output), reduces=reduces
    )


def finish(job: SubmittedJob) -> None:
    try:
        status = job.wait(timeout_s=120)
        assert status.state == "SUCCEEDED", status
    finally:
        job.close()


def counts(output: Path) -> dict[str, int]:
    lines = (line.split("\t") for part in output.glob("part-*") for line in part.read_text().splitlines())
    return {word: int(count) for word, count in lines}


def expected() -> dict[str, int]:
    words = WORDS.split()
    return {word: words.count(word) for word in set(words)}


def shuffle_of(conf: Configuration, job: SubmittedJob) -> dict[str, Any]:
    found: dict[str, Any] = read_history(conf, job.application_id).end["shuffle"]
    return found


def mergers(folder: Path) -> list[psutil.Process]:
    """Of this cluster: the NodeManagers' children that run the merger."""
    nodes = [psutil.Process(int(file.read_text().split()[0])) for file in (folder / "run").glob("nodemanager*.pid")]
    found = []
    for child in (child for node in nodes for child in node.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # over, or not waited for yet
            if "riffle_merger.service" in child.cmdline():
                found.append(child)
    return found


def end(job: SubmittedJob) -> None:
    try:
        status = job.wait(timeout_s=90)
    finally:
        job.close()
    assert status.state == "SUCCEEDED", status


def attempts(conf: Configuration, job: SubmittedJob, vertex: str) -> list[tuple[int, str]]:
    return [(a["task"], a["state"]) for a in read_history(conf, job.application_id).attempts if a["vertex"] == vertex]


def shuffles(conf: Configuration) -> list[dict[str, Any]]:
    """What each node counts."""
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")

    def get(address: str) -> Any:
        with urllib.request.urlopen(f"http://{address}", timeout=10) as answer:
            return json.load(answer)

    nodes = get(f"{host}:{port}/ws/v1/cluster/nodes")["nodes"]["node"]
    return [get(f"{node['nodeHTTPAddress']}/ws/v1/node/info")["nodeInfo"]["shuffle"] for node in nodes]
