"""`scripts/faults.sh --kills 300 --seed 1`: kill -9 at random moments while jobs run.

Tasks, job managers, NodeManagers and the ResourceManager of a cluster of two nodes are killed while jobs of ours,
streaming and unmodified MapReduce (word count, sort) run on it; daemons are started again. In the end every job that
was acknowledged has ended with the right output, and nothing is left over: no process, no staging folder, no half-made
output, no local folder.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.faults.faults_run import run_kills


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/faults.sh", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--kills", type=int, default=30, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed kills others (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=3, help="jobs that run at a time (default: %(default)s)")
    parser.add_argument(
        "--pause", type=float, default=1.0, metavar="S", help="about, between kills (default: %(default)s)"
    )
    parser.add_argument("--no-stock", action="store_true", help="without stock MapReduce, where there is no Java")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for cluster, logs and outputs; kept")
    parser.add_argument("--json", action="store_true", help="print one JSON value at the end")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the cluster is stopped
    folder = (given.keep or Path(tempfile.mkdtemp(prefix="yaq-faults-"))).absolute()
    if given.keep is not None:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            parser.error(f"--keep {folder}: exists already; name a new folder")
    try:
        report = run_kills(
            folder,
            given.seed,
            given.kills,
            at_once=given.at_once,
            stock=not given.no_stock,
            pause_s=given.pause,
            note=lambda text: print(text, file=sys.stderr, flush=True),
        )
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        print("\n".join(report.lines()))
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
