"""Rows of `benchmarks.hyperdrive` in small: what they say, and that all claims of the experiments have a row."""

import pytest

from benchmarks.hyperdrive import decision_rows, simulated_rows
from benchmarks.options import parse_options
from yaqd.sim.experiments.hyperdrive import CAPACITIES, HYPERDRIVE


def test_every_row_is_a_claim_of_an_experiment() -> None:
    claims = {row.id for experiment in HYPERDRIVE for row in experiment.rows}
    assert set(simulated_rows.CLAIMS) <= claims
    assert {f"capacity-{slots}-{rank}" for slots, rank in CAPACITIES} <= claims


def test_every_case_that_a_row_reads_is_there() -> None:
    for experiment in HYPERDRIVE:
        labels = [case.label for case in experiment.cases]
        assert len(labels) == len(set(labels))
        for row in experiment.rows:
            named = {row.measure.case, row.measure.against, *row.measure.or_against} - {None}
            assert named <= set(labels), row.id
        for plot in experiment.plots:
            assert set(plot.cases) <= set(labels)


@pytest.mark.slow
def test_a_simulated_row_in_small() -> None:
    words = ["--only", "cifar-default", "--only", "cifar-earlyterm", "--scale", "0.1", "--runs", "1"]
    rows, beside = simulated_rows.measure(parse_options("hyperdrive", "", simulated_rows.ROWS, words=words))
    assert sorted(row.id for row in rows) == ["cifar-default", "cifar-earlyterm"]
    assert all(row.ratio is not None and row.ratio > 0 for row in rows)
    assert beside["cifar-default"]["theirs is"] == "default"


@pytest.mark.slow
def test_decisions_in_small() -> None:
    words = ["--scale", "0.02", "--runs", "1"]
    rows, _ = decision_rows.measure(parse_options("hyperdrive", "", list(decision_rows.ROWS), words=words))
    assert [row.id for row in rows] == ["decision", "decision-many"]
    assert all(row.ours > 0 for row in rows)
