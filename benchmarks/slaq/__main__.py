"""SLAQ's rows in one table: `python -m benchmarks.slaq [--json] [--only ROW]`.

A module that has rows offers `ROWS`, their ids, and `measure(options)`, which returns the rows asked for and what
belongs beside each.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.options import parse_options, progress, show
from benchmarks.report import Row
from benchmarks.slaq import decision_rows, live_rows, runtime_rows, simulated_rows

_MODULES: Final = (simulated_rows, decision_rows, runtime_rows, live_rows)


def main() -> int:
    ids = [row_id for module in _MODULES for row_id in module.ROWS]
    options = parse_options("slaq", "Cores go to the training jobs whose loss will fall most.", ids, runs=6)
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    for module in _MODULES:
        if any(options.wants(row_id) for row_id in module.ROWS):
            progress(module.__name__)
            measured, facts = module.measure(options)
            rows += measured
            beside |= facts
    return show(rows, beside, options)


if __name__ == "__main__":
    sys.exit(main())
