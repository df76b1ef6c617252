"""Which map outputs of a node lie in which merged file, with the indexes that say where.

Containers can write where merged files lie, so nothing of one counts before its index is verified.
"""

import logging
import os
import stat
from collections import OrderedDict
from pathlib import Path

from nm.shuffle.answer import shuffle_headers
from nm.shuffle.files import FileCounts, OutputMissing, OutputUnreadable, missing
from nm.shuffle.jobs import ShuffleJob
from nm.shuffle.merged.kept import KeptSegments
from nm.shuffle.merged.segment import MergedFile, Part, Run, give_up
from nm.shuffle.merged.stretch import MergedStretch
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.request import ShuffleRequest
from riffle_merger.format import FormatError
from riffle_merger.format.merged import (
    DATA_SUFFIX,
    INDEX_BYTES_MAX,
    INDEX_SUFFIX,
    MERGED_FOLDER,
    MergedIndex,
    is_safe_name,
)

log = logging.getLogger(__name__)

#: Of one job on one node, in all its merged files together: some 20 MB. The largest jobs have as many maps on a whole
#: cluster.
PUBLISHED_MAPS_MAX = 50_000
#: names of files, usable or not, that are remembered of one job
_FILES_MAX = 50_000


def load_merged(path: Path, index_path: Path, *, folder: Path, bytes_max: int, counts: FileCounts) -> MergedIndex:
    """Reads and verifies the index of a merged file that really lies in the folder. Blocking.

    An index that takes more than `bytes_max` in memory is refused; a file of more bytes is not read. Raises
    OutputMissing.
    """
    if os.path.realpath(path.parent) != os.path.realpath(folder):
        raise OutputMissing(f"{path} is not inside its application's folder")
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise OutputMissing(f"{path} is not a file")
        index = MergedIndex.load(index_path, bytes_max=min(bytes_max, INDEX_BYTES_MAX))
        counts.index_read(index_path.lstat().st_size)
        index.check_file(found.st_size, name=str(path))
        if not index.partitions:
            raise OutputMissing(f"{index_path} has no partition")
        if index.cost_bytes > bytes_max:
            raise OutputMissing(f"{index_path} takes {index.cost_bytes} bytes, of {bytes_max} for all indexes")
    except OSError as error:
        raise missing(index_path, error) from None
    except FormatError as error:
        raise OutputMissing(str(error)) from None
    return index


def _in_common(maps: tuple[str, ...], first: int, asked: tuple[str, ...], number: int) -> int:
    """How many names from those places on are the same."""
    count = min(len(maps) - first, len(asked) - number)
    if maps[first : first + count] == asked[number : number + count]:
        return count
    return next(n for n in range(count) if maps[first + n] != asked[number + n])


class MergedOutputs:
    """Which maps lie in which merged file. `find` and what changes the table are for the service's own thread."""

    def __init__(self, outputs: MapOutputs, kept: KeptSegments, *, index_cache_bytes: int) -> None:
        self._outputs = outputs
        self._counts = outputs.files.counts
        self._kept = kept
        #: for all indexes that are kept, and so for any one
        self.index_cache_bytes = index_cache_bytes
        #: by job and map attempt: the file, and the map's place in it
        self._jobs: dict[str, dict[str, tuple[MergedFile, int]]] = {}
        #: by job: names of the files that are known, or were found unusable
        self._names: dict[str, set[str]] = {}
        #: by job: names of maps, and about how many bytes, that files hold whose maps are answered from them
        self._published: dict[str, tuple[int, int]] = {}
        #: jobs that have more than they may
        self._full: set[str] = set()
        self._indexes: OrderedDict[Path, MergedIndex] = OrderedDict()
        self._index_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """The bytes of what was read of partitions at once."""
        return self._kept.held_bytes

    @property
    def index_bytes(self) -> int:
        """The bytes of the indexes that are kept."""
        return self._index_bytes

    @property
    def memory_bytes(self) -> int:
        """The bytes of names, indexes and kept partitions."""
        names = sum(size for _, size in tuple(self._published.values()))
        return names + self._index_bytes + self._kept.held_bytes

    @property
    def maps(self) -> int:
        """Map outputs of all jobs that lie in merged files."""
        return sum(map(len, tuple(self._jobs.values())))

    def maps_of(self, job_id: str) -> tuple[str, ...]:
        """Lists the job's map attempts that lie in merged files."""
        return tuple(self._jobs.get(job_id, ()))

    def has(self, job_id: str, map_id: str) -> bool:
        """Returns whether a map's output was ever found in a merged file, damaged since or not."""
        return map_id in self._jobs.get(job_id, ())

    def publish(self, job_id: str, file: MergedFile) -> None:
        """Answers for the file's maps from it from now on, unless the job has too many.

        Maps that another file has stay with that one.
        """
        maps = self._jobs.setdefault(job_id, {})
        names = self._names.setdefault(job_id, set())
        if len(names) < _FILES_MAX:
            names.add(file.path.stem)
        places = {}
        for number, map_id in enumerate(file.maps):
            known = maps.get(map_id)
            if known is None or known[0].is_bad:
                places[map_id] = file, number
        if places and self._has_room(job_id, file):
            maps |= places

    def look_for(self, job: ShuffleJob, job_id: str, name: str) -> None:
        """Looks for a file that a client was told of and that may have appeared since the last look. Blocking."""
        names = self._names.setdefault(job_id, set())
        if name in names or len(names) >= _FILES_MAX or job_id in self._full or not is_safe_name(name):
            return
        for app_dir in self._outputs.app_dirs(job):
            folder = app_dir / MERGED_FOLDER
            path, index_path = folder / f"{name}{DATA_SUFFIX}", folder / f"{name}{INDEX_SUFFIX}"
            try:
                index_path.lstat()
            except OSError:  # not there, or the name is too long for a file
                continue
            names.add(name)  # whatever is wrong with it: it is not read for each request
            try:
                index = self._load(path, index_path, folder)
            except OutputUnreadable:
                names.discard(name)
                return
            except OutputMissing as error:
                log.warning("merged file left alone, the originals are served: %s", error)
                return
            self._remember(path, index)
            self.publish(job_id, MergedFile(path, index_path, index.maps))
            return

    def forget_job(self, job_id: str) -> None:
        self._names.pop(job_id, None)
        self._published.pop(job_id, None)
        self._full.discard(job_id)
        files = {file.path for file, _ in self._jobs.pop(job_id, {}).values()}
        for path in files:
            self._forget_index(path)
            self._outputs.files.forget(path)
        self._kept.forget_where(lambda key, _: isinstance(key, tuple) and key[0] in files)

    def _has_room(self, job_id: str, file: MergedFile) -> bool:
        """Counts the file where the job has; a file counts with all its names, for it holds them however few are
        answered from it."""
        count, size = self._published.get(job_id, (0, 0))
        count += len(file.maps)
        if count <= PUBLISHED_MAPS_MAX:
            self._published[job_id] = count, size + file.cost_bytes
            return True
        if job_id not in self._full:
            self._full.add(job_id)
            log.warning(
                "merged files of %s have more than %d maps here: the originals of %s and others are served",
                job_id,
                PUBLISHED_MAPS_MAX,
                file.path,
            )
        return False

    def sweep(self) -> None:
        self._kept.sweep()

    def find(
        self, request: ShuffleRequest, number: int, parts: "Parts", *, at_any_rate: bool = False
    ) -> tuple[MergedStretch, int] | None:
        """Finds the segments of as many of the request's maps, from that one on, as lie side by side in a merged file.

        Returns them and the number of the map after them. None where the original has to answer for the first.
        Blocking.

        `parts`: of the request's earlier maps. `at_any_rate`: of one map alone; its original is lost, and damage to
        other maps' segments does not matter.
        """
        asked = request.map_ids
        maps = self._jobs.get(request.job_id)
        place = maps.get(asked[number]) if maps is not None else None
        if place is None:
            return None
        file, first = place
        if file.is_bad or (request.reduce in file.bad_partitions and not at_any_rate):
            return None
        part = parts.get(file)
        if part is None:
            part = self._part(file, request.reduce)
            if part is None:
                return None
            parts[file] = part
        count = 1 if at_any_rate else _in_common(file.maps, first, asked, number)
        run = Run(first, first + count)
        part.asked.append(run)
        raw_lengths, part_lengths = part.columns.raw_lengths, part.columns.part_lengths
        these = slice(*run)
        headers = shuffle_headers(request.reduce, file.texts[these], part_lengths[these], raw_lengths[these])
        return MergedStretch(part, run, headers, self._outputs, self._kept, request.job), number + count

    def _part(self, file: MergedFile, reduce: int) -> Part | None:
        try:
            index = self._indexes.get(file.path)
            if index is None:
                index = self._load(file.path, file.index_path, file.path.parent)
                self._remember(file.path, index)
            else:
                self._indexes.move_to_end(file.path)
            if index.maps != file.maps:
                raise OutputMissing(f"{file.index_path} has changed")
            if reduce >= index.partitions:
                return None  # the original refuses it
            return Part(file, reduce, index.partition(reduce), index.columns(reduce).packed())
        except OutputUnreadable:
            return None  # now; the next who asks may have more luck
        except (OutputMissing, FormatError) as error:
            give_up(file, error)
            return None

    def _load(self, path: Path, index_path: Path, folder: Path) -> MergedIndex:
        """Raises OutputMissing."""
        most = self.index_cache_bytes
        return load_merged(path, index_path, folder=folder, bytes_max=most, counts=self._counts)

    def _remember(self, path: Path, index: MergedIndex) -> None:
        self._forget_index(path)
        self._indexes[path] = index
        self._index_bytes += index.cost_bytes
        while self._index_bytes > self.index_cache_bytes:
            self._forget_index(next(iter(self._indexes)))

    def _forget_index(self, path: Path) -> None:
        index = self._indexes.pop(path, None)
        if index is not None:
            self._index_bytes -= index.cost_bytes


Parts = dict[MergedFile, Part]
