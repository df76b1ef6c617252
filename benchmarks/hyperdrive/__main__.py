"""HyperDrive's rows in one table: `python -m benchmarks.hyperdrive [--json] [--only ROW]`."""

import sys
from typing import Final

from benchmarks.hyperdrive import prediction_rows
from benchmarks.options import run_modules

_MODULES: Final = (prediction_rows,)


def main() -> int:
    return run_modules("hyperdrive", "Hyperparameters are found by predicting learning curves.", _MODULES, runs=3)


if __name__ == "__main__":
    sys.exit(main())
