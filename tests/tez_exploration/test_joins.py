"""How programs join: which style a file has, what each style's program sees, and what is said of those that fail."""

import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tez_exploration import exploration_programs as programs
from tez_adapter.exploration.joins.begun import Begun, TrialError
from tez_adapter.exploration.joins.command import command_line, pattern_for
from tez_adapter.exploration.joins.objective import ObjectiveTrial
from tez_adapter.exploration.joins.run import run_joined
from tez_adapter.exploration.joins.style import Joined, style_of
from yaqd.mapreduce.errors import JobError
from yaqd.ml import Said, set_channel
from yaqd.ml.trial import begin_trial, trial


class Heard:
    """A channel that keeps what is reported, and says stop after some reports."""

    def __init__(self, stop_after: int = 1 << 30) -> None:
        self.reports: list[tuple[int, dict[str, float]]] = []
        self._stop_after = stop_after

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        self.reports.append((iteration, dict(metrics) if loss is None else {"loss": loss, **metrics}))
        return Said(1.0, stop=len(self.reports) >= self._stop_after)

    def last_checkpoint(self) -> bytes | None:
        return None


@pytest.fixture
def heard() -> Iterator[Heard]:
    channel = Heard()
    before = sys.path[:], sys.argv
    set_channel(channel)
    yield channel
    set_channel(None)
    begin_trial(0, {})
    trial.number = None
    sys.path[:], sys.argv = before


def begun(**params: Any) -> Begun:
    return Begun(3, params or {"rate": 0.3, "layers": 2, "act": "tanh"}, "accuracy", seed=7)


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "style", "function"),
    [
        (programs.SCRIPT, "script", ""),
        (programs.OBJECTIVE, "objective", "objective"),
        (programs.TRAIN, "train", "train"),
        ("def train(model, data): ...\n", "script", ""),
        ("def objective(x): ...\n", "script", ""),
        ("def trainable(config, data=None): ...\n", "train", "trainable"),
    ],
)
def test_a_style_is_told_by_its_function(tmp_path: Path, text: str, style: str, function: str) -> None:
    path = written(tmp_path, text)
    assert style_of(path) == Joined(path, style, function)


def test_a_function_may_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "def mine(trial): ...\ndef other(config): ...\ndef third(x): ...\n")
    assert style_of(f"{path}:mine") == Joined(path, "objective", "mine")
    assert style_of(f"{path}:other") == Joined(path, "train", "other")
    assert style_of(f"{path}:third", "train") == Joined(path, "train", "third")
    assert style_of(path, "script") == Joined(path, "script")
    for script, style, said in (
        (f"{path}:third", None, "neither third(trial) nor third(config)"),
        (f"{path}:none", None, "has no function none: it has mine(trial), other(config), third(x)"),
        (path, "objective", "has no function objective(trial)"),
        (f"{path}:mine", "script", "leave out :mine"),
        (str(tmp_path / "gone.py"), None, "no training script"),
    ):
        with pytest.raises(JobError) as failed:
            style_of(script, style)
        assert said in str(failed.value)
    with pytest.raises(JobError, match="is no Python"):
        style_of(written(tmp_path, "def"))


def test_an_objective_runs_unchanged(tmp_path: Path, heard: Heard) -> None:
    run_joined(style_of(written(tmp_path, programs.OBJECTIVE)), (), begun())
    assert [iteration for iteration, _ in heard.reports] == list(range(1, 31))
    assert heard.reports[-1][1]["accuracy"] == pytest.approx(1 - 0.8**30)


@pytest.mark.parametrize(
    "more",
    [
        "study.optimize(objective, n_trials=100)\nprint(study.best_value)\n",
        "best = optuna.create_study().optimize(objective, n_trials=100).best_value\n",
        "if __name__ == '__main__':\n    raise SystemExit(3)\n",
        "for seed in range(3):\n    tune.Tuner(objective, seed=seed).fit()\n",
    ],
)
def test_a_study_that_a_file_begins_itself_does_not_run(tmp_path: Path, heard: Heard, more: str) -> None:
    text = f"{programs.OBJECTIVE}\n{more}" + ("" if "__name__" in more else "raise SystemExit(4)\n")
    run_joined(style_of(written(tmp_path, text)), (), begun())
    assert len(heard.reports) == 30


def test_an_objective_is_pruned(tmp_path: Path) -> None:
    channel = Heard(stop_after=4)
    set_channel(channel)
    try:
        run_joined(style_of(written(tmp_path, programs.OBJECTIVE)), (), begun())
    finally:
        set_channel(None)
    assert len(channel.reports) == 4


def test_an_objective_without_reports_reports_what_it_returns(tmp_path: Path, heard: Heard) -> None:
    run_joined(style_of(written(tmp_path, "def objective(trial):\n    return 0.5\n")), (), begun())
    assert heard.reports == [(1, {"accuracy": 0.5})]
    with pytest.raises(TrialError, match="reported nothing and returned None"):
        run_joined(style_of(written(tmp_path, "def objective(trial): pass\n")), (), begun())


def test_suggestions_are_the_values_of_the_trial() -> None:
    seen = ObjectiveTrial(begun(rate=0.01, layers=3, act="relu"))
    assert seen.suggest_loguniform("rate", 1e-4, 1.0) == 0.01
    assert seen.suggest_uniform("rate", 0, 1) == 0.01
    assert seen.suggest_int("layers", 1, 4) == 3
    assert seen.suggest_categorical("act", ["relu", "tanh"]) == "relu"
    assert seen.params == {"rate": 0.01, "layers": 3, "act": "relu"}
    for call, said in (
        (lambda: seen.suggest_float("rate", 0.1, 1.0), "rate = 0.01 in the space, and the objective takes 0.1 to 1"),
        (lambda: seen.suggest_int("rate", 0, 1), "takes a whole number"),
        (lambda: seen.suggest_categorical("act", ["selu"]), "takes one of"),
    ):
        with pytest.raises(TrialError) as failed:
            call()
        assert said in str(failed.value)
    with pytest.raises(AttributeError, match="has no study"):
        _ = seen.study


def test_a_name_that_the_space_has_not_is_drawn_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    def drawn() -> tuple[object, ...]:
        seen = ObjectiveTrial(begun(rate=0.1))
        return (
            seen.suggest_float("momentum", 0.5, 0.9),
            seen.suggest_int("depth", 2, 5),
            seen.suggest_categorical("kind", ["a", "b"]),
            seen.suggest_discrete_uniform("drop", 0.0, 0.5, 0.25),
        )

    first = drawn()
    assert first == drawn()
    assert 0.5 <= float(first[0]) <= 0.9 and first[1] in range(2, 6) and first[3] in (0.0, 0.25, 0.5)  # type: ignore[arg-type]
    assert "momentum is not in the space" in capsys.readouterr().err


def test_a_training_function_gets_its_config(tmp_path: Path, heard: Heard) -> None:
    run_joined(style_of(written(tmp_path, programs.TRAIN)), (), begun(rate=0.3))
    assert len(heard.reports) == 30


def test_a_training_function_may_yield_or_return(tmp_path: Path, heard: Heard) -> None:
    text = "def train(config):\n    for i in range(3):\n        yield {'accuracy': config['rate'] + i, 'note': 'x'}\n"
    run_joined(style_of(written(tmp_path, text)), (), begun(rate=1))
    assert heard.reports == [(1, {"accuracy": 1.0}), (2, {"accuracy": 2.0}), (3, {"accuracy": 3.0})]
    run_joined(style_of(written(tmp_path, "def train(config): return {'accuracy': 9}\n")), (), begun(rate=1))
    assert heard.reports[-1] == (1, {"accuracy": 9.0})
    with pytest.raises(TrialError, match="yield a dict with 'accuracy'"):
        run_joined(style_of(written(tmp_path, "def train(config): yield 3\n")), (), begun(rate=1))


def test_a_script_finds_its_values(tmp_path: Path, heard: Heard) -> None:
    begin_trial(3, {"rate": 0.3})
    run_joined(style_of(written(tmp_path, programs.SCRIPT)), (), begun())
    assert len(heard.reports) == 30
    with pytest.raises(TrialError, match="no hyperparameter 'speed': the space has rate"):
        run_joined(style_of(written(tmp_path, "from yaqd.ml import trial\ntrial.params['speed']\n")), (), begun())


def test_what_fails_is_one_line_with_a_traceback(tmp_path: Path, heard: Heard) -> None:
    path = written(tmp_path, "def train(config):\n    return 1 / config['rate']\n")
    with pytest.raises(TrialError) as failed:
        run_joined(style_of(path), (), begun(rate=0))
    assert str(failed.value) == f"{path} failed: ZeroDivisionError: division by zero"
    assert "return 1 / config['rate']" in failed.value.detail and "run_train" not in failed.value.detail
    with pytest.raises(TrialError, match="ended: code 3"):
        run_joined(style_of(written(tmp_path, "raise SystemExit(3)\n")), (), begun())


def test_a_command_gets_values_as_arguments() -> None:
    params = {"rate": 0.1, "fast": True, "act": "relu"}
    assert command_line(("a.sh", "--rate={rate}", "{{x}}", "{"), params) == ["a.sh", "--rate=0.1", "{x}", "{"]
    assert command_line(("a.sh", "{{rate}}"), params)[:3] == ["a.sh", "{rate}", "--rate"]
    with pytest.raises(ValueError, match="the space has rate, fast, act"):
        command_line(("a.sh", "{rat}"), params)
    assert command_line(("a.sh", "run"), params) == [
        *("a.sh", "run", "--rate", "0.1", "--fast", "true", "--act", "relu"),
    ]


def test_a_commands_output_is_read(tmp_path: Path, heard: Heard) -> None:
    words = (sys.executable, written(tmp_path, programs.COMMAND))
    run_joined(Joined("", "command"), words, begun())
    assert [iteration for iteration, _ in heard.reports] == list(range(1, 31))
    assert heard.reports[0][1] == {"accuracy": pytest.approx(0.2)}


@pytest.mark.parametrize(
    ("pattern", "printed", "reports"),
    [
        ("", "val_accuracy=0.3 Accuracy: 5e-1", [(1, {"accuracy": 0.5})]),
        ("acc ([0-9.]+)", "acc 0.5\\racc 0.6\\nacc x", [(1, {"accuracy": 0.5}), (2, {"accuracy": 0.6})]),
        (
            r"e(?P<iteration>\d+) (?P<value>\S+) (?P<memory>\S+)",
            "e5 0.5 100\\ne7 nan ?",
            [(5, {"accuracy": 0.5, "memory": 100.0})],
        ),
    ],
)
def test_a_pattern_finds_the_metric(
    pattern: str, printed: str, reports: list[tuple[int, dict[str, float]]], heard: Heard
) -> None:
    words = (sys.executable, "-c", f"print('{printed}')")
    run_joined(Joined("", "command"), words, Begun(0, {"x": 1}, "accuracy", pattern))
    assert heard.reports[: len(reports)] == reports


def test_a_command_that_fails_shows_what_it_printed_last(heard: Heard) -> None:
    for code, said in (
        ("print('boom'); raise SystemExit(4)", "ended with exit code 4 after 0 reports"),
        ("print('boom'); import os; os.kill(os.getpid(), 9)", "was ended by signal 9 after 0 reports"),
        ("print('boom')", "printed no accuracy: say with --pattern"),
    ):
        with pytest.raises(TrialError) as failed:
            run_joined(Joined("", "command"), (sys.executable, "-u", "-c", code), begun())
        assert said in str(failed.value) and "boom" in failed.value.detail
    with pytest.raises(TrialError, match="does not start: No such file"):
        run_joined(Joined("", "command"), ("/no/such/program",), begun())


def test_a_command_ends_where_the_trial_is_stopped() -> None:
    channel = Heard(stop_after=2)
    set_channel(channel)
    code = "import itertools\nfor i in itertools.count(): print('accuracy=0.5', flush=True)"
    try:
        run_joined(Joined("", "command"), (sys.executable, "-c", code), begun())
    finally:
        set_channel(None)
    assert len(channel.reports) == 2


@pytest.mark.parametrize("pattern", ["(", "accuracy", r"(?P<iteration>\d+)"])
def test_a_pattern_that_finds_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        pattern_for("accuracy", pattern)


@pytest.mark.usefixtures("heard")
def test_a_trial_s_values_are_a_dict_of_the_program_s_own() -> None:
    drawn = {"rate": 0.3, "layers": 2}
    begin_trial(3, drawn)
    assert json.dumps(trial.params) == json.dumps(drawn)
    assert trial.params.pop("layers") == 2
    trial.params["rate"] *= 2
    assert (trial.params, drawn) == ({"rate": 0.6}, {"rate": 0.3, "layers": 2})
    with pytest.raises(JobError, match="no hyperparameter 'layers': the space has rate"):
        trial.params["layers"]


@pytest.mark.usefixtures("heard")
def test_what_a_program_draws_depends_on_seed_and_number(tmp_path: Path) -> None:
    (tmp_path / "draws.py").write_text("import random, sys\nopen(sys.argv[1], 'a').write(f'{random.random()}\\n')\n")
    joined = Joined(str(tmp_path / "draws.py"), "script")
    state = random.getstate()
    for seed, number in ((1, 0), (1, 0), (1, 1), (2, 0)):
        run_joined(joined, [str(tmp_path / "drawn")], Begun(number, {}, "accuracy", seed=seed))
    random.setstate(state)
    first, again, *others = (tmp_path / "drawn").read_text().split()
    assert first == again and len({first, *others}) == 3
