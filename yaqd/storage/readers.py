"""Reading the records of a split."""

from collections.abc import Iterator
from typing import Any, Final, Protocol

from yaqd.config import Configuration
from yaqd.mapreduce.formats import InputFormat, InputKind
from yaqd.storage.batches import FixedBatch, LineBatch, RecordBatch
from yaqd.storage.bz2_blocks import Piece
from yaqd.storage.codecs import codec_of
from yaqd.storage.errors import CorruptFile
from yaqd.storage.fields import csv_batches, json_batch
from yaqd.storage.lines import LINE_BYTES_MAX, Ends, owned_blocks
from yaqd.storage.opening import get_filesystem
from yaqd.storage.splits import FileRange, InputSplit

_LINE_MAX_KEY: Final = "mapreduce.input.linerecordreader.line.maxlength"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class RecordReader(Protocol):
    """The records of one split, to be read once, in batches or one by one."""

    #: bytes of the split that the batches given out so far stand for; of a compressed file those that were unpacked
    bytes_read: int
    #: the range that the latest batch comes from; the first one before any batch
    current: FileRange

    def batches(self) -> Iterator[RecordBatch]: ...
    def __iter__(self) -> Iterator[tuple[Any, Any]]: ...
    def progress(self) -> float: ...


class SplitReader:
    """Reads the ranges of a split, one after the other."""

    def __init__(self, input_format: InputFormat, split: InputSplit, conf: Configuration) -> None:
        self.bytes_read = 0
        #: of the compressed files
        self._unpacked_bytes = 0
        self.current = split.ranges[0]
        self._format = input_format
        self._split = split
        self._conf = conf
        self._filesystem = get_filesystem(split.path, conf)
        self._line_bytes_max = conf.get_int(_LINE_MAX_KEY, LINE_BYTES_MAX, minimum=1)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[RecordBatch]:
        for part in self._split.ranges:
            self.current = part
            is_packed, before = codec_of(part.path) is not None, self.bytes_read - self._unpacked_bytes
            for batch in self._batches_of(part):
                self.bytes_read = before + self._unpacked_bytes if is_packed else self.bytes_read + batch.input_bytes
                yield batch
            if is_packed:
                self.bytes_read = before + self._unpacked_bytes

    def _batches_of(self, part: FileRange) -> Iterator[RecordBatch]:
        match self._format.kind:
            case InputKind.FIXED:
                return self._fixed(part)
            case InputKind.JSON:
                return (json_batch(batch, part.path) for batch in self._lines(part))
            case InputKind.CSV:
                chunks, _ = self._chunks(part, None)
                return csv_batches(chunks, self._format.delimiter, part.path)
            case _:
                return self._lines(part)

    def progress(self) -> float:
        """Return the share of the split that was read, 0 to 1."""
        return min(1.0, self.bytes_read / max(1, self._split.length))

    def _chunks(self, part: FileRange, length: int | None) -> tuple[Iterator[bytes], bool]:
        """The bytes of a range, on to the end of the file where `length` is None; and whether they were compressed."""
        codec = codec_of(part.path)
        if codec is None:
            return self._open_range(part.path, part.start, length), False
        return codec.decompressed(self._counted(self._open_range(part.path, 0)), part.path), True

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._unpacked_bytes += len(chunk)
            yield chunk

    def _open_range(self, path: str, start: int, length: int | None = None) -> Iterator[bytes]:
        if not path.startswith(self._filesystem.uri + "/"):
            self._filesystem = get_filesystem(path, self._conf)
        return self._filesystem.open_range(path, start, length)

    def _lines(self, part: FileRange) -> Iterator[RecordBatch]:
        as_text = self._format.kind is not InputKind.BYTES
        end: int | Ends | None = None
        if part.length < part.file_length and codec_of(part.path) is not None:
            rest = self._counted(self._open_range(part.path, part.start))
            piece = Piece(rest, part.path, part.start, part.length)
            chunks, end = iter(piece), piece.end
        else:
            chunks, is_compressed = self._chunks(part, None)
            end = None if is_compressed else part.start + part.length
        for offset, block in owned_blocks(chunks, part.start, end, self._line_bytes_max):
            has_mark = as_text and offset == 0 and block.startswith(_BYTE_ORDER_MARK)
            batch = LineBatch(offset, block, as_text=as_text, skipped=len(_BYTE_ORDER_MARK) if has_mark else 0)
            if self._line_bytes_max < LINE_BYTES_MAX:
                yield batch.without_longer(self._line_bytes_max)
            else:
                yield batch

    def _fixed(self, part: FileRange) -> Iterator[RecordBatch]:
        size = self._format.record_bytes
        # a range starts and ends where a record does, or the split was made for another format
        chunks, is_compressed = self._chunks(part, part.length)
        if not is_compressed and (part.start % size or part.length % size):
            raise CorruptFile(f"{part.path}: its split is cut within a {size}-byte record", path=part.path)
        rest = b""
        offset = part.start
        for chunk in chunks:
            block = rest + chunk if rest else chunk
            cut = len(block) - len(block) % size
            rest = block[cut:]
            if cut:
                yield FixedBatch(offset, block[:cut] if rest else block, self._format)
                offset += cut
        if rest or (not is_compressed and offset != part.start + part.length):
            raise CorruptFile(f"{part.path} ends within a {size}-byte record at {offset}", path=part.path)


def open_reader(input_format: InputFormat | str, split: InputSplit, conf: Configuration) -> SplitReader:
    """Return a reader of this split's records."""
    parsed = InputFormat.parse(input_format) if isinstance(input_format, str) else input_format
    return SplitReader(parsed, split, conf)
