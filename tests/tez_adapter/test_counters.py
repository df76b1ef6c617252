"""What jobs count: nothing is declared that no job counts, and what a task has used is its own and its children's."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tez_adapter.tez_crash import in_child
from tez_adapter.client.local import run_local
from tez_adapter.client.submit import submit_streaming
from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.master.record import JobRecord
from tez_adapter.tasks.usage import Usage
from yaqd.config import Configuration
from yaqd.mapreduce import Counters, Job
from yaqd.mapreduce.counters import (
    FILE_SYSTEM_GROUP,
    JOB_GROUP,
    TASK_GROUP,
    FileSystemCounter,
    JobCounter,
    TaskCounter,
)
from yaqd.model import Resource

MB = 1 << 20


class Count(Job):
    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        for word in value.split():
            yield word, 1

    def reduce(self, key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)

    combine = reduce


def test_a_job_counts_whatever_is_declared_of_tasks_and_files(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b a\n" * 1000)
    counters = run_local(Count, [str(tmp_path / "in.txt")], str(tmp_path / "out"), Configuration.load(environ={}))
    idle = {name for name in TaskCounter if counters.get(TASK_GROUP, name) <= 0}
    assert idle == {TaskCounter.FAILED_SHUFFLE}
    for kind in FileSystemCounter:
        assert counters.get(FILE_SYSTEM_GROUP, kind.of_scheme("file")) > 0, kind


def test_peaks_of_tasks_are_compared_and_all_else_is_added() -> None:
    total = Counters()
    for peak in (5, 9, 7):
        one = Counters()
        one.increment(TASK_GROUP, TaskCounter.MAP_PHYSICAL_MEMORY_BYTES_MAX, peak)
        one.increment(TASK_GROUP, TaskCounter.PHYSICAL_MEMORY_BYTES, peak)
        one.increment("Mine", "MINE_MAX", peak)
        total.merge(one)
    assert total.get(TASK_GROUP, TaskCounter.MAP_PHYSICAL_MEMORY_BYTES_MAX) == 9
    assert total.get(TASK_GROUP, TaskCounter.PHYSICAL_MEMORY_BYTES) == 21
    assert total.get("Mine", "MINE_MAX") == 21


def _used(work: Callable[[], object]) -> dict[str, int]:
    """By a task that does it in a process of its own."""

    def task() -> dict[str, int]:
        usage = Usage()
        work()
        return usage.counters(is_map=True)

    return in_child(task)


def _script(text: str) -> Callable[[], Any]:
    return lambda: subprocess.run([sys.executable, "-c", text], check=True)


@pytest.mark.slow
def test_memory_and_time_of_a_task_are_its_own_and_its_childrens() -> None:
    idle = _used(lambda: None)
    own = _used(lambda: [len(bytes(b"x" * (200 * MB))), sum(i for i in range(3_000_000))])
    peak = TaskCounter.MAP_PHYSICAL_MEMORY_BYTES_MAX
    # one that is larger than its parent ever was: the process of these tests has its own peak
    child = _used(_script(f"b = b'x' * {idle[peak] + 200 * MB}; sum(i for i in range(3_000_000))"))
    for used in (own, child):
        assert used[peak] - idle[peak] > 150 * MB
        assert used[TaskCounter.CPU_MILLISECONDS] - idle[TaskCounter.CPU_MILLISECONDS] > 20
    assert own[TaskCounter.PHYSICAL_MEMORY_BYTES] - idle[TaskCounter.PHYSICAL_MEMORY_BYTES] < 100 * MB  # given back


def test_a_small_child_of_a_large_task_does_not_count_as_a_second_one() -> None:
    def large() -> None:
        len(bytes(b"x" * (200 * MB)))
        subprocess.run(["true"], check=True)

    peak = TaskCounter.MAP_PHYSICAL_MEMORY_BYTES_MAX
    used, idle = _used(large), _used(lambda: None)
    assert 150 * MB < used[peak] - idle[peak] < 300 * MB
    assert used[TaskCounter.PHYSICAL_MEMORY_BYTES] - idle[TaskCounter.PHYSICAL_MEMORY_BYTES] < 100 * MB


def test_children_side_by_side_count_together() -> None:
    program = f"b = b'x' * {100 * MB}; print(len(b), flush=True); input()"

    def task() -> dict[str, int]:
        usage = Usage()
        two = [
            subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for one in two:
            assert one.stdout is not None and one.stdout.readline()
        usage.counters(is_map=True)  # as a report does
        for one in two:
            one.communicate(b"\n")
        return usage.counters(is_map=True)

    used, idle = in_child(task), _used(lambda: None)
    peak = TaskCounter.MAP_PHYSICAL_MEMORY_BYTES_MAX
    assert used[peak] - idle[peak] > 190 * MB


def test_a_peak_before_the_task_is_not_the_tasks() -> None:
    def later() -> dict[str, int]:
        len(b"x" * (200 * MB))
        return Usage().counters(is_map=False)

    peak = TaskCounter.REDUCE_PHYSICAL_MEMORY_BYTES_MAX
    found, idle = in_child(later), in_child(lambda: Usage().counters(is_map=False))
    assert found[peak] - idle[peak] < 150 * MB
    assert TaskCounter.MAP_PHYSICAL_MEMORY_BYTES_MAX not in found


def test_maps_are_counted_by_how_far_they_ran_from_their_input() -> None:
    hosts = (("h1",), ("h1",), ("h1", "h3"), ("gone",), ())
    racks = {"h3": "/far"}
    small = Resource(1024, 1)
    machine = JobMachine(DagSpec((VertexSpec("map", len(hosts), small, 10, hosts=hosts),)))
    spec = JobSpec("job_1_0001", "n", "u", JobKind.MAPREDUCE, {}, "", racks=racks)
    record = JobRecord(spec, machine, round)
    machine.handle(ev.Tick(), 0.0)
    for number, host in enumerate(("h1", "h2", "h3", "h3", "h3")):
        machine.handle(ev.ContainerAllocated(f"c{number}", f"{host}:1", host, small, 10), 0.0)
    ran = {a.id.task: a.host for v in machine.vertices for t in v.tasks for a in t.attempts}
    near = {task: racks.get(host, "") in {racks.get(h, "") for h in hosts[task]} for task, host in ran.items()}
    local = sum(host in hosts[task] for task, host in ran.items())
    found = {name: value for group, name, value in record.counters() if group == JOB_GROUP}
    assert len(ran) == len(hosts)
    assert found[JobCounter.DATA_LOCAL_MAPS] == local > 0
    assert found[JobCounter.RACK_LOCAL_MAPS] == sum(near.values()) - local > 0
    assert found[JobCounter.OTHER_LOCAL_MAPS] == len(hosts) - sum(near.values()) > 0


def test_whatever_else_is_declared_is_named_where_it_is_counted() -> None:
    root = Path(__file__).parents[2]
    text = "".join(path.read_text() for path in sorted((root / "tez_adapter").rglob("*.py")) if "test" not in path.name)
    assert [name for name in (*JobCounter, TaskCounter.FAILED_SHUFFLE) if name not in text] == []


@pytest.mark.slow
def test_a_streaming_scripts_memory_is_its_tasks(cluster: Configuration, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "big.py").write_text(f"import sys\nb = b'x' * {200 * MB}\nsys.stdout.write(sys.stdin.read())\n")
    job = submit_streaming(
        cluster,
        inputs=[str(tmp_path / "in.txt")],
        output=str(tmp_path / "out"),
        mapper=f"{sys.executable} {tmp_path}/big.py",
        reducer="cat",
    )
    result = job.wait(timeout_s=60)
    job.close()
    assert result.succeeded, result.diagnostics
    task = result.counters[TASK_GROUP]
    assert task["MAP_PHYSICAL_MEMORY_BYTES_MAX"] > 200 * MB > task["REDUCE_PHYSICAL_MEMORY_BYTES_MAX"] > MB
    words = ("app", "status", "--conf", str(cluster.conf_dir), str(job.application_id), "--tasks")
    shown = subprocess.run(
        [sys.executable, "-m", "yaqd.cli", *words], capture_output=True, text=True, check=True
    ).stdout
    (line,) = (line for line in shown.splitlines() if "_m_000000_0 " in line)
    assert line.split()[1] == "SUCCEEDED" and line.endswith(" MB") and int(line.split()[-2]) > 200
