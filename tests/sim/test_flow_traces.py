"""Flows that ran, as jobs of the simulator and as graphs to train on."""

import json
from pathlib import Path
from typing import Any

import pytest

from yaqd.sim.workloads import WorkloadError
from yaqd.sim.workloads.graph_history import history_graphs
from yaqd.sim.workloads.graphs import KINDS, POINTS
from yaqd.sim.workloads.history import read_history

STAGES = {"one": 2, "two": 1, "both": 2, "end": 1}
EDGES = [["one", "both"], ["two", "both"], ["two", "end"]]


def ran(folder: Path, edges: Any = EDGES, number: int = 1) -> Path:
    """A flow of four stages: tasks of one take 2 and 4 s, of two 1 s, of both 3 s, and of end 1 s after its wait."""
    job = {"type": "job", "name": "flow", "user": "eve", "started_ms": 1000, "vertices": STAGES, "edges": edges}
    tasks = [
        ("one", 0, 1000, 3000),
        ("one", 1, 1000, 5000),
        ("two", 0, 1000, 2000),
        ("both", 0, 4000, 8000),
        ("both", 1, 5000, 8000),
        ("end", 0, 1500, 3000),
    ]
    lines = [job] + [
        {
            "type": "attempt",
            "vertex": stage,
            "task": task,
            "state": "SUCCEEDED",
            "began_ms": began,
            "finished_ms": ended,
        }
        for stage, task, began, ended in tasks
    ]
    path = folder / f"job_1_000{number}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_stages_wait_for_those_that_they_read(tmp_path: Path) -> None:
    (job,) = read_history([ran(tmp_path)]).jobs
    assert [(stage.name, stage.after) for stage in job.stages] == [
        ("one", ()),
        ("two", ()),
        ("both", (0, 1)),
        ("end", (1,)),
    ]
    assert [task.duration_s for task in job.stages[2].tasks] == [3.0, 3.0], "one began before its input was there"
    assert [task.duration_s for task in job.stages[3].tasks] == [1.0]


@pytest.mark.parametrize(
    ("edges", "why"),
    [
        ("all", "edges are no list"),
        ([["one"]], "no pair of stages"),
        ([["both", "one"]], "'one' reads 'both', which is no earlier stage"),
        ([["one", "one"]], "no earlier stage"),
        ([["nowhere", "one"]], "no earlier stage"),
    ],
)
def test_edges_that_cannot_be_are_refused_with_their_line(tmp_path: Path, edges: Any, why: str) -> None:
    path = ran(tmp_path, edges)
    with pytest.raises(WorkloadError, match=rf"{path}:1: .*{why}"):
        read_history([path])


def test_graphs_have_the_durations_that_were_seen(tmp_path: Path) -> None:
    ran(tmp_path)
    ran(tmp_path, [], 2)
    graphs = history_graphs([tmp_path])
    assert len(graphs) == 2
    assert graphs.tasks[:4].tolist() == [2, 1, 2, 1]
    assert graphs.mean_s[:4].tolist() == [3.0, 1.0, 3.0, 1.0]
    assert graphs.waits.tolist() == [0, 0, 2, 1, 0, 0, 0, 0]
    assert graphs.work_s()[0] == 14.0
    for point in range(len(POINTS)):
        for kind in range(KINDS):
            at, many = graphs.wave_at[0, point, kind], graphs.wave_len[0, point, kind]
            assert graphs.values[at : at + many].tolist() == [2.0, 4.0]
    assert not graphs.is_cold.any()


def test_folders_without_histories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no job history there"):
        history_graphs([tmp_path])
