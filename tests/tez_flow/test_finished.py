"""Notes of finished stages, as the next job manager reads them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tez_adapter.core.dag import AttemptId
from tez_adapter.flow.plan import counted, plan_flow
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.master.finished import read_finished
from yaqd.config import Configuration
from yaqd.mapreduce import Flow, Job
from yaqd.model import NodeId

CONF = Configuration.load(None, environ={})


class Count(Job):
    def reduce(self, key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)


FLOW = Flow()
FLOW.read("in").then(Count).write("out")
PLAN = counted(plan_flow(FLOW), [2])


def line(task: int) -> dict[str, Any]:
    times = {"started_ms": 1_700_000_000_000, "finished_ms": 1_700_000_001_000}
    return {"task": task, "number": 3, "node": "h1:45454", "host": "h1", "counters": [["g", "n", 5]], **times}


def note(folder: Path, text: str) -> JobSpec:
    (folder / "stage-0000.json").write_text(text)
    return JobSpec("job_1_0001", "", "", JobKind.FLOW, {}, f"file://{folder}")


def test_a_note_is_taken_up(tmp_path: Path) -> None:
    found = read_finished(
        note(tmp_path, json.dumps({"tasks": [line(1), line(0)], "ports": {"h1:45454": 13562}})), CONF, PLAN
    )
    assert {done.id for done in found.attempts} == {AttemptId(0, 0, 3), AttemptId(0, 1, 3)}
    assert [done.finished - done.started for done in found.attempts] == pytest.approx([1.0, 1.0])
    assert found.ports == {NodeId.parse("h1:45454"): 13562}
    assert dict(found.counters)[AttemptId(0, 1, 3)] == [("g", "n", 5)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"tasks": 1, "ports": {}}',
        json.dumps({"tasks": [line(0)], "ports": {}}),
        json.dumps({"tasks": [line(0), line(0)], "ports": {}}),
        json.dumps({"tasks": [line(0), line(1), line(2)], "ports": {}}),
        json.dumps({"tasks": [line(0), line(-1)], "ports": {}}),
        json.dumps({"tasks": [line(0), {**line(1), "counters": [["g", "n"]]}], "ports": {}}),
        json.dumps({"tasks": [line(0), line(1)], "ports": {"h1": 1}}),
    ],
    ids=["empty", "no object", "no tasks", "one short", "one twice", "one more", "negative", "counters", "node"],
)
def test_a_stage_whose_note_is_damaged_runs_again(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert read_finished(note(tmp_path, text), CONF, PLAN).attempts == ()
    assert "is not read, so its stage runs again" in caplog.text
