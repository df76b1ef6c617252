"""The counted rows at their full size, but for the largest job."""

import pytest

from benchmarks.options import Options
from benchmarks.riffle.plan_rows import ROWS, measure


@pytest.mark.parametrize(
    ("row_id", "at_least"),
    # job-1 is left alone; what it pays is that nodes look at its outputs: 915 reads of indexes more, of 183,915
    [("reads", 40), ("reads-best-effort", 13), ("job-1", 183_915 / 184_830)],
)
def test_counts_hold_what_is_claimed(row_id: str, at_least: float) -> None:
    [row], beside = measure(Options(json=False, runs=1, only=(row_id,), scale=1.0, sides=("ours", "theirs")))
    assert row.ratio is not None
    assert row.ratio >= at_least
    assert beside[row_id]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row_id", "at_least"),
    [
        ("reads-paper", 40),
        ("reads-paper-best-effort", 13),
        ("units", 3.3),
        ("units-best-effort", 2.9),
        ("units-paper", 16),
        ("units-paper-best-effort", 9.7),
        ("job-2", 9),
        ("job-3", 8),
        ("job-2-paper", 10),
        ("job-3-paper", 10),
        pytest.param("job-4", 8, marks=pytest.mark.full),
        pytest.param("job-4-paper", 11, marks=pytest.mark.full),
    ],
)
def test_counts_at_the_papers_size(row_id: str, at_least: float) -> None:
    [row], _ = measure(Options(json=False, runs=1, only=(row_id,), scale=1.0, sides=("ours", "theirs")))
    assert row_id in ROWS
    assert row.ratio is not None
    assert row.ratio >= at_least
