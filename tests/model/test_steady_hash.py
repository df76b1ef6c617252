"""hash() of keys is the same number in every process."""

import math
import subprocess
import sys
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.model.steady_hash import steady_hash


class Pair(NamedTuple):
    left: object
    right: object


_KEYS = "(None, ('a', None), float('nan'), (1, (float('nan'), None)), 'a', (1, 2.5))"


def test_other_processes_have_the_same_numbers() -> None:
    program = (
        "from yaqd.model import steady_hash\nsteady_hash.install()\n"
        f"import types\nprint([hash(key) for key in {_KEYS}], {{None: 1}}[None])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(found) == 1 and found.pop().endswith("] 1\n")


@given(st.recursive(st.text() | st.integers() | st.floats(allow_nan=False) | st.binary(), st.tuples, max_leaves=9))
def test_what_is_steady_by_itself_keeps_its_hash(key: object) -> None:
    assert steady_hash(key) == hash(key)


def test_none_and_nan_are_constants_as_deep_as_tuples_go() -> None:
    assert steady_hash(None) == 0xFCA86420
    assert steady_hash(math.nan) == steady_hash(float("nan")) == 0
    assert steady_hash((1, (None, math.nan))) == steady_hash((1, (None, float("nan"))))
    assert steady_hash(Pair("a", float("nan"))) == steady_hash(Pair("a", float("nan")))
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        steady_hash((None, []))
