"""What the study runs, how a trial is known, and of which code a result is."""

import ast
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sim.sim_jobs import map_reduce, mixed, same
from tests.sim.study.study_cells import GROUND
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.simulation import simulate
from yaqd.sim.study.design import BASE, MAIN_LOADS, OFF, SHIPPED, SHIPPED_NAME, cells, scaled, small
from yaqd.sim.study.digest import code_digest, code_files, digest_of, runs_on
from yaqd.sim.study.trial import StudyTrial, alone_s, saturated, with_start

_OURS = ("nm", "riffle_merger", "rm", "tez_adapter", "yaqd")


def test_the_factorial_is_whole() -> None:
    main = cells(("main",))
    ours = [cell for cell in main if cell.side == "ours"]
    assert len(ours) == len(MAIN_LOADS) * (12 + 12 + 2 * 12)
    assert all(count == len(MAIN_LOADS) for count in Counter(cell.system for cell in ours).values())
    assert {cell.system for cell in ours if cell.name == SHIPPED_NAME} == {SHIPPED}
    assert {cell.of for cell in main} == {OFF}


def test_loads_of_the_factorial_are_the_same_for_all() -> None:
    """However often nodes report: what is measured are the same runs."""
    for main in (cells(("main",)), small(cells(("main",)))):
        assert len({tuple(trial.key for trial in cell.capacity_trials()) for cell in main}) == 1
        assert len({cell.ground.shape.heartbeat_s for cell in main}) == 3


def test_a_cell_is_known_by_its_name() -> None:
    for found in (cells(), small(cells())):
        names = Counter((cell.part, cell.load, cell.name, cell.factors) for cell in found)
        assert max(names.values()) == 1


def test_half_the_nodes_have_half_the_jobs() -> None:
    plain, half = cells(("main",)), scaled(cells(("main",)), 40)
    assert {cell.ground.shape.nodes for cell in half} == {40}
    assert {cell.ground.jobs for cell in half} == {92}
    assert scaled(plain, 80) == plain


def test_factors_say_what_the_system_has() -> None:
    for cell in (one for one in cells(("main",)) if one.side == "ours"):
        assert (cell.system.name == "yaq-c") == (cell.level("queues") != "off")
        assert cell.system.bound_least == (cell.level("queues") == "always")
        assert cell.system.out_of_turn == (cell.level("events") == "on")
        assert cell.system.at_asks == (cell.level("asks") == "on")
        assert cell.system.job_order == cell.level("jobs")
        assert cell.level("nodes") in ("", cell.system.order)


def test_a_start_is_as_long_as_is_said() -> None:
    shape = with_start(ClusterShape(), 2.0)
    assert shape.start_gap_s + shape.prepare_s == pytest.approx(2.0)
    assert BASE.shape == replace(BASE.shape, start_gap_s=0.15, prepare_s=0.85)


def test_the_key_is_of_what_is_not_as_unsaid() -> None:
    trial = StudyTrial(GROUND, OFF, 1, 0.5)
    assert trial.said()["system"] == {}
    assert trial.key == StudyTrial(GROUND, System(), 1, 0.5).key
    others = (
        replace(trial, seed=2),
        replace(trial, load=0.6),
        replace(trial, load=None),
        replace(trial, system=replace(OFF, starve_ratio=2.0)),
        replace(trial, ground=replace(GROUND, jobs=3)),
        replace(trial, ground=replace(GROUND, shape=replace(GROUND.shape, heartbeat_s=3.0))),
    )
    assert len({one.key for one in (trial, *others)}) == 1 + len(others)


def test_no_job_is_faster_than_alone() -> None:
    shape = ClusterShape(nodes=2, slots=3, heartbeat_s=0.5)
    workload = mixed(8)
    result = simulate(shape, workload, OFF)
    alone = {job.name: alone_s(job, shape.total_slots) for job in workload}
    assert all(job.from_submission > alone[job.name] for job in result.jobs)
    chain = map_reduce(0, 2, 1, 4.0)
    assert alone_s(chain, 6) == 8.0
    assert alone_s(chain, 1) == 12.0


def test_capacity_is_what_a_full_cluster_does() -> None:
    """A second of start for five of work, and no more than a heartbeat for the next one."""
    found, _ = StudyTrial(replace(GROUND, jobs=6, shape=with_start(GROUND.shape, 1.0)), OFF, 1).run()
    assert 5 / (5 + 1 + 1 + 1) < found["capacity"] < 5 / (5 + 0.15)


def test_nothing_saturates_nothing() -> None:
    result = simulate(ClusterShape(nodes=1, slots=1), mixed(1), OFF, horizon_s=0.01)
    assert saturated(result) == 0.0


def test_a_clock_changes_no_decision() -> None:
    shape, workload, ticks = ClusterShape(nodes=2, slots=3), mixed(4), iter(range(1, 1_000_000))
    for system in (OFF, SHIPPED):
        plain = simulate(shape, workload, system)
        timed = simulate(shape, workload, system, clock=lambda: next(ticks))
        assert same(plain, timed)
        assert "decision_ns" not in plain.counts
        # at least an ask and an end of each task
        assert timed.counts.pop("decision_ns") >= plain.tasks
        assert timed.counts == plain.counts


def test_the_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    one, other = tmp_path / "a.py", tmp_path / "b.py"
    one.write_text("x = 1\n")
    other.write_text("y = 1\n")
    before = digest_of([("a", one), ("b", other)])
    assert before == digest_of([("a", one), ("b", other)])
    assert before != digest_of([("a", other), ("b", one)])
    assert before != digest_of([("a", one)])
    other.write_text("y = 2\n")
    assert before != digest_of([("a", one), ("b", other)])


def test_the_digest_covers_what_decides_and_no_page() -> None:
    names = {name for name, _ in code_files()}
    for decides in (
        "rm.scheduler/scheduler.py",
        "nm.node_queue/node_queue.py",
        "yaqd.policies/queueing/order.py",
        "yaqd.sim/central.py",
        "yaqd.sim/study/trial.py",
        "yaqd.sim/workloads/drawn.py",
    ):
        assert decides in names
    assert not {"yaqd.sim/study/tables.py", "yaqd.sim/experiments/plots.py"} & names
    assert code_digest() == digest_of(code_files(), runs_on()) != digest_of(code_files())


def test_the_digest_covers_all_code_that_a_trial_imports() -> None:
    """In a process that has imported nothing else."""
    code = f"""
import sys
from yaqd.sim.study.design import PARTS, cells, small
chosen = small(cells(PARTS))
for system in {{cell.system.name: cell for cell in chosen}}.values():
    system.trial(1001, 0.9).run()
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in {_OURS!r} and module.__file__:
        print(name, module.__file__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert "yaqd.model.resources" in imported
    covered = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name, _ in code_files()}
    left_out = {name for name in imported if name not in covered and not _is_empty(Path(imported[name]))}
    assert left_out <= {"yaqd.sim.study.design"}


def _is_empty(path: Path) -> bool:
    """Tell whether a package's file says nothing but what the package is."""
    return len(ast.parse(path.read_text()).body) <= 1
