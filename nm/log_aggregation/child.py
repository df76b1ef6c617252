"""An upload in a process of its own, for users other than the daemon's.

HDFS takes a client for whom its process' environment names, so a daemon that writes for several users needs a process
for each. On the local file system, and for the daemon's own user, the work is done in the daemon's threads.
"""

import json
import os
import subprocess
import sys
from typing import Final

from nm.log_aggregation.upload import Upload, upload
from yaqd.config import Configuration
from yaqd.storage import StorageError, StorageUnavailable
from yaqd.storage.paths import hadoop_user

_ERROR_CHARS_MAX: Final = 2000


def upload_as_user(work: Upload, conf: Configuration, *, is_local: bool, daemon_user: str, timeout_s: float) -> None:
    """Blocking. Raises StorageError."""
    if is_local or work.user == daemon_user == hadoop_user():
        upload(work, conf)
    else:
        _upload_in_child(work, conf, timeout_s)


def _upload_in_child(work: Upload, conf: Configuration, timeout_s: float) -> None:
    request = {"conf": dict(conf.items()), "upload": work.to_json()}
    environment = {name: value for name, value in os.environ.items() if name != "CONTAINER_ID"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nm.log_aggregation.child"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**environment, "HADOOP_USER_NAME": work.user},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StorageUnavailable(f"the upload as user {work.user} did not end within {timeout_s:g} s") from None
    except OSError as error:
        raise StorageError(f"no process for an upload as user {work.user}: {error}") from None
    if done.returncode != 0:
        raise StorageError((done.stderr.strip() or f"the upload exited with {done.returncode}")[-_ERROR_CHARS_MAX:])


def main() -> int:
    """Reads one request from standard input; an error is a line on standard error and exit code 1."""
    request = json.load(sys.stdin)
    conf = Configuration.load(environ={}, overrides=request["conf"])
    try:
        upload(Upload.from_json(request["upload"]), conf)
    except StorageError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
