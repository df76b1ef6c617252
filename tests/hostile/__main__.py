"""`python tests/hostile --frames 1000000 --seed 1`: hostile peers at every port of a real cluster.

A cluster of real daemons runs a real job, whose conversations are recorded. Then they are played back truncated,
damaged, swapped and out of order, to every port, past the tokens where those are asked for, while good clients watch.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.hostile.fuzz_run import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/hostile", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many to send (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other frames (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each port (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for cluster, logs and recordings; kept")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="yaq-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        options = {"frames": arguments.frames, "seed": arguments.seed, "rounds": arguments.rounds}
        report = fuzz(folder, **options, note=lambda text: print(text, file=sys.stderr, flush=True))
    finally:
        if arguments.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(report.lines()))
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
