"""Effects, bests, tables and the page, of results that were made up so that they are known."""

import math
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.house.house_sources import ROOT
from yaqd.sim.study.design import FIRST_SEED, SHIPPED_NAME, Part, StudyCell, cells
from yaqd.sim.study.report.effects import CONTRASTS, auto_cells, bests, effects, queue_duels, verdict
from yaqd.sim.study.report.findings import all_tables, as_json
from yaqd.sim.study.report.intervals import Interval
from yaqd.sim.study.report.page import page
from yaqd.sim.study.report.tables import COLUMNS, Results
from yaqd.sim.study.store import FinishedTrial, StudyStore

SEEDS = range(FIRST_SEED, FIRST_SEED + 3)
PARTS: tuple[Part, ...] = ("main",)
#: how many times as fast each level makes all times
SPEED = {
    ("queues", "auto"): 0.95,
    ("queues", "always"): 0.9,
    ("events", "on"): 1.1,
    ("asks", "on"): 1.25,
    ("jobs", "fair"): 1.5,
    ("jobs", "srjf"): 2.0,
    ("nodes", "srjf"): 1.05,
}


def speed_of(cell: StudyCell, speed: dict[tuple[str, str], float]) -> float:
    return math.prod(speed.get(one, 1.0) for one in cell.factors)


def made_up(parts: tuple[Part, ...] = PARTS, speed: dict[tuple[str, str], float] = SPEED, lacking: int = 0) -> Results:
    """A study whose times are 100 s, less by what its switches do, and more by the seed."""
    chosen = cells(parts)
    store = StudyStore(Path("/nonexistent"))
    names = [name for name, *_ in COLUMNS if name != "capacity"] + ["mean"]
    for cell in chosen:
        for trial in (*cell.capacity_trials(), *cell.own_capacity_trials()):
            store.found[trial.key] = FinishedTrial({"capacity": 0.9 + trial.seed % 10 / 1000}, 1.0, "d")
    capacity = Results(chosen, SEEDS, store).capacities
    # cells of several parts share trials, which are those of the factorial: it comes last
    ordered = sorted(chosen, key=lambda cell: cell.part == "main")
    trials = ((cell, seed, cell.trial(seed, capacity[cell.id] or 0.0)) for seed in SEEDS for cell in ordered)
    for cell, seed, trial in islice(trials, len(chosen) * len(SEEDS) - lacking):
        took = 100.0 * (1 + seed % 7) / speed_of(cell, speed)
        store.found[trial.key] = FinishedTrial(dict.fromkeys(names, took), 1.0, "d")
    command = "yaq sim study --out /tmp/study"
    store.starts.append({"command": command, "commit": "c", "at": "now", "processor": "one", "python": "3.11"})
    return Results(chosen, SEEDS, store)


def said(found: Interval | None) -> tuple[float, float, float] | None:
    return None if found is None else (round(found.low, 6), round(found.mid, 6), round(found.high, 6))


@settings(max_examples=5, deadline=None)
@given(st.fixed_dictionaries({one: st.floats(0.2, 5.0) for one in SPEED}))
def test_effects_are_what_was_put_in(speed: dict[tuple[str, str], float]) -> None:
    results = made_up(speed=speed)
    for load in (0.9, None):
        found = {effect.what: effect for effect in effects(results, "median", load)}
        for factor, level, against, what in CONTRASTS:
            expected = speed[factor, level] / speed.get((factor, against), 1.0)
            if factor == "queues":  # with the shipped order against off, which has none
                expected *= speed["nodes", "srjf"]
            assert found[what].overall.mid == pytest.approx(expected)
            assert found[what].overall.low == pytest.approx(expected)
            alone, shipped = found[what].alone, found[what].shipped
            assert (alone is None) == (factor == "nodes")
            assert alone is None or alone.mid == pytest.approx(expected)
            assert (shipped is None) == (level not in ("on", "auto", "srjf") or factor == "nodes")
            assert shipped is None or shipped.mid == pytest.approx(expected)


def test_an_effect_is_over_all_combinations_of_the_others() -> None:
    pairs = {effect.what: effect.pairs for effect in effects(made_up(), "median", None)}
    assert pairs == {
        "queues at nodes: auto, not off": 12,
        "queues at nodes: always, not off": 12,
        "heartbeats out of turn": 24,
        "decisions at asks": 24,
        "jobs: fair, not fifo": 16,
        "jobs: srjf, not fifo": 16,
        "jobs: srjf, not fair": 16,
        "node order: srjf, not fifo": 12,
    }


def test_the_best_of_each_side_is_found() -> None:
    by_who = {who: found for who, found in bests(made_up()) if (found.load, found.metric) == (0.9, "median")}
    assert by_who["best"].cell.name == "ours: queues off, events on, asks on, jobs srjf"
    assert by_who["best without queues"].cell == by_who["best"].cell
    assert by_who["as shipped"].cell.name == SHIPPED_NAME
    assert by_who["all off"].cell.name == "ours: queues off, events off, asks off, jobs fair"
    assert {found.other.side for found in by_who.values()} == {"stock"}
    assert by_who["as shipped"].faster.mid == pytest.approx(0.95 * 1.1 * 1.25 * 2.0 * 1.05)


def test_queues_are_said_to_cost_where_they_do() -> None:
    duels = list(queue_duels(made_up(), "p95"))
    assert len(duels) == 3 * 12
    assert {verdict(found.faster) for found in duels} == {"queues cost here"}
    assert verdict(Interval(1.1, 1.01, 1.2)) == "queues pay here"
    assert verdict(Interval(1.1, 0.99, 1.2)) == verdict(Interval(1.1, math.nan, math.nan)) == "no difference shown"
    assert said(duels[0].faster) == (0.945, 0.945, 0.945)


def test_only_seeds_that_all_cells_have_count() -> None:
    results = made_up(lacking=4)
    assert results.seeds["main"] == tuple(SEEDS[:-1])
    # cells that are equal share their trials: without queues nothing on is stock
    assert 1 <= results.missing()["main"] <= 4
    assert "The tables have 2 of 3 seeds. `yaq sim study --only main" in page(results)
    empty = Results(cells(PARTS), SEEDS, StudyStore(Path("/nonexistent")))
    assert not list(all_tables(empty))


def test_one_seed_has_figures_and_no_interval() -> None:
    whole = made_up(("main", "loads", "others"))
    one = Results(cells(), SEEDS[:1], whole.store)
    text = page(one)
    assert "nan" not in text
    assert "One seed has no intervals" in text
    assert "| 0.945x | 0.945x |" in text


def test_the_page_keeps_to_the_style_and_names_its_commands(tmp_path: Path) -> None:
    """Of all parts, whole and not: sentences are short, and each section with figures names its command."""
    whole = tmp_path / "whole.md"
    whole.write_text(page(made_up(("main", "loads", "others")), "Something else changed."))
    part = tmp_path / "part.md"
    part.write_text(page(made_up(("main", "loads", "others"), lacking=400)))
    for script in ("scripts/prose.py", "scripts/claims.py --check"):
        path, *options = script.split()
        command = [sys.executable, *map(str, (ROOT / path, *options, whole, part))]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    text = whole.read_text()
    assert "\n\nSomething else changed.\n\n" in text
    assert "## What is missing" not in text
    assert "## What is missing" in part.read_text()
    assert text.count("| stock: fifo, heartbeat 1 s |") == 3
    for plot in ("effects", "queues", "loads"):
        assert f"(images/study-{plot}.svg)" in text
    most = "`jobs: srjf, not fifo` helps most, 2.000x (2.000 to 2.000)."
    assert f"Median: of switches whose interval leaves out 1, {most}" in text
    assert "Median: what ships is" in text
    assert "At 0.9, median, among what ships: queues cost here, 0.997x (0.997 to 0.998)." in text


def test_auto_is_held_against_the_better_of_both() -> None:
    found = list(auto_cells(made_up(("main", "loads", "others")), "median"))
    assert len([cell for cell in found if cell.where.startswith("main, ")]) == 3 * 12
    assert {round(cell.worth, 6) for cell in found if cell.where.startswith("main, ")} == {round(0.95 * 1.05, 6)}
    assert all(cell.auto_s > cell.off_s for cell in found if cell.where.startswith("main, "))
    assert {cell.where.partition(", ")[0] for cell in found} == {"main", "loads", "others"}
    # the same in each seed, so it is certain
    assert {said(cell.faster) for cell in found if cell.where.startswith("main, ")} == {(0.9975, 0.9975, 0.9975)}
    slower = made_up(speed={**SPEED, ("queues", "auto"): 0.8})
    assert min(cell.worth for cell in auto_cells(slower, "median")) == pytest.approx(0.8 * 1.05)


def test_json_has_each_figure_by_seed() -> None:
    results = made_up()
    found = as_json(results, all_tables(results))
    assert found["missing"] == {}
    (shipped,) = (cell for cell in found["cells"] if cell["cell"] == SHIPPED_NAME and cell["load"] == 0.9)
    assert len(shipped["figures"]["median"]) == len(SEEDS)
    assert shipped["factors"]["nodes"] == "srjf"
    assert shipped["load_of_slots"] == pytest.approx(0.9 * 0.902, abs=1e-4)
