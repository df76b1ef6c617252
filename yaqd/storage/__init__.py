"""File systems, compression, and the input and output of jobs.

Readers work with NumPy and are imported when first asked for, so that a daemon that only copies files does without it.
"""

from typing import TYPE_CHECKING, Any

from yaqd.storage.codecs import FileCodec, codec_of, output_codec, output_suffix
from yaqd.storage.committer import (
    OutputCommitter,
    check_output_absent,
    check_output_possible,
    part_name,
    streaming_part_name,
)
from yaqd.storage.errors import (
    CorruptFile,
    NotAFile,
    PathDenied,
    PathExists,
    PathNotFound,
    StorageError,
    StorageFull,
    StorageUnavailable,
)
from yaqd.storage.filesystem import BlockLocation, ByteReader, ByteWriter, FileStatus, FileSystem, PositionedReader
from yaqd.storage.inputs import glob, list_inputs
from yaqd.storage.notes import storage_notes
from yaqd.storage.opening import get_filesystem
from yaqd.storage.paths import Location, locate, qualify
from yaqd.storage.splits import FileRange, InputSplit, compute_splits, compute_streaming_splits
from yaqd.storage.statistics import Statistics, storage_statistics
from yaqd.storage.writers import RecordWriter, open_writer

if TYPE_CHECKING:
    from yaqd.storage.batches import RecordBatch
    from yaqd.storage.columns import ColumnBatch
    from yaqd.storage.readers import RecordReader, open_reader

__all__ = [
    "BlockLocation",
    "ByteReader",
    "ByteWriter",
    "ColumnBatch",
    "CorruptFile",
    "FileCodec",
    "FileRange",
    "FileStatus",
    "FileSystem",
    "InputSplit",
    "Location",
    "NotAFile",
    "OutputCommitter",
    "PathDenied",
    "PathExists",
    "PathNotFound",
    "PositionedReader",
    "RecordBatch",
    "RecordReader",
    "RecordWriter",
    "Statistics",
    "StorageError",
    "StorageFull",
    "StorageUnavailable",
    "check_output_absent",
    "check_output_possible",
    "codec_of",
    "compute_splits",
    "compute_streaming_splits",
    "get_filesystem",
    "glob",
    "list_inputs",
    "locate",
    "open_reader",
    "open_writer",
    "output_codec",
    "output_suffix",
    "part_name",
    "qualify",
    "storage_notes",
    "storage_statistics",
    "streaming_part_name",
]

_LAZY = {
    "ColumnBatch": "yaqd.storage.columns",
    "RecordBatch": "yaqd.storage.batches",
    "RecordReader": "yaqd.storage.readers",
    "open_reader": "yaqd.storage.readers",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
