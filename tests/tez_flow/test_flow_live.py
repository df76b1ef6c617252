"""Flows on a real cluster: what they give, and what survives a kill -9."""

from collections import Counter
from pathlib import Path

import pytest

from tests.cli.cli_cluster import kill_daemon, until
from tests.tez_adapter.tez_jobs import kill_job_manager
from tests.tez_flow.conftest import SMALL_TASKS
from tests.tez_flow.flow_jobs import (
    ALL_KINDS,
    GATED,
    FlowRun,
    node_of_manager,
    nodes_of,
    ran,
)
from tests.tez_flow.flow_scripts import STEPS
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def test_a_flow_of_every_kind_of_edge_gives_what_it_means(flow_cluster: Configuration, tmp_path: Path) -> None:
    run = FlowRun(tmp_path / "flow", ALL_KINDS)
    run.submit(flow_cluster)
    result = run.finished()
    assert result.succeeded, result
    run.check_outputs()
    attempts = run.history(flow_cluster).attempts
    assert len({attempt["name"] for attempt in attempts}) == len(attempts) > 15


def test_a_step_that_fails_leaves_none_of_several_outputs(flow_cluster: Configuration, tmp_path: Path) -> None:
    script = STEPS + (
        "class Fails(Job):\n"
        "    def reduce(self, key, values):\n"
        "        raise ValueError('no')\n"
        "        yield\n"
        'words = flow.read("one").then(Words)\n'
        'words.write("first")\n'
        'words.then(Fails).write("second")\n'
    )
    run = FlowRun(tmp_path / "flow", script)
    run.submit(flow_cluster.with_overrides({"mapreduce.reduce.maxattempts": "1"}))
    result = run.finished()
    assert not result.succeeded
    assert "ValueError: no" in result.diagnostics
    assert not (run.folder / "first").exists() and not (run.folder / "second").exists()


def gated(tmp_path: Path, conf: Configuration) -> tuple[FlowRun, Path]:
    """Return a flow whose last stage waits, once the two before it are done."""
    run, trace = FlowRun(tmp_path / "flow", GATED), tmp_path / "trace"
    trace.mkdir()
    run.submit(conf, TRACE=str(trace))
    until(lambda: run.job.status().vertices and [v.done for v in run.job.status().vertices][-2] == 3)
    until(lambda: Counter(ran(trace))[("reduce", "Third", 0)] == 1)
    return run, trace


def test_a_killed_job_manager_is_followed_by_one_that_goes_on(flow_cluster: Configuration, tmp_path: Path) -> None:
    run, trace = gated(tmp_path, flow_cluster)
    before = ran(trace)
    kill_job_manager(run.job)
    until(lambda: Counter(ran(trace))[("reduce", "Third", 0)] == 2)
    (trace / "go").touch()
    result = run.finished()
    assert result.succeeded, result
    run.check_outputs()
    # the first two shuffles are not done again: only what waited is
    again = Counter(ran(trace)) - Counter(before)
    assert set(again) == {("reduce", "Third", 0), ("reduce", "Third", 1)}
    history = run.history(flow_cluster)
    assert sum(attempt["number"] >= 1000 for attempt in history.attempts) == 2
    counters = history.end["counters"]["org.apache.hadoop.mapreduce.TaskCounter"]
    assert counters["MAP_INPUT_RECORDS"] == 4


def test_a_lost_node_under_three_stages_reruns_what_is_needed(own_flow_cluster: Path, tmp_path: Path) -> None:
    conf = Configuration.load(own_flow_cluster / "conf").with_overrides(SMALL_TASKS)
    run, trace = gated(tmp_path, conf)
    before = ran(trace)
    others = nodes_of(trace) - {node_of_manager(run.job)}
    assert others, "all tasks ran beside the job manager"
    kill_daemon(own_flow_cluster, min(others).replace("nm-", "nodemanager-"))
    (trace / "go").touch()
    result = run.finished(150.0)
    assert result.succeeded, result
    run.check_outputs()
    # nothing of the input is read again that nobody needs
    again = Counter(ran(trace)) - Counter(before)
    # what had not begun when the node was killed runs for the first time, and may have run there
    assert all(many <= 1 + (task not in before) for task, many in again.items()), again


MANY = (
    STEPS
    + """
words = flow.read("one").then(Words)
counted = words.then(Sum, reduces=20)
counted.write("counted")
counted.then(Gather, reduces=2).write("gathered")
words.then(Spread, reduces=3).write("spread")
"""
)


def test_what_is_shuffled_is_merged_channel_by_channel(flow_cluster: Configuration, tmp_path: Path) -> None:
    run = FlowRun(tmp_path / "flow", MANY)
    (run.folder / "one").write_text("".join(f"w{number % 7} v\n" for number in range(30)))
    merging = {
        "yaq.riffle.policy": "files",
        "yaq.riffle.files": "2",
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
    }
    run.submit(flow_cluster.with_overrides(merging))
    result = run.finished()
    assert result.succeeded, result
    run.check_outputs({"one": [f"w{number % 7} v" for number in range(30)]})
    shuffles = run.history(flow_cluster).end["shuffle"]["shuffles"]
    assert set(shuffles) == {"one:Words, for Sum", "one:Words, for Spread", "Sum, for Gather"}
    assert all(found["merged_files"] > 0 for found in shuffles.values()), shuffles
