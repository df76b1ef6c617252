"""A NodeManager killed under two jobs: what is left has room for both masters and no more, and both get through."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_cluster import kill_daemon, started, until, yaq
from tez_adapter.client.follow import SubmittedJob
from yaqd.config import Configuration
from yaqd.model import ApplicationId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SETTINGS = (
    "yarn.nodemanager.resource.cpu-vcores=2",
    "yarn.scheduler.capacity.maximum-am-resource-percent=1",
    "yarn.nm.liveness-monitor.expiry-interval-ms=3000",
    "yaq.rm.scheduler.masters-yield-after=1s",
)
JOB = """
import os, select
from yaqd.mapreduce import Job

class Waits(Job):
    def map(self, key, value):
        while not os.path.exists("FLAG"):
            select.select([], [], [], 0.05)
        yield value, 1
"""


def _said(cluster: Path, *words: str) -> Any:
    return json.loads(yaq(*words, "--conf", cluster / "conf", "--json").stdout)


def test_two_jobs_get_through_on_what_a_killed_node_leaves(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text("one\n")
    flag = tmp_path / "flag"
    (tmp_path / "waits.py").write_text(JOB.replace("FLAG", str(flag)))
    with started(tmp_path / "c", *SETTINGS, nodes=2) as cluster:
        words = ("mr", "submit", tmp_path / "waits.py", "--input", tmp_path / "in", "--reduces", 0, "--no-wait")
        outputs = (("--output", tmp_path / name) for name in ("out1", "out2"))
        said = [yaq(*words, *output, "--conf", cluster / "conf") for output in outputs]
        ids = [ApplicationId.parse(one.stdout.split()[-1]) for one in said]
        until(lambda: sum(node["containers"] for node in _said(cluster, "node", "list")) == 4)
        kill_daemon(cluster, "nodemanager-2")
        until(lambda: len(_said(cluster, "node", "list")) == 1)
        flag.touch()
        for app_id in ids:
            with closing(SubmittedJob(Configuration.load(cluster / "conf"), app_id)) as job:
                assert job.wait(timeout_s=120).succeeded, yaq("explain", app_id, "--conf", cluster / "conf").stdout
