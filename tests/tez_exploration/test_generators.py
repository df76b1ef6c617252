"""What proposes configurations: the same by seed and number, lines that say what is wrong, and samplers that fail."""

import json
import math
import sys
import time
from pathlib import Path

import pytest

from tez_adapter.exploration.generators.adaptive import AdaptiveGenerator
from tez_adapter.exploration.generators.generator import GeneratorError
from tez_adapter.exploration.generators.make import make_generator
from tez_adapter.exploration.generators.plain import FileGenerator, GridGenerator, RandomGenerator, grid_points
from yaqd.ml.space import Params, Space

SPACE = Space.parse(
    """
rate = { type = "float", low = 1e-4, high = 1.0, log = true }
layers = { type = "int", low = 1, high = 4 }
act = ["relu", "tanh", true, 1]
batch = 32
"""
)


def test_a_random_trial_depends_on_seed_and_number_alone() -> None:
    first, again, other = RandomGenerator(SPACE, 1), RandomGenerator(SPACE, 1), RandomGenerator(SPACE, 2)
    forth = [first.propose(number) for number in range(20)]
    back = [again.propose(number) for number in reversed(range(20))][::-1]
    assert forth == back
    assert forth != [other.propose(number) for number in range(20)]
    assert len({json.dumps(params) for params in forth}) == 20


def test_a_grid_is_mixed_and_has_each_point_once() -> None:
    grid = GridGenerator(SPACE, 5, trials=100)
    assert grid.size == SPACE.grid_size(grid_points(SPACE, 100)) <= 100
    found = [json.dumps(grid.propose(number)) for number in range(grid.size)]
    assert len(set(found)) == grid.size
    assert grid.propose(grid.size) is None
    assert found == [json.dumps(GridGenerator(SPACE, 5, trials=100).propose(number)) for number in range(grid.size)]
    assert found != [json.dumps(params) for params in SPACE.grid(grid_points(SPACE, 100))]


@pytest.mark.parametrize("trials", [1, 7, 16, 100, 1000])
def test_a_grid_is_the_finest_that_fits(trials: int) -> None:
    points = grid_points(SPACE, trials)
    assert points == 2 or SPACE.grid_size(points) <= trials
    assert SPACE.grid_size(points + 1) > trials


def test_a_grid_of_choices_alone_ends() -> None:
    grid = GridGenerator(Space.parse("a = [1, 2]\nb = ['x', 'y', 'z']"), 1, trials=1000)
    assert grid.size == 6


def test_a_grid_that_is_too_large_is_refused() -> None:
    space = Space.parse("\n".join(f"x{i} = {{ type = 'float', low = 0, high = 1 }}" for i in range(25)))
    with pytest.raises(GeneratorError, match="use --generator random"):
        GridGenerator(space, 1, trials=10)


def test_a_file_gives_its_lines() -> None:
    text = '{"rate": 0.1, "layers": 2}\n\n{"rate": 0.2, "layers": 3}\n'
    generator = FileGenerator(text, None)
    assert (generator.size, generator.propose(1), generator.propose(2)) == (2, {"rate": 0.2, "layers": 3}, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no configuration"),
        ('{"a": 1}\n{', "f.jsonl:2: no JSON"),
        ('{"a": 1}\n[1]', "f.jsonl:2: no JSON object"),
        ('{"a": [1]}', "f.jsonl:1: a = [1]"),
        ('{"a": 1}\n{"b": 1}', "differ in their names: a"),
    ],
)
def test_a_file_that_is_none_is_told_by_its_line(text: str, said: str) -> None:
    with pytest.raises(GeneratorError) as failed:
        FileGenerator(text, None, "f.jsonl")
    assert said in str(failed.value)


def test_a_line_that_is_not_of_the_space_is_refused() -> None:
    with pytest.raises(GeneratorError, match=r"f.jsonl:1: layers = 9"):
        FileGenerator('{"rate": 0.1, "layers": 9, "act": "relu", "batch": 32}', SPACE, "f.jsonl")


def test_a_generator_needs_a_space() -> None:
    for name in ("random", "grid", "tpe"):
        with pytest.raises(GeneratorError, match="--space"):
            make_generator(name, None, seed=1, trials=10)
    with pytest.raises(GeneratorError, match="no generator 'x'"):
        make_generator("x", SPACE, seed=1, trials=10)


_WORKERS = {
    "raises": 'import sys\nfor line in sys.stdin:\n print(\'{"error": "ValueError: no luck"}\', flush=True)',
    "ends": "import sys\nsys.stdin.readline()",
    "hangs": "import time\ntime.sleep(600)",
    "talks": "import sys\nfor line in sys.stdin:\n print('no json', flush=True)",
    "odd": 'import sys\nfor line in sys.stdin:\n print(\'{"params": {"rate": 99}}\', flush=True)',
    "floods": "import sys\nsys.stdin.readline()\nwhile True:\n sys.stdout.write('x' * 65536)",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("raises", "no luck"),
        ("ends", "its process ended"),
        ("hangs", "no answer in time"),
        ("talks", "Expecting value"),
        ("odd", "layers"),
        ("floods", "too long"),
    ],
)
def test_random_goes_on_where_a_sampler_fails(kind: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tez_adapter.exploration.generators.adaptive.check_installed", lambda sampler: None)
    notes: list[str] = []
    generator = AdaptiveGenerator(
        "tpe", SPACE, 1, note=notes.append, patience_s=1.5, command=(sys.executable, "-c", _WORKERS[kind])
    )
    begun = time.monotonic()
    try:
        found = [generator.propose(number) for number in range(3)]
    finally:
        generator.close()
    assert time.monotonic() - begun < 10
    assert found == [RandomGenerator(SPACE, 1).propose(number) for number in range(3)]
    assert len(notes) == 1
    assert said in notes[0] and "random configurations go on in its place" in notes[0]


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(GeneratorError, match=r"generator gp needs optuna: pip install 'yaqd\[ml\]'"):
        make_generator("gp", SPACE, seed=1, trials=10)


def _score(params: Params) -> float:
    """Return a metric with its best at rate 0.1, 3 layers, tanh."""
    rate, layers = params["rate"], params["layers"]
    assert isinstance(rate, float) and isinstance(layers, int)
    return 1.0 - (math.log10(rate) + 1.0) ** 2 / 9 - 0.1 * abs(layers - 3) - 0.2 * (params["act"] != "tanh")


@pytest.mark.slow
def test_tpe_learns_and_is_the_same_after_a_restart() -> None:
    pytest.importorskip("optuna")
    generator = make_generator("tpe", SPACE, seed=1, trials=100)
    scores, told = [], []
    try:
        for number in range(40):
            params = generator.propose(number)
            assert params is not None
            SPACE.check(params)
            scores.append(_score(params))
            told.append(params)
            generator.told(number, params, scores[-1], True)
        last = generator.propose(40)
    finally:
        generator.close()
    assert sum(scores[-10:]) / 10 > sum(scores[:10]) / 10 + 0.1
    again = make_generator("tpe", SPACE, seed=1, trials=100)
    try:
        for number, (params, score) in enumerate(zip(told, scores, strict=True)):
            again.told(number, params, score, True)
        assert again.propose(40) == last
    finally:
        again.close()


def test_no_file_of_a_generator_but_the_worker_imports_optuna() -> None:
    folder = Path(__file__).parents[2] / "tez_adapter/exploration"
    importing = {path.name for path in folder.rglob("*.py") if "import optuna" in path.read_text()}
    assert importing == {"worker.py"}
