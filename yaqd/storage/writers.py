"""Writing the records of a task's output file."""

from collections.abc import Iterable
from typing import Any, Final

from yaqd.config import Configuration
from yaqd.mapreduce.formats import OutputKind
from yaqd.mapreduce.text import line_of, text_of
from yaqd.storage.codecs import output_codec
from yaqd.storage.filesystem import ByteWriter, FileSystem

#: bytes gathered before they go to the file system
BUFFER_BYTES: Final = 1 << 20
_SEPARATOR_KEY: Final = "mapreduce.output.textoutputformat.separator"


class RecordWriter:
    """Formats and buffers records. Close it to publish the file, or abort it."""

    def __init__(self, file: ByteWriter, kind: OutputKind, separator: bytes = b"\t") -> None:
        self.records = 0
        #: bytes of output before compression
        self.bytes_written = 0
        self._file = file
        self._is_text = kind is OutputKind.TEXT
        self._separator = separator
        self._parts: list[bytes] = []
        self._buffered = 0

    def write(self, key: Any, value: Any) -> None:
        if self._is_text:
            part = line_of(key, value, self._separator)
        else:
            part = text_of(key) + text_of(value)
        self._parts.append(part)
        self._buffered += len(part)
        self.records += 1
        if self._buffered >= BUFFER_BYTES:
            self._flush()

    def write_all(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """`write` for each pair; for plain str, int and bytes a good deal faster."""
        separator, is_text, parts = self._separator, self._is_text, self._parts
        plain = str
        for key, value in pairs:
            if is_text and type(key) is plain and type(value) is int:
                try:
                    part = b"%b%b%d\n" % (key.encode(), separator, value)
                except UnicodeEncodeError:
                    part = line_of(key, value, separator)
            elif is_text:
                part = line_of(key, value, separator)
            else:
                part = text_of(key) + text_of(value)
            parts.append(part)
            self._buffered += len(part)
            self.records += 1
            if self._buffered >= BUFFER_BYTES:
                self._flush()
                parts = self._parts

    def write_block(self, block: bytes, records: int) -> None:
        """Records that are formatted already."""
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
            self.bytes_written += len(block)
            self._file.write(block)


def open_writer(filesystem: FileSystem, path: str, kind: OutputKind | str, conf: Configuration) -> RecordWriter:
    """A writer of one output file; `path` ends in `output_suffix`. An older file of that name is replaced."""
    codec = output_codec(conf)
    file: ByteWriter = filesystem.create(path, overwrite=True)
    if codec is not None:
        file = codec.compressing(file)
    separator = (conf.get(_SEPARATOR_KEY) or "\t").encode("utf-8", "surrogateescape")
    return RecordWriter(file, OutputKind.of(kind), separator)
