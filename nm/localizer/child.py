"""A fetch from HDFS in a process of the application's user.

The HDFS library takes a whole process for one user, whom it looks up in the environment whenever it connects. A daemon
that fetched for several users itself would, after the next reconnect, read one user's files as another. On other file
systems, and for the daemon's own user, the work is done in the caller's thread.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from nm.launch.context import LocalResource
from nm.localizer.archives import ArchiveLimits
from nm.localizer.fetch import Fetched, FetchFailed, fetch
from yaqd.config import Configuration
from yaqd.model import LocalResourceType, LocalResourceVisibility
from yaqd.storage.paths import hadoop_user, locate

_TIMEOUT_S: Final = 600.0
_ERROR_CHARS_MAX: Final = 2000
_FAILED: Final = 1
#: of the process: this node has no room for the resource
_NO_ROOM: Final = 2


def fetch_as(
    resource: LocalResource, folder: Path, conf: Configuration, limits: ArchiveLimits, *, user: str
) -> Fetched:
    """Fetches as `fetch` does, in a process of that user if need be. Blocking. Raises FetchFailed."""
    if user == hadoop_user() or locate(resource.url, conf).scheme == "file":
        return fetch(resource, folder, conf, limits, user=user)
    request = {
        "conf": dict(conf.items()),
        "resource": asdict(resource),
        "folder": str(folder),
        "limits": asdict(limits),
    }
    environment = {name: value for name, value in os.environ.items() if name != "CONTAINER_ID"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nm.localizer.child"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env={**environment, "HADOOP_USER_NAME": user},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"Resource {resource.url}: not fetched within {_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise FetchFailed(f"Resource {resource.url}: no process to fetch it as {user}: {error}") from None
    if done.returncode != 0:
        reason = done.stderr.strip()[-_ERROR_CHARS_MAX:] or f"the process that fetched it exited with {done.returncode}"
        raise FetchFailed(reason, is_disk_full=done.returncode == _NO_ROOM)
    answer = json.loads(done.stdout)
    return Fetched(Path(answer["path"]), int(answer["size"]))


def main() -> int:
    """Reads one request from standard input; the answer is a line of JSON, or an error on standard error and code 1."""
    request = json.load(sys.stdin)
    fields = request["resource"]
    fields["type"] = LocalResourceType(fields["type"])
    fields["visibility"] = LocalResourceVisibility(fields["visibility"])
    conf = Configuration.load(environ={}, overrides=request["conf"])
    try:
        fetched = fetch(
            LocalResource(**fields),
            Path(request["folder"]),
            conf,
            ArchiveLimits(**request["limits"]),
            user=hadoop_user(),
        )
    except FetchFailed as error:
        print(error, file=sys.stderr)
        return _NO_ROOM if error.is_disk_full else _FAILED
    print(json.dumps({"path": str(fetched.path), "size": fetched.size_bytes}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
