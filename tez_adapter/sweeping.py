"""Removes what jobs of ours left behind: the folders of jobs whose managers died, and histories that are old.

A process of its own, which the ResourceManager starts: it knows which applications are over, and a file system that
hangs is left behind with the process. It asks on its standard input and reads one line of JSON.

Each user's files are touched by a child that is that user: for HDFS by name, on this machine's disks, where the daemon
is root, by its id too. What a job's folder says is the user's word, so nothing is done with other rights than theirs.
"""

import importlib
import json
import os
import pwd
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tez_adapter.history import HISTORY_DIR_KEY
from tez_adapter.jobspec import BadJobSpec
from tez_adapter.staging import Staging, SubmitError
from yaqd.config import Configuration
from yaqd.storage import FileStatus, PathNotFound, StorageError, get_filesystem, qualify
from yaqd.storage.paths import hadoop_user, name_of

_PROBLEMS_MAX: Final = 20
#: whose files nobody here has
_NOBODY: Final = 65534


@dataclass(slots=True)
class Swept:
    jobs: int = 0
    histories: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: "Swept") -> None:
        self.jobs += other.jobs
        self.histories += other.histories
        self.problems = (self.problems + other.problems)[:_PROBLEMS_MAX]


def sweep_jobs(conf: Configuration, user: str, jobs: Iterable[str]) -> Swept:
    """Blocking, as this user. `jobs` are over, and no process of theirs lives any more."""
    swept = Swept()
    for job in jobs:
        staging = Staging(conf, user, job)
        try:
            folder = get_filesystem(staging.path, conf).status(staging.path)
            if folder.owner not in (user, _os_user()):
                swept.problems.append(f"{staging.path} is {folder.owner}'s: left alone")
                continue
            swept.jobs += staging.sweep()
        except PathNotFound:
            continue  # the job's manager has done it
        except (StorageError, BadJobSpec, SubmitError) as error:
            swept.problems.append(f"{job}: {error}")
    return swept


def sweep_histories(conf: Configuration, cutoff_ms: int) -> Swept:
    """Blocking. Files that were last changed before that."""
    folder = qualify(conf.require(HISTORY_DIR_KEY), conf)
    try:
        files = get_filesystem(folder, conf).list(folder)
    except PathNotFound:
        return Swept()
    except StorageError as error:
        return Swept(problems=[str(error)])
    by_owner: dict[str, list[str]] = {}
    for file in files:
        if _is_history(file) and file.mtime_ms < cutoff_ms:
            by_owner.setdefault(file.owner, []).append(file.path)
    swept = Swept()
    for owner, paths in by_owner.items():
        swept.add(_as_user(owner, lambda paths=paths: _delete(conf, paths)))  # type: ignore[misc]
    return swept


def _is_history(file: FileStatus) -> bool:
    name = name_of(file.path)
    return not file.is_dir and name.startswith("job_") and name.endswith(".jsonl")


def _delete(conf: Configuration, paths: Iterable[str]) -> Swept:
    swept = Swept()
    for path in paths:
        try:
            swept.histories += get_filesystem(path, conf).delete(path)
        except StorageError as error:
            swept.problems.append(str(error))
    return swept


def _as_user(user: str, work: Callable[[], Swept]) -> Swept:
    """What it returns in a process that is the user; in this one where that is the user."""
    if user in (hadoop_user(), _os_user()):
        return work()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            _become(user)
            os.write(writer, _dump(work()))
        except BaseException as error:
            os.write(writer, _dump(Swept(problems=[f"as {user}: {error}"])))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return Swept(**json.loads(text)) if text else Swept(problems=[f"as {user}: it ended without an answer"])


def _become(user: str) -> None:
    os.environ["HADOOP_USER_NAME"] = user
    if os.geteuid() != 0:
        return
    # the user may not be allowed to read this installation
    for module in ("hdfs_native", "yaqd.storage.hdfs", "yaqd.storage.local"):
        importlib.import_module(module)
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
        return
    os.initgroups(user, known.pw_gid)
    os.setgid(known.pw_gid)
    os.setuid(known.pw_uid)


def _os_user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _dump(swept: Swept) -> bytes:
    return json.dumps(
        {"jobs": swept.jobs, "histories": swept.histories, "problems": swept.problems[:_PROBLEMS_MAX]}
    ).encode()


def answer(request: dict[str, Any]) -> Swept:
    """The process's work."""
    conf = Configuration.load(environ={}, overrides=request["conf"])
    swept = Swept()
    for user, jobs in request["jobs"].items():
        swept.add(_as_user(user, lambda user=user, jobs=jobs: sweep_jobs(conf, user, jobs)))  # type: ignore[misc]
    if request["cutoff_ms"] is not None:
        swept.add(sweep_histories(conf, request["cutoff_ms"]))
    return swept


if __name__ == "__main__":
    print(_dump(answer(json.load(sys.stdin))).decode())
