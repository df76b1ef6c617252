"""A job manager's process: what its container starts, warm (`main`) or cold (`python -m` with this module)."""

import argparse
import asyncio
import faulthandler
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from tez_adapter.background import leave
from tez_adapter.jobspec import JOB_FILE, SPLITS_FILE, JobResource, JobSpec, read_splits
from tez_adapter.kinds.registry import KINDS
from tez_adapter.master.ended import BadNote
from tez_adapter.master.job_manager import ApplicationMaster
from tez_adapter.master.surroundings import CannotStart
from yaqd.ipc.errors import RemoteException, RpcError

log = logging.getLogger(__name__)


def main(argv: list[str]) -> int:
    """Run the job whose files lie in the working folder. 0: the ResourceManager knows how the job ended."""
    parser = argparse.ArgumentParser(
        prog="tez_adapter.master.appmaster", description="The job manager, in its container."
    )
    parser.add_argument("--folder", type=Path, default=Path(), help="where job.json and job.splits.json are")
    parser.add_argument("--job-file", nargs=3, metavar=("URI", "BYTES", "TIMESTAMP"), help="job.json for the tasks")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    faulthandler.register(signal.SIGQUIT)  # OUTPUT_THREAD_DUMP of signalToContainer, as a JVM answers it
    spec = JobSpec.read(arguments.folder / JOB_FILE)
    if arguments.job_file:
        uri, length, timestamp = arguments.job_file
        spec = replace(spec, resources=(*spec.resources, JobResource(JOB_FILE, uri, int(length), int(timestamp))))
    splits = read_splits(arguments.folder / SPLITS_FILE) if KINDS[spec.kind].has_splits else []
    try:
        asyncio.run(ApplicationMaster(spec, splits, os.environ).run())
    except (CannotStart, BadNote, RpcError, RemoteException) as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    leave(status)
    sys.exit(status)
