"""The merger's rows at a size that takes no time: both sides run and say what they should."""

from benchmarks.options import Options
from benchmarks.riffle import merge_rows


def test_both_sides_are_measured_on_the_same_bytes() -> None:
    chosen = ("merge-cold-5", "merge-warm-64k")
    rows, beside = merge_rows.measure(Options(False, 1, chosen, 0.01, ("ours", "theirs")))
    assert [row.id for row in rows] == list(chosen)
    assert all(row.ours > 0 and row.theirs is not None and row.ratio is not None for row in rows)
    # Blocks of 64 KB in each of 5 files: one window, beside five indexes and one that is written
    assert beside["merge-cold-5"]["requests"] == "10 reads, 2 writes for 5 MB"
