"""The space that an objective's own suggestions describe."""

from pathlib import Path

import pytest

from tests.tez_exploration import exploration_programs as programs
from tez_adapter.exploration.joins.begun import Begun
from tez_adapter.exploration.joins.objective import ObjectiveTrial
from tez_adapter.exploration.joins.style import style_of
from tez_adapter.exploration.joins.suggested import suggested_space
from yaqd.mapreduce.errors import JobError
from yaqd.ml.space import FloatRange, IntRange, OneOf, Space

_ALL = """
LOW = 1e-5
KINDS = ("a", "b")
print("this file must not run")
raise SystemExit(3)
def objective(trial):
    if trial.suggest_categorical("kind", KINDS) == "a":
        trial.suggest_loguniform("decay", LOW, 1e-1)
    trial.suggest_float(name="rate", low=LOW, high=1, log=True)
    trial.suggest_float("rate", LOW, 1, log=True)
    trial.suggest_uniform("x", -1, 1)
    trial.suggest_discrete_uniform("drop", 0.0, 0.5, 0.25)
    trial.suggest_float("keep", 0, 1, step=0.5)
    trial.suggest_int("a b", 1, 9, step=2)
    trial.suggest_int("wide", 8, 128, log=True)
    trial.suggest_categorical("flag", [True, False, 3, 'x"y'])
    other.suggest_int("not a trial's", 1, 2)
"""


def space(tmp_path: Path, text: str) -> Space:
    path = tmp_path / "objective.py"
    path.write_text(text)
    return Space.parse(suggested_space(style_of(f"{path}:objective", "objective")))


def test_a_space_is_what_is_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert space(tmp_path, _ALL).dimensions == {
        "kind": OneOf(("a", "b")),
        "decay": FloatRange(1e-5, 0.1, True),
        "rate": FloatRange(1e-5, 1.0, True),
        "x": FloatRange(-1.0, 1.0),
        "drop": OneOf((0.0, 0.25, 0.5)),
        "keep": OneOf((0.0, 0.5, 1.0)),
        "a b": IntRange(1, 9, step=2),
        "wide": IntRange(8, 128, True),
        "flag": OneOf((True, False, 3, 'x"y')),
    }
    assert capsys.readouterr().out == ""
    assert space(tmp_path, programs.OBJECTIVE) == Space.parse(programs.SPACE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def objective(trial): pass\n", "objective suggests nothing"),
        (
            "def objective(trial):\n    trial.suggest_int('n', 1, limit())\n",
            ":2: trial.suggest_int('n', 1, limit()) has",
        ),
        ("N = 1\nN = 2\ndef objective(trial):\n    trial.suggest_int('n', 0, N)\n", ":4: trial.suggest_int"),
        ("def objective(trial):\n    trial.suggest_int('n', 1)\n", ":2: trial.suggest_int('n', 1) has"),
        ("def objective(trial):\n    trial.suggest_int(f'n{i}', 1, 2)\n", "only the program knows"),
        ("def objective(trial):\n    trial.suggest_categorical('n', [b'x', 1])\n", "only the program knows"),
        (
            "def objective(trial):\n    trial.suggest_int('n', 1, 2)\n    trial.suggest_int('n', 1, 3)\n",
            ":3: n is suggested from two ranges",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(JobError) as failed:
        space(tmp_path, text)
    assert said in str(failed.value) and "--space" in str(failed.value)


def test_none_among_choices_is_a_text_of_the_space(tmp_path: Path) -> None:
    made = space(tmp_path, "def objective(trial):\n    trial.suggest_categorical('opt', ['sgd', 'adam', None])\n")
    assert made.dimensions == {"opt": OneOf(("sgd", "adam", "None"))}
    trial = ObjectiveTrial(Begun(0, {"opt": "None"}, "accuracy"))
    assert trial.suggest_categorical("opt", ["sgd", "adam", None]) is None
