"""Map outputs on HDFS instead of the disks of the nodes that made them: where they are, how they come there.

They lie in the job's staging folder, which goes when the job ends, however it ends. Each job manager of the job has a
folder of its own, so that tasks of one that is gone do not meddle; and nobody makes that folder anew who only wants to
put a file into it, so that a task that outlives its job leaves nothing.
"""

import os
import shutil
import time
from typing import Final

from riffle_merger.format.index import IndexEntry, SpillIndex
from riffle_merger.format.merged import CHECKSUM_BYTES
from riffle_merger.format.output import INDEX_NAME, OUTPUT_NAME
from riffle_merger.format.packed import index_of
from tez_adapter.jobspec import JobSpec
from tez_adapter.merging.settings import REPLICATION_KEY, on_hdfs
from tez_adapter.protocol import SHARED_FOLDER
from tez_adapter.tasks.attempt import TaskAttempt
from yaqd.config import Configuration
from yaqd.storage import PathNotFound, get_filesystem

_FOLDER: Final = "shuffle"
_COPY_BYTES: Final = 1 << 20
#: how long a map waits for the folder, which a job manager that was started anew makes while its first maps run
_FOLDER_WAIT_S: Final = 10.0
_FOLDER_POLL_S: Final = 0.1


def shared_root(spec: JobSpec, conf: Configuration) -> str | None:
    """Return the folder of all map outputs of a job that has them on HDFS; None for any other.

    It lies in the job's staging folder.
    """
    if not spec.reduces or not on_hdfs(conf):
        return None
    return f"{spec.staging}/{_FOLDER}"


def shared_folder(spec: JobSpec, conf: Configuration, manager: int) -> str | None:
    """Return the folder of those that this job's `manager`th job manager sees, counted from 1."""
    root = shared_root(spec, conf)
    return None if root is None else f"{root}/{manager}"


def prepare(spec: JobSpec, conf: Configuration, manager: int) -> None:
    """Make the job manager's folder, and remove those of others. Blocking. Raises StorageError."""
    root, own = shared_root(spec, conf), shared_folder(spec, conf, manager)
    if root is None or own is None:
        return
    files = get_filesystem(root, conf)
    files.mkdirs(own, 0o700)
    for found in files.list(root):
        if found.path.rpartition("/")[2] != str(manager):
            files.delete(found.path, recursive=True)


def _checksum(descriptor: int, segment: IndexEntry) -> int:
    """At its end; 0 of an empty one."""
    if not segment.part_length:
        return 0
    end = segment.start + segment.part_length
    return int.from_bytes(os.pread(descriptor, CHECKSUM_BYTES, end - CHECKSUM_BYTES), "big")


def publish_output(attempt: TaskAttempt) -> None:
    """Bring a finished map's output to HDFS, if that is where the job has them. Raises StorageError."""
    folder = os.environ.get(SHARED_FOLDER)
    if folder is None:
        return
    local = attempt.output_folder()
    index = SpillIndex.load(local / INDEX_NAME)
    files = get_filesystem(folder, attempt.conf)
    replication = attempt.conf.get_int(REPLICATION_KEY, 1, minimum=1, maximum=512)
    deadline = time.monotonic() + _FOLDER_WAIT_S
    while True:
        try:
            writer = files.create(f"{folder}/{attempt.name}", make_parents=False, replication=replication)
            break
        except PathNotFound:
            if time.monotonic() > deadline:
                raise
            time.sleep(_FOLDER_POLL_S)
    try:
        with open(local / OUTPUT_NAME, "rb") as source:
            while piece := source.read(_COPY_BYTES):
                writer.write(piece)
                attempt.moved()
            checksums = [(_checksum(source.fileno(), entry),) for entry in index]
        writer.write(index_of([attempt.name], ((entry.part_length,) for entry in index), checksums))
        writer.close()
    except BaseException:
        writer.abort()
        raise
    shutil.rmtree(local, ignore_errors=True)
    attempt.end_phase("upload")
