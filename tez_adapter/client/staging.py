"""A job's staging folder: what its containers need, uploaded before it is submitted and removed when it ends.

`yarn.app.mapreduce.am.staging-dir`/USER/.staging/JOB on the default file system, as MapReduce does it, readable by its
owner alone; the root and its parents, where they are missing, are made for all users. Nodes refuse a resource whose
modification time differs from what the launch context says. So the times are read back from the file system after the
upload.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tez_adapter.jobspec import JOB_FILE, JobResource, JobSpec
from tez_adapter.master.output import JobOutput
from yaqd.config import Configuration
from yaqd.model import LocalResourceType
from yaqd.storage import FileSystem, PathDenied, PathNotFound, StorageError, get_filesystem, qualify
from yaqd.storage.paths import name_of, parent_of

STAGING_KEY = "yarn.app.mapreduce.am.staging-dir"
_CHUNK_BYTES = 1 << 20
#: as /tmp: everybody makes a folder of their own, nobody removes another's
_ROOT_MODE = 0o1777
_PARENT_MODE = 0o755


class SubmitError(Exception):
    """What is wrong with a submission, in one line."""


def check_file(place: Path, path: str) -> None:
    """Raises SubmitError where that is no file. `path`: as the user wrote it."""
    if place.is_dir():
        raise SubmitError(f"{path} is a folder: pack it and ship the archive (--archives, of mr streaming -archives)")
    if not place.is_file():
        raise SubmitError(f"no file {path}: it was to be sent along with the job")


def alias_of(text: str) -> tuple[str, str]:
    """Split `path#name` into path and the name that containers see; without `#`, the path's last part."""
    path, mark, name = text.partition("#")
    if not mark:
        name = path.rstrip("/").rpartition("/")[2]
    if not name or name in (".", "..") or name.startswith("/") or ".." in name.split("/"):
        raise SubmitError(f"{text}: a container cannot have a file named {name!r}; write PATH#NAME")
    return path, name


class Staging:
    def __init__(self, conf: Configuration, user: str, job_id: str, root: str | None = None) -> None:
        """`root`: a full URI, where another is meant than the configuration's."""
        self._conf = conf
        self._root = qualify(conf.require(STAGING_KEY), conf) if root is None else root
        #: full URI
        self.path = f"{self._root}/{user}/.staging/{job_id}"
        self._files: FileSystem = get_filesystem(self.path, conf)
        #: paths that are taken by files of one name
        self._taken: set[str] = set()

    def create(self) -> None:
        try:
            self._make_root()
            self._files.mkdirs(self.path, 0o700)
        except StorageError as error:
            raise SubmitError(f"cannot make the staging folder ({STAGING_KEY}): {error}") from None

    def _make_root(self) -> None:
        """Left to `mkdirs`, missing parents would get the mode of the first user's folder, and lock out all others."""
        missing = []
        folder = self._root
        while not self._files.exists(folder):
            missing.append(folder)
            folder = parent_of(folder)
        for folder in reversed(missing):
            mode = _ROOT_MODE if folder == self._root else _PARENT_MODE
            self._files.mkdirs(folder, mode)
            with suppress(PathDenied):  # another user's command made it at the same time, and gives it this mode
                self._files.set_mode(folder, mode)  # the umask may have taken bits away

    def write(self, name: str, data: bytes) -> JobResource:
        path = f"{self.path}/{name}"
        writer = self._files.create(path, overwrite=True)
        try:
            writer.write(data)
        except BaseException:
            writer.abort()
            raise
        writer.close()
        return self._resource(name, path, LocalResourceType.FILE)

    def add(
        self, texts: Sequence[str], pool: ThreadPoolExecutor, kind: LocalResourceType = LocalResourceType.FILE
    ) -> list[Future[JobResource]]:
        """Upload local files in `pool` (or take what lies on a file system already: any URI with a scheme)."""
        return [self._add(text, pool, kind) for text in texts]

    def _add(self, text: str, pool: ThreadPoolExecutor, kind: LocalResourceType) -> Future[JobResource]:
        path, name = alias_of(text)
        if "://" in path and not path.startswith("file://"):
            return pool.submit(self._resource, name, path, kind, get_filesystem(path, self._conf))
        local = Path(path.removeprefix("file://"))
        check_file(local, path)
        target = f"{self.path}/{'archives' if kind is LocalResourceType.ARCHIVE else 'files'}/{local.name}"
        if "/" in name or target in self._taken:
            target = f"{self.path}/{'/'.join(('named', name))}/{local.name}"
        self._taken.add(target)
        return pool.submit(self._upload, local, target, name, kind)

    def _upload(self, local: Path, target: str, name: str, kind: LocalResourceType) -> JobResource:
        self._files.mkdirs(target.rpartition("/")[0], 0o700)
        writer = self._files.create(target, overwrite=True)
        try:
            with local.open("rb") as source:
                while piece := source.read(_CHUNK_BYTES):
                    writer.write(piece)
        except BaseException:
            writer.abort()
            raise
        writer.close()
        return self._resource(name, target, kind)

    def _resource(self, name: str, path: str, kind: LocalResourceType, files: FileSystem | None = None) -> JobResource:
        status = (files or self._files).status(path)
        return JobResource(name, status.path, status.length, status.mtime_ms, int(kind))

    def remove(self) -> None:
        self._files.delete(self.path, recursive=True)

    def sweep(self) -> bool:
        """Remove the folder and output that was never committed, after the job's end.

        Returns whether there was something. Raises SubmitError for a job file that is another job's. A folder without
        our job file belongs to a stock job, whose settings say whether it stays.
        """
        path = f"{self.path}/{JOB_FILE}"
        if not self._files.exists(path):
            return False
        with suppress(PathNotFound):  # the job manager, which has done the rest, is removing the folder itself
            spec = JobSpec.parse(b"".join(self._files.open_range(path, 0)))
            if spec.job_id != name_of(self.path):
                raise SubmitError(f"{path} is of {spec.job_id}: left alone")
            JobOutput(spec, self._conf).abort()
        self.remove()
        return True
