"""Hadoop's own segment: IFile, as stock MapReduce jobs write it, here without compression.

Records (VInt key length, VInt value length, key, value), two end marks of -1, then the CRC-32 of all that. Services
and merger copy such segments without looking inside; reading and writing them is for checking what they copied.
"""

from collections.abc import Iterable, Iterator

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import CorruptSegment, FormatError
from riffle_merger.format.vint import read_vint, write_vint

_END = write_vint(-1) * 2
_CHECKSUM_BYTES = 4


def write_ifile(pairs: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, int]:
    """Return a segment and its raw length (end marks included, checksum not)."""
    parts = [write_vint(len(key)) + write_vint(len(value)) + key + value for key, value in pairs]
    body = b"".join((*parts, _END))
    return body + crc32(body).to_bytes(_CHECKSUM_BYTES, "big"), len(body)


def read_ifile(segment: bytes, *, name: str = "segment") -> Iterator[tuple[bytes, bytes]]:
    """Return the pairs of a segment. Raises CorruptSegment before the first one when the checksum is wrong."""
    body = memoryview(segment)[: max(0, len(segment) - _CHECKSUM_BYTES)]
    stored = int.from_bytes(segment[len(body) :], "big")
    computed = crc32(body)
    if len(body) < len(_END) or stored != computed:
        raise CorruptSegment(f"{name}: checksum is {stored:#010x}, contents give {computed:#010x}")
    return _pairs(body, name)


def _pairs(body: memoryview, name: str) -> Iterator[tuple[bytes, bytes]]:
    position = 0

    def read(length: int) -> bytes:
        nonlocal position
        if position + length > len(body):
            raise CorruptSegment(f"{name}: record at byte {position} reaches past the segment's end")
        position += length
        return bytes(body[position - length : position])

    while True:
        try:
            key_length, value_length = read_vint(read), read_vint(read)
        except FormatError as error:
            raise CorruptSegment(f"{name}: {error}") from error
        if key_length == value_length == -1:
            break
        if key_length < 0 or value_length < 0:
            raise CorruptSegment(f"{name}: lengths {key_length} and {value_length} at byte {position}")
        yield read(key_length), read(value_length)
    if position != len(body):
        raise CorruptSegment(f"{name}: {len(body) - position} bytes after the end mark")
