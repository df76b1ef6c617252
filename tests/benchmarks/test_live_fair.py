"""The live rows against stock's `fair`: the same jobs for both sides, and what is made of their runs."""

import math
from collections.abc import Sequence

import pytest

from benchmarks.live_cluster import NODES, Variant, shipped, site_of, stock, stock_fair, stock_opportunistic
from benchmarks.live_fair import FAIR_ROWS, OUR_CAPACITY, STOCK_CAPACITY, measure_fair, percentile
from benchmarks.live_master import Failures
from benchmarks.live_runs import Traced
from benchmarks.live_simulated import simulated, system_of
from yaqd.sim.workload import Workload


def traced(**seconds: Sequence[float]) -> Traced:
    names = [name for name, found in seconds.items() for _ in found]
    times = [one for found in seconds.values() for one in found]
    return Traced(times, times, Failures(), 0, 1.0, names)


class Told:
    """Answers with given runs, and keeps what it is told."""

    def __init__(self, own: list[Traced], theirs: list[Traced]) -> None:
        self._runs = {True: own, False: theirs}
        self.asked: list[tuple[str, str, int, Workload]] = []
        self.notes: list[str] = []
        self.added: list[tuple[str, Sequence[float], Sequence[float]]] = []

    def wanted(self, variants: Sequence[Variant]) -> list[Variant]:
        return [variant for variant in variants if self._runs[variant.is_ours]]

    def traced(self, row: str, what: str, workload: Workload, variant: Variant, slots: int) -> list[Traced]:
        self.asked.append((what, variant.name, slots, workload))
        return self._runs[variant.is_ours]

    def note(self, row: str, variant: Variant, text: str) -> None:
        self.notes.append(text)

    def add(self, row: str, own: Sequence[float], theirs: Sequence[float], unit: str) -> None:
        self.added.append((row, own, theirs))


def test_figures_are_of_the_kind_of_jobs_that_is_asked_for() -> None:
    run = traced(short=[1.0, 2.0, 3.0], long=[50.0, 40.0])
    assert percentile(0.5, "short")(run) == 2.0
    assert percentile(1.0, "long")(run) == 50.0
    assert percentile(0.5)(run) == 3.0


@pytest.mark.parametrize("row", FAIR_ROWS)
def test_both_sides_have_the_same_jobs_and_the_heartbeat_of_the_row(row: str) -> None:
    bench = Told([traced(short=[1.0], long=[9.0])], [traced(short=[2.0], long=[8.0])])
    measure_fair(bench, row, 0.2)
    (_, _, slots, theirs), (_, _, same_slots, own) = bench.asked
    assert theirs == own and slots == same_slots
    assert [row for row, _, _ in bench.added] == [row]
    assert not [text for text in bench.notes if "x (" in text], "one run has no interval"


def test_loads_are_parts_of_what_the_sides_can_do() -> None:
    bench = Told([traced(short=[1.0], long=[9.0])], [])
    measure_fair(bench, "small-first-short", 4.0)
    measure_fair(bench, "hive-fair-median", 4.0)
    (_, _, mix_slots, mix), (_, _, hive_slots, hive) = bench.asked
    for workload, slots, load in ((mix, mix_slots, 0.9 * OUR_CAPACITY), (hive, hive_slots, 0.7 * STOCK_CAPACITY)):
        offered = workload.work_s / (slots * NODES * workload.jobs[-1].arrival_s)
        assert load / 1.5 < offered < load * 1.5
    assert sum(job.name == "short" for job in mix) == 4 * sum(job.name == "long" for job in mix)


def test_runs_of_both_sides_have_an_interval() -> None:
    own, theirs = [1.0, 1.1, 1.0], [1.5, 1.5, 1.6]
    bench = Told([traced(a=[one]) for one in own], [traced(a=[one]) for one in theirs])
    measure_fair(bench, "hive-fair-p95", 0.1)
    assert bench.added == [("hive-fair-p95", own, theirs)]
    (found,) = (text for text in bench.notes if "x (" in text)
    low, high = (float(word.strip("()")) for word in found.split("x ")[1].split(" to "))
    middle = math.prod(other / one for one, other in zip(own, theirs, strict=True)) ** (1 / 3)
    assert float(found.partition("x")[0]) == pytest.approx(middle, abs=0.01) and 1.2 < low < middle < high < 2.0


@pytest.mark.parametrize("variant", [stock(), stock(1000), stock_fair(1000), stock_opportunistic(6)])
def test_stocks_nodes_report_ends_at_once_live_and_simulated(variant: Variant) -> None:
    assert "out-of-turn heartbeats on" in variant.facts() and system_of(variant, aware=True).out_of_turn
    assert not [key for key in site_of(variant) if key.startswith("yaq.")], "they do by themselves"


def test_the_best_of_stock_is_fair_on_both_sides_of_its_twin() -> None:
    system = system_of(stock_fair(1000), aware=True)
    assert (system.job_order, system.rules, system.off_switch_max) == ("fair", "stock", 100)
    assert site_of(stock_fair(1000))["yarn.scheduler.capacity.root.default.ordering-policy"] == "fair"


def test_what_ships_is_simulated_by_shipped_settings() -> None:
    system = simulated(shipped(1000))
    assert (system.name, system.job_order, system.estimates, system.bound_least) == ("yaq-c", "srjf", "blended", 0)
    assert system.out_of_turn and system.at_asks
