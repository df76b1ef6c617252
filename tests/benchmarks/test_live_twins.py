"""The simulated twins of live traces: what is measured of starts, and runs that are kept."""

import math
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.live_cluster import Variant, beats_within, ours, stock
from benchmarks.live_load_twins import backlog_twin, latency_twin
from benchmarks.live_master import Failures
from benchmarks.live_mixes import mixed
from benchmarks.live_runs import Loaded, Traced
from benchmarks.live_tasks import Task, TaskRecord, record
from benchmarks.live_traced import Traces, code_digest, keep, kept, settings_of
from benchmarks.live_twins import Lived, at_once, start_turn, twin
from benchmarks.options import parse_options
from benchmarks.yaq_live import UTILIZATION
from yaqd.sim.shape import LivedTimes
from yaqd.sim.workload import Workload

ROOT = Path(__file__).parents[2]
WORKLOAD = mixed(0.1, 32)
OURS = ours(queues=True, events=True, name="ours")


def started(node: str, given: float, start: float, seconds: float) -> TaskRecord:
    return TaskRecord(node, seconds, given, given, start, start + seconds + 1.0)


def traced(launch_s: float = 0.1, turn_s: float = 0.02) -> Traced:
    """A run in which all tasks of a job come at once."""
    stages, ends = [], []
    for job in WORKLOAD:
        at = job.arrival_s
        tasks = [
            started(f"n{number}", at, at + launch_s + turn_s * number, task.duration_s)
            for number, task in enumerate(job.stages[0].tasks)
        ]
        stages.append([tasks])
        ends.append(max(task.started_s + task.duration_s for task in tasks) - at)
    names = [job.name for job in WORKLOAD]
    launches = [launch_s] * 9
    failures = Failures({1: 2}, 1, "why")
    return Traced(ends, ends, failures, 0, 9.0, names, [1, 2], [], launches, [0.05] * 9, stages, [0.0] * 9)


def test_those_that_wait_at_their_node_are_no_part_of_a_burst() -> None:
    tasks = [
        started("a", 0.0, 0.1, 2.0),
        started("a", 0.0, 0.1, 5.0),
        started("a", 1.0, 2.2, 5.0),  # in the slot that got free at 2.1
        started("a", 6.0, 6.1, 5.0),  # in the one that is free since 5.1
        started("b", 1.0, 3.0, 5.0),  # nothing ended there
    ]
    assert list(at_once(tasks)) == [tasks[0], tasks[1], tasks[3], tasks[4]]


def test_the_turn_of_a_start_is_seen_where_many_start_at_once() -> None:
    burst = [started(f"n{number}", 0.001 * number, 0.3 + 0.021 * number, 5.0) for number in range(11)]
    assert start_turn(burst) == pytest.approx(0.02), "a start each 21 ms, of which 1 ms is how they were given"
    one_after_another = [started("m", 0.02 * number, 9.0 + 0.01 * number, 0.001) for number in range(100)]
    assert start_turn(burst + one_after_another) == pytest.approx(0.01), "the machine has shown that it can do more"
    assert start_turn(burst[:5]) == 0.0, "too few"
    assert start_turn([*burst[:5], *(replace(task, given_s=3.0, started_s=3.1) for task in burst[5:10])]) == 0.0
    spread = [replace(task, node="one", given_s=task.given_s + number) for number, task in enumerate(burst)]
    assert start_turn(spread) == 0.0


@pytest.mark.parametrize("apart_s", [0.0, 0.001, 0.014])
def test_starts_that_hold_none_back_show_no_turn_however_they_were_given(apart_s: float) -> None:
    given = [round(float(burst) + apart_s * number, 3) for burst in range(10) for number in range(8)]
    tasks = [started(f"n{number}", at, at + 0.05, 5.0) for number, at in enumerate(given)]
    assert start_turn(tasks) == pytest.approx(0.0, abs=1e-9)
    held = [replace(task, started_s=task.started_s + 0.01 * (number % 8)) for number, task in enumerate(tasks)]
    assert start_turn(held) == pytest.approx(0.01), "and ten milliseconds more where each holds the next back so long"


def test_a_task_that_has_not_started_has_no_record() -> None:
    task = Task(0, 2.0)
    with pytest.raises(ValueError, match="task 0 has not started"):
        record(task, 0.0)
    task.asked_at, task.given_at, task.started_at, task.told_at, task.node = 11.0, 12.0, 12.5, 15.0, "a"
    assert record(task, 10.0) == TaskRecord("a", 2.0, 1.0, 2.0, 2.5, 5.0)


def test_a_run_that_was_kept_is_not_made_again(tmp_path: Path) -> None:
    words = ["--keep", str(tmp_path), "--scale", "0.1"]
    options = parse_options("yaq_live", "", ["hive-median"], runs=1, words=words, keeps=True)

    def no_place() -> Path:
        raise AssertionError("nothing is to be run")

    traces = Traces(options, None, no_place, 1.0, True)
    keep(traced(), tmp_path / "mix-ours-0.1-0.json", settings_of(WORKLOAD, OURS, 8, aware=True, code=code_digest()))
    assert traces.run("mix", WORKLOAD, OURS, 8) == [traced()]
    assert list(traces.twins()) == [traces.twin("mix", OURS)]
    assert next(traces.twins()) is traces.twin("mix", OURS), "it is simulated once"
    with pytest.raises(AssertionError, match="nothing is to be run"):
        traces.run("mix", WORKLOAD, stock(), 8)


def test_a_kept_run_of_other_jobs_settings_or_code_is_refused(tmp_path: Path) -> None:
    def settings(workload: Workload = WORKLOAD, variant: Variant = OURS, **more: Any) -> dict[str, Any]:
        return settings_of(workload, variant, 8, **{"aware": True, "code": "c0de", **more})

    path = tmp_path / "some.json"
    keep(traced(), path, settings())
    assert kept(path, settings()) == traced()
    others = {
        "jobs, work_s": settings(mixed(0.2, 32)),
        "variant": settings(variant=replace(OURS, site={"yaq.queue.order": "lrtf"})),
        "aware": settings(aware=False),
        "code": settings(code="c0df"),
    }
    for what, other in others.items():
        with pytest.raises(ValueError, match=f"was made with other {what}: take another folder"):
            kept(path, other)


def test_what_is_kept_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "some.json"
    keep(traced(), path, {"code": "1"})
    with pytest.raises(TypeError):
        keep(traced(), path, {"code": object()})
    assert kept(path, {"code": "1"}) == traced(), "what could not be written has not harmed what was there"
    assert list(path.parent.iterdir()) == [path]


def test_the_digest_is_of_what_runs_and_not_of_the_simulator(tmp_path: Path) -> None:
    assert code_digest() == code_digest.__wrapped__() and len(code_digest()) == 64

    def tree(name: str, **edits: str) -> str:
        root = tmp_path / name
        shutil.copytree(
            ROOT / "benchmarks", root / "benchmarks", ignore=lambda _, names: [n for n in names if n[-3:] != ".py"]
        )
        for package in ("nm", "rm", "yaqd/sim"):
            (root / package).mkdir(parents=True)
            (root / package / "some.py").write_text(edits.get(package.replace("/", "_"), ""))
        return code_digest(root)

    same = tree("one")
    assert same == tree("two") == tree("three", yaqd_sim="a = 1\n")
    assert len({same, tree("four", rm="a = 1\n"), tree("five", nm="a = 1\n")}) == 3


def test_a_twin_is_told_what_its_run_showed_and_rows_hold_both() -> None:
    runs = [traced(), traced(0.3)]
    found = twin(Lived("mix", WORKLOAD, OURS, 8, runs), poll_s=1.0, aware=True)
    turn_s = start_turn(traced().tasks)
    assert 0.01 < turn_s <= 0.02
    assert found.times == LivedTimes(register_s=0.05, hears_by_polls=True, start_turn_s=turn_s)
    assert found.gap_s == pytest.approx(0.2 - turn_s), "of the two runs, without the turn"
    median, p95 = found.rows()
    assert (median.id, p95.id) == ("twin of mix: ours: median", "twin of mix: ours: p95")
    assert median.runs == 2 and median.theirs == found.foretold.at(0.5)
    assert median.ratio == pytest.approx(found.foretold.at(0.5) / median.ours)


@pytest.mark.parametrize("waits", [True, False])
def test_a_backlog_in_the_simulator_uses_what_heartbeats_and_starts_leave(waits: bool) -> None:
    variant = UTILIZATION[2] if waits else UTILIZATION[0]
    records = [started("a", 9.0 * number, 9.0 * number + 0.1, 5.0) for number in range(9)]
    gaps = [0.02] * 9 if waits else []
    loaded = Loaded(0.5, [0.1] * 9, Failures(), 0, 9, [2, 3], gaps, records, 600, 13.0, 30.0)

    def used(gap_s: float) -> float:
        told = replace(
            loaded,
            queued_gaps_s=[gap_s] * 9 if waits else [],
            records=[replace(task, started_s=task.given_s + gap_s) for task in records],
        )
        return statistics.median(backlog_twin(variant, told, slots=8, duration_s=5.0, poll_s=1.0, aware=True))

    soon, late = used(0.02), used(1.0)
    assert 0.95 < soon <= 1.0 if waits else 0.6 < soon < 0.9, "without queues a slot waits for the next heartbeat"
    assert late < soon - 0.08, "a start takes a second more, of six"


def test_one_container_at_a_time_waits_for_a_heartbeat_unless_asks_are_decided() -> None:
    by_beats, in_step, at_asks = (
        latency_twin(variant, 0.2, beats_within_s=within_s, slots=8, poll_s=0.02, aware=True)
        for variant, within_s in ((stock(), math.inf), (stock(), 0.1), (OURS, math.inf))
    )
    assert min(by_beats) >= 0.2 and 0.4 < statistics.median(by_beats) < 1.2, "the next of four nodes"
    assert max(by_beats) < 3.3 and max(in_step) < 3.3
    assert 1.2 < statistics.median(in_step) < 2.2, "all four beat within a tenth of a second of each other"
    assert statistics.median(at_asks) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(("lines", "span_s"), [(4, 1.25), (3, math.inf), (0, math.inf)])
def test_stock_nodes_beat_as_far_apart_as_their_resource_manager_has_registered_them(
    lines: int, span_s: float, tmp_path: Path
) -> None:
    log = tmp_path / "stock" / "logs" / "resourcemanager.log"
    log.parent.mkdir(parents=True)
    line = "2026-11-28 20:00:0{},{:03} INFO rm.ResourceTrackerService: NodeManager from node 127.0.0.{}(cmPort: 1)\n"
    log.write_text("".join(line.format(1 + at // 2, 250 + 250 * (at % 2), at) for at in range(lines)) + "no time: x\n")
    assert beats_within(stock(), tmp_path) == pytest.approx(span_s)
    assert beats_within(OURS, tmp_path) == math.inf, "its log is not read"
