"""What a process of its own costs each task: `python -m benchmarks.task_start`.

One job after the other runs 200 maps of one short line each, every map in a process of its own, and then the same maps
in one process that has loaded the program once. What the first takes longer is the price of a fresh start. Columns:
milliseconds a task by the clock (median) and of processor time (mean), with the libraries that the tasks share
(`yaq.job.share-imports`), and with each task importing them.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.tasks.forked import run_in_child
from tez_adapter.tasks.local_tasks import LocalAttempt, LocalTask, LocalTasks, Work, work_of
from tez_adapter.tasks.map_task import run_map
from tez_adapter.tasks.runners import import_runners
from tez_adapter.tasks.shared_imports import SHARE_KEY
from yaqd.config import Configuration
from yaqd.mapreduce import InputFormat, Job, load_job
from yaqd.proto import job_pb2 as pb
from yaqd.storage import compute_splits

_WORD_COUNT = (Path(__file__).parents[1] / "examples/wordcount.py").read_text(encoding="utf-8")
_PROGRAMS = {
    "word count": _WORD_COUNT,
    "imports numpy": f"import numpy as np\nimport numpy.random\n{_WORD_COUNT}",
    "imports much": "import asyncio, http.server, sqlite3, unittest, xml.etree.ElementTree\n"
    f"import pyarrow.dataset\n{_WORD_COUNT}",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a task."""

    wall_ms: float
    cpu_ms: float


def measure(run: Callable[[], list[float]]) -> Cost:
    """`run` returns seconds by the clock, one number a task; all that it starts has ended by then."""
    before = _cpu_s()
    times = run()
    return Cost(statistics.median(times) * 1000, (_cpu_s() - before) / len(times) * 1000)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Maps:
    """The maps of a job over one short file, all the same."""

    def __init__(self, folder: Path, program: str, conf: Configuration, count: int) -> None:
        self._folder, self._conf, self._count = folder, conf, count
        self._script = folder / "program.py"
        self._script.write_text(program, encoding="utf-8")
        source = folder / "line.txt"
        source.write_text("one line of a few words\n", encoding="utf-8")
        # the program is not loaded here: what it imports would be the tasks' already
        self._spec = JobSpec(
            job_id="job_1_0001",
            name="task-start",
            user="bench",
            kind=JobKind.MAPREDUCE,
            conf={},
            staging="",
            class_name=Job.__name__,
            output=f"file://{folder}/out",
            reduces=1,
            input_format=Job.input_format,
            output_format=Job.output_format,
        )
        split = compute_splits([str(source)], InputFormat.parse(Job.input_format), conf)[0]
        self._split = json.dumps(split.to_json())

    def _description(self, index: int) -> bytes:
        ref = pb.AttemptRef(vertex=0, index=index, number=0)
        described = pb.TaskDescription(attempt=ref, kind=pb.TaskDescription.MAP, attempt_id=f"m_{index}")
        described.split = self._split
        return described.SerializeToString()

    def apart(self, *, shares: bool) -> Cost:
        """Each in a process of its own."""
        conf = self._conf.with_overrides({SHARE_KEY: str(shares).lower()})

        def run() -> list[float]:

            def load(before: Callable[[Path], None]) -> Work:
                return work_of(load_job(self._script, before=before), {"min_length": 1})

            with LocalTasks(load, conf) as tasks:
                return [timed(lambda n=n: self._run(tasks, n)) for n in range(self._count)]  # type: ignore[misc]

        return measure(run)

    def _run(self, tasks: LocalTasks, index: int) -> None:
        task = LocalTask(self._description(index), self._spec, None, self._folder)
        ended = tasks.run(task)
        if ended.outcome is None or ended.outcome[:1] != b"D":
            raise RuntimeError(f"a task failed: {ended}")

    def together(self) -> Cost:
        """All in one process, whose program is loaded once."""

        def work() -> bytes:
            job_class = load_job(self._script)
            times = []
            for index in range(self._count):
                described = pb.TaskDescription.FromString(self._description(index))
                attempt = LocalAttempt(described, self._spec, self._conf, self._folder)
                times.append(timed(lambda a=attempt: run_map(a, job_class, {"min_length": 1})))  # type: ignore[misc]
            return json.dumps(times).encode("ascii")

        def run() -> list[float]:
            ended = run_in_child(work)
            return list(json.loads(ended.outcome or b""))

        return measure(run)


def _rows(count: int) -> list[tuple[str, Cost, Cost | None]]:
    import_runners(JobKind.MAPREDUCE)
    conf = Configuration.load(environ={})
    empty = measure(lambda: [timed(lambda: run_in_child(bytes)) for _ in range(count)])
    rows: list[tuple[str, Cost, Cost | None]] = [("empty child", empty, None)]
    for name, program in _PROGRAMS.items():
        folder = Path(tempfile.mkdtemp(prefix="yaqd-bench-"))  # not a context: a child's end would remove it
        try:
            maps = Maps(folder, program, conf, count)
            base = maps.together()
            shared, alone = (_more(maps.apart(shares=shares), base) for shares in (True, False))
            rows.append((name, shared, alone))
        finally:
            shutil.rmtree(folder)
    return rows


def _more(cost: Cost, base: Cost) -> Cost:
    return Cost(cost.wall_ms - base.wall_ms, cost.cpu_ms - base.cpu_ms)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.task_start", description="what a fresh task costs")
    parser.add_argument("--tasks", type=int, default=200, help="maps of each job (default 200)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    rows = _rows(max(1, options.tasks))
    if options.json:
        found = {name: {"shared": _pair(a), "alone": b and _pair(b)} for name, a, b in rows}
        print(json.dumps({"added_ms_a_task": found, "load": os.getloadavg()[0], "cpus": os.cpu_count()}))
        return 0
    print(f"{'added to each task, ms':24}{'shared: clock':>15}{'processor':>11}{'alone: clock':>15}{'processor':>11}")
    for name, shared, alone in rows:
        cells = [*_pair(shared), *(_pair(alone) if alone else ())]
        widths = (15, 11, 15, 11)
        print(f"{name:24}" + "".join(f"{cell:{width}.1f}" for cell, width in zip(cells, widths, strict=False)))
    return 0


def _pair(cost: Cost) -> tuple[float, float]:
    return cost.wall_ms, cost.cpu_ms


if __name__ == "__main__":
    sys.exit(main())
