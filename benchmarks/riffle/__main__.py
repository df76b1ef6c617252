"""Riffle's rows in one table: `python -m benchmarks.riffle [--json] [--only ROW]`."""

import sys
from typing import Final

from benchmarks.options import run_modules
from benchmarks.riffle import (
    auto_rows,
    hdfs_rows,
    io_rows,
    live_rows,
    memory_rows,
    merge_rows,
    plan_rows,
    seek_rows,
    service_rows,
    slow_rows,
)

_MODULES: Final = (
    plan_rows,
    live_rows,
    io_rows,
    merge_rows,
    memory_rows,
    seek_rows,
    auto_rows,
    slow_rows,
    service_rows,
    hdfs_rows,
)


def main() -> int:
    return run_modules("riffle", "Shuffle reads that are few, large and sequential.", _MODULES, runs=5)


if __name__ == "__main__":
    sys.exit(main())
