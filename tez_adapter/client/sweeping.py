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
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from tez_adapter.client.staging import STAGING_KEY, Staging, SubmitError
from tez_adapter.history import HISTORY_DIR_KEY
from tez_adapter.jobspec import JOB_FILE, BadJobSpec
from yaqd.config import Configuration
from yaqd.storage import FileStatus, PathNotFound, StorageError, get_filesystem, locate, qualify
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


def sweep_jobs(conf: Configuration, user: str, jobs: Mapping[str, str], *, has_more_rights: bool = True) -> Swept:
    """Sweep the folders of these jobs as this user. Blocking.

    `jobs` are over, and none of their processes lives any more. With each stands where its submission says that its job
    file is, or "". `has_more_rights`: than the user has on this machine's disks.
    """
    swept = Swept()
    for job, job_file in jobs.items():
        try:
            staging = Staging(conf, user, job, _named_root(conf, user, job, job_file, has_more_rights))
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


def _named_root(conf: Configuration, user: str, job: str, job_file: str, has_more_rights: bool) -> str | None:
    """The staging folder that the job's submission named, where it is another than this configuration's.

    Raises SubmitError for one where nothing is to be done, PathNotFound where nothing is left.
    """
    below = f"/{user}/.staging/{job}"
    if not job_file or not (named := locate(job_file, conf)).path.endswith(f"{below}/{JOB_FILE}"):
        return None  # not as we submit it
    own = locate(conf.require(STAGING_KEY), conf)
    root = named.path.removesuffix(f"{below}/{JOB_FILE}") or "/"
    if (named.root.lower(), root) == (own.root.lower(), own.path):
        return None
    if named.scheme == "file":
        root = os.path.realpath(root)
        if has_more_rights:
            _check_settled(root.rstrip("/") + below, user)
    elif named.root.lower() not in (own.root.lower(), locate("/", conf).root.lower()):
        raise SubmitError(f"{named} is on a file system that is not this cluster's: left alone")
    return named.root + root


def _check_settled(folder: str, user: str) -> None:
    """Checks that nobody but the user and this machine's root can put another folder in this place while it is swept.
    The folders above it count, too: this process may have more rights than whoever submitted the job in the user's
    name."""
    owners = {"root", user, _os_user()}
    try:
        if os.path.realpath(folder) != folder:
            raise SubmitError(f"{folder} is reached by a symbolic link: left alone")
        for path in (Path(folder), *Path(folder).parents):
            found = path.lstat()
            if _user_of(found.st_uid) not in owners or found.st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                raise SubmitError(f"{folder} is left alone: others may change {path}")
    except FileNotFoundError as error:
        raise PathNotFound(folder) from error
    except OSError as error:
        raise SubmitError(f"{folder} is left alone: {error.strerror}") from None


def sweep_histories(conf: Configuration, cutoff_ms: int) -> Swept:
    """Delete histories that were last changed before `cutoff_ms`. Blocking."""
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
    if _is_this(user):
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


def _is_this(user: str) -> bool:
    return user in (hadoop_user(), _os_user())


def _become(user: str) -> None:
    os.environ["HADOOP_USER_NAME"] = user
    if os.geteuid() != 0:
        return
    # the user may not be allowed to read this installation
    for module in ("hdfs_native", "yaqd.storage.hdfs.client", "yaqd.storage.local"):
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
    return _user_of(os.geteuid())


def _user_of(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _dump(swept: Swept) -> bytes:
    return json.dumps(
        {"jobs": swept.jobs, "histories": swept.histories, "problems": swept.problems[:_PROBLEMS_MAX]}
    ).encode()


def answer(request: dict[str, Any]) -> Swept:
    """Do the process's work: sweep as the request says."""
    conf = Configuration.load(environ={}, overrides=request["conf"])
    swept = Swept()
    for user, jobs in request["jobs"].items():
        has_more_rights = _is_this(user) or os.geteuid() != 0
        sweep = partial(sweep_jobs, conf, user, jobs, has_more_rights=has_more_rights)
        swept.add(_as_user(user, sweep))
    if request["cutoff_ms"] is not None:
        swept.add(sweep_histories(conf, request["cutoff_ms"]))
    return swept


if __name__ == "__main__":
    print(_dump(answer(json.load(sys.stdin))).decode())
