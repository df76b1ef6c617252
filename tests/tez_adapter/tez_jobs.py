"""Small jobs on a real cluster: their scripts, how they are run, and what they wrote."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tez_adapter.client.follow import JobResult, SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from yaqd.config import Configuration

Write = Callable[[str, str], str]
WORDCOUNT = """
from yaqd.mapreduce import Job
class WordCount(Job):
    def map(self, key, value):
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""


def job_script(write: Write, body: str, attributes: str = "") -> str:
    """A job whose map is `body`."""
    head = "import os, sys, time\nfrom yaqd.mapreduce import Job\n"
    settings = f"    {attributes}\n" if attributes else ""
    return write("job_script.py", f"{head}class J(Job):\n{settings}    def map(self, key, value):\n        {body}\n")


def text(lines: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    words = [f"word{i}" for i in range(300)]
    return "".join(" ".join(rng.choices(words, k=8)) + "\n" for _ in range(lines))


def finish(job: SubmittedJob) -> JobResult:
    try:
        return job.wait(timeout_s=90)
    finally:
        job.close()


def manager_pid(job: SubmittedJob) -> int:
    """The process of the job's manager."""
    port = job.report().rpc_port
    owners = [c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port]
    assert owners[0] is not None
    return owners[0]


def kill_job_manager(job: SubmittedJob) -> None:
    os.kill(manager_pid(job), signal.SIGKILL)


def parts(folder: Path) -> list[str]:
    assert (folder / "_SUCCESS").exists()
    assert not (folder / "_temporary").exists()
    return [p.read_text() for p in sorted(folder.glob("part-*"))]


def run(conf: Configuration, script: str, source: str, out: Path, **more: object) -> JobResult:
    return finish(submit_mapreduce(conf, script, inputs=[source], output=str(out), **more))  # type: ignore[arg-type]


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def staging_is_empty(conf: Configuration) -> bool:
    root = Path(conf.require("yarn.app.mapreduce.am.staging-dir"))
    return not list(root.glob("*/.staging/*"))
