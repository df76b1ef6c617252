"""Encoded records as four arrays: how identity jobs move records without an object for each."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


class ColumnBatch(NamedTuple):
    """Key i is `keys[key_offsets[i]:key_offsets[i + 1]]`, values likewise, both as `yaqd.mapreduce.serde` encodes them.

    In this order they are the arguments of the data path's own columns.
    """

    keys: U8
    key_offsets: I64
    values: U8
    value_offsets: I64
