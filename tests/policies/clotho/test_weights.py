"""Weights: what was packed comes back; everything else is refused with what is wrong, and nothing in it is run."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from yaqd.policies.clotho.shapes import SHAPES, SIZE
from yaqd.policies.clotho.weights import BYTES_MAX, WeightsError, pack, unpack

FLAT = np.random.default_rng(1).normal(size=SIZE).astype("<f4").astype(np.float64)


def _changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    with np.load(io.BytesIO(pack(FLAT, {}))) as found:
        arrays = {name: found[name] for name in found.files}
    change(arrays)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def test_what_was_packed_comes_back_and_packs_to_the_same_bytes() -> None:
    data = pack(FLAT, {"seed": 3, "command": "yaq clotho train"})
    found = unpack(data)
    assert (found.flat() == FLAT).all()
    assert found.told == {"seed": 3, "command": "yaq clotho train"}
    assert pack(found.flat(), found.told) == data
    assert len(data) <= BYTES_MAX


def _drop(arrays: dict[str, Any]) -> None:
    del arrays["enter"]


def _more(arrays: dict[str, Any]) -> None:
    arrays["more"] = np.zeros(1)


def _wider(arrays: dict[str, Any]) -> None:
    arrays["enter"] = np.zeros((3, 3), dtype="<f4")


def _doubles(arrays: dict[str, Any]) -> None:
    arrays["enter"] = arrays["enter"].astype(np.float64)


def _nan(arrays: dict[str, Any]) -> None:
    arrays["enter"][0, 0] = np.nan


def _other(arrays: dict[str, Any]) -> None:
    arrays["enter"][0, 0] += 1.0


def _no_text(arrays: dict[str, Any]) -> None:
    arrays["told"] = np.zeros(2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_drop, "missing: \\['enter'\\]"),
        (_more, "unknown: \\['more'\\]"),
        (_wider, "of shape"),
        (_doubles, "float64"),
        (_nan, "not finite"),
        (_other, "check sum"),
        (_no_text, "told is no text"),
    ],
)
def test_arrays_that_are_not_ours_are_refused(change: Callable[[dict[str, Any]], None], said: str) -> None:
    with pytest.raises(WeightsError, match=said):
        unpack(_changed(change))


class _Evil:
    ran = False

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _run, ("evil",)


def _run(word: str) -> str:
    _Evil.ran = True
    return word


def test_a_pickle_is_refused_and_not_run() -> None:
    def pickled(arrays: dict[str, Any]) -> None:
        arrays["enter"] = np.array([_Evil()], dtype=object)

    for data in (_changed(pickled), pickle.dumps(_Evil())):
        with pytest.raises(WeightsError):
            unpack(data)
    assert not _Evil.ran


@pytest.mark.parametrize("name", ["enter", "told", "sha256", "more"])
def test_a_member_that_is_no_array_is_refused(name: str) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(pack(FLAT, {}))) as found, zipfile.ZipFile(out, "w") as archive:
        for member in {*found.namelist(), f"{name}.npy"}:
            archive.writestr(member, b"no array" if member == f"{name}.npy" else found.read(member))
    with pytest.raises(WeightsError, match=f"'{name}' is no array"):
        unpack(out.getvalue())


def test_half_of_a_character_is_no_text() -> None:
    def told(arrays: dict[str, Any]) -> None:
        arrays["told"] = np.array("\ud800")

    with pytest.raises(WeightsError, match="told is no text"):
        unpack(_changed(told))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"curve": [1]}, "rows of numbers"),
        ({"curve": {"a": 1}}, "rows of numbers"),
        ({"curve": None}, "rows of numbers"),
        ({"curve": [{"seconds": "x"}]}, "rows of numbers"),
        ({"curve": [{"seconds": True}]}, "rows of numbers"),
        ({"curve": [{"seconds": 10**400}]}, "cannot be written"),
        ({"seed": float("nan")}, "cannot be written"),
        ({"command": ["yaq"]}, "no text"),
        ({"command": "\ud800"}, "cannot be written"),
        ({"\ud800": 1}, "cannot be written"),
        ({"start": 5}, "its beginning"),
        ({"start": {"start": {"curve": [5]}}}, "rows of numbers"),
        ({"more": json.loads("[" * 300 + "]" * 300)}, "more than 20 values in one another"),
    ],
)
def test_what_is_told_can_be_shown_and_handed_on(told: dict[str, Any], said: str) -> None:
    with pytest.raises(WeightsError, match=said):
        unpack(pack(FLAT, told))


def test_damaged_and_truncated_bytes_are_refused() -> None:
    data = pack(FLAT, {})
    for cut in range(0, len(data), 97):
        with pytest.raises(WeightsError):
            unpack(data[:cut])
    for at in range(0, len(data), 211):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        try:
            assert (unpack(bytes(damaged)).flat() == FLAT).all()  # a byte that no reader looks at
        except WeightsError:
            pass


def test_an_archive_that_unpacks_to_gigabytes_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("enter.npy", b"\0" * (8 << 20))
    assert len(out.getvalue()) < BYTES_MAX
    with pytest.raises(WeightsError, match="unpacks to more"):
        unpack(out.getvalue())
    with pytest.raises(WeightsError, match="at most"):
        unpack(b"\0" * (BYTES_MAX + 1))


def test_weights_that_are_not_finite_are_not_packed() -> None:
    flat = FLAT.copy()
    flat[0] = np.inf
    with pytest.raises(WeightsError, match="finite"):
        pack(flat, {})
    assert len(SHAPES) == len(unpack(pack(FLAT, {})).arrays)
