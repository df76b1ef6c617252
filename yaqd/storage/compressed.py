"""Compressed files, read as a stream of their contents. Such a file cannot be split."""

import bz2
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from yaqd.storage.errors import CorruptFile, StorageError
from yaqd.storage.filesystem import CHUNK_BYTES
from yaqd.storage.paths import name_of

_GZIP_WBITS: Final = 31
#: suffixes that Hadoop decompresses and we do not: reading them as text would give wrong answers
_FOREIGN: Final = (".deflate", ".lz4", ".snappy", ".zst")


def compression_of(path: str) -> str | None:
    """gzip or bzip2 by the name's suffix, None for a plain file. StorageError for a suffix of a codec we lack."""
    name = name_of(path).lower()
    if name.endswith(".gz"):
        return "gzip"
    if name.endswith(".bz2"):
        return "bzip2"
    for suffix in _FOREIGN:
        if name.endswith(suffix):
            raise StorageError(
                f"cannot read {path}: no reader for {suffix} files: unpack it, or compress it with gzip", path=path
            )
    return None


def decompressed(chunks: Iterable[bytes], compression: str, path: str) -> Iterator[bytes]:
    """The contents in pieces of up to CHUNK_BYTES; members that follow each other are one file.

    CorruptFile where the file is damaged or ends early.
    """
    try:
        yield from _inflated(chunks) if compression == "gzip" else _bunzipped(chunks)
    except (zlib.error, OSError, EOFError) as error:
        raise CorruptFile(f"{path} is no whole {compression} file: {error}", path=path) from None


def _inflated(chunks: Iterable[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(_GZIP_WBITS)
    is_between = True  # members
    for chunk in chunks:
        while chunk:
            if is_between:
                chunk = chunk.lstrip(b"\0")  # some writers pad members with zeros
                if not chunk:
                    break
                inflater, is_between = zlib.decompressobj(_GZIP_WBITS), False
            data = inflater.decompress(chunk, CHUNK_BYTES)
            if data:
                yield data
            chunk = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            is_between = inflater.eof
            if not data and not is_between and not chunk:
                break
        # what the window still holds of this member comes with the next chunk or here
        while not is_between and (data := inflater.decompress(b"", CHUNK_BYTES)):
            yield data
            is_between = inflater.eof
    if not is_between:
        raise EOFError("it ends early")


def _bunzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = bz2.BZ2Decompressor()
    is_between = True
    for chunk in chunks:
        while chunk or not (is_between or unpacker.needs_input):
            if is_between:
                unpacker, is_between = bz2.BZ2Decompressor(), False
            data = unpacker.decompress(chunk, CHUNK_BYTES)
            if data:
                yield data
            is_between = unpacker.eof
            chunk = unpacker.unused_data if is_between else b""
    if not is_between:
        raise EOFError("it ends early")
