"""The benchmark of reports: what it measures is a report."""

from pathlib import Path

import pytest

from benchmarks import report_cost


def test_a_report_outside_of_a_cluster_costs_next_to_nothing(tmp_path: Path) -> None:
    clock_us, processor_us = report_cost.measure_alone(tmp_path, 2_000)
    assert 0 < processor_us < 50 and clock_us > 0


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_report_in_a_container_is_counted_there(tmp_path: Path) -> None:
    clock_us, processor_us = report_cost.measure_inside(tmp_path, 2_000)
    assert 0 < processor_us < 50 and clock_us > 0
