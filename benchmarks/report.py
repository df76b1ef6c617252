"""Rows that every benchmark prints: what ours does, what theirs does, and how sure we are of it."""

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TextIO


@dataclass(frozen=True, slots=True)
class Row:
    """One measured quantity."""

    id: str
    ours: float
    #: None where there is nothing to compare with, or it could not run here
    theirs: float | None
    #: of both values, e.g. "s" or "calls/s"
    unit: str
    #: how many times better ours is, whichever direction better is; None without theirs
    ratio: float | None
    #: (max - min) / median of our runs, in [0, ...)
    spread: float
    #: runs of ours behind the median
    runs: int


def spread(values: Sequence[float]) -> float:
    """Return (max - min) / median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def make_row(
    row_id: str,
    ours: Sequence[float],
    theirs: Sequence[float] | None,
    unit: str,
    *,
    higher_is_better: bool,
) -> Row:
    """Build a row from the runs of both sides: medians, ratio and spread."""
    our_median = statistics.median(ours)
    if not theirs:
        return Row(row_id, our_median, None, unit, None, spread(ours), len(ours))
    their_median = statistics.median(theirs)
    ratio = our_median / their_median if higher_is_better else their_median / our_median
    return Row(row_id, our_median, their_median, unit, ratio, spread(ours), len(ours))


def to_json(rows: Sequence[Row], **extra: Any) -> str:
    """Return one object: `rows`, and whatever else the benchmark wants to record (memory, parameters)."""
    return json.dumps({"rows": [asdict(row) for row in rows], **extra})


def print_table(rows: Sequence[Row], *, file: TextIO | None = None) -> None:
    """Print the rows as an aligned table (to standard output by default)."""
    heading = ("id", "ours", "theirs", "unit", "ratio", "spread", "runs")
    lines = [heading] + [
        (
            row.id,
            _number(row.ours),
            _number(row.theirs),
            row.unit,
            "-" if row.ratio is None else f"{row.ratio:.2f}x",
            f"{row.spread:.0%}",
            str(row.runs),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    out = sys.stdout if file is None else file
    for line in lines:
        cells = (
            text.ljust(width) if at in (0, 3) else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip(), file=out)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
