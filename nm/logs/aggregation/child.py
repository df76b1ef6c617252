"""The process that touches HDFS for log aggregation, one per user at work: a loop over requests from its NodeManager.

HDFS takes a client for whom its process' environment names, so a daemon that writes for several users needs a process
for each; and a file system that hangs is left behind by killing the process, which cannot be done to a thread. It
ends by itself when it is idle for long, or when its NodeManager is gone.
"""

import json
import os
import select
import sys
from collections.abc import Iterator
from typing import Any, Final

from nm.logs.aggregation.upload import Upload, make_root, upload
from yaqd.config import Configuration
from yaqd.storage import StorageError
from yaqd.storage.tfile import RemoteLogs

IDLE_S: Final = 60.0
_READ_BYTES: Final = 1 << 16


def perform(request: dict[str, Any], conf: Configuration) -> str | None:
    """Carries out a request, `{"upload": …}` or `{"make_root": GROUP}`. Raises StorageError.

    Returns the new file, or a warning.
    """
    try:
        if "upload" in request:
            return upload(Upload.from_json(request["upload"]), conf)
        return make_root(conf, RemoteLogs.read(conf), request["make_root"])
    except (OSError, ValueError, OverflowError) as error:  # a broken disk, or texts that the format has no room for
        raise StorageError(str(error)) from None


def main() -> int:
    """Answers each line of standard input with a line. The first is the configuration, further ones are requests."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    lines = _lines(0, IDLE_S)
    conf = Configuration.load(environ={}, overrides=json.loads(next(lines)))
    for line in lines:
        try:
            answer = {"result": perform(json.loads(line), conf)}
        except StorageError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def _lines(descriptor: int, idle_s: float) -> Iterator[bytes]:
    """Until the end of the stream, or none comes for so long."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while poll.poll(idle_s * 1000):
        piece = os.read(descriptor, _READ_BYTES)
        if not piece:
            return
        *whole, data = (data + piece).split(b"\n")
        yield from whole


if __name__ == "__main__":
    sys.exit(main())
