"""Jobs on a real cluster that are killed, or lose their master, an output or a node."""

import os
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.tez_adapter.tez_jobs import Write, finish, job_script, kill_job_manager, parts, staging_is_empty, until
from tez_adapter.client.rm_client import RmClient
from tez_adapter.client.submit import submit_command, submit_mapreduce
from tez_adapter.history import read_history
from yaqd.config import Configuration
from yaqd.model import YarnApplicationState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_a_killed_job_leaves_nothing(cluster: Configuration) -> None:
    job = submit_command(cluster, ["sleep", "123456"], tasks=2)
    try:
        deadline = time.monotonic() + 20
        while not any(v.running == 2 for v in job.status().vertices):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        job.kill("enough")
        result = job.wait(timeout_s=30)
    finally:
        job.close()
    assert (result.state, result.exit_code) == ("KILLED", 1)
    assert "enough" in result.diagnostics
    deadline = time.monotonic() + 10
    while any(p.info["cmdline"] == ["sleep", "123456"] for p in psutil.process_iter(["cmdline"])):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert staging_is_empty(cluster)


def test_a_job_killed_through_the_resource_manager_leaves_nothing(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    script = job_script(write, "time.sleep(100)")
    job = submit_mapreduce(cluster, script, inputs=[write("in.txt", "a\n")], output=str(tmp_path / "out"))
    with RmClient(cluster) as rm:
        until(lambda: any(v.running for v in job.status().vertices))
        rm.kill(job.application_id, "by the test")
    # nobody waits for this job: its job manager cleans up by itself
    until(lambda: staging_is_empty(cluster) and not (tmp_path / "out").exists())
    assert job.report().state is YarnApplicationState.KILLED
    job.close()


def test_a_job_whose_managers_all_die_fails_and_leaves_nothing(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    script = job_script(write, "time.sleep(100)")
    job = submit_mapreduce(cluster, script, inputs=[write("in.txt", "a\n")], output=str(tmp_path / "out"))
    for attempt in (1, 2):
        until(lambda number=attempt: getattr(job.report().attempt, "attempt", 0) == number)  # type: ignore[misc]
        until(lambda: any(v.running for v in job.status().vertices))
        kill_job_manager(job)
    result = finish(job)
    assert result.state == "FAILED"
    assert "failed 2 times" in result.diagnostics
    assert staging_is_empty(cluster) and not (tmp_path / "out").exists()


def test_what_a_job_left_behind_is_removed_by_killing_it_once_more(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    script = job_script(write, "time.sleep(100)")
    job = submit_mapreduce(cluster, script, inputs=[write("in.txt", "a\n")], output=str(tmp_path / "out"))
    for attempt in (1, 2):
        until(lambda number=attempt: getattr(job.report().attempt, "attempt", 0) == number)  # type: ignore[misc]
        until(lambda: any(v.running for v in job.status().vertices))
        kill_job_manager(job)
    until(lambda: job.report().state.is_final)
    assert not staging_is_empty(cluster) and (tmp_path / "out").exists()
    job.kill()
    assert staging_is_empty(cluster) and not (tmp_path / "out").exists()
    job.close()


def test_a_job_outlives_its_first_job_manager(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    script = job_script(write, "time.sleep(1); yield value, 1")
    job = submit_mapreduce(cluster, script, inputs=[write("in.txt", "a\nb\n")], output=str(tmp_path / "out"))
    until(lambda: any(v.running for v in job.status().vertices))
    kill_job_manager(job)
    result = finish(job)
    assert result.state == "SUCCEEDED", result.diagnostics
    assert "".join(parts(tmp_path / "out")) == "a\t1\nb\t1\n"


def test_a_map_output_that_was_lost_is_made_again(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    # the second map holds the reduce up until the first one's output is gone
    flag = tmp_path / "flag"
    body = f"""yield value, 1
        while value == "b" and not os.path.exists({str(flag)!r}):
            time.sleep(0.05)"""
    for name, word in (("1.txt", "a"), ("2.txt", "b")):
        (tmp_path / "in").mkdir(exist_ok=True)
        write(f"in/{name}", f"{word}\n")
    conf = cluster.with_overrides(
        {"yaq.input.combine-small-files": "false", "mapreduce.job.reduce.slowstart.completedmaps": "1.0"}
    )
    job = submit_mapreduce(conf, job_script(write, body), inputs=[str(tmp_path / "in")], output=str(tmp_path / "out"))
    deadline = time.monotonic() + 20
    while not any(v.done == 1 for v in job.status().vertices):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    root = Path(cluster.require("yarn.app.mapreduce.am.staging-dir")).parent
    lost = [p for p in root.glob(f"**/appcache/{job.application_id}/output/attempt_*_m_*") if (p / "file.out").exists()]
    assert len(lost) == 1
    shutil.rmtree(lost[0])
    flag.touch()
    result = finish(job)
    assert result.state == "SUCCEEDED", result.diagnostics
    assert sorted("".join(parts(tmp_path / "out")).split()) == ["1", "1", "a", "b"]
    states = [a["state"] for a in read_history(conf, job.application_id).attempts if a["vertex"] == "map"]
    assert sorted(states) == ["FAILED", "SUCCEEDED", "SUCCEEDED"]


def test_a_job_outlives_a_node(own_cluster: Configuration, write: Write, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(10):
        write(f"in/{i}.txt", f"w{i}\n")
    settings = {
        "yaq.input.combine-small-files": "false",
        "yaq.job.task.silence-ms": "1500",
        "mapreduce.map.memory.mb": "256",
        "mapreduce.reduce.memory.mb": "256",
        "yarn.app.mapreduce.am.resource.mb": "512",
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
    }
    conf = own_cluster.with_overrides(settings)
    script = job_script(write, "time.sleep(0.5); yield value, 1")
    job = submit_mapreduce(conf, script, inputs=[str(tmp_path / "in")], output=str(tmp_path / "out"))
    until(lambda: any(v.done for v in job.status().vertices))
    with RmClient(conf) as rm:
        attempt = job.report().attempt
        assert attempt is not None
        containers = rm.containers(attempt)
        master = next(c.node for c in containers if c.id.sequence == 1)
        victim = next(c.node for c in containers if c.node not in (None, master))
    assert victim is not None
    owners = [c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == victim.port]
    os.kill(owners[0], signal.SIGKILL)
    heard: list[str] = []
    result = job.wait(lambda status: heard.extend(status.notices), progress_every_s=0.05, timeout_s=60)
    job.close()
    assert any(f"from node {victim}" in line or f"node {victim} was lost with" in line for line in heard), heard
    assert result.state == "SUCCEEDED", result.diagnostics
    assert sorted("".join(parts(tmp_path / "out")).split()) == sorted(["1"] * 10 + [f"w{i}" for i in range(10)])
