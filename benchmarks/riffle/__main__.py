"""Riffle's rows in one table: `python -m benchmarks.riffle [--json] [--only ROW]`.

A module that has rows offers `ROWS`, their ids, and `measure(options)`, which returns the rows asked for and what
belongs beside each.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.options import parse_options, progress, show
from benchmarks.report import Row
from benchmarks.riffle import (
    auto_rows,
    hdfs_rows,
    live_rows,
    memory_rows,
    merge_rows,
    plan_rows,
    seek_rows,
    service_rows,
)

_MODULES: Final = (plan_rows, live_rows, merge_rows, memory_rows, seek_rows, auto_rows, service_rows, hdfs_rows)


def main() -> int:
    ids = [row_id for module in _MODULES for row_id in module.ROWS]
    options = parse_options("riffle", "Shuffle reads that are few, large and sequential.", ids, runs=5)
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    for module in _MODULES:
        if any(options.wants(row_id) for row_id in module.ROWS):
            progress(f"{module.__name__}")
            measured, facts = module.measure(options)
            rows += measured
            beside |= facts
    return show(rows, beside, options)


if __name__ == "__main__":
    sys.exit(main())
