"""Compression of one block at a time, for map output and other data whose lengths are kept outside.

Blocks are bare (LZ4 block, raw Snappy): a frame costs bytes and time, and concatenated LZ4 frames decode to the first
of them without an error. No codec here notices every flipped bit: whoever stores blocks keeps a checksum beside them.
The caller says how long the block was; nothing is allocated beyond that, whatever the bytes claim.
"""

import zlib
from collections.abc import Callable
from typing import Final, Protocol, cast

from yaqd.storage.errors import CorruptFile, StorageError

#: no block is longer: LZ4's own limit is just under 2 GiB, and one this large is a mistake
BLOCK_BYTES_MAX: Final = 1 << 30

_Buffer = bytes | bytearray | memoryview


class Codec(Protocol):
    name: str

    def compress(self, data: _Buffer) -> bytes: ...

    def decompress(self, data: _Buffer, raw_length: int) -> bytes:
        """The block of `raw_length` bytes. CorruptFile if it is not exactly that."""
        ...


class _NoneCodec:
    name = "none"

    def compress(self, data: _Buffer) -> bytes:
        return bytes(data)

    def decompress(self, data: _Buffer, raw_length: int) -> bytes:
        return _checked(bytes(data), raw_length, self.name)


class _Lz4Codec:
    name = "lz4"

    def __init__(self) -> None:
        import lz4.block

        self._compress: Callable[..., bytes] = lz4.block.compress
        self._decompress: Callable[..., bytes] = lz4.block.decompress
        self._error: type[Exception] = lz4.block.LZ4BlockError

    def compress(self, data: _Buffer) -> bytes:
        return self._compress(data, store_size=False)

    def decompress(self, data: _Buffer, raw_length: int) -> bytes:
        try:
            return _checked(self._decompress(data, uncompressed_size=_bounded(raw_length)), raw_length, self.name)
        except self._error as error:
            raise CorruptFile(f"corrupt lz4 block: {error}") from None


class _SnappyCodec:
    name = "snappy"

    def __init__(self) -> None:
        try:
            import snappy
        except ImportError:
            raise StorageError("codec snappy needs python-snappy: pip install 'yaqd[snappy]', or choose lz4") from None
        self._snappy = snappy

    def compress(self, data: _Buffer) -> bytes:
        return cast(bytes, self._snappy.compress(bytes(data)))

    def decompress(self, data: _Buffer, raw_length: int) -> bytes:
        # the block begins with its length, which the library would allocate unseen
        if _varint(bytes(data[:5])) != _bounded(raw_length):
            raise CorruptFile(f"corrupt snappy block: {raw_length} bytes expected")
        try:
            return _checked(cast(bytes, self._snappy.uncompress(bytes(data))), raw_length, self.name)
        except Exception as error:  # the engine's own error class is not exported
            if isinstance(error, StorageError):
                raise
            raise CorruptFile(f"corrupt snappy block: {error}") from None


class _GzipCodec:
    name = "gzip"
    #: zlib's sign for a gzip header
    _WBITS: Final = 31

    def compress(self, data: _Buffer) -> bytes:
        return zlib.compress(data, 1, wbits=self._WBITS)

    def decompress(self, data: _Buffer, raw_length: int) -> bytes:
        inflater = zlib.decompressobj(self._WBITS)
        try:
            block = inflater.decompress(data, _bounded(raw_length) + 1)
        except zlib.error as error:
            raise CorruptFile(f"corrupt gzip block: {error}") from None
        if not inflater.eof or inflater.unused_data:
            raise CorruptFile(f"corrupt gzip block: {raw_length} bytes expected")
        return _checked(block, raw_length, self.name)


_CODECS: Final[dict[str, Callable[[], Codec]]] = {
    "none": _NoneCodec,
    "lz4": _Lz4Codec,
    "snappy": _SnappyCodec,
    "gzip": _GzipCodec,
}
#: Hadoop's class names, as jobs configure them
_HADOOP_NAMES: Final = {"Lz4Codec": "lz4", "SnappyCodec": "snappy", "GzipCodec": "gzip", "DefaultCodec": "gzip"}
_made: dict[str, Codec] = {}


def get_codec(name: str) -> Codec:
    """The codec of this name: none, lz4, snappy, gzip, or one of Hadoop's classes for these."""
    short = _HADOOP_NAMES.get(name.rpartition(".")[2], name.strip().lower())
    codec = _made.get(short)
    if codec is None:
        if short not in _CODECS:
            raise StorageError(f"unknown codec {name!r}: use {', '.join(_CODECS)}")
        codec = _made[short] = _CODECS[short]()
    return codec


def _bounded(raw_length: int) -> int:
    if not 0 <= raw_length <= BLOCK_BYTES_MAX:
        raise CorruptFile(f"corrupt block: a length of {raw_length} bytes is beyond {BLOCK_BYTES_MAX}")
    return raw_length


def _checked(block: bytes, raw_length: int, name: str) -> bytes:
    if len(block) != raw_length:
        raise CorruptFile(f"corrupt {name} block: {len(block)} bytes where {raw_length} are expected")
    return block


def _varint(data: bytes) -> int:
    value = 0
    for shift, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value
    return -1
