"""Dividing input among tasks, by Hadoop's rules for FileInputFormat.

A split has max(minsize, min(maxsize, block size)) bytes; the last of a file may have a tenth more. Unlike Hadoop, files
smaller than a split share one with their neighbours (`yaq.input.combine-small-files`): a task for each would cost more
than its work. Records do not change by it, only the number of tasks. Empty files make no split.

Scripts are told which file they read, and where: their splits are Hadoop Streaming's, by the rules of its older
FileInputFormat (`compute_streaming_splits`).
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from yaqd.config import Configuration
from yaqd.mapreduce.formats import InputFormat, InputKind
from yaqd.storage.codecs import codec_of
from yaqd.storage.errors import CorruptFile
from yaqd.storage.filesystem import BlockLocation, FileStatus, FileSystem
from yaqd.storage.inputs import list_inputs
from yaqd.storage.opening import get_filesystem

_MIN_KEY: Final = "mapreduce.input.fileinputformat.split.minsize"
#: the last split of a file may be this much longer (Hadoop's SPLIT_SLOP)
SPLIT_SLOP: Final = 1.1
#: hosts that a split names, best first
HOSTS_MAX: Final = 10
#: files that share a split: bounds the size of its description
FILES_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class FileRange:
    #: full URI
    path: str
    #: first byte
    start: int
    #: bytes
    length: int
    #: bytes of the whole file when the splits were made
    file_length: int

    def __str__(self) -> str:
        return f"{self.path}:{self.start}+{self.length}"


@dataclass(frozen=True, slots=True)
class InputSplit:
    """The input of one map task: a piece of a file, or several small files."""

    ranges: tuple[FileRange, ...]
    #: hosts that keep most of it, best first; empty if none is nearer than another
    hosts: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.ranges[0].path

    @property
    def start(self) -> int:
        return self.ranges[0].start

    @property
    def length(self) -> int:
        return sum(part.length for part in self.ranges)

    def __str__(self) -> str:
        more = f" and {len(self.ranges) - 1} more" if len(self.ranges) > 1 else ""
        return f"{self.ranges[0]}{more}"

    def to_json(self) -> dict[str, Any]:
        return {"ranges": [asdict(part) for part in self.ranges], "hosts": list(self.hosts)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        return cls(tuple(FileRange(**part) for part in form["ranges"]), tuple(form["hosts"]))


def compute_splits(inputs: Iterable[str], input_format: InputFormat, conf: Configuration) -> list[InputSplit]:
    """Return the splits of all input paths, longest first. StorageError for the first path that cannot be read."""
    size_min = conf.get_size_bytes(_MIN_KEY, 0, minimum=0)
    size_max = conf.get_size_bytes("mapreduce.input.fileinputformat.split.maxsize", 1 << 62, minimum=1)
    is_combining = conf.get_bool("yaq.input.combine-small-files", True)
    splits: list[InputSplit] = []
    small: list[_Piece] = []
    for filesystem, status in _with_filesystems(list_inputs(inputs, conf), conf):
        if status.length == 0:
            continue
        split_bytes = max(size_min, min(size_max, status.block_size), 1)
        pieces = _pieces(filesystem, status, split_bytes, input_format)
        if is_combining and len(pieces) == 1 and status.length < split_bytes:
            small.append(_Piece(pieces[0].range, pieces[0].hosts, split_bytes))
        else:
            splits += [InputSplit((piece.range,), piece.hosts[:HOSTS_MAX]) for piece in pieces]
    splits += _combined(small)
    return sorted(splits, key=lambda split: (-split.length, split.path, split.start))


def compute_streaming_splits(inputs: Iterable[str], conf: Configuration) -> list[InputSplit]:
    """Return splits of one file each, longest first, otherwise in the order of the input; an empty file makes one, too.

    They have max(minsize, min(all bytes / maps, block size)) bytes, where maps is what the job hopes for
    (`mapreduce.job.maps`).
    """
    found = list_inputs(inputs, conf)
    size_min = conf.get_size_bytes(_MIN_KEY, 0, minimum=0)
    goal = sum(status.length for status in found) // max(1, conf.get_int("mapreduce.job.maps", 2, minimum=0))
    splits: list[InputSplit] = []
    for filesystem, status in _with_filesystems(found, conf):
        split_bytes = max(size_min, min(goal, status.block_size), 1)
        pieces = _pieces(filesystem, status, split_bytes, InputFormat.parse("bytes"))
        splits += [InputSplit((piece.range,), piece.hosts[:HOSTS_MAX]) for piece in pieces]
    return sorted(splits, key=lambda split: -split.length)


def _with_filesystems(found: list[FileStatus], conf: Configuration) -> Iterator[tuple[FileSystem, FileStatus]]:
    filesystem: FileSystem | None = None
    for status in found:
        if filesystem is None or not status.path.startswith(filesystem.uri + "/"):
            filesystem = get_filesystem(status.path, conf)
        yield filesystem, status


@dataclass(frozen=True, slots=True)
class _Piece:
    range: FileRange
    hosts: tuple[str, ...]
    #: bytes that a split of this file should have
    split_bytes: int


def _pieces(filesystem: FileSystem, status: FileStatus, split_bytes: int, input_format: InputFormat) -> list[_Piece]:
    length, record_bytes = status.length, input_format.record_bytes
    codec = codec_of(status.path)
    is_compressed = codec is not None
    is_whole = input_format.kind is InputKind.CSV or (
        codec is not None and not (codec.splits and input_format.reads_lines)
    )
    if record_bytes and not is_compressed:
        if length % record_bytes:
            raise CorruptFile(
                f"{status.path} has {length} bytes, which is no multiple of its {record_bytes}-byte records: "
                "check the input format",
                path=status.path,
            )
        split_bytes = max(split_bytes - split_bytes % record_bytes, record_bytes)
    blocks = filesystem.block_locations(status.path, 0, length)
    pieces = []
    start = 0
    while not is_whole and (length - start) / split_bytes > SPLIT_SLOP:
        pieces.append(_piece(status, start, split_bytes, blocks))
        start += split_bytes
    pieces.append(_piece(status, start, length - start, blocks))
    return pieces


def _piece(status: FileStatus, start: int, length: int, blocks: list[BlockLocation]) -> _Piece:
    """A range and the hosts of its blocks, those that keep most of it first."""
    tally: Tally[str] = Tally()
    for block in blocks:
        shared = min(start + length, block.offset + block.length) - max(start, block.offset)
        if shared > 0:
            tally.update(dict.fromkeys(block.hosts, shared))
    hosts = tuple(sorted(tally, key=lambda host: (-tally[host], host)))
    return _Piece(FileRange(status.path, start, length, status.length), hosts, length)


def _combined(pieces: list[_Piece]) -> list[InputSplit]:
    """Small files side by side in one split, in the order of the input, as many as its size allows."""
    splits = []
    group: list[_Piece] = []
    size = 0
    # files of one set of hosts stay together
    for piece in sorted(pieces, key=lambda item: item.hosts):
        if group and (
            size + piece.range.length > piece.split_bytes or piece.hosts != group[0].hosts or len(group) == FILES_MAX
        ):
            splits.append(InputSplit(tuple(item.range for item in group), group[0].hosts[:HOSTS_MAX]))
            group, size = [], 0
        group.append(piece)
        size += piece.range.length
    if group:
        splits.append(InputSplit(tuple(item.range for item in group), group[0].hosts[:HOSTS_MAX]))
    return splits
