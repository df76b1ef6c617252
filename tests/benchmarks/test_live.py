"""What the live benchmark makes of starts, and the jobs that it runs."""

import asyncio
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.live_cluster import ours, site_of, stock, stock_opportunistic
from benchmarks.live_master import Addresses, LiveJob
from benchmarks.live_mixes import earlier_runs, hive, mixed
from benchmarks.live_simulated import foretell, simulated
from benchmarks.live_tasks import StartLog, Task, start_gaps, utilization
from benchmarks.options import parse_options
from benchmarks.yaq_live import UTILIZATION, Bench


def ran(number: int, node: str, start: float, seconds: float) -> Task:
    return Task(number, seconds, node=node, started_at=start)


def test_utilization_counts_only_what_lies_in_the_window() -> None:
    tasks = [ran(0, "a", 0.0, 10.0), ran(1, "a", 8.0, 100.0), ran(2, "b", 30.0, 1.0), Task(3, 5.0)]
    assert utilization(tasks, slots=2, start=5.0, end=15.0) == pytest.approx((5 + 7) / 20)


def test_start_gaps_are_per_node_and_take_each_end_once() -> None:
    tasks = [
        ran(0, "a", 0.0, 5.0),
        ran(1, "a", 0.0, 6.0),
        ran(2, "a", 7.0, 5.0),  # in the slot that is free since 5
        ran(3, "a", 7.5, 5.0),  # since 6
        ran(4, "b", 9.0, 1.0),  # nothing ended there before
    ]
    assert start_gaps(tasks, 0.0, 20.0) == pytest.approx([2.0, 1.5])
    assert start_gaps(tasks, 7.2, 20.0) == pytest.approx([1.5])


def test_hive_is_the_same_trace_each_time_and_has_a_history_of_the_same_names() -> None:
    workload = hive(0.1, 64, load=0.9)
    assert workload == hive(0.1, 64, load=0.9) and len(workload.jobs) == 9
    earlier = earlier_runs(workload)
    assert [job.name for job in earlier] == [job.name for job in workload]
    assert not any(character.isdigit() for job in workload for character in job.name)
    for before, job in zip(earlier, workload, strict=True):
        assert [len(stage.tasks) for stage in before.stages] == [1] * len(job.stages)
        mean = sum(task.duration_s for task in job.stages[0].tasks) / len(job.stages[0].tasks)
        assert before.stages[0].tasks[0].duration_s == pytest.approx(mean)


def test_mix_has_short_and_long_jobs_at_its_load() -> None:
    workload = mixed(1.0, 32)
    assert {job.name for job in workload} == {"short", "long"}
    assert [job.arrival_s for job in workload] == sorted(job.arrival_s for job in workload)
    assert 0.4 < workload.work_s / (32 * workload.jobs[-1].arrival_s) < 1.8


def test_tasks_tell_of_their_start(tmp_path: Path) -> None:
    async def run() -> StartLog:
        with StartLog(tmp_path) as log:
            tasks = [log.task(0.001) for _ in range(3)]
            commands = [log.command(task) for task in (tasks[1], tasks[0], tasks[1])]
            await asyncio.to_thread(start, log, commands)
            return log

    def start(log: StartLog, commands: list[str]) -> None:
        for command in commands:
            subprocess.run(["sh", "-c", command], check=True)
        while log.doubled == 0:
            time.sleep(0.001)

    log = asyncio.run(run())
    assert [task.started_at is not None for task in log.tasks] == [True, True, False] and log.doubled == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_simulator_foretells_a_variant_with_what_starts_took() -> None:
    workload = hive(0.1, 64, load=0.9)
    for variant in (stock(), ours(queues=True, events=True)):
        soon, late = (foretell(variant, workload, 16, poll_s=1.0, gap_s=gap_s) for gap_s in (0.05, 5.0))
        assert len(soon.by_seed[0]) == len(workload.jobs)
        assert soon.at(0.5) + 2.0 < late.at(0.5), "each start takes five seconds longer"


@pytest.mark.parametrize("queues", [True, False])
@pytest.mark.parametrize("at_asks", [True, False])
def test_a_variant_says_and_has_live_and_simulated_whether_asks_are_decided(queues: bool, at_asks: bool) -> None:
    variant = ours(queues=queues, events=False, at_asks=at_asks)
    assert site_of(variant)["yaq.rm.scheduler.at-asks"] == str(at_asks).lower()
    assert simulated(variant).at_asks is at_asks
    assert ("decisions at asks too" if at_asks else "decisions at node heartbeats alone") in variant.facts()


def test_stock_decides_at_heartbeats_but_for_opportunistic_containers() -> None:
    assert "decisions at node heartbeats alone" in stock().facts()
    assert "decisions at asks too" in stock_opportunistic(6).facts()
    assert not [key for key in site_of(stock()) if key.startswith("yaq.")]


def test_utilization_is_decided_at_regular_heartbeats_alone() -> None:
    own = [variant for variant in UTILIZATION if variant.is_ours]
    assert own and not any(variant.out_of_turn or variant.at_asks for variant in own)


@pytest.mark.parametrize("tolerates", [True, False])
def test_masters_send_the_extension_only_where_they_tolerate_waiting(tmp_path: Path, tolerates: bool) -> None:
    where = Addresses(("127.0.0.1", 1), ("127.0.0.1", 1), ("127.0.0.1", 1), "eve")

    async def made() -> LiveJob:
        with StartLog(tmp_path) as log:
            return LiveJob(where, log, name="some", stages=[], poll_s=1.0, tolerates_waiting=tolerates)

    request = asyncio.run(made()).registration()
    assert request.HasField("yaq_tolerates_waiting") is tolerates
    assert (request.host, request.rpc_port, request.tracking_url) == ("127.0.0.1", 0, "")


@pytest.mark.parametrize(("words", "said"), [([], "yes"), (["--unaware"], "no")])
def test_each_row_says_whether_masters_tolerate_waiting(tmp_path: Path, words: list[str], said: str) -> None:
    switches = {"unaware": "masters as MapReduce's"}
    bench = Bench(parse_options("yaq_live", "", ["hive-median"], switches=switches, words=words), None, tmp_path)
    assert bench.tolerates_waiting is (said == "yes")
    bench.note("hive-median", stock(), "some")
    assert bench.beside["hive-median"]["masters say that they tolerate waiting"] == said
    assert ("2.3x" in bench.beside["hive-median"]["at least"]) is (said == "yes"), "said for masters that tolerate it"
