"""Both trainers: a resumed run comes to the bits of one that was never stopped; damaged checkpoints are refused."""

import io
import json
import os
import zipfile
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

from tests.sim.stages.tpch_files import STAGE, write_graph
from yaqd.cli.app import yaq
from yaqd.policies.clotho.shapes import AT, SIZE
from yaqd.policies.clotho.weights import unpack
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.training import gradient
from yaqd.sim.stages.training import trainer as trainers
from yaqd.sim.stages.training.begin import beginning
from yaqd.sim.stages.training.checkpoint import CheckpointError, read_checkpoint
from yaqd.sim.stages.training.evolution import SearchTerms
from yaqd.sim.stages.training.gradient import GradientTerms, ascend, episodes, fading
from yaqd.sim.stages.training.settings import Setting, nominal
from yaqd.sim.stages.training.state import begin_training
from yaqd.sim.stages.training.trainer import Trainer
from yaqd.sim.workloads.graphs import GraphLoad, draw_graphs, graph_set

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_GRAPHS = draw_graphs(3, 6)
_FEW: dict[str, Any] = {
    "seed": 4,
    "stream_jobs": 4,
    "streams": 1,
    "batches": 1,
    "estimates": 0,
    "hundreds": 0,
    "anything": 0,
    "even": 0,
}
_TERMS = SearchTerms(pairs=2, linear=1, **_FEW)
_GRADIENT = GradientTerms(rollouts=3, **_FEW)
_BOTH = pytest.mark.parametrize("terms", [_TERMS, _GRADIENT], ids=["evolution", "gradient"])


def _trainer(path: Path, terms: SearchTerms | GradientTerms = _TERMS) -> Trainer:
    ticks = count()
    return Trainer(_GRAPHS, np.arange(len(_GRAPHS)), terms, path, lambda: float(next(ticks)))


@pytest.fixture(autouse=True)
def _few_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [nominal(_GRAPHS, 700_000 + at, 4, at > 0, np.arange(len(_GRAPHS))) for at in range(2)]
    monkeypatch.setattr(trainers, "held_out", lambda graphs, among, slots: {"batch": few[:1], "stream": few[1:]})


@_BOTH
@pytest.mark.full
def test_a_resumed_run_comes_to_the_same_bits(tmp_path: Path, terms: SearchTerms | GradientTerms) -> None:
    whole = _trainer(tmp_path / "whole", terms)
    whole.begin()
    whole.run(1e9, 4)
    halves = _trainer(tmp_path / "halves", terms)
    halves.begin()
    halves.run(1e9, 2)
    again = _trainer(tmp_path / "halves", terms)
    again.resume()
    again.run(1e9, 4)
    assert again.state.weights.tobytes() == whole.state.weights.tobytes()
    assert (whole.state.weights != beginning(4)).any()
    told = unpack(whole.weights("yaq clotho train")).told
    assert told["seed"] == 4
    assert [one["generation"] for one in told["curve"]] == [0, 4]


@_BOTH
def test_more_processes_train_the_same(tmp_path: Path, terms: SearchTerms | GradientTerms) -> None:
    alone, pair = _trainer(tmp_path / "a", terms), _trainer(tmp_path / "b", terms)
    pair.cores = 2
    for one in (alone, pair):
        one.begin()
        one.run(1e9, 2)
    assert alone.state.weights.tobytes() == pair.state.weights.tobytes()


def test_checkpoints_of_other_runs_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    one = _trainer(path)
    one.begin()
    one.save()
    with pytest.raises(CheckpointError, match="other options: pairs"):
        read_checkpoint(path, SearchTerms(pairs=3, linear=1, **_FEW))
    with pytest.raises(CheckpointError, match="--trainer evolution; --resume wants the same"):
        read_checkpoint(path, _GRADIENT)
    data = path.read_bytes()
    for damaged in (data[:200], b"", b"no archive"):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="no checkpoint"):
            read_checkpoint(path, _TERMS)
    with pytest.raises(CheckpointError, match="No such file"):
        read_checkpoint(tmp_path / "absent", _TERMS)


def _saved(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Save a run that has begun; return the arrays of its checkpoint, and what is told there."""
    one = _trainer(path)
    one.begin()
    one.save()
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    return arrays, json.loads(str(arrays["told"]))


def test_a_checkpoint_that_lacks_a_term_is_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "run"
    arrays, told = _saved(path)
    del told["terms"]["hundreds"]
    with path.open("wb") as out:
        np.savez(out, **{**arrays, "told": np.array(json.dumps(told))})
    with pytest.raises(CheckpointError, match="of another version: begin anew, with --start"):
        read_checkpoint(path, _TERMS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"generation": -5}, "its generation is -5"),
        ({"generation": True}, "its generation is True"),
        ({"generation": 10**60}, "its generation is 1000"),
        ({"told": {}}, "does not tell its beginning and its curve"),
        ({"told": {"curve": [], "start": 5}}, "its beginning is no JSON object"),
        ({"told": {"curve": [1], "start": {}}}, "rows of numbers"),
        ({"told": {"curve": [{"generation": 1}], "start": {}}}, "does not tell its beginning and its curve"),
        ({"told": {"curve": [{"generation": 1, "seconds": "x"}], "start": {}}}, "rows of numbers"),
        ({"told": {"curve": [], "start": {"curve": {}}}}, "rows of numbers"),
        ({"weights": np.array(["x"] * SIZE)}, "not those of this network"),
        ({"weights": np.zeros(SIZE, dtype=complex)}, "not those of this network"),
        ({"best": np.zeros(SIZE + 1)}, "not those of this network"),
        ({"first": b"no array"}, "'first' is no array"),
        ({"more": b"0" * (5 << 20)}, "unpacks to more"),
    ],
)
def test_a_checkpoint_with_odd_values_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "run"
    arrays, text = _saved(path)
    texts = {name: value for name, value in change.items() if name in text}
    arrays |= {name: value for name, value in change.items() if isinstance(value, np.ndarray)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in (arrays | {"told": np.array(json.dumps(text | texts))}).items():
            np.lib.format.write_array(member := io.BytesIO(), array)
            raw = change.get(name)
            archive.writestr(f"{name}.npy", raw if isinstance(raw, bytes) else member.getvalue())
        for name in change.keys() - arrays.keys() - texts.keys():
            archive.writestr(name, change[name])
    with pytest.raises(CheckpointError, match=said):
        read_checkpoint(path, _TERMS)


def test_a_pipe_is_no_checkpoint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run")
    with pytest.raises(CheckpointError, match="run: it is no regular file"):
        read_checkpoint(tmp_path / "run", _TERMS)


def test_a_checkpoint_of_other_graphs_is_refused(tmp_path: Path) -> None:
    one = _trainer(tmp_path / "run")
    one.begin()
    one.save()
    for graphs, among in ((draw_graphs(5, 6), np.arange(6)), (_GRAPHS, np.arange(5))):
        other = Trainer(graphs, among, _TERMS, tmp_path / "run", lambda: 0.0)
        with pytest.raises(CheckpointError, match="other graphs; --resume wants the same"):
            other.resume()


def test_weights_of_a_long_run_are_read_again(tmp_path: Path) -> None:
    one = _trainer(tmp_path / "run")
    rows = [{"generation": at, "seconds": at * 17.3, "batch": 1 / (2 + at), "stream": 0.9} for at in range(5000)]
    told: dict[str, object] = {}
    for _ in range(20):
        told = {"command": "yaq " + "\N{SNOWMAN}" * 5000, "seed": 1, "curve": rows} | ({"start": told} if told else {})
    one.begin(beginning(4), told)
    one.curve = rows
    found = unpack(one.weights("yaq clotho train " + "x" * 100_000)).told
    assert found["curve"][0] == rows[0] and found["curve"][-1] == rows[-1] and 50 <= len(found["curve"]) <= 64
    assert found["start"]["curve"] == rows[-1:]


def _short_and_long() -> Setting:
    """Return two jobs that come at once to one container: three tasks of 10 s, and three of 1 s."""
    waves = [[took_ms] * 3 * 8 for took_ms in (10_000.0, 1_000.0)]
    graphs = graph_set(
        {
            "graphs": np.array([[2, 1, 0, 1], [2, 2, 1, 1]]),
            "edges": np.zeros((0, 3), dtype=np.int64),
            "stages": np.array([[3, 10_000.0], [3, 1_000.0]]),
            "lengths": np.ones(2 * 3 * 8, dtype=np.int64),
            "values": np.array(waves).ravel(),
        }
    )
    load = GraphLoad(graphs, np.array([0, 1]), np.zeros(2), np.ones(2))
    # what the short one takes first, then the long one
    ends_s = np.array([33.0, 3.0])
    return Setting(load, Rules(1, 0.0, 0.0), float(ends_s.mean()), float(ends_s.max()), ends_s)


def test_policy_gradient_learns_to_run_the_short_job_first(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = _short_and_long()
    monkeypatch.setattr(gradient, "sequences", lambda *words: [setting])
    terms = GradientTerms(rollouts=8, episode=1e6, decay=20)
    # it begins with a taste for long jobs
    weights = beginning(1, imitates=False)
    weights[AT["score_linear"] + 1] = -1.0
    state = begin_training(weights)
    losses: list[float] = []
    for _ in range(60):
        state, loss = ascend(state, setting.load.graphs, np.arange(2), terms)
        losses.append(loss)
    # the other order takes (30 + 33) / 2 s in the mean, not (3 + 33) / 2
    worst = np.log(63.0 / 36.0)
    assert np.mean(losses[:5]) > 0.7 * worst
    assert np.mean(losses[-10:]) < 0.1 * worst


def test_episodes_of_a_sequence_end_together_and_grow() -> None:
    setting = _short_and_long()
    terms = GradientTerms(rollouts=2, episode=1.0, longer=0.5)

    def until_s(generation: int) -> Floats:
        found = episodes([setting] * 500, terms, generation)
        assert all(one.until_s == other.until_s for one, other in zip(found[::2], found[1::2], strict=True))
        assert len({one.seed for one in found}) == len(found)
        return np.array([one.until_s for one in found[::2]])

    assert until_s(0).mean() == pytest.approx(33.0, rel=0.15)
    assert until_s(8).mean() == pytest.approx(5.0 * 33.0, rel=0.15)
    # memoryless: of those over the mean, as many are over twice the mean
    assert (until_s(8) > 2.0 * 5.0 * 33.0).sum() == pytest.approx((until_s(8) > 5.0 * 33.0).sum() / np.e, rel=0.25)
    assert {one.until_s for one in episodes([setting], GradientTerms(makespan=True), 3)} == {float("inf")}
    assert [fading(0.5, 0.1, at, 4) for at in (0, 2, 4, 9)] == pytest.approx([0.5, 0.3, 0.1, 0.1])


def _yaq(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(yaq, ["clotho", "train", *words])
    return done.exit_code, str(done.exception or "") + done.output


@pytest.mark.parametrize("name", ["evolution", "gradient"])
def test_either_trainer_refuses_empty_waves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    empty: dict[str, dict[int, list[float]]] = {"fresh_durations": {}, "first_wave": {}, "rest_wave": {}}
    monkeypatch.setenv("YAQD_TPCH", str(write_graph(tmp_path / "data", {0: STAGE, 1: empty})))
    code, said = _yaq("--output", str(tmp_path / "out.npz"), "--trainer", name)
    assert code and "no wave" in said
    assert not (tmp_path / "out.npz").exists()


def test_the_command_trains_by_gradient_and_resumes_with_the_same_trainer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient, "sequences", lambda *words: [nominal(_GRAPHS, 1, 4, False, np.arange(2))])
    words = ("--output", str(tmp_path / "out.npz"), "--graphs", "drawn", "--generations", "1", "--json")
    code, said = _yaq(*words, "--trainer", "gradient")
    assert code == 0, said
    assert [one["generation"] for one in json.loads(said)["curve"]] == [0, 1]
    assert unpack((tmp_path / "out.npz").read_bytes()).told["seed"] == 1
    code, said = _yaq(*words, "--resume")
    assert code and "is of a run with --trainer gradient" in said
    for rate in ("nan", "inf", "0", "-1"):
        code, said = _yaq(*words, "--rate", rate)
        assert code == 2 and "--rate" in said
    for option in ("--linear", "--rate"):
        code, said = _yaq(*words, "--trainer", "gradient", option, "5")
        assert code and f"{option} is an option of --trainer evolution" in said
