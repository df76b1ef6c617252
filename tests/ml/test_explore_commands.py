"""`yaq ml explore`: what is refused and how, and whole explorations with --local."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.tez_exploration import exploration_programs as programs
from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT, FAILED
from yaqd.cli.ml.explore.asked import asked
from yaqd.ml.space import Space


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(programs.SCRIPT)
    (tmp_path / "space.toml").write_text(programs.SPACE)
    (tmp_path / "used").mkdir()
    (tmp_path / "used/trial-0.log").touch()
    (tmp_path / "file.jsonl").write_text('{"rate": 0.9}\n{"rate": 0.3}\n{"rate": 0.1}\n')
    return path


def run(script: Path, *words: object, metric: str = "accuracy") -> Result:
    return CliRunner().invoke(
        yaq, ["ml", "explore", str(script), "--metric", metric, *map(str, words)], env={"HADOOP_CONF_DIR": None}
    )


def space(script: Path) -> tuple[str, Path]:
    return "--space", script.parent / "space.toml"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--space FILE: say which hyperparameters there are"),
        (("SPACE", "--policy", "best"), "--policy: explore policy 'best': there is none; known: index, pop"),
        (("SPACE", "--epochs", 2000), "--epochs 2000: at most 1000"),
        (("SPACE", "--target", 200), "--target 200: policy index predicts metrics from 0 to 1"),
        (("SPACE", "--target", 200), "say with --lower and --upper between which numbers accuracy lies"),
        (("SPACE", "--mode", "min", "--target", 0.1), "say with --lower and --upper"),
        (("SPACE", "--policy", "bandit", "--mode", "min"), "policy bandit compares metrics from 0 to 1 that rise: say"),
        (("SPACE", "--policy", "bandit:slack=1", "--target", -2), "say with --lower and --upper between which"),
        (("SPACE", "--policy", "asha-stop:grace"), "write its options as NAME:OPTION=NUMBER"),
        (("SPACE", "--policy", "asha-stop:graze=3"), "policy asha-stop has no graze: it has grace, eta"),
        (("SPACE", "--policy", "asha-stop:eta=inf"), "give finite numbers"),
        (("SPACE", "--policy", "asha-stop:eta=1"), "eta at least 2"),
        (("SPACE", "--policy", "default:grace=1"), "policy default has no grace: it has no options"),
        (("SPACE", "--predictor", "best"), "--predictor: reach policy 'best': there is none; known: library, walkers"),
        (("SPACE", "--predictor", "walkers", "--level", "1 2 3 4"), "it is the belief of the predictor library"),
        (("SPACE", "--lower", 1, "--upper", 0), "give finite numbers, the lower one first"),
        (("SPACE", "--lower", 0, "--upper", 1, "--target", 2), "--target 2 is not between --lower and --upper"),
        (("SPACE", "--target", 0.5, "--kill", 0.6), "--kill 0.6 is no worse than --target 0.5"),
        (("SPACE", "--target", 0.5, "--solved", "last >= 0.5"), "--solved and --target"),
        (("SPACE", "--solved", "mean(3) >= 200"), "say with --lower and --upper"),
        (("SPACE", "--solved", "most(3) > 1"), "write it as 'mean(100) >= 200'"),
        (("SPACE", "--limit", "memory < 3"), "--limit: limit 'memory < 3': write it as"),
        (("SPACE", "--max-time", "soon"), "--max-time soon: not a duration"),
        (("SPACE", "--max-time", "0"), "--max-time 0: give more than 0"),
        (("SPACE", "--level", "1 2"), "level '1 2': give four numbers"),
        (("SPACE", "--level", "1 0 1 0"), "above 0"),
        (("SPACE", "--generator", "file"), "--generator file needs --configurations FILE"),
        (("SPACE", "--configurations", "FOLDER/file.jsonl"), "no other generator takes one"),
        (("SPACE", "--guided", "--generator", "tpe"), "--guided and --generator tpe"),
        (("SPACE", "--pattern", "a(b)"), "--pattern finds the metric in the output of a --command"),
        (("SPACE", "--command", "--pattern", "("), "pattern '('"),
        (("SPACE", "--command", "--style", "train"), "--command and --style train"),
        (("SPACE", "--command", "--", "--rate", "{rat}"), "{rat} in the command: the space has rate, layers, act"),
        (("SPACE", "--logs", "FOLDER/used"), "trial-0.log of an earlier exploration is there"),
        (("SPACE", "--export", "FOLDER/file.jsonl"), "it is there already"),
        (("SPACE", "--style", "objective"), "has no function objective(trial)"),
        (("--space", "FOLDER/none.toml"), "No such file"),
        (("SPACE", "--generator", "file", "--configurations", "FOLDER/file.jsonl"), "file.jsonl:1: no layers"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(script: Path, words: tuple[object, ...], said: str) -> None:
    filled: list[object] = []
    for word in words:
        filled += space(script) if word == "SPACE" else [str(word).replace("FOLDER", str(script.parent))]
    result = run(script, "--local", *filled)
    assert (result.exit_code, result.stdout) == (BAD_INPUT, ""), result.output
    assert said in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr


def test_an_objective_needs_no_space(script: Path) -> None:
    script.write_text(programs.OBJECTIVE)
    given = asked(
        str(script),
        (),
        space=None,
        configurations=None,
        is_command=False,
        style=None,
        max_time="90m",
        limits=("memory <= 3",),
        metric="accuracy",
        pattern="",
    )
    assert given.space == Space.parse(programs.SPACE) and given.terms.space
    assert (given.terms.max_time_s, given.terms.limits) == (5400.0, (("memory", "<=", 3.0),))


def test_a_metric_must_be_a_name(script: Path) -> None:
    for metric in ("a b", "iteration", "3", ""):
        result = run(script, "--local", *space(script), metric=metric)
        assert result.exit_code == BAD_INPUT and "--metric" in result.stderr


def test_options_of_clusters_are_refused_here(script: Path) -> None:
    for words in (("--no-wait",), ("--queue", "q"), ("--memory", "100"), ("--files", "a")):
        result = run(script, "--local", *space(script), *words)
        assert result.exit_code == BAD_INPUT and "is for a cluster: leave it out with --local" in result.stderr
    for words in (("--logs", "a"), ("--export", "a")):
        result = run(script, *space(script), *words)
        assert result.exit_code == BAD_INPUT and "is for --local" in result.stderr


@pytest.mark.slow
def test_an_exploration_here_ends_at_its_target(script: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    words: tuple[Any, ...] = (
        *("--local", *space(script), "--target", 0.85, "--epochs", 30, "--slots", 2),
        *("--export", out, "--logs", tmp_path / "logs", "--json"),
    )
    result = run(script, *words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["best"] >= 0.85 and found["winner"] == found["best_trial"]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["trial"] for line in lines] == list(range(len(lines)))
    # one may have been chosen as the target was reached: its process never began, and no epoch is its
    assert sum(line["begun"] > 0 for line in lines) == found["started"]
    assert all(line["begun"] > 0 or line["epochs"] == 0 for line in lines)
    assert lines[found["winner"]]["begun"] and lines[found["winner"]]["params"] == found["params"]
    assert (tmp_path / "logs" / f"trial-{found['winner']}.log").read_text().startswith("begins at 0")


@pytest.mark.slow
def test_a_table_is_shown_at_the_end(script: Path) -> None:
    words = ("--local", "--generator", "file", "--configurations", script.parent / "file.jsonl", "--epochs", 30)
    result = run(script, *words, "--target", 0.9, "--slots", 1)
    assert result.exit_code == 0, result.output
    assert "REACHED" in result.stdout and "rate=0.3" in result.stdout
    assert "it reached the target: 0.9" in result.stdout
    assert "trial 1 reached the target" in result.stdout


@pytest.mark.slow
def test_one_that_misses_its_target_has_ended_and_one_without_reports_has_failed(script: Path) -> None:
    words = ("--local", *space(script), "--target", 1.0, "--epochs", 5, "--trials", 3)
    result = run(script, *words, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["winner"], found["ending"]) == (0, None, "all trials have ended")
    script.write_text("from yaqd.ml import report\nreport(iteration=1, accuracy=0.2)\nraise ValueError('later')\n")
    result = run(script, *words, "--json")
    assert result.exit_code == FAILED and json.loads(result.stdout)["ending"].startswith("all ")
    script.write_text("raise ValueError('no data')\n")
    result = run(script, *words, "--quiet")
    assert (result.exit_code, result.stdout) == (FAILED, "")
    assert "trial 0 failed" in result.stderr and "failed: ValueError: no data" in result.stderr
