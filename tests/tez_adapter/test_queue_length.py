"""Jobs of ours on nodes where few containers may wait, or none: what fits runs, and nothing costs an attempt."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.tez_adapter.tez_jobs import finish, job_script
from tez_adapter.client.submit import submit_command, submit_mapreduce
from tez_adapter.history import read_history
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

#: room for the job manager and three tasks
SMALL = {
    "yarn.nodemanager.resource.memory-mb": "1024",
    "yarn.app.mapreduce.am.resource.mb": "256",
    "mapreduce.map.memory.mb": "256",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
}
QUEUES = {"yaq.queue.enabled": "true", "yaq.queue.bound": "8", "yaq.queue.default-estimate": "1s"}


@pytest.mark.parametrize(("most", "queues"), [(0, {}), (0, QUEUES), (1, QUEUES)])
def test_a_short_queue_costs_no_attempt(
    running: Callable[..., AbstractContextManager[Configuration]],
    write: Callable[[str, str], str],
    tmp_path: Path,
    most: int,
    queues: dict[str, str],
) -> None:
    settings = {**SMALL, **queues, "yaq.nm.queue.max-length": str(most), "yaq.queue.enabled": "false", **queues}
    with running(tmp_path / "c", 1, *(word for k, v in settings.items() for word in ("-D", f"{k}={v}"))) as conf:
        conf = conf.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": "10"})
        inputs = [write(f"in{number}.txt", "a\n" * 5) for number in range(8)]
        script = job_script(write, "time.sleep(0.1); yield key, value", "reduces = 0")
        jobs = [
            submit_command(conf, ["sleep", "0.3"], tasks=8),
            submit_mapreduce(conf, script, inputs=inputs, output=str(tmp_path / "out")),
        ]
        for job in jobs:
            result = finish(job)
            assert result.state == "SUCCEEDED", result.diagnostics
            states = [attempt["state"] for attempt in read_history(conf, job.application_id).attempts]
            assert states.count("SUCCEEDED") == 8 and "FAILED" not in states, states
            if not queues:
                assert len(states) == 8, "no node is sent more than fits"
    log = "".join(path.read_text() for path in (tmp_path / "c/logs").glob("nodemanager*.log"))
    assert "exit status -102" not in log or queues, "and none goes back"
