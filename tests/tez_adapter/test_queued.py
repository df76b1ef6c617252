"""Jobs of ours whose containers wait in a node's queue: waiting is nobody's fault, and nothing is run twice for it."""

import fcntl
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.tez_adapter.tez_jobs import until
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import RmClient
from tez_adapter.client.submit import submit_command, submit_mapreduce
from tez_adapter.history import history_path, read_history
from yaqd.config import Configuration
from yaqd.mapreduce.counters import JOB_GROUP, JobCounter
from yaqd.model import NodeId
from yaqd.proto import yarn_common_pb2 as common
from yaqd.sim.workloads import read_workload

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
        history = read_history(conf, job.application_id)
    attempts = history.attempts
    assert [a["state"] for a in attempts] == ["SUCCEEDED"] * 4, "each task once"
    own_ms = history.end["counters"][JOB_GROUP][JobCounter.MILLIS_MAPS.value]
    assert 4 * 1900 < own_ms < 4 * 4000, "nor counted as its own"
    longest_ms = max(a["finished_ms"] - a["started_ms"] for a in attempts)
    assert longest_ms > 6000, "the last one had waited for two others"
    assert all(1900 < a["finished_ms"] - a["began_ms"] < 4000 for a in attempts), "which is not the task's own time"


def test_a_job_whose_manager_leaves_no_room_for_its_tasks_says_so(
    running: Callable[..., AbstractContextManager[Configuration]], write: Callable[[str, str], str], tmp_path: Path
) -> None:
    settings = {**SETTINGS, "mapreduce.map.memory.mb": "1024", "yaq.queue.enabled": "false"}
    with running(
        tmp_path / "c", 1, *(word for key, value in settings.items() for word in ("-D", f"{key}={value}"))
    ) as conf:
        output = str(tmp_path / "out")
        job = submit_mapreduce(conf, write("slow.py", SLOW), inputs=[write("in.txt", "a\n")], output=output)
        try:
            until(lambda: "its own application master holds <memory:512, vCores:1> of" in job.status().waits_for)
            assert job.status().vertices, "its manager answers"
        finally:
            job.kill()
            job.close()


#: three nodes of two slots, with four places each to wait
THREE = {
    "yarn.nodemanager.resource.memory-mb": "1024",
    "yarn.nodemanager.resource.cpu-vcores": "2",
    "yarn.app.mapreduce.am.resource.mb": "512",
    "yarn.scheduler.minimum-allocation-mb": "512",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "4000",
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": "4",
    "yaq.queue.default-estimate": "1s",
}
TASKS = 30


def _killed_with_its_queue(conf: Configuration, job: SubmittedJob, gate: Path, done: Path) -> NodeId:
    """A node that has containers of the job waiting, and not its master: gone from one moment to the next.

    What ended there and was not told of yet would rightly run again. So nothing ends, as what ends takes turns at the
    gate, from when all that did is known to the ResourceManager until everything that ran there has gone as well.
    """
    address = conf.get_address("yarn.resourcemanager.webapp.address")
    url = f"http://{address[0]}:{address[1]}/ws/v1/yaq/explain/{job.application_id}"
    report = job.report().attempt
    assert report is not None
    with RmClient(conf) as rm:
        until(lambda: any(c.id.sequence == 1 for c in rm.containers(report)))
        master = next(str(c.node) for c in rm.containers(report) if c.id.sequence == 1)
        until(done.exists)
        with gate.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            ends = set(done.read_text().split())
            until(lambda: ends <= {str(c.id) for c in rm.containers(report) if c.state == common.C_COMPLETE})
            return _killed(url, master)


def _killed(url: str, master: str) -> NodeId:
    """The first node but the master's that has a queue."""
    victims: list[str] = []

    def are_some_waiting() -> bool:
        with urlopen(url, timeout=10) as answer:
            waiting = json.load(answer)["explanation"]["waiting"]
        nodes = Counter(entry["node"] for entry in waiting if entry["waitedS"] is not None)
        victims[:] = [node for node, count in nodes.items() if node != master and count >= 2]
        return bool(victims)

    until(are_some_waiting)
    victim = NodeId.parse(victims[0])
    owners = [c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == victim.port]
    assert owners[0] is not None
    manager = psutil.Process(owners[0])
    everything = [manager, *manager.children(recursive=True)]
    manager.kill()
    assert not psutil.wait_procs(everything, timeout=30)[1], "it takes along what ran there"
    return victim


@pytest.mark.parametrize("comes_back", [False, True], ids=["lost", "restarted"])
def test_a_node_killed_with_a_full_queue_costs_no_task_and_doubles_none(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path: Path, *, comes_back: bool
) -> None:
    words = [word for key, value in THREE.items() for word in ("-D", f"{key}={value}")]
    done, gate = tmp_path / "done", tmp_path / "gate"
    gate.touch()
    with running(tmp_path / "c", 3, *words) as conf:
        # one line for each that came to its end; a container that is killed takes its sleep along
        script = f"sleep 1 && flock {gate} sh -c 'echo $CONTAINER_ID >> {done}'"
        job = submit_command(conf, ["sh", "-c", script], tasks=TASKS)
        victim = _killed_with_its_queue(conf, job, gate, done)
        if comes_back:
            subprocess.run(
                [sys.executable, "-m", "yaqd.cli", "cluster", "start", "--dir", str(tmp_path / "c")],
                check=True,
                timeout=60,
                stdout=subprocess.DEVNULL,
            )
        result = job.wait(timeout_s=90)
        job.close()
        assert result.state == "SUCCEEDED", result.diagnostics
        attempts = read_history(conf, job.application_id).attempts
        [recorded] = read_workload(Path(history_path(conf, job.application_id).removeprefix("file:"))).jobs
    ends = done.read_text().split()
    [stage] = recorded.stages
    assert len(stage.tasks) == TASKS, "and what was recorded can be simulated"
    ran_ms = {a["task"]: a["finished_ms"] - a["began_ms"] for a in attempts if a["state"] == "SUCCEEDED"}
    assert sorted(task.duration_s for task in stage.tasks) == sorted(ms / 1000 for ms in ran_ms.values())
    waits_ms = [a["began_ms"] - a["started_ms"] for a in attempts if a["state"] == "SUCCEEDED"]
    assert min(ran_ms.values()) > 900 < max(waits_ms), "each as long as it ran, which is not as long as it waited"
    assert len(ends) == len(set(ends)) == TASKS, "each ran to its end once"
    by_task = Counter(a["task"] for a in attempts if a["state"] == "SUCCEEDED")
    assert sorted(by_task) == list(range(TASKS)) and set(by_task.values()) == {1}
    assert {a["container"] for a in attempts if a["state"] == "SUCCEEDED"} == set(ends)
    lost = [a for a in attempts if a["state"] != "SUCCEEDED"]
    assert len(lost) >= 3 and {a["node"] for a in lost} == {str(victim)}, "what ran and what waited there"
