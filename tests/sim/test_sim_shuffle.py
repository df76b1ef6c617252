"""The model of a shuffle's time: the paper's figures, and what holds for any job."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from riffle_merger.plan.policy import MergePolicy
from yaqd.cli.sim import sim
from yaqd.sim.shuffle import MapStage, ShuffleJob, growth, map_ends, run, spill_s
from yaqd.sim.shuffle_figures import check, growing, headline, spilling


def test_the_papers_figures_come_out_within_an_eighth() -> None:
    for figure in headline(1):
        if figure.reported is not None:
            assert abs(figure.modelled / figure.reported - 1) < 0.13, figure


def test_fewer_maps_spill_and_more_shuffle() -> None:
    [best] = [f for f in spilling() if f.reported is not None]
    assert 500 <= best.modelled <= 2000
    assert spill_s(ShuffleJob(300, 10, 3e12)) > 0 == spill_s(ShuffleJob(3000, 10, 3e12))


def test_the_shuffle_of_more_tasks_grows_with_their_square_and_merged_by_far_less() -> None:
    few, more, most = growth(512e6, [1000, 3000, 10_000])
    assert most.reads == 100_000_000 and most.read_bytes == pytest.approx(51_200)
    assert 8 < most.seconds / more.seconds < (10 / 3) ** 2 and 5 < more.seconds / few.seconds < 9
    (merged,) = growth(512e6, [10_000], 40)
    assert merged.reads == 2_500_000 and merged.seconds < most.seconds / 10
    for figure in growing():
        if figure.reported is not None and figure.unit == "KB":
            assert figure.modelled == pytest.approx(figure.reported, rel=0.03)
    (longest,) = [figure for figure in growing() if figure.reported == 4000]
    assert 0.5 < longest.modelled / 4000 < 1  # of other disks than the job of 3 TB


def test_merging_of_large_blocks_does_not_pay() -> None:
    job = ShuffleJob(800, 10, 800 * 10 * 4e6)
    assert run(job, MergePolicy(files=40)).job_s > run(job).job_s


def test_every_map_ends_once_and_runs_are_the_same_again() -> None:
    ends = map_ends(ShuffleJob(50, 1, 1.0), MapStage(slots=7), 3)
    assert sorted(index for _, index in ends) == list(range(50))
    assert ends == map_ends(ShuffleJob(50, 1, 1.0), MapStage(slots=7), 3)


def test_the_automatic_choice_is_mostly_right() -> None:
    checked = check(12, 1)
    assert checked.right >= 8
    assert 0 < checked.alone < 12


@pytest.mark.slow
def test_the_command_prints_reported_beside_modelled(tmp_path: Path) -> None:
    result = CliRunner().invoke(sim, ["shuffle", "--shapes", "2", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["automatic"]["shapes"] == 2
    assert any(f["reported"] == 474.0 for f in found["figures"])
    trace = tmp_path / "trace.tsv"
    trace.write_text("a\t0\t0\t1000\t500\t10\nb\t1\t1\t1e12\t1e11\t10\nmaps\t2\t1\t1000\t0\t10\n")
    text = CliRunner().invoke(sim, ["shuffle", "--shapes", "1", "--swim", str(trace), "--plots", str(tmp_path)]).output
    assert "reduce stage" in text and "of 2 jobs of the trace" in text and "0 made slower" in text
    drawn = sorted(path.stem for path in tmp_path.glob("*.png"))
    assert drawn == ["shuffle-paying", "shuffle-reads", "shuffle-spilling", "shuffle-tasks", "shuffle-time"]
    trace.write_text("a\t0\n")
    broken = CliRunner().invoke(sim, ["shuffle", "--shapes", "1", "--swim", str(trace)])
    assert broken.exit_code and "columns" in str(broken.exception)
