"""Writing the records of a task's output file."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from yaqd.config import Configuration
from yaqd.mapreduce.formats import OutputKind, csv_columns
from yaqd.mapreduce.text import csv_line_of, json_line_of, line_of, text_of
from yaqd.storage.codecs import FileCodec, output_codec
from yaqd.storage.filesystem import ByteWriter, FileSystem

#: bytes gathered before they go to the file system
BUFFER_BYTES: Final = 1 << 20
_SEPARATOR_KEY: Final = "mapreduce.output.textoutputformat.separator"


class CountedFile:
    """A file, and how many bytes it was given."""

    def __init__(self, file: ByteWriter) -> None:
        self.size = 0
        self._file = file

    def write(self, data: bytes | bytearray, /) -> None:
        self.size += len(data)
        self._file.write(data)

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None:
        self._file.abort()


class RecordWriter:
    """Formats and buffers records. Close it to publish the file, or abort it."""

    def __init__(
        self,
        file: ByteWriter,
        kind: OutputKind,
        separator: bytes = b"\t",
        columns: tuple[str, ...] = (),
        codec: FileCodec | None = None,
    ) -> None:
        """`columns`: of CSV, whose names come first."""
        #: bytes of the file, packed where there is a codec
        self._counted = CountedFile(file)
        file = self._counted if codec is None else codec.compressing(self._counted)
        self.records = 0
        self._file = file
        self._is_text = kind is OutputKind.TEXT
        self._separator = separator
        self._parts: list[bytes] = []
        self._buffered = 0
        self._form = _form(kind, separator, columns)
        if columns:
            self._parts.append(csv_line_of(None, columns, columns))

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far, compressed ones where it is compressed; all of them once it is closed."""
        return self._counted.size

    def write(self, key: Any, value: Any) -> None:
        part = self._form(key, value)
        self._parts.append(part)
        self._buffered += len(part)
        self.records += 1
        if self._buffered >= BUFFER_BYTES:
            self._flush()

    def write_all(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Call `write` for each pair; for plain str, int and bytes a good deal faster."""
        separator, is_text, parts, form = self._separator, self._is_text, self._parts, self._form
        plain = str
        for key, value in pairs:
            if is_text and type(key) is plain and type(value) is int:
                try:
                    part = b"%b%b%d\n" % (key.encode(), separator, value)
                except UnicodeEncodeError:
                    part = line_of(key, value, separator)
            else:
                part = form(key, value)
            parts.append(part)
            self._buffered += len(part)
            self.records += 1
            if self._buffered >= BUFFER_BYTES:
                self._flush()
                parts = self._parts

    def write_block(self, block: bytes, records: int) -> None:
        """Write records that are formatted already."""
        self._parts.append(block)
        self._buffered += len(block)
        self.records += records
        if self._buffered >= BUFFER_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def abort(self) -> None:
        self._file.abort()

    def _flush(self) -> None:
        if self._parts:
            block = b"".join(self._parts)
            self._parts, self._buffered = [], 0
            self._file.write(block)


def _form(kind: OutputKind, separator: bytes, columns: tuple[str, ...]) -> Callable[[Any, Any], bytes]:
    """A record's bytes."""
    match kind:
        case OutputKind.TEXT:
            return lambda key, value: line_of(key, value, separator)
        case OutputKind.RAW:
            return lambda key, value: text_of(key) + text_of(value)
        case OutputKind.JSON:
            return json_line_of
        case OutputKind.CSV:
            return lambda key, value: csv_line_of(key, value, columns)


def open_writer(filesystem: FileSystem, path: str, name: str, conf: Configuration) -> RecordWriter:
    """Return a writer of one output file in this format; `path` ends in `output_suffix`. An older file of that name is
    replaced."""
    codec = output_codec(conf)
    file: ByteWriter = filesystem.create(path, overwrite=True, make_parents=False)
    separator = (conf.get(_SEPARATOR_KEY) or "\t").encode("utf-8", "surrogateescape")
    return RecordWriter(file, OutputKind.of(name), separator, csv_columns(name), codec)
