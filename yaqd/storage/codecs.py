"""Codecs of whole files, by the suffix of a file's name or by the name that a job gives: Hadoop's, and its formats.

What is written here Hadoop reads, and the other way round: `.lz4` and `.snappy` files have Hadoop's blocks. (`.lz4`
files of the program lz4, which Hadoop does not read, are read too.) All codecs come with this project's own
dependencies, so that every node has them.
"""

import bz2
import struct
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from yaqd.config import Configuration
from yaqd.storage.errors import CorruptFile
from yaqd.storage.filesystem import CHUNK_BYTES, ByteWriter
from yaqd.storage.notes import note
from yaqd.storage.paths import name_of
from yaqd.storage.streams import ChunkReader

COMPRESS_KEY: Final = "mapreduce.output.fileoutputformat.compress"
CODEC_KEY: Final = "mapreduce.output.fileoutputformat.compress.codec"
#: fast: output is written once and CPU time is the job's
_LEVEL: Final = 1
_GZIP_WBITS: Final = 31
#: what fits Hadoop's buffers of 256 KB after the worst that compression can do to it
_BLOCK_BYTES: Final = (256 << 10) - (256 << 10) // 6 - 32
#: a block that claims more is damaged
_BLOCK_BYTES_MAX: Final = 64 << 20
_LZ4_FRAME: Final = b"\x04\x22\x4d\x18"
_SNAPPY_FRAME: Final = b"\xff\x06\x00\x00"

#: told of bytes behind a file's end that are left alone
Warn = Callable[[str], None]


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FileCodec:
    name: str
    #: what names of its files end in
    suffix: str
    #: Hadoop's classes, without their package
    classes: tuple[str, ...]
    read: Callable[[Iterable[bytes], Warn], Iterator[bytes]]
    compressor: Callable[[], Compressor]
    #: lines of such a file are read from any part of it (`yaqd.storage.bz2_blocks`)
    splits: bool = False

    def decompressed(self, chunks: Iterable[bytes], path: str) -> Iterator[bytes]:
        """Return the contents in pieces; members that follow each other are one file. CorruptFile where it is damaged
        or ends early. Bytes behind its end that are none of its own are left alone, and noted."""
        try:
            yield from self.read(chunks, lambda what: note(f"{path}: {what}"))
        except (zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
            raise CorruptFile(f"{path} is no whole {self.name} file: {error}", path=path) from None

    def compressing(self, file: ByteWriter) -> "CompressingWriter":
        return CompressingWriter(file, self.compressor())


class CompressingWriter:
    """Compresses what goes to a file."""

    def __init__(self, file: ByteWriter, compressor: Compressor) -> None:
        self._file = file
        self._compressor = compressor

    def write(self, data: bytes | bytearray, /) -> None:
        packed = self._compressor.compress(bytes(data))
        if packed:
            self._file.write(packed)

    def close(self) -> None:
        self._file.write(self._compressor.flush())
        self._file.close()

    def abort(self) -> None:
        self._file.abort()


# ---- gzip, deflate, bzip2: members, each unpacked by an object of its own


class _Inflater:
    """zlib's, with the manners of bz2's."""

    def __init__(self, wbits: int) -> None:
        self._inflater = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inflater.decompress(self._inflater.unconsumed_tail + data, max_length)
        self.needs_input = len(found) < max_length
        return found


def _members(
    chunks: Iterable[bytes], warn: Warn, *, make: Callable[[], Any], magic: bytes = b"", padding: bytes = b""
) -> Iterator[bytes]:
    """Some writers pad members; what neither pads nor begins as a member does, after the first, is garbage."""
    source = iter(chunks)
    rest = b""
    is_first = True
    while True:
        while len(rest) < max(1, len(magic)) and (more := next(source, b"")):
            rest = (rest + more).lstrip(padding) if padding else rest + more
        if not rest:
            return
        if not is_first and not rest.startswith(magic):
            warn("decompression OK, trailing garbage ignored")
            return
        rest = yield from _member(rest, source, make())
        rest = rest.lstrip(padding) if padding else rest
        is_first = False


def _member(rest: bytes, source: Iterator[bytes], unpacker: Any) -> Generator[bytes, None, bytes]:
    """One member; returns what stands behind it."""
    while not unpacker.eof:
        if unpacker.needs_input and not rest:
            rest = next(source, b"")
            if not rest:
                raise EOFError("it ends early")
        given, rest = (rest, b"") if unpacker.needs_input else (b"", rest)
        data = unpacker.decompress(given, CHUNK_BYTES)
        if data:
            yield data
    return unpacker.unused_data or b""


# ---- lz4 and snappy: Hadoop's blocks


def _blocks(source: ChunkReader, decompress: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    """Each block: its length, then pieces with their lengths until they unpack to as many bytes."""
    while head := source.read(4):
        left = _number(head)
        while left:
            piece = _exactly(source, _number(_exactly(source, 4)))
            data = decompress(piece, left)
            if not data or len(data) > left:
                raise ValueError(f"a piece of {len(data)} bytes where {left} are left of its block")
            left -= len(data)
            yield data


def _number(field: bytes) -> int:
    if len(field) < 4:
        raise EOFError("it ends early")
    (number,) = struct.unpack(">I", field)
    if number > _BLOCK_BYTES_MAX:
        raise ValueError(f"a block of {number} bytes is beyond {_BLOCK_BYTES_MAX}")
    return int(number)


def _exactly(source: ChunkReader, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError("it ends early")
    return data


class _BlockCompressor:
    def __init__(self, compress: Callable[[bytes], bytes]) -> None:
        self._compress = compress
        self._pending = bytearray()

    def compress(self, data: bytes, /) -> bytes:
        self._pending += data
        whole = len(self._pending) - len(self._pending) % _BLOCK_BYTES
        packed = b"".join(self._block(at) for at in range(0, whole, _BLOCK_BYTES))
        del self._pending[:whole]
        return packed

    def flush(self) -> bytes:
        return self._block(0) if self._pending else b""

    def _block(self, at: int) -> bytes:
        raw = bytes(self._pending[at : at + _BLOCK_BYTES])
        packed = self._compress(raw)
        return struct.pack(">II", len(raw), len(packed)) + packed


def _read_lz4(chunks: Iterable[bytes], _: Warn) -> Iterator[bytes]:
    import lz4.block
    import lz4.frame

    def decompress(piece: bytes, left: int) -> bytes:
        try:
            return lz4.block.decompress(piece, uncompressed_size=left)  # type: ignore[no-any-return]
        except lz4.block.LZ4BlockError as error:
            raise ValueError(str(error)) from None

    source, begin = _begin(chunks)
    if begin == _LZ4_FRAME:
        return _members(source, _, make=lz4.frame.LZ4FrameDecompressor, magic=_LZ4_FRAME)
    return _blocks(ChunkReader(source), decompress)


def _lz4_compressor() -> Compressor:
    import lz4.block

    return _BlockCompressor(lambda raw: lz4.block.compress(raw, store_size=False))


def _read_snappy(chunks: Iterable[bytes], _: Warn) -> Iterator[bytes]:
    import pyarrow

    codec = pyarrow.Codec("snappy")

    def decompress(piece: bytes, left: int) -> bytes:
        # a piece begins with its length, which the library would allocate unseen
        length = _varint(piece[:5])
        if not 0 < length <= left:
            raise ValueError(f"a piece of {length} bytes where {left} are left of its block")
        return codec.decompress(piece, decompressed_size=length, asbytes=True)  # type: ignore[no-any-return]

    source, begin = _begin(chunks)
    if begin == _SNAPPY_FRAME:
        raise ValueError("it has frames, not Hadoop's blocks: unpack it, or compress it with gzip")
    return _blocks(ChunkReader(source), decompress)


def _snappy_compressor() -> Compressor:
    import pyarrow

    codec = pyarrow.Codec("snappy")
    return _BlockCompressor(lambda raw: codec.compress(raw, asbytes=True))


def _begin(chunks: Iterable[bytes]) -> tuple[Iterator[bytes], bytes]:
    """The same chunks, and the first four bytes of them."""
    source = iter(chunks)
    begin = b""
    while len(begin) < 4 and (more := next(source, b"")):
        begin += more
    rest = begin

    def again() -> Iterator[bytes]:
        if rest:
            yield rest
        yield from source

    return again(), begin[:4]


def _varint(data: bytes) -> int:
    value = 0
    for shift, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value
    return -1


# ---- zstd


class _Source:
    """Chunks, as pyarrow reads a file."""

    closed = False

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._reader = ChunkReader(iter(chunks))

    def read(self, size: int = -1) -> bytes:
        return self._reader.read(size)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        pass


class _Sink:
    """What pyarrow wrote to it, to be taken away."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def _read_zstd(chunks: Iterable[bytes], _: Warn) -> Iterator[bytes]:
    import pyarrow

    with pyarrow.CompressedInputStream(pyarrow.PythonFile(_Source(chunks), mode="r"), "zstd") as stream:
        while data := stream.read(CHUNK_BYTES):
            yield data


class _ZstdCompressor:
    def __init__(self) -> None:
        import pyarrow

        self._sink = _Sink()
        self._stream = pyarrow.CompressedOutputStream(pyarrow.PythonFile(self._sink, mode="w"), "zstd")

    def compress(self, data: bytes, /) -> bytes:
        self._stream.write(data)
        return self._sink.take()

    def flush(self) -> bytes:
        self._stream.close()
        return self._sink.take()


# ---- all of them

FILE_CODECS: Final = (
    FileCodec(
        "gzip",
        ".gz",
        ("GzipCodec",),
        partial(_members, make=partial(_Inflater, _GZIP_WBITS), magic=b"\x1f\x8b", padding=b"\0"),
        lambda: zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS),
    ),
    FileCodec(
        "bzip2",
        ".bz2",
        ("BZip2Codec",),
        partial(_members, make=bz2.BZ2Decompressor, magic=b"BZh"),
        bz2.BZ2Compressor,
        splits=True,
    ),
    FileCodec("zstd", ".zst", ("ZStandardCodec",), _read_zstd, _ZstdCompressor),
    FileCodec("lz4", ".lz4", ("Lz4Codec",), _read_lz4, _lz4_compressor),
    FileCodec("snappy", ".snappy", ("SnappyCodec",), _read_snappy, _snappy_compressor),
    FileCodec(
        "deflate",
        ".deflate",
        ("DefaultCodec", "DeflateCodec"),
        partial(_members, make=partial(_Inflater, zlib.MAX_WBITS)),
        lambda: zlib.compressobj(_LEVEL),
    ),
)
_HADOOPS_PACKAGE: Final = "org.apache.hadoop.io.compress."


def codec_of(path: str) -> FileCodec | None:
    """Find the codec by the name's suffix; None for a plain file."""
    name = name_of(path).lower()
    return next((codec for codec in FILE_CODECS if name.endswith(codec.suffix)), None)


def output_codec(conf: Configuration) -> FileCodec | None:
    """Return the codec of a job's output; None where it is not compressed. ConfigError for one that does not exist."""
    if not conf.get_bool(COMPRESS_KEY, False):
        return None
    named = (conf.get(CODEC_KEY) or "gzip").strip()
    class_name = named.removeprefix(_HADOOPS_PACKAGE)
    for codec in FILE_CODECS:
        if class_name in codec.classes if class_name != named else named.lower() in (codec.name, codec.suffix[1:]):
            return codec
    names = ", ".join(codec.name for codec in FILE_CODECS)
    raise conf.error(CODEC_KEY, "is no codec of output files", f"write one of {names}, or Hadoop's class of one")


def output_suffix(conf: Configuration) -> str:
    """Return what output files' names end in: .gz where the job compresses its output with gzip."""
    codec = output_codec(conf)
    return "" if codec is None else codec.suffix
