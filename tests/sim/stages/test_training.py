"""Training: a run that resumes comes to the bits of one that was never stopped; damaged checkpoints are refused."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from yaqd.policies.clotho.weights import unpack
from yaqd.sim.stages.training import trainer as trainers
from yaqd.sim.stages.training.begin import beginning
from yaqd.sim.stages.training.checkpoint import CheckpointError, read_checkpoint
from yaqd.sim.stages.training.evolution import SearchTerms
from yaqd.sim.stages.training.settings import nominal
from yaqd.sim.stages.training.trainer import Trainer
from yaqd.sim.workloads.graphs import draw_graphs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_GRAPHS = draw_graphs(3, 6)
_TERMS = SearchTerms(seed=4, pairs=2, linear=1, stream_jobs=4, batches=1, anything=0)


def _trainer(path: Path, terms: SearchTerms = _TERMS) -> Trainer:
    ticks = count()
    return Trainer(_GRAPHS, np.arange(len(_GRAPHS)), terms, path, lambda: float(next(ticks)))


@pytest.fixture(autouse=True)
def _few_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [nominal(_GRAPHS, 700_000 + at, 4, at > 0, np.arange(len(_GRAPHS))) for at in range(2)]
    monkeypatch.setattr(trainers, "held_out", lambda graphs, among: few)
    monkeypatch.setattr(trainers, "_BATCHES", 1)


@pytest.mark.full
def test_a_resumed_run_comes_to_the_same_bits(tmp_path: Path) -> None:
    whole = _trainer(tmp_path / "whole")
    whole.begin()
    whole.run(1e9, 4)
    halves = _trainer(tmp_path / "halves")
    halves.begin()
    halves.run(1e9, 2)
    again = _trainer(tmp_path / "halves")
    again.resume()
    again.run(1e9, 4)
    assert again.search.weights.tobytes() == whole.search.weights.tobytes()
    assert (whole.search.weights != beginning(4)).any()
    told = unpack(whole.weights("yaq clotho train")).told
    assert told["seed"] == 4
    assert [one["generation"] for one in told["curve"]] == [0, 4]


def test_more_processes_search_the_same(tmp_path: Path) -> None:
    alone, pair = _trainer(tmp_path / "a"), _trainer(tmp_path / "b")
    pair.cores = 2
    for one in (alone, pair):
        one.begin()
        one.run(1e9, 2)
    assert alone.search.weights.tobytes() == pair.search.weights.tobytes()


def test_checkpoints_of_other_runs_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    one = _trainer(path)
    one.begin()
    one.save()
    with pytest.raises(CheckpointError, match="other options: pairs"):
        read_checkpoint(path, SearchTerms(seed=4, pairs=3, linear=1, stream_jobs=4, batches=1, anything=0))
    data = path.read_bytes()
    for damaged in (data[:200], b"", b"no archive"):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="no checkpoint"):
            read_checkpoint(path, _TERMS)
    with pytest.raises(CheckpointError, match="No such file"):
        read_checkpoint(tmp_path / "absent", _TERMS)
