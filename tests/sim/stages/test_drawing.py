"""Pictures of jobs: what is drawn is what ran."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from yaqd.cli.clotho.draw import draw
from yaqd.policies.clotho.heuristics import Fair
from yaqd.sim.stages.drawing import watched
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.graphs import draw_graphs, draw_load


def test_what_is_drawn_is_what_ran() -> None:
    load, rules, took = draw_load(draw_graphs(1, 12), 3, 4), Rules(7, 0.5), list[tuple[float, float]]()
    found = run_load(load, Fair(), rules, watch=lambda job, begin_s, end_s: took.append((begin_s, end_s)))
    drawn = watched("fair", load, Fair(), rules)
    assert (drawn.mean_s, drawn.makespan_s) == (found.took_s.mean(), found.makespan_s)
    assert len(took) == found.tasks
    begin_s, end_s = np.array(took).T[:, :, None]
    assert (drawn.running.sum(axis=0) == ((begin_s <= drawn.times) & (drawn.times < end_s)).sum(axis=0)).all()
    assert (
        drawn.times[-1] == found.makespan_s
        and drawn.running.min() >= 0
        and drawn.running.sum(axis=0).max() <= 7
        and not drawn.running[:, -1].any()
    )


def test_the_command_writes_a_panel_for_each_policy(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "jobs.svg"
    options = ["--graphs", "drawn", "--jobs", "3", "--slots", "9", "--beside", "capped", "--beside", "fifo"]
    shown = CliRunner().invoke(draw, [*options, "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    names = [line.partition(":")[0] for line in shown.output.splitlines()]
    assert names == ["trained (shipped)", "capped", "fifo", f"wrote {out}"]
    assert "</svg>" in out.read_text()


def test_a_picture_that_cannot_be_is_said(tmp_path: Path) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"none")
    for options, says in (
        ([str(bad), "--out", str(tmp_path / "a.png")], "bad.npz"),
        (["--out", str(tmp_path / "a.xyz")], "xyz"),
        (["--out", str(tmp_path / "no" / "a.png")], "No such file"),
    ):
        shown = CliRunner().invoke(draw, [*options, "--graphs", "drawn", "--jobs", "1"])
        assert shown.exit_code != 0 and says in str(shown.exception) + shown.output, options
