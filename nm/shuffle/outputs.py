"""Map outputs on this node's disks: where they are, and their indexes.

Each reducer asks for one segment of every map output, so indexes are worth keeping; the cache is bounded and forgets
what was used longest ago. It is for the shuffle's own thread.

Of what was found whole once it is known that it is lost when it cannot be found any more: whoever asks for it need not
try again.
"""

import os
import threading
from collections import OrderedDict
from pathlib import Path

from nm.resources.directories import NodeDirectories
from nm.shuffle.files import OPEN_FLAGS, OpenFile, OpenFiles, OutputLost, OutputMissing, OutputRefused, missing
from nm.shuffle.jobs import ShuffleJob
from riffle_merger.format import FormatError, IndexEntry, SpillIndex
from yaqd.model import ApplicationId

#: what an index costs beside its entries
_OVERHEAD_BYTES = 512
_ENTRY_BYTES = 24


class _Seen:
    """Which outputs were found whole, as many as were found last; from any thread."""

    #: some 100 bytes each
    _MAX = 50_000

    def __init__(self) -> None:
        self._hashes: dict[int, None] = {}
        self._lock = threading.Lock()

    def add(self, application: ApplicationId, map_id: str) -> None:
        with self._lock:
            self._hashes[hash((application, map_id))] = None
            if len(self._hashes) > self._MAX:
                del self._hashes[next(iter(self._hashes))]

    def has(self, application: ApplicationId, map_id: str) -> bool:
        return hash((application, map_id)) in self._hashes


class MapOutput:
    __slots__ = ("file_bytes", "index", "is_gone", "path")

    def __init__(self, path: Path, index: SpillIndex, file_bytes: int) -> None:
        #: of file.out
        self.path = path
        self.file_bytes = file_bytes
        self.index = index
        #: it could not be read any more: from any thread
        self.is_gone = False

    def segment(self, reduce: int) -> IndexEntry:
        """Returns one reducer's part, which lies inside the file. Raises OutputMissing.

        Only this entry is looked at: an index may name a million. A stock ShuffleHandler, too, serves the right entries
        beside a wrong one.
        """
        if reduce >= len(self.index):
            raise OutputRefused(f"{self.path} has {len(self.index)} partitions, asked for {reduce}")
        entry = self.index[reduce]
        end = entry.start + entry.part_length
        if end > self.file_bytes:
            raise OutputMissing(f"{self.path}: partition {reduce} ends at {end}, the file has {self.file_bytes} bytes")
        return entry

    def check(self) -> None:
        """Checks that every segment lies inside the file; up to 60 ms. Raises OutputMissing."""
        try:
            self.index.check_file(self.file_bytes, name=str(self.path))
        except FormatError as error:
            raise OutputMissing(str(error)) from None

    @property
    def cost_bytes(self) -> int:
        return _OVERHEAD_BYTES + _ENTRY_BYTES * len(self.index)


class MapOutputs:
    def __init__(self, directories: NodeDirectories, *, index_cache_bytes: int, open_files_max: int = 512) -> None:
        self._directories = directories
        self._index_cache_bytes = index_cache_bytes
        #: merged files are opened through it too
        self.files = OpenFiles(open_files_max)
        self._outputs: OrderedDict[tuple[str, str], MapOutput] = OrderedDict()
        self._bytes = 0
        self._seen = _Seen()

    def segment(self, job: ShuffleJob, job_id: str, map_id: str, reduce: int) -> tuple[MapOutput, IndexEntry]:
        """Finds where one reducer's part of one map output lies. Blocking. Raises OutputMissing."""
        key = (job_id, map_id)
        output = self._outputs.get(key)
        if output is None or output.is_gone:
            self._forget(key)
            output = self.load(job, map_id)
            self._remember(key, output)
        else:
            self._outputs.move_to_end(key)
        return output, output.segment(reduce)

    def open(self, output: MapOutput) -> OpenFile:
        """Opens the output's file, to be released. Blocking; from any thread. Raises OutputMissing."""
        return self.files.open(output.path)

    def app_dirs(self, job: ShuffleJob) -> list[Path]:
        """Lists where outputs of the job may lie, merged or not."""
        return self._directories.app_dirs(job.user, job.application)

    def forget_job(self, job_id: str) -> None:
        for key in [k for k in self._outputs if k[0] == job_id]:
            self._forget(key)

    def close(self) -> None:
        self.files.close()
        self._outputs.clear()

    @property
    def index_bytes(self) -> int:
        return self._bytes

    def _forget(self, key: tuple[str, str]) -> None:
        output = self._outputs.pop(key, None)
        if output is not None:
            self._bytes -= output.cost_bytes
            self.files.forget(output.path)

    def _remember(self, key: tuple[str, str], output: MapOutput) -> None:
        self._outputs[key] = output
        self._bytes += output.cost_bytes
        while self._bytes > self._index_cache_bytes and len(self._outputs) > 1:
            self._bytes -= self._outputs.popitem(last=False)[1].cost_bytes

    def load(self, job: ShuffleJob, map_id: str) -> MapOutput:
        """Reads the output as it lies on the disk now. Blocking; from any thread. Raises OutputMissing, OutputLost."""
        try:
            output = self._load(job, map_id)
        except OutputRefused:
            raise
        except OutputMissing as error:
            if self._seen.has(job.application, map_id):
                raise OutputLost(str(error)) from None
            raise
        self._seen.add(job.application, map_id)
        return output

    def _load(self, job: ShuffleJob, map_id: str) -> MapOutput:
        why = OutputMissing(f"no output of {map_id} on this node")
        for app_dir in self.app_dirs(job):
            folder = app_dir / "output" / map_id
            try:
                descriptor = os.open(folder / "file.out.index", OPEN_FLAGS)
            except OSError as error:
                found = missing(folder, error)
                if isinstance(found, OutputRefused):  # another disk may have it
                    why = found
                continue
            try:
                output = self._verified(app_dir, folder, descriptor)
                self.files.counts.index_read(os.fstat(descriptor).st_size)
                return output
            except FormatError as error:
                raise OutputMissing(f"{folder}: {error}") from None
            except OSError as error:  # a folder, for one: containers make these files
                raise missing(folder, error) from None
            finally:
                os.close(descriptor)
        raise why

    @staticmethod
    def _verified(app_dir: Path, folder: Path, descriptor: int) -> MapOutput:
        """The folder must really be the application's: a container may have put a link there."""
        if os.path.realpath(folder) != f"{os.path.realpath(app_dir)}/output/{folder.name}":
            raise OutputMissing(f"{folder} is not inside its application's folder")
        path = folder / "file.out"
        with open(descriptor, "rb", closefd=False) as file:
            index = SpillIndex.read(file, name="file.out.index")
        return MapOutput(path, index, path.lstat().st_size)
