"""Production jobs with real files: what the shuffle service read is what was counted, to a read."""

import pytest

from benchmarks.options import Options
from benchmarks.riffle import live_rows


@pytest.mark.slow
def test_a_jobs_reads_are_those_that_were_counted() -> None:
    ids = ("job-1-live", "job-2-live", "job-3-live", "job-4-live")
    rows, facts = live_rows.measure(Options(False, 1, ids, 0.1, ("ours", "theirs")))
    assert [row.id for row in rows] == list(ids)
    for row in rows:
        assert row.theirs == row.ours > 0
        for whose in ("reads of reducers", "requests of mergers"):
            made, counted = facts[row.id][whose].removesuffix(" counted").split(", ")
            assert made == counted
    assert "no merging" in facts["job-1-live"]["shape"]
    for row_id in ids[1:]:
        assert not facts[row_id]["shape"].count(" 0 merges")
        assert facts[row_id]["requests of mergers"] != "0, 0 counted"
