"""Jobs of ours whose containers wait in a node's queue: waiting is nobody's fault, and nothing is run twice for it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tez_adapter.history import read_history
from tez_adapter.submit import submit_mapreduce
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

#: room for the job manager and one task; three more may wait, of a second each as far as anybody knows
SETTINGS = {
    "yarn.nodemanager.resource.memory-mb": "1024",
    "yarn.app.mapreduce.am.resource.mb": "512",
    "mapreduce.map.memory.mb": "512",
    "yarn.scheduler.minimum-allocation-mb": "512",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": "3",
    "yaq.queue.default-estimate": "1s",
}
#: two seconds
SLOW = """
import time
from yaqd.mapreduce import Job
class Slow(Job):
    reduces = 0
    def map(self, key, value):
        time.sleep(0.4)
        yield key, value
"""


def test_a_task_that_waits_longer_than_its_time_out_is_not_ended(
    running: Callable[..., AbstractContextManager[Configuration]], write: Callable[[str, str], str], tmp_path: Path
) -> None:
    words = (word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}"))
    with running(tmp_path / "c", 1, *words) as cluster:
        conf = cluster.with_overrides(
            {"mapreduce.task.timeout": "3000", "mapreduce.input.fileinputformat.split.maxsize": "10"}
        )
        inputs = [write(f"in{number}.txt", "a\n" * 5) for number in range(4)]
        job = submit_mapreduce(conf, write("slow.py", SLOW), inputs=inputs, output=str(tmp_path / "out"))
        try:
            result = job.wait(timeout_s=90)
        finally:
            job.close()
        assert result.state == "SUCCEEDED", result.diagnostics
        attempts = read_history(conf, job.application_id).attempts
    assert [a["state"] for a in attempts] == ["SUCCEEDED"] * 4, "each task once"
    longest_ms = max(a["finished_ms"] - a["started_ms"] for a in attempts)
    assert longest_ms > 6000, "the last one had waited for two others"
