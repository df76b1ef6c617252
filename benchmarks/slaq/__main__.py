"""SLAQ's rows in one table: `python -m benchmarks.slaq [--json] [--only ROW]`."""

import sys
from typing import Final

from benchmarks.options import run_modules
from benchmarks.slaq import decision_rows, live_rows, runtime_rows, simulated_rows

_MODULES: Final = (simulated_rows, decision_rows, runtime_rows, live_rows)


def main() -> int:
    return run_modules("slaq", "Cores go to the training jobs whose loss will fall most.", _MODULES, runs=6)


if __name__ == "__main__":
    sys.exit(main())
