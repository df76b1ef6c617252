"""Weights as bytes, and back: `.npz` without pickles; names, shapes, numbers and check sum are verified."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from sys import float_info
from typing import Any, Final

import numpy as np

from yaqd.policies.clotho.shapes import AT, SHAPES, SIZE
from yaqd.policies.curves.samples import Floats

BYTES_MAX: Final = 1 << 16
#: what the archive may unpack to
_UNPACKED_MAX: Final = 1 << 20
_TOLD: Final = "told"
_SUM: Final = "sha256"
_TOLD_MAX: Final = 1 << 15
#: values within one another, in what is told
_DEEP_MAX: Final = 20


class WeightsError(ValueError):
    """Bytes that are no weights of this network."""


@dataclass(frozen=True, slots=True, eq=False)
class StageWeights:
    """Weights by name, and what was told of how they were made (command, seed, curve)."""

    arrays: Mapping[str, Floats] = field(repr=False)
    told: Mapping[str, Any]

    def flat(self) -> Floats:
        """Return all numbers in one array."""
        return flat_of(self.arrays)


def flat_of(arrays: Mapping[str, Floats]) -> Floats:
    """Return all numbers in one array, as float64."""
    return np.concatenate([np.asarray(arrays[name], dtype=np.float64).ravel() for name, _ in SHAPES])


def arrays_of(flat: Floats) -> dict[str, Floats]:
    """Return one array's numbers by name."""
    if flat.shape != (SIZE,):
        raise WeightsError(f"{flat.size} numbers: this network has {SIZE}")
    return {name: flat[AT[name] : AT[name] + prod(shape)].reshape(shape) for name, shape in SHAPES}


def _digest(arrays: Mapping[str, Any], told: str) -> str:
    digest = sha256(told.encode())
    for name, _ in SHAPES:
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name], dtype="<f4").tobytes())
    return digest.hexdigest()


def is_linear(arrays: Mapping[str, Floats]) -> bool:
    """Return whether no hidden layer, and so no embedding, has a say in scores and limits."""
    return not (arrays["score_out"].any() or arrays["limit_out"].any())


def pack(flat: Floats, told: Mapping[str, Any]) -> bytes:
    """Return weights as bytes, float32. Raises WeightsError where they are of another size or not finite."""
    arrays = {name: array.astype("<f4") for name, array in arrays_of(flat).items()}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise WeightsError("a weight is no finite number")
    text = json.dumps(dict(told), sort_keys=True)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        extra = {_TOLD: np.array(text), _SUM: np.array(_digest(arrays, text))}
        for name, array in (arrays | extra).items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (2020, 1, 1, 0, 0, 0)), member.getvalue())
    if len(out.getvalue()) > BYTES_MAX:
        raise WeightsError(f"{len(out.getvalue())} bytes: weights have at most {BYTES_MAX}")
    return out.getvalue()


def unpack(data: bytes) -> StageWeights:
    """Return weights from bytes. Raises WeightsError with what is wrong; nothing in them is ever run."""
    if len(data) > BYTES_MAX:
        raise WeightsError(f"{len(data)} bytes: weights have at most {BYTES_MAX}")
    return _verified(plain_arrays(data, _UNPACKED_MAX))


def plain_arrays(data: bytes, unpacked_max: int) -> dict[str, Any]:
    """Return the arrays of an archive by name. Raises WeightsError, also where it unpacks to more."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > unpacked_max:
                raise WeightsError(f"it unpacks to more than {unpacked_max} bytes")
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # a member that does not begin as an array's comes as bare bytes
                raise WeightsError(f"{name[:80]!r} is no array")
    except WeightsError:
        raise
    except Exception as error:  # a broken archive raises what it likes: zlib, struct, OSError, EOFError
        raise WeightsError(f"no .npz of plain arrays: {repr(error)[:200]}") from None
    return arrays


def _verified(arrays: dict[str, Any]) -> StageWeights:
    names = {name for name, _ in SHAPES}
    absent, odd = names - arrays.keys(), arrays.keys() - names - {_TOLD, _SUM}
    if absent or odd:
        raise WeightsError(f"arrays missing: {sorted(absent)[:5]}, unknown: {sorted(odd)[:5]}")
    for name, shape in SHAPES:
        array = arrays[name]
        if array.dtype != np.dtype("<f4") or array.shape != shape:
            found = f"{array.dtype} of shape {array.shape}, not float32 of {shape}"
            raise WeightsError(f"{name} is {found}: of another version, train anew")
        if not np.isfinite(array).all():
            raise WeightsError(f"{name} has a number that is not finite")
    text, digest = (_text(arrays.get(name), name) for name in (_TOLD, _SUM))
    if digest != _digest(arrays, text):
        raise WeightsError("the check sum is another: the file was changed or damaged")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"what it tells of itself is no JSON: {str(error)[:200]}") from None
    if not isinstance(told, dict):
        raise WeightsError("what it tells of itself is no JSON object")
    check_told(told)
    return StageWeights({name: arrays[name].astype(np.float64) for name, _ in SHAPES}, told)


def _text(array: Any, name: str) -> str:
    if array is None or array.shape != () or array.dtype.kind != "U" or array.dtype.itemsize > _TOLD_MAX * 4:
        raise WeightsError(f"{name} is no text")
    try:
        text = str(array)
        text.encode()
    except ValueError:  # half of a character, or a number that is none
        raise WeightsError(f"{name} is no text") from None
    return text


def check_told(told: Mapping[str, Any]) -> None:
    """Raise WeightsError where it cannot be shown and handed on: command and curve are text and rows of numbers."""
    if not _is_plain(told, _DEEP_MAX):
        raise WeightsError(
            f"what it tells of itself cannot be written, or has more than {_DEEP_MAX} values in one another"
        )
    if not isinstance(told.get("command", ""), str):
        raise WeightsError("the command that it tells of is no text")
    curve, start = told.get("curve", []), told.get("start", {})
    if not isinstance(curve, list) or not all(
        isinstance(row, dict) and all(map(_is_number, row.values())) for row in curve
    ):
        raise WeightsError("the curve that it tells of has no rows of numbers")
    if not isinstance(start, dict):
        raise WeightsError("what it tells of its beginning is no JSON object")
    if start:
        check_told(start)


def _is_number(found: Any) -> bool:
    return type(found) in (int, float) and abs(found) <= float_info.max


def _is_plain(found: Any, deep: int) -> bool:
    """Return whether numbers are finite, and text can be written."""
    if isinstance(found, (dict, list)):
        each = (*found, *found.values()) if isinstance(found, dict) else found
        return deep > 0 and all(_is_plain(one, deep - 1) for one in each)
    if isinstance(found, str):
        return found.isascii() or not any("\ud800" <= one <= "\udfff" for one in found)
    return found is None or isinstance(found, bool) or _is_number(found)
