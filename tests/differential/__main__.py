"""`scripts/differential.sh --seed 1 --cases 200`: awkward programs on awkward input, the same answer everywhere.

Job classes and streaming programs are put together at random, with inputs and options. Each runs on a cluster of two
nodes, job classes also in one process (`yaq mr local`), streaming programs also on stock Hadoop Streaming, in one
virtual machine or (`--stock-daemons`) on stock daemons. Output
files, counters, exit codes and words of failure are held against a plain model of MapReduce, byte for byte (values of
one key in any order).
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.differential.diff_run import run_cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/differential.sh", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other cases (default: %(default)s)")
    parser.add_argument("--cases", type=int, default=200, help="how many, from 0 on (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (default: %(default)s)")
    parser.add_argument("--case", type=int, action="append", metavar="N", help="this one alone; may be repeated")
    parser.add_argument("--at-once", type=int, default=4, help="cases at a time (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="begin no further case after this time")
    parser.add_argument("--no-stock", action="store_true", help="without stock Hadoop, where there is no Java")
    parser.add_argument(
        "--stock-daemons", action="store_true", help="stock Hadoop on its own daemons: slow, and launches are compared"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for all files; kept")
    parser.add_argument("--json", action="store_true", help="print one JSON value at the end")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the cluster is stopped
    folder = (given.keep or Path(tempfile.mkdtemp(prefix="yaq-diff-"))).absolute()
    if given.keep is not None:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            parser.error(f"--keep {folder}: exists already; name a new folder")
    try:
        report = run_cases(
            folder,
            given.seed,
            given.case or range(given.first, given.first + given.cases),
            at_once=given.at_once,
            seconds=given.seconds,
            stock=not given.no_stock,
            stock_daemons=given.stock_daemons,
            keep=given.keep is not None,
            note=lambda text: print(text, file=sys.stderr, flush=True),
        )
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        print("\n".join(report.lines()))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
