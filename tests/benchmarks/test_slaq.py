"""Rows of `benchmarks.slaq` in small: what they say, and that all claims of the experiments have a row."""

import pytest

from benchmarks.options import parse_options
from benchmarks.slaq import decision_rows, simulated_rows
from yaqd.sim.experiments.slaq import SLAQ


def test_every_row_is_a_claim_of_an_experiment() -> None:
    claims = {row.id for experiment in SLAQ for row in experiment.rows}
    assert set(simulated_rows.ROWS) <= claims


def test_predictions_are_held_to_the_shipped_curves() -> None:
    options = parse_options(
        "slaq", "", simulated_rows.ROWS, words=["--only", "prediction-ratio", "--only", "prediction"]
    )
    rows, beside = simulated_rows.measure(options)
    found = {row.id: row for row in rows}
    assert found["prediction"].ours < 1.5
    assert found["prediction-ratio"].ratio is not None
    assert found["prediction-ratio"].ratio > 1.5
    assert beside["prediction"]["verdict"].startswith("holds")


@pytest.mark.slow
def test_a_simulated_row_in_small() -> None:
    words = ["--only", "t90", "--only", "against", "--scale", "0.1", "--runs", "1"]
    rows, _ = simulated_rows.measure(parse_options("slaq", "", simulated_rows.ROWS, words=words))
    assert [row.id for row in rows] == ["t90", "against"]
    assert all(row.theirs is not None and row.theirs > 0 for row in rows)


@pytest.mark.slow
def test_a_division_has_the_greedy_s_total() -> None:
    words = ["--only", "decision", "--scale", "0.02", "--runs", "1"]
    rows, beside = decision_rows.measure(parse_options("slaq", "", list(decision_rows.ROWS), words=words))
    assert rows[0].ours > 0
    assert float(beside["decision"]["total gain / plain greedy's"]) == pytest.approx(1.0, rel=1e-9)
