"""Traces that others wrote: what is read from them, and that a damaged one is refused with its file and line."""

import json
import re
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from yaqd.sim.workload import ClusterSeen, check
from yaqd.sim.workloads import WorkloadError, read_workload
from yaqd.sim.workloads.history import read_history
from yaqd.sim.workloads.swim import Rates, read_swim

MB = 1 << 20
SLS_JOB = {
    "am.type": "mapreduce",
    "job.start.ms": 5000,
    "job.queue.name": "q1",
    "job.id": "job_1",
    "job.user": "ann",
    "job.tasks": [
        {
            "container.host": "/rack1/node7",
            "container.start.ms": 6000,
            "container.end.ms": 8500,
            "container.type": "map",
            "container.priority": 20,
        },
        {
            "count": 3,
            "duration.ms": 4000,
            "container.type": "reduce",
            "container.priority": 10,
            "container.memory": 2048,
        },
    ],
}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_swim_bytes_become_tasks(tmp_path: Path) -> None:
    path = written(tmp_path, "fb.tsv", f"job0\t49\t49\t{256 * MB}\t{3 * MB}\t{MB}\njob1\t60\t11\t{40 * MB}\t0\t0\n")
    workload = read_swim(path, rates=Rates(bytes_per_s=10 * MB, start_s=1.0))
    check(workload)
    first, second = workload.jobs
    assert (first.name, first.arrival_s) == ("job0", 49.0)
    assert [(stage.name, len(stage.tasks)) for stage in first.stages] == [("map", 2), ("reduce", 1)]
    assert first.stages[0].tasks[0].duration_s == pytest.approx(1 + (256 + 3) / 2 / 10)
    assert first.stages[1].tasks[0].duration_s == pytest.approx(1 + 4 / 10)
    assert [(stage.name, len(stage.tasks)) for stage in second.stages] == [("map", 1)]
    assert len(read_workload(path, jobs=1).jobs) == 1


def test_sls_jobs_keep_counts_hosts_priorities_and_queues(tmp_path: Path) -> None:
    later = {**SLS_JOB, "job.start.ms": 9000, "job.id": "job_2"}
    path = written(tmp_path, "sls.json", json.dumps(SLS_JOB, indent=2) + "\n" + json.dumps(later))
    workload = read_workload(path)
    check(workload)
    assert [(job.name, job.queue, job.user, job.arrival_s) for job in workload] == [
        ("job_1", "q1", "ann", 0.0),
        ("job_2", "q1", "ann", 4.0),
    ]
    maps, reduces = workload.jobs[0].stages
    assert (maps.tasks[0].duration_s, maps.tasks[0].hosts, maps.tasks[0].priority) == (2.5, ("node7",), 20)
    assert (len(reduces.tasks), reduces.tasks[0].duration_s, reduces.after) == (3, 4.0, (0,))
    assert reduces.tasks[0].resource.memory_mb == 2048


def test_rumen_jobs_have_the_attempts_that_succeeded(tmp_path: Path) -> None:
    attempts = [
        {"result": "FAILED", "startTime": 1, "finishTime": 9},
        {"result": "SUCCESS", "startTime": 2000, "finishTime": 12000, "hostName": "/r/n3"},
    ]
    job = {"jobName": "sort", "user": "bob", "queue": "q", "submitTime": 1000, "mapTasks": [{"attempts": attempts}]}
    job["reduceTasks"] = [{"attempts": [{"result": "KILLED", "startTime": 1, "finishTime": 2}]}]
    (found,) = read_workload(written(tmp_path, "rumen.json", json.dumps(job))).jobs
    assert (found.name, found.user, found.queue) == ("sort", "bob", "q")
    (stage,) = found.stages
    assert (stage.tasks[0].duration_s, stage.tasks[0].hosts) == (10.0, ("n3",))


def own_history(started: int, *attempts: tuple[str, int, str, int, int]) -> str:
    job = {"type": "job", "name": "words", "user": "eve", "started_ms": started, "vertices": {"map": 2, "reduce": 1}}
    lines = [job] + [
        {"type": "attempt", "vertex": vertex, "task": task, "state": state, "started_ms": begin, "finished_ms": end}
        for vertex, task, state, begin, end in attempts
    ]
    return "".join(json.dumps(line) + "\n" for line in [*lines, {"type": "end", "state": "SUCCEEDED"}])


def test_our_history_gives_work_without_the_reduces_waiting(tmp_path: Path) -> None:
    written(
        tmp_path,
        "job_1_0001.jsonl",
        own_history(
            10_000,
            ("map", 0, "FAILED", 10_000, 11_000),
            ("map", 0, "SUCCEEDED", 11_000, 14_000),
            ("map", 1, "SUCCEEDED", 11_000, 16_000),
            ("reduce", 0, "SUCCEEDED", 12_000, 19_000),
        ),
    )
    written(tmp_path, "job_1_0002.jsonl", own_history(13_500, ("map", 0, "SUCCEEDED", 14_000, 15_000)))
    written(tmp_path, "job_1_0003.jsonl", own_history(13_500, ("map", 0, "FAILED", 14_000, 15_000)))
    workload = read_workload(tmp_path)
    check(workload)
    first, second = workload.jobs
    assert [[t.duration_s for t in stage.tasks] for stage in first.stages] == [[3.0, 5.0], [3.0]]
    assert (second.arrival_s, len(second.stages)) == (3.5, 1)


def test_histories_below_a_folder_are_found_and_nothing_else_there(tmp_path: Path) -> None:
    text = own_history(10_000, ("map", 0, "SUCCEEDED", 10_000, 14_000))
    for folder, name in (
        ("staging/history/yaq", "job_1_0001.jsonl"),
        ("staging/history/done/2026/01", "job_1_0002.jsonl"),
        ("staging/history/yaq", "notes.jsonl"),
        ("staging/.running", "job_1_0003.jsonl"),
        ("a/b/c/d/e/f/g", "job_1_0004.jsonl"),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        written(tmp_path / folder, name, text)
    for folder in (".", "staging", "staging/history"):
        assert len(read_history([tmp_path / folder]).jobs) == 2, folder
    (tmp_path / "empty" / "below").mkdir(parents=True)
    with pytest.raises(WorkloadError, match="nor in folders below it"):
        read_history([tmp_path / "empty"])


def test_waiting_in_a_nodes_queue_is_no_part_of_a_tasks_duration(tmp_path: Path) -> None:
    lines = own_history(10_000, ("map", 0, "SUCCEEDED", 10_000, 40_000)).splitlines()
    attempt = json.loads(lines[1]) | {"began_ms": 35_000}
    path = written(tmp_path, "job_1_0001.jsonl", "\n".join([lines[0], json.dumps(attempt), *lines[2:]]))
    [job] = read_workload(path).jobs
    assert [[t.duration_s for t in stage.tasks] for stage in job.stages] == [[5.0]]


def attempt_on(node: object, began: int | None, finished: int | None, state: str = "SUCCEEDED") -> dict[str, object]:
    times = {"started_ms": 1_000, "began_ms": began, "finished_ms": finished}
    return {"type": "attempt", "vertex": "map", "task": finished, "state": state, "node": node, **times}


def test_a_history_shows_how_large_its_cluster_was_at_least(tmp_path: Path) -> None:
    """Slots are those held at a time, by tasks that failed too, and not by what waited or by one that follows."""
    job = {"type": "job", "name": "words", "user": "eve", "started_ms": 1_000, "vertices": {"map": 9}}
    first = [
        attempt_on("a:1", 1_000, 5_000),
        attempt_on("a:1", 5_000, 9_000),
        attempt_on("a:1", 2_000, 4_000, "FAILED"),
        attempt_on("b:1", 2_000, 4_001),
        attempt_on("b:1", None, 3_000, "KILLED"),
        attempt_on(None, 1_000, 9_001),
        attempt_on("c:1", 1_000, None, "KILLED"),
        attempt_on("c:1", 1_000, 10**400, "KILLED"),
    ]
    second = [
        attempt_on("a:1", 3_000, 3_500),
        attempt_on("a:1", 3_500, 3_600),
        attempt_on("d:1", 3_000, 3_501),
    ]
    for number, attempts in enumerate((first, second)):
        written(tmp_path, f"job_1_000{number}.jsonl", "".join(json.dumps(one) + "\n" for one in [job, *attempts]))
    assert read_workload(tmp_path).seen == ClusterSeen(nodes=3, slots=3)
    again = [attempt_on(f"{name}:2", 100_000, 101_000) for name in "ab"]
    written(tmp_path, "job_2_0001.jsonl", "".join(json.dumps(one) + "\n" for one in [job, *again]))
    assert read_workload(tmp_path).seen == ClusterSeen(nodes=3, slots=3), "started again, nodes have other ports"
    (tmp_path / "none").mkdir()
    written(tmp_path / "none", "job_1_0001.jsonl", own_history(1_000, ("map", 0, "SUCCEEDED", 1_000, 2_000)))
    assert read_workload(tmp_path / "none").seen is None


def seen_in(folder: Path, *attempts: dict[str, object]) -> ClusterSeen | None:
    job = {"type": "job", "name": "words", "user": "eve", "started_ms": 1_000, "vertices": {"map": 9}}
    written(folder, "job_1_0001.jsonl", "".join(json.dumps(one) + "\n" for one in (job, *attempts)))
    return read_workload(folder).seen


@pytest.mark.parametrize(
    ("took_ms", "late_ms"), [(200, (0, 99)), (400, (4, 190)), (1_000, (190, 499)), (9_000, (4, 990)), (90_000, (999,))]
)
def test_a_task_that_follows_on_its_slot_is_not_beside_the_one_before(
    took_ms: int, late_ms: tuple[int, ...], tmp_path: Path
) -> None:
    """Its job hears of an end later than the node, which has started the next one by then."""
    began = [10_000 + slot * took_ms // 5 + took_ms * n for n in range(8) for slot in range(4)]
    attempts = [attempt_on("a:1", t, t + took_ms + late_ms[at % len(late_ms)]) for at, t in enumerate(began)]
    assert seen_in(tmp_path, *attempts) == ClusterSeen(nodes=1, slots=4)


def test_a_node_that_was_started_again_is_the_same_under_another_port(tmp_path: Path) -> None:
    """Its tasks are known to be lost once it has been missed for minutes; those at other nodes of its host go on."""
    first = [attempt_on("a:4001", t, t + 5_000) for t in (10_000, 10_000, 15_000)]
    lost = [attempt_on("a:4001", t, 600_000, "KILLED") for t in (16_000, 17_000)]
    again = [attempt_on("a:4002", t, t + 5_000) for t in (22_000, 22_000, 200_000)]
    elsewhere = [attempt_on("b:4001", t, t + 5_000) for t in (10_000, 22_000)]
    assert seen_in(tmp_path, *first, *lost, *again, *elsewhere) == ClusterSeen(nodes=2, slots=2)
    beside = [attempt_on("a:4003", t, t + 5_000) for t in (12_000, 230_000)]
    assert seen_in(tmp_path, *first, *lost, *again, *elsewhere, *beside) == ClusterSeen(nodes=3, slots=2)


def test_what_was_lost_with_a_node_holds_no_slot_once_it_is_back(tmp_path: Path) -> None:
    lost = [attempt_on("a:1", t, 600_000, "KILLED") for t in (16_000, 17_000)]
    assert seen_in(tmp_path, *lost, attempt_on("a:1", 22_000, 27_000)) == ClusterSeen(nodes=1, slots=1)


def test_nodes_without_a_port_are_hosts(tmp_path: Path) -> None:
    names = ("a", "a.example:", "[::1]:80", "[::1]:81", "10.0.0.1:80", ":80", "b:x", "b:y")
    one_by_one = (attempt_on(name, at, at + 5_000) for at, name in zip(count(10_000, 10_000), names, strict=False))
    assert seen_in(tmp_path, *one_by_one) == ClusterSeen(nodes=7, slots=1)


def test_jhist_as_json(tmp_path: Path) -> None:
    prefix = "org.apache.hadoop.mapreduce.jobhistory."

    def event(kind: str, **fields: object) -> str:
        return json.dumps({"type": "X", "event": {prefix + kind: fields}})

    started = {"taskid": "t0", "startTime": 2000}
    text = "\n".join(
        [
            "Avro-Json",
            '{"type":"record","name":"Event"}',
            event("JobSubmitted", jobName="sort", userName="ann", submitTime=1000, jobQueueName={"string": "prod"}),
            event("TaskAttemptStarted", attemptId="a0", **started),
            event("MapAttemptFinished", attemptId="a0", taskid="t0", finishTime=5000, hostname={"string": "h1"}),
            event("TaskAttemptStarted", attemptId="r0", **{**started, "taskid": "t1"}),
            event("ReduceAttemptFinished", attemptId="r0", taskid="t1", shuffleFinishTime=5200, finishTime=9000),
        ]
    )
    workload = read_history([written(tmp_path, "j.jhist", text)])
    assert workload.seen == ClusterSeen(nodes=1, slots=1)
    (job,) = workload.jobs
    assert (job.name, job.user, job.queue) == ("sort", "ann", "prod")
    assert [[t.duration_s for t in stage.tasks] for stage in job.stages] == [[3.0], [4.0]]


BAD = [
    ("a.tsv", "job0\t1\t1\t1\t1\n", ":1: 5 columns"),
    ("a.tsv", "job0\t1\t1\t1\t1\t1\njob1\tnan\t1\t1\t1\t1\n", ":2: submit time is nan"),
    ("a.tsv", "job0\t-5\t1\t1\t1\t1\n", ":1: submit time is -5"),
    ("a.tsv", "job0\t1\t1\t1e300\t1\t1\n", ":1: map input"),
    ("a.tsv", "job0\t1\t1\t9e17\t1\t1\n", ":1: 9e+17 bytes are"),
    ("a.tsv", "job0\t1\t1\tmuch\t1\t1\n", ":1: map input is 'much', not a number"),
    ("a.tsv", "\n", "no job"),
    ("a.json", '{"job.tasks":\n [}', ":2: not JSON"),
    ("a.json", '{"node": 1}', ":1: neither"),
    ("a.json", "[" * 100_000 + "{", "not JSON"),
    ("a.json", '\n\n{"job.tasks": [{"container.start.ms": 5, "container.end.ms": 1}]}', ":3: container.end.ms"),
    ("a.json", '{"job.tasks": [{"duration.ms": Infinity}]}', "duration.ms is inf"),
    ("a.json", '{"job.tasks": [{"duration.ms": 1, "count": 1000000000}]}', "count is 1e+09"),
    ("a.json", '{"job.tasks": [{"duration.ms": 1, "count": 1000000}], "job.count": 5000}', "more than"),
    ("a.json", '{"job.tasks": 5}', "job.tasks is not a list"),
    ("a.jsonl", "{}\n{\n", ":2: not JSON"),
    ("a.jsonl", "{}\n", "not a job history"),
    ("a.jsonl", '{"type": "job", "started_ms": "soon"}', "started_ms is 'soon'"),
    ("a.jhist", "Avro-Json\n{}\nzzz\n", ":3: not JSON"),
    ("a.jhist", "Avro-Binary\x00", "not JSON"),
]


@pytest.mark.parametrize(("name", "text", "why"), BAD)
def test_a_damaged_trace_is_refused_with_its_place(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(why)) as refused:
        read_workload(written(tmp_path, name, text))
    assert str(tmp_path / name) in str(refused.value)


def test_what_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"job0\xff\xfe")
    for name, why in (("a.tsv", "byte 4 is no text"), ("b.tsv", "No such file"), (".", "no job history")):
        with pytest.raises(WorkloadError, match=why):
            read_workload(tmp_path / name)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["f.tsv", "f.json", "f.jsonl", "f.jhist"]), text=st.text(max_size=200), data=st.data())
def test_no_text_at_all_ends_in_another_error(tmp_path: Path, name: str, text: str, data: st.DataObject) -> None:
    """Also valid JSON with values of any kind where others belong."""
    if data.draw(st.booleans()):
        keys = st.sampled_from(["job.tasks", "mapTasks", "attempts", "type", "event", "started_ms", "vertices"])
        leaves = st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.just("job")
        lists = st.lists(st.dictionaries(keys, leaves, max_size=4), max_size=3)
        trees = leaves | lists | st.dictionaries(keys, leaves | lists, max_size=4)
        text = json.dumps(data.draw(st.dictionaries(keys, trees, max_size=5)))
    try:
        check(read_workload(written(tmp_path, name, text)))
    except WorkloadError:
        pass
