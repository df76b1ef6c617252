"""hash() of keys is the same number in every process."""

import math
import subprocess
import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.model import fixed_addresses
from yaqd.model.steady_hash import steady_hash


class Pair(NamedTuple):
    left: object
    right: object


_ROOT = Path(__file__).parents[2]
with fixed_addresses.fixed_for_children():
    _CAN_FIX = fixed_addresses.are_fixed()
_KEYS = (
    "(None, ('a', None), float('nan'), (1, (float('nan'), None)), 'a', (1, 2.5), frozenset([None]), complex('nanj'),"
    " frozenset([('a', None), float('nan')]), (complex(float('nan'), 1),), decimal.Decimal('-nan'),"
    " Frozen(None), Frozen(frozenset([None])), (Frozen(('b', None)), 1))"
)
#: which only the layout of memory settles
_BY_ADDRESS = "(frozenset([Frozen(None)]), int, (int, 1), ..., range(0), len, frozenset([len, ...]), print)"
_FROZEN = """
import dataclasses, decimal

@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
"""


def test_other_processes_have_the_same_numbers() -> None:
    program = (
        "from yaqd.model import steady_hash\nsteady_hash.install()\n"
        f"{_FROZEN}\nprint([hash(key) for key in {_KEYS}], {{None: 1}}[None])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(found) == 1 and found.pop().endswith("] 1\n")


@pytest.mark.skipif(not _CAN_FIX, reason="this system does not let a process fix its addresses")
def test_processes_with_fixed_addresses_have_the_same_numbers_of_all_that_is_built_in(tmp_path: Path) -> None:
    """Started in each of the ways in which processes of tasks are."""
    (tmp_path / "shown.py").write_text(f"{_FROZEN}\nprint([hash(key) for key in {_BY_ADDRESS}])\n")
    ways = ["-c", "import shown"], ["-m", "shown"], ["-m", "yaqd.model.fixed_addresses", "shown"]
    found = set()
    for number, way in enumerate([*ways, *ways]):
        environment = {"PYTHONHASHSEED": "0", "PYTHONPATH": f"{tmp_path}:{_ROOT}", "MORE": "x" * 5000 * number}
        command = [sys.executable, *way, *["word"] * number]
        with nullcontext() if "yaqd.model.fixed_addresses" in way else fixed_addresses.fixed_for_children():
            found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1 and found.pop().startswith("[")
    assert not fixed_addresses.are_fixed()


def test_where_the_system_refuses_fixed_addresses_all_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_addresses, "_personality", lambda _: None)
    with fixed_addresses.fixed_for_children():
        assert not fixed_addresses.fix() and not fixed_addresses.are_fixed()


_LEAVES = st.text() | st.integers() | st.floats(allow_nan=False) | st.binary() | st.complex_numbers(allow_nan=False)


@given(st.recursive(_LEAVES, lambda keys: st.tuples(keys, keys) | st.frozensets(keys), max_leaves=9))
def test_what_is_steady_by_itself_keeps_its_hash(key: object) -> None:
    assert steady_hash(key) == hash(key)


def test_none_and_nan_are_constants_as_deep_as_tuples_and_frozensets_go() -> None:
    assert steady_hash(None) == 0xFCA86420
    assert steady_hash(math.nan) == steady_hash(float("nan")) == 0
    assert steady_hash((1, (None, math.nan))) == steady_hash((1, (None, float("nan"))))
    assert steady_hash(Pair("a", float("nan"))) == steady_hash(Pair("a", float("nan")))
    assert steady_hash(frozenset([("a", None)])) == steady_hash(frozenset([("a", None)])) != steady_hash(frozenset())
    assert steady_hash(complex("nan+1j")) == hash(complex(0, 1)) and steady_hash(Decimal("nan")) == 0
    with pytest.raises(TypeError, match="Cannot hash a signaling NaN"):
        steady_hash(Decimal("snan"))
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        steady_hash((None, []))
