"""`yaq ml explore` on a cluster: each style of program, and what the other commands show of it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tez_exploration import exploration_programs as programs
from tests.tez_training.training_jobs import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Yaq = Callable[..., str]

#: one epoch takes 20 ms
SLOW = programs.SCRIPT.replace("    accuracy = ", "    __import__('time').sleep(0.02)\n    accuracy = ")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(programs.SPACE)
    return path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


def options(space: Path, *more: object) -> tuple[object, ...]:
    return (
        *("--space", space, "--metric", "accuracy", "--epochs", 30, "--trials", 20, "--slots", 2, "--seed", 3),
        *("--memory", 512, *more),
    )


def explored(yaq: Yaq, *words: object) -> dict[str, object]:
    return dict(json.loads(yaq("ml", "explore", "--json", *words)))


@pytest.mark.parametrize(
    "text", [programs.OBJECTIVE, programs.TRAIN, programs.SCRIPT], ids=["objective", "train", "script"]
)
def test_each_style_of_file_reaches_the_target(yaq: Yaq, tmp_path: Path, space: Path, text: str) -> None:
    told = explored(yaq, written(tmp_path, text), *options(space, "--target", 0.85))
    assert told["state"] == "SUCCEEDED" and float(str(told["best"])) >= 0.85
    assert told["winner"] == told["best_trial"]


def test_a_command_reaches_the_target(yaq: Yaq, tmp_path: Path, space: Path) -> None:
    path = written(tmp_path, programs.COMMAND)
    words = ("--command", *options(space, "--target", 0.85, "--files", path), "--", sys.executable, "program.py")
    told = explored(yaq, *words)
    assert told["state"] == "SUCCEEDED" and float(str(told["best"])) >= 0.85


def test_an_exploration_is_shown_drawn_and_exported(yaq: Yaq, tmp_path: Path, space: Path) -> None:
    told = explored(yaq, written(tmp_path, programs.SCRIPT), *options(space, "--target", 0.85, "--kill", 0.05))
    application = told["application_id"]
    found = json.loads(yaq("ml", "trials", application, "--json"))
    assert (found["application_id"], found["winner"], found["is_over"]) == (application, told["winner"], True)
    first = found["trials"][0]
    assert (first["trial"], first["reason"]) == (told["winner"], "REACHED")
    assert abs(first["params"]["rate"] - 0.3) < 0.15
    table = yaq("ml", "trials", application, "--all")
    assert "REACHED" in table and "it reached the target: 0.8" in table and "ended: " in table
    (listed,) = (
        job for job in json.loads(yaq("ml", "list", "--all", "--json")) if job["application_id"] == application
    )
    assert (listed["best"], listed["state"]) == (told["best"], "SUCCEEDED")
    assert "REACHED" in yaq("ml", "list", "--all")
    page = yaq("ml", "watch", application)
    assert f"{application} program  accuracy max, target 0.85, policy index" in page and "slots 2: 0 promising" in page
    assert json.loads(yaq("ml", "watch", application, "--json"))["trials"] == found["trials"]
    yaq("ml", "plot", application, "--output", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<path") > 20
    yaq("ml", "export", application, "--output", tmp_path / "trials.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert {line["trial"] for line in lines} == {trial["trial"] for trial in found["trials"]}
    yaq("ml", "export", application, "--format", "tensorboard", "--output", tmp_path / "runs")
    assert len(list((tmp_path / "runs").glob("trial-*/events*"))) == sum(bool(trial["values"]) for trial in lines)
    _is_study(yaq, str(application), tmp_path / "study.db", lines)


def _is_study(yaq: Yaq, application: str, path: Path, lines: list[dict[str, object]]) -> None:
    optuna = pytest.importorskip("optuna")
    yaq("ml", "export", application, "--format", "optuna", "--output", path)
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{path}")
    assert len(study.trials) == sum(bool(line["values"]) for line in lines)
    assert study.best_value == max(max(line["values"]) for line in lines if line["values"])  # type: ignore[call-overload]
    assert "is there already" in yaq("ml", "export", application, "--format", "optuna", "--output", path, code=2)


def test_an_exploration_is_stopped_and_goes_on(yaq: Yaq, tmp_path: Path, space: Path) -> None:
    words = (written(tmp_path, SLOW), *options(space, "--target", 0.99, "--no-wait"))
    application = str(explored(yaq, *words)["application_id"])

    def trials(which: str) -> list[dict[str, object]]:
        return list(json.loads(yaq("ml", "trials", which, "--json"))["trials"])

    def has_begun() -> bool:
        known = json.loads(yaq("ml", "watch", application, "--json"))
        return any(trial["epochs"] > 3 for trial in known.get("trials", ()))

    until(has_begun, 60)
    assert "ends once the trials that run have made checkpoints" in yaq("ml", "stop", application)
    until(lambda: json.loads(yaq("ml", "watch", application, "--json"))["is_over"], 60)
    before = {trial["trial"]: trial["values"] for trial in trials(application)}
    other = tmp_path / "other.toml"
    other.write_text(space.read_text() + "more = [1, 2]\n")
    said = yaq("ml", "resume", application, "--space", other, code=2)
    assert "trials cannot go on with another space (more differs): begin a new exploration" in said
    terms = ("--slots", 3, "--max-time", "2h", "--space", space)
    again = json.loads(yaq("ml", "resume", "--json", application, *terms))
    assert again["slots"] == 3
    after = {trial["trial"]: trial["values"] for trial in trials(str(again["application_id"]))}
    for number, values in before.items():
        assert after[number][: len(values)] == values  # type: ignore[index, arg-type]
    assert len(after) == 20


def test_other_jobs_are_no_explorations(yaq: Yaq, tmp_path: Path) -> None:
    script = written(tmp_path, "from yaqd.ml import report\nreport(iteration=1, loss=1.0)\n")
    application = json.loads(yaq("ml", "submit", "--json", script))["application_id"]
    for command in (("trials",), ("export", "--output", tmp_path / "x")):
        assert "is no exploration (TRAINING)" in yaq("ml", *command, application, code=2)
    assert "--slots is of explorations" in yaq("ml", "resume", application, "--slots", 3, code=2)
