"""Production jobs with real files: what the shuffle service read is what was counted, to a read."""

import pytest

from benchmarks.options import Options
from benchmarks.riffle import live_rows


@pytest.mark.slow
def test_a_jobs_reads_are_those_that_were_counted() -> None:
    rows, facts = live_rows.measure(Options(False, 1, ("job-1-live", "job-3-live"), 0.1, ("ours", "theirs")))
    assert [row.id for row in rows] == ["job-1-live", "job-3-live"]
    for row in rows:
        assert row.theirs == row.ours > 0
    assert "no merging" in facts["job-1-live"]["shape"]
    assert not facts["job-3-live"]["shape"].count(" 0 merges")
