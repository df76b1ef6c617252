"""Encoded pairs of bytes to raw output without a Python object per record (sorting jobs move nothing else)."""

import numpy as np

from riffle_merger.format.columns import Columns, common_width
from yaqd.mapreduce.serde import encode_key

_BYTES_TAG = encode_key(b"")[0]


def raw_block(columns: Columns) -> bytes | None:
    """Return key and value bytes of each record in turn.

    None unless all keys are bytes of one length, and all values.
    """
    count = len(columns)
    key_width, value_width = common_width(columns.key_offsets), common_width(columns.value_offsets)
    if not count or not key_width or not value_width:
        return None
    keys = _rows(columns.keys, int(columns.key_offsets[0]), count, key_width)
    values = _rows(columns.values, int(columns.value_offsets[0]), count, value_width)
    if (keys[:, 0] != _BYTES_TAG).any() or (values[:, 0] != _BYTES_TAG).any():
        return None
    # the encoding of bytes is a tag and the bytes as they are
    block = np.empty((count, key_width + value_width - 2), dtype=np.uint8)
    block[:, : key_width - 1] = keys[:, 1:]
    block[:, key_width - 1 :] = values[:, 1:]
    return block.tobytes()


def _rows(data: np.typing.NDArray[np.uint8], start: int, count: int, width: int) -> np.typing.NDArray[np.uint8]:
    return data[start : start + count * width].reshape(count, width)
