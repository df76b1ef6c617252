"""What an exploration has on storage: its records, and a checkpoint of each trial that has one.

Records of several reports share one write: while one goes on, those that come are gathered for the next. Whoever
awaits `append` knows that its records are there. Where storage is full, reports wait, and a line says so.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tez_adapter.background import BackgroundThread
from tez_adapter.exploration.log import ExplorationLog, Record
from yaqd.config import Configuration
from yaqd.ipc.tasks import TaskSet
from yaqd.storage import StorageError, get_filesystem
from yaqd.storage.checkpoints import Checkpoint
from yaqd.storage.errors import CorruptFile
from yaqd.storage.paths import name_of

log = logging.getLogger(__name__)

#: folders below the job's own
LOG_FOLDER: Final = "explore"
TRIALS_FOLDER: Final = "trials"
_RETRY_S: Final = 1.0


class Commits:
    """Writes records in the background, in order. Made in the event loop."""

    def __init__(self, records: ExplorationLog, *, note: Callable[[str], None], retry_s: float = _RETRY_S) -> None:
        self._log, self._note, self._retry_s = records, note, retry_s
        self._waiting: list[tuple[Sequence[Record], asyncio.Future[None]]] = []
        self._tasks = TaskSet()
        self._problem = ""
        self._is_ended = False
        self._thread = BackgroundThread()

    def append(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        """Return what is done when the records are on storage, and all before them."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((records, future))
        if not self._tasks:
            self._tasks.start(self._write())
        return future

    @property
    def is_behind(self) -> bool:
        """Whether records are on their way; an empty `append` waits for them."""
        return bool(self._tasks)

    async def _write(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            batch = [record for records, _ in taken for record in records]
            if batch and not await self._written(batch):
                return
            for _, future in taken:
                if not future.done():
                    future.set_result(None)

    async def _written(self, batch: Sequence[Record]) -> bool:
        """Write until it is there; return False where the job ends before that."""
        while True:
            try:
                await asyncio.wrap_future(self._thread.do(lambda: self._log.append(batch)))
            except StorageError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    self._note(f"reports wait until they can be stored: {error}")
                if self._is_ended:
                    log.warning("%d records are lost: %s", len(batch), error)
                    return False
                await asyncio.sleep(self._retry_s)
            else:
                self._problem = ""
                return True

    async def end(self) -> None:
        """Wait for what goes on; what cannot be written is given up."""
        self._is_ended = True
        await self._tasks.wait()
        self._thread.close()


class TrialCheckpoints:
    """The checkpoints of trials, whole or not at all. Blocking; every method raises StorageError."""

    def __init__(self, conf: Configuration, folder: str, formers: Sequence[str] = ()) -> None:
        """`formers`: the folders of the jobs that this one goes on from, the last first: looked at where the own one
        has nothing."""
        self._conf, self._folder, self._formers = conf, folder, formers
        self._files = get_filesystem(folder, conf)

    def save(self, number: int, iteration: int, data: bytes) -> int:
        """Write one; return its bytes. Older ones of the trial go then."""
        parts = Checkpoint(iteration, [data], {"trial": number}).dump()
        writer = self._files.create(self._path(self._folder, number, iteration), overwrite=True)
        try:
            for part in parts:
                writer.write(part)
        except BaseException:
            writer.abort()
            raise
        writer.close()
        return sum(map(len, parts))

    def load(self, number: int, iteration: int) -> bytes:
        """Return one. Raises CorruptFile for a damaged one."""
        able = [self._path(folder, number, iteration) for folder in (self._folder, *self._formers)]
        path = next((path for path in able[:-1] if self._files.exists(path)), able[-1])
        found = Checkpoint.parse(b"".join(self._files.open_range(path, 0)), path)
        if found.iteration != iteration or found.facts.get("trial") != number or len(found.pieces) != 1:
            raise CorruptFile(f"{path} is the checkpoint of something else", path=path)
        return found.pieces[0]

    def delete(self, number: int, iteration: int) -> None:
        """Remove one, if it is there; a former job's stays."""
        self._files.delete(self._path(self._folder, number, iteration))

    def keep_only(self, kept: Iterable[tuple[int, int]]) -> None:
        """Remove all but these, by trial and iteration: what a lost job manager wrote and did not note."""
        self._files.mkdirs(self._folder, 0o700)
        names = {name_of(self._path(self._folder, number, iteration)) for number, iteration in kept}
        for entry in self._files.list(self._folder):
            if name_of(entry.path) not in names:
                self._files.delete(entry.path)

    @staticmethod
    def _path(folder: str, number: int, iteration: int) -> str:
        return f"{folder}/trial-{number:06d}-{iteration}"


def read_records(conf: Configuration, folder: str) -> list[dict[str, Any]]:
    """Return the records of a job that has ended. `folder`: the job's own. Blocking. Raises StorageError."""
    path = f"{folder}/{LOG_FOLDER}"
    return ExplorationLog(get_filesystem(path, conf), path).read()[0]
