"""HyperDrive's rows in one table: `python -m benchmarks.hyperdrive [--json] [--only ROW]`."""

import sys
from typing import Final

from benchmarks.hyperdrive import decision_rows, live_rows, prediction_rows, runtime_rows, simulated_rows
from benchmarks.options import run_modules

_MODULES: Final = (prediction_rows, simulated_rows, decision_rows, runtime_rows, live_rows)


def main() -> int:
    return run_modules("hyperdrive", "Good hyperparameters are found by predicting learning curves.", _MODULES, runs=1)


if __name__ == "__main__":
    sys.exit(main())
