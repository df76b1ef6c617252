"""A NameNode that takes connections and answers nothing: whoever ends a job does not wait for it."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.daemons import current_user
from tests.interop.interop_master import await_value
from tez_adapter.client.staging import STAGING_KEY
from yaqd.config import Configuration

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(240)]
CLIENT = "NameNode frozen"
#: job manager and command each wait two seconds for the file system, and look at the clock on the way
AT_ONCE_S = 6.0
WAITING_JOB = """\
import time
from pathlib import Path
from yaqd.mapreduce import Job
class Waiting(Job):
    def map(self, key, value):
        Path({mark!r}).touch()
        time.sleep(1000)
        yield key, value
"""


@contextmanager
def frozen(cluster: InteropCluster) -> Iterator[None]:
    pid = cluster.hdfs.daemons["namenode"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_job_is_killed_at_once_and_its_files_go_later(interop: InteropCluster, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a line\n")
    interop.clients.fs("-put", str(tmp_path / "in.txt"), "/frozen-in.txt").checked()
    (tmp_path / "job.py").write_text(WAITING_JOB.format(mark=str(tmp_path / "runs")))
    arguments = (str(tmp_path / "job.py"), "--input", "/frozen-in.txt", "--output", "/frozen-out")
    done = interop.ours.yaq("mr", "submit", *arguments, "--no-wait", "--json")
    application = json.loads(done.stdout)["application_id"]
    await_value("the map", lambda: (tmp_path / "runs").exists() or None, 60)
    with frozen(interop):
        started = time.monotonic()
        killed = interop.ours.yaq("app", "kill", application)
        seconds = time.monotonic() - started
        assert "KILLED" in killed.stdout
        assert seconds < AT_ONCE_S, f"{seconds:.1f} s"
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(interop.ours.conf_dir)})
    staging = f"{conf.require(STAGING_KEY)}/{current_user()}/.staging"

    def is_gone() -> bool | None:
        left = interop.clients.fs("-ls", "-R", staging).stdout + interop.clients.fs("-ls", "-d", "/frozen-out").stdout
        return (application.partition("_")[2] not in left and "frozen-out" not in left) or None

    await_value("the job's files to be gone", is_gone, 30)
