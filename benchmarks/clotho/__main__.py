"""Clotho's rows in one table: `python -m benchmarks.clotho [--json] [--only ROW]`."""

import sys
from typing import Final

from benchmarks.clotho import chain_rows, decision_rows, simulated_rows
from benchmarks.options import run_modules

_MODULES: Final = (simulated_rows, decision_rows, chain_rows)


def main() -> int:
    return run_modules("clotho", "A learned policy orders the stages of jobs.", _MODULES, runs=1)


if __name__ == "__main__":
    sys.exit(main())
