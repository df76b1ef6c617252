"""Rows: which way better is, and what is printed."""

import io
import json

import pytest

from benchmarks.report import Row, make_row, print_table, to_json


def test_a_ratio_above_one_is_always_ours_being_better() -> None:
    faster = make_row("sort", [2.0, 1.0, 3.0], [8.0], "s", higher_is_better=False)
    assert faster == Row("sort", 2.0, 8.0, "s", 4.0, 1.0, 3)
    more = make_row("echo", [30.0], [10.0, 20.0], "calls/s", higher_is_better=True)
    assert more.ratio == 2.0 and more.spread == 0.0
    assert make_row("echo", [30.0], None, "calls/s", higher_is_better=True).ratio is None


def test_json_carries_every_field_of_every_row() -> None:
    row = make_row("echo", [30.0], None, "calls/s", higher_is_better=True)
    found = json.loads(to_json([row], memory_mb=3))
    assert found["memory_mb"] == 3
    assert set(found["rows"][0]) == {"id", "ours", "theirs", "unit", "ratio", "spread", "runs"}


@pytest.mark.parametrize(("ours", "shown"), [(54833.2, "54,833"), (1.234567, "1.23"), (0.0, "0")])
def test_the_table_is_aligned_and_readable(ours: float, shown: str) -> None:
    out = io.StringIO()
    print_table([make_row("echo", [ours], None, "calls/s", higher_is_better=True)], file=out)
    heading, line = out.getvalue().splitlines()
    assert line.split() == ["echo", shown, "-", "calls/s", "-", "0%", "1"]
    assert heading.index("unit") == line.index("calls/s")
