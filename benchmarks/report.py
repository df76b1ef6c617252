"""One row per measurement, one table per benchmark: what every benchmark of the project prints."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ratio` is how many times better ours is, whatever the unit; None where theirs did not run."""

    id: str
    #: Median of our runs, in `unit`.
    ours: float | None
    #: Median of the other side's runs, in `unit`; None where it could not run or there is none.
    theirs: float | None
    unit: str
    ratio: float | None
    #: (largest - smallest) / median of our runs.
    spread: float | None
    runs: int
    #: The ratio that the project promises; None where it promises an absolute figure or nothing.
    at_least: float | None = None
    #: What was measured beside it, e.g. memory in MB by process, or a plain tool's time.
    beside: dict[str, Any] = field(default_factory=dict)


def compare(
    row_id: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    unit: str,
    *,
    smaller_is_better: bool,
    at_least: float | None = None,
    beside: dict[str, Any] | None = None,
) -> Row:
    """A row from the runs of both sides."""
    mine = statistics.median(ours) if ours else None
    other = statistics.median(theirs) if theirs else None
    ratio = None
    if mine and other:
        ratio = other / mine if smaller_is_better else mine / other
    spread = (max(ours) - min(ours)) / mine if mine else None
    return Row(row_id, mine, other, unit, ratio, spread, max(len(ours), len(theirs)), at_least, beside or {})


def to_json(rows: Iterable[Row]) -> str:
    """All rows as one JSON object, with the machine they were measured on."""
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    return json.dumps({"rows": [asdict(row) for row in rows], "machine": machine}, indent=1)


def print_table(rows: Iterable[Row]) -> None:
    """The same for people."""
    table = [("row", "ours", "theirs", "unit", "ratio", "at least", "spread", "runs")]
    rows = list(rows)
    table += [
        (
            *(row.id, _number(row.ours), _number(row.theirs), row.unit, _number(row.ratio, "x")),
            *(_number(row.at_least, "x"), "-" if row.spread is None else f"{row.spread:.0%}", str(row.runs)),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        cells = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells))
    for row in rows:
        for name, value in row.beside.items():
            print(f"  {row.id}: {name}: {_beside(value)}")


def progress(text: str) -> None:
    """A line for whoever waits; never among the results."""
    print(text, file=sys.stderr, flush=True)


def _number(value: float | None, suffix: str = "") -> str:
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2
    return f"{value:,.{digits}f}{suffix}"


def _beside(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_beside(part)}" for key, part in value.items())
    return _number(value) if isinstance(value, float) else str(value)
