"""`yaq clotho train` and `eval`: what is refused before hours of work, how a run is stopped, what is said of it."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

from yaqd.cli.app import yaq
from yaqd.cli.clotho import evaluate
from yaqd.config import ConfigError, Configuration
from yaqd.config.stage_weights import configured_weights, shipped_weights
from yaqd.policies.clotho.shapes import SIZE
from yaqd.policies.clotho.weights import pack, unpack
from yaqd.sim.stages import measuring
from yaqd.sim.stages.measuring import Best
from yaqd.sim.stages.training import trainer as trainers
from yaqd.sim.stages.training.state import TrainingState

_TRAIN = ("train", "--graphs", "drawn", "--quiet")


def _yaq(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(yaq, ["clotho", *words])
    return done.exit_code, done.output


@pytest.fixture
def _no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def evolve(state: TrainingState, *rest: Any) -> tuple[TrainingState, float]:
        return replace(state, generation=state.generation + 1), 0.0

    monkeypatch.setattr(trainers, "evolve", evolve)
    monkeypatch.setattr(trainers, "held_out", lambda graphs, among, slots: {})
    monkeypatch.setattr(trainers, "held_ratios", lambda held, weights, makespan: {"batch": 1.0, "stream": 1.0})


@pytest.mark.usefixtures("_no_search")
def test_a_place_that_cannot_be_written_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainers.Trainer, "run", lambda *words: pytest.fail("it trained"))
    good, deep = tmp_path / "w.npz", tmp_path / "none" / "w.npz"
    for words, says in (
        (("--output", str(deep)), f"--output {deep}: No such file or directory"),
        (("--output", str(tmp_path)), f"--output {tmp_path}: Is a directory"),
        (("--output", str(good), "--checkpoint", str(deep)), f"--checkpoint {deep}: No such file or directory"),
    ):
        code, said = _yaq(*_TRAIN, *words)
        assert (code, says in said) == (2, True), said
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_no_search")
def test_a_beginning_is_one_or_the_other(tmp_path: Path) -> None:
    (start := tmp_path / "start.npz").touch()
    code, said = _yaq(*_TRAIN, "--output", str(tmp_path / "w.npz"), "--start", str(start), "--from-nothing")
    assert code == 2 and "--start and --from-nothing exclude each other" in said


@pytest.mark.usefixtures("_no_search")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"])
def test_a_run_that_is_stopped_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    evolve: Any = vars(trainers)["evolve"]

    def stops(state: TrainingState, *rest: Any) -> tuple[TrainingState, float]:
        if state.generation == 3:
            signal.raise_signal(number)
        found: tuple[TrainingState, float] = evolve(state, *rest)
        return found

    out, saved = tmp_path / "w.npz", tmp_path / "w.npz.checkpoint"
    words = (*_TRAIN, "--output", str(out), "--generations", "5")
    with monkeypatch.context() as patch:
        patch.setattr(trainers, "evolve", stops)
        ended, said = _yaq(*words)
    assert ended == code
    assert f"stopped after 3 generations: the same command with --resume goes on from {saved}" in said
    assert not out.exists()
    assert _yaq(*words, "--resume")[0] == 0
    assert [one["generation"] for one in unpack(out.read_bytes()).told["curve"]] == [0, 5]


@pytest.mark.usefixtures("_no_search")
def test_a_run_goes_on_as_it_began(tmp_path: Path) -> None:
    words = (*_TRAIN, "--output", str(tmp_path / "w.npz"))
    assert _yaq(*words, "--from-nothing", "--generations", "2")[0] == 0
    other = "began with other weights: --resume wants --start or --from-nothing as then"
    for more, says in (
        ((), other),
        (("--start", str(tmp_path / "w.npz")), other),
        (("--from-nothing", "--generations", "1"), "--generations 1: "),
    ):
        code, said = _yaq(*words, "--resume", *more)
        assert (code, says in said) == (2, True), said
    assert _yaq(*words, "--resume", "--from-nothing", "--generations", "4")[0] == 0
    assert not (tmp_path / "w.npz.new").exists()


@pytest.mark.usefixtures("_no_search")
def test_a_run_that_is_killed_in_its_first_generation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*words: Any) -> None:
        raise MemoryError  # as good as a kill -9: nothing is saved on the way out

    words = (*_TRAIN, "--output", str(tmp_path / "w.npz"), "--generations", "1")
    with monkeypatch.context() as patch:
        patch.setattr(trainers, "evolve", dies)
        assert _yaq(*words)[0] == 1
    assert _yaq(*words, "--resume")[0] == 0


@pytest.mark.usefixtures("_no_search")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--minutes", "nan"), "nan is no finite number"),
        (("--slots", "100000000000"), "is not in the range 0<=x<=10000"),
        (("--without-query", "99"), "--without-query 99: no graph has it; there are "),
        (("--without-size", "7"), "--without-size 7: no graph has it; there are "),
        (("--start", "/dev/zero"), "/dev/zero: "),
        (("--checkpoint", "w.npz"), "--output and --checkpoint are both "),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trainers.Trainer, "run", lambda *words: pytest.fail("it trained"))
    code, said = _yaq(*_TRAIN, "--output", str(tmp_path / "w.npz"), *words)
    assert (code, says in said) == (2, True), said


def test_what_weights_tell_of_themselves_replaces_no_fact(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    command = "\x1b[31myaq\nseed: 9"
    path.write_bytes(pack(np.ones(SIZE), {"weights": "other", "bytes": 1, "command": command, "curve": [{"\t": 1}]}))
    code, said = _yaq("inspect", str(path), "--json")
    assert code == 0
    found = json.loads(said)
    assert (found["weights"], found["bytes"]) == (str(path), path.stat().st_size)
    assert (found["numbers"], found["linear"], found["command"]) == (SIZE, False, command)
    assert _yaq("inspect", str(path))[1].splitlines()[3:] == [
        "hidden layers: count",
        "command:       ?[31myaq?seed: 9",
        "seed:          -",
        "? 1",
    ]


@pytest.mark.parametrize("objective", ["mean", "makespan", "unseen"])
def test_weights_that_ship_are_said_to_be_linear(tmp_path: Path, objective: Any) -> None:
    (tmp_path / "w.npz").write_bytes(shipped_weights(objective))
    said = _yaq("inspect", str(tmp_path / "w.npz"))[1]
    assert "hidden layers: do not count: linear terms alone decide\n" in said


@pytest.mark.usefixtures("_no_search")
def test_weights_of_a_command_that_is_no_text_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["yaq", "\udcff.npz"])
    assert _yaq(*_TRAIN, "--output", str(tmp_path / "w.npz"), "--generations", "1")[0] == 0
    assert unpack((tmp_path / "w.npz").read_bytes()).told["command"] == "yaq '?.npz'"


def test_a_pipe_is_no_weights(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.npz")
    code, said = _yaq("inspect", str(tmp_path / "w.npz"))
    assert (code, said) == (2, f"yaq: {tmp_path / 'w.npz'}: it is no regular file\n")
    conf = Configuration.load(environ={}, overrides={"yaq.clotho.weights": str(tmp_path / "w.npz")})
    with pytest.raises(ConfigError, match="cannot be read: it is no regular file"):
        configured_weights(conf, 100)


def test_worse_weights_are_said_to_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"weighted-fair 0": 100.0, "capped": 50.0}
    best = [Best(name, np.full(2, mean), {}) for name, mean in theirs.items()]
    monkeypatch.setattr(measuring, "run_weights", lambda *words: [])
    monkeypatch.setattr(measuring, "means", lambda *words: np.full(2, 75.0))
    monkeypatch.setattr(measuring, "best_of", lambda *words: best.pop(0))
    done = CliRunner().invoke(evaluate.evaluate, ["--graphs", "drawn", "--setting", "batch", "--seeds", "2"])
    assert done.output.splitlines() == [
        "batch: 75.0 s, 25.0% +- 0.0% lower than weighted-fair 0 (100.0 s)",
        "batch: 75.0 s, 50.0% +- 0.0% higher than capped (50.0 s)",
    ]
