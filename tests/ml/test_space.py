"""Spaces of hyperparameters: drawing, grids, encoding, and the one line that each mistake gets."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.ml.space import Constant, FloatRange, IntRange, OneOf, Space, SpaceError

_TEXT = """
rate = { type = "float", low = 1e-4, high = 1.0, log = true }
width = { type = "int", low = 32, high = 256, step = 32 }
activation = ["relu", "tanh"]
batch = 32

[layers]
type = "int"
low = 1
high = 4
"""


def test_a_space_has_what_its_file_says() -> None:
    space = Space.parse(_TEXT)
    assert space.dimensions == {
        "rate": FloatRange(1e-4, 1.0, True),
        "width": IntRange(32, 256, step=32),
        "activation": OneOf(("relu", "tanh")),
        "batch": Constant(32),
        "layers": IntRange(1, 4),
    }


def test_draws_fill_the_whole_space_and_are_of_it() -> None:
    space = Space.parse(_TEXT)
    rng = np.random.default_rng(3)
    drawn = [space.draw(rng) for _ in range(2000)]
    for params in drawn:
        space.check(params)
    assert {params["width"] for params in drawn} == set(range(32, 257, 32))
    assert {params["layers"] for params in drawn} == {1, 2, 3, 4}
    low = sum(float(params["rate"]) < 1e-2 for params in drawn) / len(drawn)
    assert 0.45 < low < 0.55  # even in the logarithm


def test_each_whole_number_is_as_likely() -> None:
    counts = np.bincount([IntRange(1, 4).at(part) for part in np.linspace(0, 1, 4000, endpoint=False)])
    assert counts.tolist() == [0, 1000, 1000, 1000, 1000]


@given(st.floats(0.0, 1.0), st.booleans())
def test_a_place_gives_the_value_back(part: float, log: bool) -> None:
    for dimension in (FloatRange(0.5, 80.0, log), IntRange(1, 9, log)):
        value = dimension.at(part)
        place = dimension.place(value)
        assert place is not None and 0.0 <= place <= 1.0
        assert math.isclose(dimension.at(place), value, rel_tol=1e-9)


def test_a_grid_has_every_combination_once() -> None:
    space = Space.parse(_TEXT)
    found = list(space.grid(3))
    assert len(found) == space.grid_size(3) == 3 * 3 * 2 * 1 * 3
    assert len({tuple(params.values()) for params in found}) == len(found)
    assert [space.grid_at(3, number) for number in range(len(found))] == found
    assert space.grid_at(3, len(found)) is None
    assert sorted({float(params["rate"]) for params in found}) == pytest.approx([1e-4, 1e-2, 1.0])


def test_encoding_is_numbers_from_0_to_1_and_a_choice_is_one_of_many() -> None:
    space = Space.parse(_TEXT)
    one = {"rate": 1e-2, "width": 32, "activation": "tanh", "batch": 32, "layers": 4}
    encoded = space.encode(one)
    assert len(encoded) == 1 + 1 + 2 + 1
    assert encoded[0] == pytest.approx(0.5)
    assert encoded[2:4] == [0.0, 1.0]
    assert space.encode_all([one, one]).shape == (2, 5)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "no hyperparameter"),
        ("# nothing\n", 1, "no hyperparameter"),
        ("a = 1\n", 1, "every hyperparameter has one value"),
        ("a = [1, 2]\nrate = { type = 'float', low = 2.0, high = 1.0 }\n", 2, "low = 2 is above high = 1"),
        ("a = [1, 2]\n\n[rate]\ntype = 'float'\nlow = 1.0\nhigh = 1.0\n", 3, "low and high are both 1"),
        ("[a]\ntype = 'int'\nlow = 1\nhigh = 9\n[low]\ntype = 'int'\nlow = 2\nhigh = 1\n", 7, "low = 2 is above"),
        ("a = [1, 2]\nb.type = 'int'\nb.low = 1\nb.high = 'x'\n", 4, "high = 'x'"),
        ("[a]\ntype = 'float'\nlow = 1\nhigh = 2\nbatch = 3\n", 5, "unknown 'batch'"),
        ("rate = { type = 'real', low = 1, high = 2 }", 1, "unknown type 'real'"),
        ("rate = { low = 1, high = 2 }", 1, "it has no type"),
        ("rate = { type = 'float', low = 1, high = 2, lgo = true }", 1, "unknown 'lgo'"),
        ("rate = { type = 'float', low = 0, high = 2, log = true }", 1, "a logarithm needs more than 0"),
        ("rate = { type = 'float', low = nan, high = 2 }", 1, "low = nan"),
        ("rate = { type = 'float', low = -1e308, high = 1e308 }", 1, "too wide"),
        ("n = { type = 'int', low = 1.5, high = 2 }", 1, "use a whole number"),
        ("n = { type = 'int', low = 1, high = 9, step = 20 }", 1, "step = 20"),
        ("n = { type = 'int', low = 1, high = 9, step = 2, log = true }", 1, "step and log"),
        ("n = { type = 'int', low = true, high = 2 }", 1, "low = True"),
        ("n = { type = 'int', high = 2 }", 1, "it has no low"),
        ("c = { type = 'choice', values = [] }", 1, "no values"),
        ("c = [1, 1]", 1, "the value 1 twice"),
        ("c = [[1], 2]", 1, "the value [1]"),
        ("c = [inf, 2]", 1, "finite"),
        ("x = 1\ny = = 2\n", 2, "no TOML"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(SpaceError) as failed:
        Space.parse(text, "my.toml")
    assert str(failed.value).startswith(f"my.toml:{line}:")
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)


def test_true_and_1_are_two_values() -> None:
    space = Space.parse("c = [1, true, 0]")
    assert space.encode({"c": True}) == [0.0, 1.0, 0.0]
    assert space.encode({"c": 1}) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"a": 1}, "no b"),
        ({"a": 1, "b": "x", "c": 3}, "unknown c"),
        ({"a": 9, "b": "x"}, "a = 9: the space has a whole number from 1 to 4"),
        ({"a": 1.5, "b": "x"}, "a = 1.5"),
        ({"a": True, "b": "x"}, "a = True"),
        ({"a": 1, "b": "z"}, "b = 'z': the space has one of 'x', 'y'"),
    ],
)
def test_values_that_are_not_of_a_space_are_refused(params: dict[str, object], said: str) -> None:
    space = Space.parse("a = { type = 'int', low = 1, high = 4 }\nb = ['x', 'y']")
    with pytest.raises(SpaceError) as failed:
        space.check(params)
    assert str(failed.value).startswith(said)
