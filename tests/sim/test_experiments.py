"""The experiments as data, their small runs, and what is said of reported against measured."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sim.small_taskset import write_taskset
from tests.sim.stages.tpch_files import STAGE, write_graph
from yaqd.sim.experiments import EXPERIMENTS, Case, Experiment, Measure, Plot, Row, Run, quick, run_experiment
from yaqd.sim.experiments.measures import NAMES
from yaqd.sim.experiments.outcome import outcomes
from yaqd.sim.experiments.plots import draw_plot, draw_plots
from yaqd.sim.experiments.report import as_json, lines
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workloads import WORKLOADS, Arrivals, Drawn

SMALL = Drawn("5-sec", 6, Arrivals("poisson", 0.5), size=0.1)
SHAPE = ClusterShape(nodes=4, slots=4)
TINY = Experiment(
    "tiny",
    "two heartbeats",
    "nowhere",
    (
        Case("slow", SMALL, SHAPE, System("yarn")),
        Case("fast", SMALL, replace(SHAPE, heartbeat_s=0.5), System("yarn"), limits=(1, 6)),
    ),
    (
        Row("faster", "fast against slow", Measure("sub_median", "fast", "slow"), 1.01),
        Row("far-faster", "fast against slow", Measure("sub_median", "fast", "slow"), 100.0, reason="light is slow"),
        Row("used", "slots", Measure("utilization", "slow"), 1000.0, "%", "at-most"),
        Row("near", "slots", Measure("utilization", "slow"), 1000.0, "%", "near", 0.1),
        Row("seen", "slots", Measure("utilization", "slow"), None, "%", "shown"),
    ),
    (
        Plot("cdf", "jct", "completion"),
        Plot("bars", "bars", "slots", "utilization", reported=(("slow", 50.0),)),
    ),
    seeds=2,
)


@pytest.fixture(scope="module")
def tiny_runs() -> list[Run]:
    return run_experiment(TINY, (1, 2))


def test_rows_say_plainly_what_holds_and_what_does_not(tiny_runs: list[Run]) -> None:
    found = {outcome.row.id: outcome for outcome in outcomes(TINY, tiny_runs)}
    assert [outcome.holds for outcome in found.values()] == [True, False, True, False, True]
    assert found["faster"].verdict == "holds"
    assert found["far-faster"].verdict.startswith("short by 9")
    assert "of reported" in found["near"].verdict
    assert len(found["faster"].values) == 2
    text = "\n".join(lines(TINY, tiny_runs, quick=False))
    assert "far-faster: light is slow" in text
    assert "seeds 1..2" in text
    assert "4 nodes x 4 slots, heartbeat 0.5 s" in text
    assert "QUICK" not in text


def test_the_best_limit_is_searched_and_said(tiny_runs: list[Run]) -> None:
    """One job at a time is never faster from submission than all that come."""
    assert {run.limit for run in tiny_runs if run.label == "fast"} == {6}
    assert "fast [6]" in "\n".join(lines(TINY, tiny_runs, quick=False))


def test_json_has_every_run(tiny_runs: list[Run]) -> None:
    value = as_json(TINY, tiny_runs, quick=True)
    assert [(run["case"], run["seed"]) for run in value["runs"]] == [
        (label, seed) for label in ("slow", "fast") for seed in (1, 2)
    ]
    assert value["rows"][1]["reason"] == "light is slow"
    assert not value["rows"][0]["reason"]
    assert set(NAMES) >= set(value["runs"][0]["metrics"])
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_results_do_not_depend_on_the_workers(tiny_runs: list[Run]) -> None:
    assert run_experiment(TINY, (1,), workers=2) == [run for run in tiny_runs if run.seed == 1]


def test_progress_counts_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    run_experiment(TINY, (1,), lambda done, total, what: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.slow
def test_figures_are_written_in_both_formats(tiny_runs: list[Run], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = draw_plots(TINY, tiny_runs, tmp_path)
    assert [path.name for path in paths] == ["tiny-jct.png", "tiny-jct.svg", "tiny-bars.png", "tiny-bars.svg"]
    assert all(path.read_bytes()[:4] in (b"\x89PNG", b"<?xm") for path in paths)
    first = paths[1].read_bytes()
    draw_plots(TINY, tiny_runs, tmp_path)
    assert paths[1].read_bytes() == first


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "yaq-c,order=lrtf,place=two-choices,bound_policy=chernoff,estimates=observed,wait_estimate=resources,aware=off",
        "yaq-c,order=" + "WIDE" * 30,
        "yaq-c,order=stf",
    ],
)
def test_long_names_are_read_whole_and_cover_no_curve(name: str) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    labels = [name, *(f"{name},starve_s={n}" for n in range(1, 6))]
    cases = tuple(
        Case(label, SMALL, replace(SHAPE, heartbeat_s=at), System("yarn")) for at, label in enumerate(labels, 1)
    )
    long = Experiment("long", "long names", "nowhere", cases, (), (Plot("cdf", "jct", "completion"),))
    runs = [Run(label, 1, None, {}, (5.0, 50.0)) for label in labels]
    figure = draw_plot(long, runs, long.plots[0])
    figure.draw_without_rendering()
    (axes,) = figure.axes
    legend, area = axes.get_legend(), axes.get_window_extent()
    names = ["".join(text.get_text().split()) for text in legend.get_texts()]
    assert names == [f"{label}(median28s)" for label in labels]
    foot = figure._supxlabel
    for shown in (legend, foot, axes.xaxis.label):
        box = shown.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1 and 0 <= box.y0 < box.y1 <= figure.bbox.y1, shown
    assert area.height > 300 and foot.get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0
    if len(name) > 40:
        assert foot.get_window_extent().y1 < legend.get_window_extent().y0
        assert legend.get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0
        assert "Poisson arrivals" in foot.get_text()
    else:
        assert area.y0 < legend.get_window_extent().y0 and area.x0 + area.width / 3 < legend.get_window_extent().x0
    plt.close(figure)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_sound_as_data(name: str) -> None:
    experiment = EXPERIMENTS[name]
    labels = [case.label for case in experiment.cases]
    assert len(set(labels)) == len(labels)
    for row in experiment.rows:
        assert row.measure.metric in NAMES
        assert {row.measure.case, row.measure.against or row.measure.case} <= set(labels)
        assert row.sense in ("at-least", "at-most") or row.bound is None, row.id
        assert 0 <= row.tolerance < 1, row.id
    assert len({row.id for row in experiment.rows}) == len(experiment.rows)
    for plot in experiment.plots:
        assert set(plot.cases) <= set(labels)
        assert plot.metric in NAMES
    for case in experiment.cases:
        if isinstance(case, Case):
            assert case.workload.name in WORKLOADS
            assert case.horizon_s is None or math.isfinite(case.horizon_s)
    small = quick(experiment)
    assert small.seeds == 1
    assert all(case.shape.nodes <= 10 for case in small.cases if isinstance(case, Case))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    # the walkers' side alone takes a minute; other rows have the same policies
    [pytest.param(name, marks=[pytest.mark.full] * (name == "hyperdrive-paper")) for name in EXPERIMENTS],
)
def test_every_experiment_runs_in_small_with_its_figures(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_taskset(tmp_path / "small.json", rows=60, epochs=51)
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path))
    monkeypatch.setenv("YAQD_TPCH", str(write_graph(tmp_path / "graphs", {0: STAGE, 1: STAGE})))
    experiment = quick(quick(EXPERIMENTS[name]))
    runs = run_experiment(experiment, (1,))
    assert {run.label for run in runs} == {case.label for case in experiment.cases}
    assert [outcome.row.id for outcome in outcomes(experiment, runs)] == [row.id for row in experiment.rows]
    assert "QUICK" in "\n".join(lines(experiment, runs, quick=True))
    assert len(draw_plots(experiment, runs, tmp_path)) == 2 * len(experiment.plots)


def test_what_is_held_against_something_is_measured_that_way_round() -> None:
    """Of times, where no bound says that more is worse."""
    checked = 0
    for experiment in EXPERIMENTS.values():
        labels = {case.label for case in experiment.cases}
        for row in experiment.rows:
            _, said, other = row.what.rpartition(" against ")
            if said and other in labels and row.sense == "shown" and row.measure.metric != "jobs_per_min":
                checked += 1
                assert row.measure.against is not None and other in row.measure.against, (experiment.name, row.id)
    assert checked > 10
