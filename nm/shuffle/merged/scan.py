"""What has appeared in an application's folders since the last look: map outputs, and merged files.

Containers write there, so everything is a stranger's: only so many entries are looked at, links are not followed, and
nothing counts before its index is whole. An index that is seen describes a whole file, for it appears last; one that
is still being written is looked at again.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nm.shuffle.files import FileCounts, OutputMissing
from nm.shuffle.merged.outputs import PUBLISHED_MAPS_MAX, load_merged
from nm.shuffle.merged.segment import MergedFile
from nm.shuffle.merged.watch import Output
from nm.shuffle.outputs import MapOutput
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_BYTES_MAX, INDEX_SUFFIX, MERGED_FOLDER

#: entries of one folder that are looked at
_ENTRIES_MAX = 100_000
#: of one job, names of entries that are remembered: a container may make and delete as many as it likes
NAMES_MAX = 200_000
#: looks at an entry that is not whole before it is given up
_LOOKS_MAX = 600
#: a folder may have changed again at the same stroke of the file system's clock
_SETTLED_NS = 2_000_000_000


#: what changes with a file's contents; None where there is none
_FileState = tuple[int, int, int, int] | None


@dataclass(slots=True)
class Found:
    outputs: list[Output] = field(default_factory=list)
    merged: list[MergedFile] = field(default_factory=list)


class FolderScan:
    """Looks at one application's folders. Blocking; one call at a time."""

    def __init__(
        self,
        app_dirs: Sequence[Path],
        load: Callable[[str], MapOutput],
        *,
        index_bytes_max: int = INDEX_BYTES_MAX,
        counts: FileCounts | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`load`: the map output of that name, or OutputMissing. `index_bytes_max`: memory for a merged file's index.
        `counts` grows with each index of a merged file that is read. `now_ns`: the clock of the file system."""
        self._app_dirs = tuple(app_dirs)
        self._load = load
        self._index_bytes_max = index_bytes_max
        self._counts = counts or FileCounts()
        self._now_ns = now_ns
        self._known: set[str] = set()
        #: in merged files that were returned
        self._merged_maps = 0
        #: looks at what was not whole
        self._looks: dict[str, int] = {}
        #: as of the last look at an index that could not be used: it is not read again before something changed
        self._unusable: dict[str, tuple[_FileState, _FileState]] = {}
        #: when each folder was last changed, as of the last look
        self._changed: dict[Path, int] = {}

    @property
    def remembered(self) -> int:
        """Names."""
        return len(self._known) + len(self._looks)

    def scan(self) -> Found:
        """Returns what was not returned before."""
        found = Found()
        for app_dir in self._app_dirs:
            for entry in sorted(self._fresh(app_dir / "output"), key=_appeared):
                output = self._output(entry.name)
                if self._is_over(entry.path, output is not None) and output is not None:
                    found.outputs.append(output)
            for entry in self._fresh(app_dir / MERGED_FOLDER):
                if entry.name.startswith(".") or not entry.name.endswith(INDEX_SUFFIX):
                    continue
                if self._merged_maps > PUBLISHED_MAPS_MAX:
                    break  # none of the others would be served
                merged = self._merged(Path(entry), app_dir)
                if self._is_over(entry.path, merged is not None) and merged is not None:
                    found.merged.append(merged)
                    self._merged_maps += len(merged.maps)
        return found

    def _fresh(self, folder: Path) -> "Iterator[os.DirEntry[str]]":
        """Entries not done with; none, without listing, where nothing can have happened."""
        try:
            changed = folder.lstat().st_mtime_ns
            prefix = f"{folder}/"
            is_open = any(path.startswith(prefix) for path in self._looks)
            if self._changed.get(folder) == changed and not is_open:
                return
            self._changed[folder] = changed if self._now_ns() - changed > _SETTLED_NS else -1
            with os.scandir(folder) as entries:
                here = [entry for _, entry in zip(range(_ENTRIES_MAX), entries, strict=False)]
        except OSError:
            return  # not there yet, or gone with the application
        self._forget_gone(prefix, {entry.path for entry in here})
        for entry in here:
            if self.remembered >= NAMES_MAX and entry.path not in self._looks:
                continue
            if entry.path not in self._known:
                yield entry

    def _forget_gone(self, prefix: str, here: set[str]) -> None:
        """What was not whole when it was last looked at, and is there no more."""
        for path in [path for path in self._looks if path.startswith(prefix) and path not in here]:
            del self._looks[path]
            self._unusable.pop(path, None)

    def _output(self, map_id: str) -> Output | None:
        """None as long as it is not whole."""
        try:
            output = self._load(map_id)
            output.check()
            return Output(map_id, output.file_bytes, len(output.index))
        except OutputMissing:
            return None

    def _merged(self, index_path: Path, app_dir: Path) -> MergedFile | None:
        """None as long as it is not whole. Its rows are checked when they are asked for: there may be a million, and
        all jobs' folders wait for the look at this one."""
        data = index_path.with_name(index_path.name.removesuffix(INDEX_SUFFIX) + DATA_SUFFIX)
        states = _file_state(index_path), _file_state(data)
        if self._unusable.get(str(index_path)) == states:
            return None
        try:
            folder, most = app_dir / MERGED_FOLDER, self._index_bytes_max
            index = load_merged(data, index_path, folder=folder, bytes_max=most, counts=self._counts)
        except OutputMissing:
            self._unusable[str(index_path)] = states
            return None
        return MergedFile(data, index_path, index.maps)

    def _is_over(self, path: str, is_whole: bool) -> bool:
        """Remembers the entry unless it is to be looked at again."""
        looks = self._looks.pop(path, 0) + 1
        if is_whole or looks >= _LOOKS_MAX:
            self._known.add(path)
            self._unusable.pop(path, None)
            return True
        self._looks[path] = looks
        return False


def _appeared(entry: "os.DirEntry[str]") -> tuple[int, str]:
    """When the index appeared in this folder: reducers ask for map outputs in the order in which they were done. Of the
    same stroke of the clock, by name: what they ask for together is then found side by side."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns, entry.name
    except OSError:
        return 0, entry.name  # gone with the application


def _file_state(path: Path) -> _FileState:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
