"""Rows of `benchmarks.hyperdrive` in small: what they say, how curves are read, and where they are missing."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.hyperdrive import prediction_rows
from benchmarks.hyperdrive.prediction_rows import Answers
from benchmarks.hyperdrive.taskset import Cases, cases
from benchmarks.options import parse_options
from yaqd.policies.curves.reach import Level, LibraryReach
from yaqd.sim.experiments import exploring


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Has a taskset of two files: of eight rows, four learn, and two of these leave chance late."""
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path))
    epochs = np.arange(51)
    for number in range(2):
        rows = []
        for row in range(8):
            late = 12 if row in (2, 3) else 0
            risen = 0.6 * (1 - np.exp(-np.maximum(epochs - late, 0) / (6 + number))) if row < 4 else 0 * epochs
            losses: list[float | None] = list(0.72 * (1 - risen))
            losses[0] = None
            rows.append({"hp": {}, "valid": {"loss": losses}})
        (tmp_path / f"set{number}.json").write_text(json.dumps(rows))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_cases_are_rows_that_have_left_chance() -> None:
    even = cases(0)
    # row 0 after 5, 10 and 20 epochs, row 2 after 20, in both files
    assert len(even) == 8
    assert sorted(even.counts.tolist()) == [5, 5, 10, 10, 20, 20, 20, 20]
    assert even.file.tolist() == [0] * 4 + [1] * 4
    assert (even.values[np.arange(8), even.counts - 1] > 0.06).all()


def test_a_machine_without_the_curves_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("YAQD_TASKSET", str(tmp_path / "none"))
    options = parse_options("hyperdrive", "", list(prediction_rows.ROWS), words=["--only", "calibration"])
    assert prediction_rows.measure(options) == ([], {})
    assert "calibration and coverage do not run here" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_rows_of_truth_without_the_walkers() -> None:
    words = ["--only", "calibration", "--only", "coverage", "--side", "ours"]
    rows, beside = prediction_rows.measure(parse_options("hyperdrive", "", list(prediction_rows.ROWS), words=words))
    found = {row.id: row for row in rows}
    assert 0.0 < found["calibration"].ours < 0.2
    assert found["calibration"].theirs is None
    assert 0.0 <= found["coverage"].ours <= 100.0
    assert list(beside["calibration"]["by known epochs"]) == ["5", "10", "20"]


@pytest.mark.usefixtures("folder")
def test_what_is_calibrated_is_what_the_experiments_explore_with(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--only", "calibration", "--side", "ours"]
    options = parse_options("hyperdrive", "", list(prediction_rows.ROWS), words=words)

    def brier() -> float:
        exploring.reach_of.cache_clear()
        return prediction_rows.measure(options)[0][0].ours

    own = brier()
    monkeypatch.setitem(exploring._LEVELS, "taskset", Level(start=-5.0, start_sd=0.01))
    assert brier() > 2 * own
    exploring.reach_of.cache_clear()


def test_scores_are_those_of_the_chances() -> None:
    values = np.full((2, 51), 0.25)
    answers = Answers(LibraryReach(shapes=50, samples=50), Cases(values, np.array([51, 51]), np.array([0, 1])))
    assert answers.briers().tolist() == [0.0, 0.0]
    assert answers.calibration_error() == 0.0
    assert answers.inside.all()


@pytest.mark.slow
def test_ours_is_faster_than_the_walkers() -> None:
    words = ["--only", "prediction", "--only", "prediction-batch", "--runs", "1"]
    rows, _ = prediction_rows.measure(parse_options("hyperdrive", "", list(prediction_rows.ROWS), words=words))
    assert [row.id for row in rows] == ["prediction", "prediction-batch"]
    assert all(row.ratio is not None and row.ratio > 100.0 for row in rows)
