"""`--overwrite`: the folder of an earlier result makes room for a new one, and nothing else ever does."""

import os
import re
from collections.abc import Sequence
from typing import Final

from tez_adapter.client.staging import SubmitError
from yaqd.config import Configuration
from yaqd.storage import PathNotFound, get_filesystem, list_inputs, qualify
from yaqd.storage.committer import TEMPORARY
from yaqd.storage.paths import join, name_of

#: what jobs leave in their output folder: ours, Hadoop's, and with several outputs
_RESULT: Final = re.compile(r"part-.*|\w+-[mr]-\d{5}.*|_SUCCESS|_temporary|\..*\.crc")


def check_replaceable(conf: Configuration, output: str, inputs: Sequence[str]) -> None:
    """Raises SubmitError where the folder holds more than a job's results, or what the job is to read."""
    target = qualify(output, conf)
    files = get_filesystem(target, conf)
    if not files.exists(target):
        return
    status = files.status(target)
    if not status.is_dir:
        raise SubmitError(f"output folder {target} is a file: --overwrite replaces folders with a job's results alone")
    names = (entry.path.rstrip("/").rpartition("/")[2] for entry in files.list(target))
    others = [name for name in names if not _RESULT.fullmatch(name)]
    if others:
        raise SubmitError(
            f"output folder {target} holds {min(others)}, which is no job's result: --overwrite leaves it alone; "
            "remove it or name another"
        )
    inside = _real(target) + "/"
    # a folder in it may be empty; what a pattern or a link leads to is seen of the files themselves
    found = [(qualify(text, conf), text) for text in inputs]
    found += [(status.path, status.path) for status in list_inputs(inputs, conf)]
    for path, shown in found:
        if (_real(path) + "/").startswith(inside):
            raise SubmitError(f"input {shown} lies in the output folder {target}, which --overwrite would remove")


def _real(path: str) -> str:
    """The URI without a slash at its end, on local disks also without symbolic links."""
    local = path.removeprefix("file://")
    return path.rstrip("/") if local == path else "file://" + os.path.realpath(local).rstrip("/")


def jobs_within(conf: Configuration, output: str) -> list[str]:
    """Return the names of jobs that have begun to write into the folder and did not end well, as far as is known."""
    target = join(qualify(output, conf), TEMPORARY)
    try:
        return [name_of(entry.path) for entry in get_filesystem(target, conf).list(target)]
    except PathNotFound:
        return []


def remove_results(conf: Configuration, output: str) -> None:
    """Removes the earlier results: after `check_replaceable`, and as late as can be."""
    target = qualify(output, conf)
    get_filesystem(target, conf).delete(target, recursive=True)
