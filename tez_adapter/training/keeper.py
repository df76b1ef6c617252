"""What a training job leaves on storage: checkpoints while it runs, its curve and its model at the end.

Reading and writing block, so they run in threads. One checkpoint is written at a time; the next one is due when the
interval has passed, and no sooner than twenty times what writing the last one took.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tez_adapter.background import in_background
from tez_adapter.jobspec import JOB_FILE, JobResource, JobSpec
from tez_adapter.training.curve import Curve
from tez_adapter.training.settings import TrainingSettings, training_folder
from yaqd.config import Configuration
from yaqd.ipc.tasks import TaskSet
from yaqd.storage import PathNotFound, StorageError, get_filesystem
from yaqd.storage.checkpoints import Checkpoint, CheckpointFolder
from yaqd.storage.paths import name_of, parent_of

log = logging.getLogger(__name__)

#: share of the time that goes into checkpoints, at most
_COST_SHARE: Final = 0.05
_SCRIPT, _CURVE, _EVALUATIONS, _VERSIONS = "program", "curve", "evaluations", "versions"
MODEL_FILE: Final = "model"
CURVE_FILE: Final = "curve.jsonl"
RESULT_FILE: Final = "result.json"
#: who has stopped the job, and after which iteration
STOPPED_FILE: Final = "stopped.json"
#: what the job was submitted with, and its files, for one that resumes it
FILES_FOLDER: Final = "files"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a job goes on from."""

    #: iterations that are done
    iteration: int
    #: what the program's own `checkpoint` gave; None: nothing
    program: bytes | None
    curve: Curve = field(default_factory=Curve)
    #: of a driver that is run again: each state's name, and the partials of it
    evaluations: Sequence[tuple[str, Sequence[bytes]]] = ()

    def checkpoint(self) -> Checkpoint:
        pieces = [self.curve.dump(), *([] if self.program is None else [self.program])]
        facts: dict[str, Any] = {_CURVE: True, _SCRIPT: self.program is not None}
        facts[_VERSIONS] = [version for version, _ in self.evaluations]
        facts[_EVALUATIONS] = [len(partials) for _, partials in self.evaluations]
        for _, partials in self.evaluations:
            pieces += partials
        return Checkpoint(self.iteration, pieces, facts)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "Saved":
        """Raises ValueError for a checkpoint of something else."""
        pieces, facts = iter(checkpoint.pieces), checkpoint.facts
        try:
            curve = Curve.parse(next(pieces)) if facts[_CURVE] else Curve()
            program = next(pieces) if facts[_SCRIPT] else None
            evaluations = [
                (str(version), [next(pieces) for _ in range(int(count))])
                for version, count in zip(facts[_VERSIONS], facts[_EVALUATIONS], strict=True)
            ]
        except (StopIteration, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no checkpoint of a training job: {error!r}") from None
        return cls(checkpoint.iteration, program, curve, evaluations)


class Keeper:
    def __init__(
        self, spec: JobSpec, conf: Configuration, settings: TrainingSettings, *, note: Callable[[str], None]
    ) -> None:
        """`note` hears lines for the user."""
        self._spec, self._conf, self._settings, self._note = spec, conf, settings, note
        self.folder = training_folder(spec.staging, spec.job_id)
        self._writes = TaskSet()
        self._saved_at = time.monotonic()
        self._cost_s = 0.0
        #: of the last one that is written, or that the job began with
        self.iteration = -1
        #: there is one in the job's own folder
        self.has_own = False
        self._problem = ""
        self._own: CheckpointFolder | None = None

    # ---- before

    async def load(self) -> Saved | None:
        """Return what an earlier attempt, or the job that this one resumes, left last."""
        try:
            saved, lines = await asyncio.wrap_future(in_background(self._load))
        except StorageError as error:
            saved, lines = None, (f"no checkpoint can be read, the job begins anew: {error}",)
        for line in lines:
            self._note(line)
        if saved is not None:
            log.info("going on after iteration %d", saved.iteration)
            self.iteration = saved.iteration
        return saved

    def _load(self) -> tuple[Saved | None, tuple[str, ...]]:
        get_filesystem(self.folder, self._conf).mkdirs(self.folder, 0o700)
        with suppress(StorageError):  # nobody needs it gone
            self._own_checkpoints().remove_unfinished()
        lines: tuple[str, ...] = ()
        for job_id in (self._spec.job_id, self._spec.training.resumes if self._spec.training else ""):
            if not job_id:
                continue
            is_own = job_id == self._spec.job_id
            folder = self._own_checkpoints() if is_own else self._checkpoints(f"{parent_of(self.folder)}/{job_id}")
            saved, damaged = folder.last_as(Saved.of)
            lines += damaged
            if saved is not None:
                self.has_own = is_own
                return saved, lines
        return None, lines

    def keep_job(self) -> None:
        """Write what the job was submitted with, as its staging folder goes with it. Blocking."""
        try:
            kept = tuple(self._kept(resource) for resource in self._spec.resources if resource.name != JOB_FILE)
            self._write(JOB_FILE, replace(self._spec, resources=kept).dump())
        except StorageError as error:
            self._note(f"the job cannot be resumed once it has ended: {error}")

    def _kept(self, resource: JobResource) -> JobResource:
        """Those of a folder that goes with its job are copied."""
        if not resource.uri.startswith((self._spec.staging, parent_of(self.folder))):
            return resource
        path = f"{self.folder}/{FILES_FOLDER}/{resource.name}"
        if not resource.uri.endswith(path):
            source = get_filesystem(resource.uri, self._conf)
            self._write(f"{FILES_FOLDER}/{resource.name}", b"".join(source.open_range(resource.uri, 0)))
        return replace(resource, uri=path)

    def _own_checkpoints(self) -> CheckpointFolder:
        """The same one again and again: it knows which are damaged."""
        if self._own is None:
            self._own = self._checkpoints(self.folder)
        return self._own

    def _checkpoints(self, folder: str) -> CheckpointFolder:
        bytes_max = self._settings.checkpoint_bytes_max
        return CheckpointFolder(get_filesystem(folder, self._conf), folder, bytes_max=bytes_max)

    # ---- meanwhile

    @property
    def is_due(self) -> bool:
        wait_s = max(self._settings.checkpoint_every_s, self._cost_s / _COST_SHARE)
        return not self._writes and time.monotonic() - self._saved_at >= wait_s

    def save(self, saved: Saved) -> None:
        """Writes it soon, unless one is being written."""
        if not self._writes:
            self._writes.start(self._save(saved))

    async def _save(self, saved: Saved) -> None:
        began = time.monotonic()
        checkpoints = self._own_checkpoints()
        try:
            await asyncio.wrap_future(in_background(lambda: checkpoints.save(saved.checkpoint())))
        except StorageError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                self._note(f"no checkpoint is written after iteration {saved.iteration}: {error}")
        else:
            self.iteration, self.has_own, self._problem = saved.iteration, True, ""
        self._saved_at = time.monotonic()
        self._cost_s = self._saved_at - began

    async def written(self) -> None:
        """Returns when nothing is being written."""
        await self._writes.wait()

    # ---- at the end

    def leave(self, saved: Saved | None, curve: Curve, model: bytes | None, stopped_by: str = "") -> None:
        """Write the last checkpoint, the curve, and the model where there is one. Blocking.

        `stopped_by`: the user who has stopped the job; "" where nobody has.
        """
        try:
            if saved is not None and (saved.iteration > self.iteration or not self.has_own):
                self._own_checkpoints().save(saved.checkpoint())
                self.iteration, self.has_own = saved.iteration, True
            iteration = 0 if curve.last is None else curve.last.iteration
            if stopped_by:
                self._write(STOPPED_FILE, json.dumps({"by": stopped_by, "iteration": iteration}).encode())
            if model is not None:
                self._write(MODEL_FILE, b"".join(Checkpoint(iteration, [model]).dump()))
                result = {"iteration": iteration, "sha256": hashlib.sha256(model).hexdigest(), "bytes": len(model)}
                self._write(RESULT_FILE, json.dumps(result).encode())
            self._write(CURVE_FILE, curve.dump())  # the last: with it the job has ended
            self._tidy()
        except StorageError as error:
            log.warning("not all that the job leaves is written: %s", error)

    def _tidy(self) -> None:
        """Remove what the user's oldest jobs have left, of those that have ended."""
        above = parent_of(self.folder)
        files = get_filesystem(above, self._conf)
        folders = [entry.path for entry in files.list(above) if entry.is_dir]
        ended = [path for path in folders if path != self.folder and files.exists(f"{path}/{CURVE_FILE}")]
        ended.sort(key=_age)
        for path in ended[: max(0, len(ended) + 1 - self._settings.kept_jobs)]:
            files.delete(path, recursive=True)

    def _write(self, name: str, data: bytes) -> None:
        writer = get_filesystem(self.folder, self._conf).create(f"{self.folder}/{name}", overwrite=True)
        try:
            writer.write(data)
        except BaseException:
            writer.abort()
            raise
        writer.close()


def _age(path: str) -> tuple[int, ...]:
    """Of a job's folder, by the numbers in its name."""
    return tuple(int(part) for part in name_of(path).split("_") if part.isdigit())


def read_model(conf: Configuration, folder: str) -> Checkpoint:
    """Return what came of a job, as `Keeper.leave` wrote it. Blocking. Raises StorageError."""
    path = f"{folder}/{MODEL_FILE}"
    return Checkpoint.parse(b"".join(get_filesystem(path, conf).open_range(path, 0)), path)


def read_model_sum(conf: Configuration, folder: str) -> str:
    """Return the SHA-256 of the state that a job ended with. Blocking. Raises StorageError, ValueError."""
    path = f"{folder}/{RESULT_FILE}"
    result = json.loads(b"".join(get_filesystem(path, conf).open_range(path, 0)))
    return str(result["sha256"]) if isinstance(result, dict) else ""


def read_stop(conf: Configuration, folder: str) -> tuple[str, int] | None:
    """Return who stopped a job that has ended, and after which iteration; None: nobody did. Blocking. Raises
    StorageError, ValueError."""
    path = f"{folder}/{STOPPED_FILE}"
    try:
        found = json.loads(b"".join(get_filesystem(path, conf).open_range(path, 0)))
        return str(found["by"]), int(found["iteration"])
    except PathNotFound:
        return None
    except (TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None


def read_curve(conf: Configuration, folder: str) -> Curve:
    """Return the curve of a job that has ended. Blocking. Raises StorageError, ValueError."""
    path = f"{folder}/{CURVE_FILE}"
    return Curve.parse(b"".join(get_filesystem(path, conf).open_range(path, 0)))


def read_job(conf: Configuration, folder: str) -> JobSpec:
    """Return what a job was submitted with. Blocking. Raises StorageError, BadJobSpec."""
    path = f"{folder}/{JOB_FILE}"
    return JobSpec.parse(b"".join(get_filesystem(path, conf).open_range(path, 0)))
