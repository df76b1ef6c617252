"""Programs of other kinds on a real cluster: an Optuna objective, a function of a dict, any command."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tez_exploration.exploration_jobs import alive, finished, kinds, records_of, seen, terms_with
from tez_adapter.client.exploration import submit_exploration
from yaqd.config import Configuration

pytestmark = pytest.mark.slow

OBJECTIVE = """
def objective(trial):
    level = trial.suggest_float("level", 0.0, 1.0)
    for step in range(100):
        trial.report(level * (1 - 0.5 ** (step + 1)), step)
        if trial.should_prune():
            raise TrialPruned
    return level

class TrialPruned(Exception):
    pass
"""
TRAIN = """
def train(config):
    for epoch in range(1, 7):
        yield {"accuracy": config["level"] * (1 - 0.5 ** epoch), "training_iteration": epoch, "loss": 1.0 / epoch}
"""
#: a shell's child is in the trial's process group too
COMMAND = """
import os, sys
level, marks = float(sys.argv[1]), sys.argv[2]
with open(f"{marks}/pids", "a") as lines:
    print(os.getpid(), file=lines)
for epoch in range(1, 7):
    print(f"epoch {epoch}: accuracy={level * (1 - 0.5 ** epoch)}", flush=True)
"""


def curve(params: Mapping[str, Any], epochs: int) -> tuple[float, ...]:
    return tuple(params["level"] * (1 - 0.5**epoch) for epoch in range(1, epochs + 1))


@pytest.mark.parametrize("style, text", (("objective", OBJECTIVE), ("train", TRAIN)))
def test_functions_run_unchanged(
    exploring_cluster: Configuration, write: Callable[[str, str], str], tmp_path: Path, style: str, text: str
) -> None:
    terms = terms_with(tmp_path, style=style, arguments=(), trials=5, epochs=6, policy="asha-promote")
    job = submit_exploration(exploring_cluster, write(f"{style}.py", text), terms)
    result = finished(job)
    assert result.succeeded, result
    trials = seen(job).trials
    assert len(trials) == 5 and max(len(trial.values) for trial in trials) == 6
    assert all(trial.values == curve(trial.params, len(trial.values)) and not trial.failure for trial in trials)
    # without checkpoints they stop in place
    assert kinds(records_of(exploring_cluster, job))["frozen"] >= 4


def test_any_command_is_stopped_and_goes_on_with_what_it_started(
    exploring_cluster: Configuration, write: Callable[[str, str], str], tmp_path: Path
) -> None:
    script = write("command.py", COMMAND)
    words = ("/bin/sh", "-c", f"{sys.executable} {script} {{level}} {tmp_path}; exit $?")
    terms = terms_with(tmp_path, style="command", arguments=words, trials=5, epochs=6, policy="asha-promote")
    job = submit_exploration(exploring_cluster, "", terms)
    result = finished(job)
    assert result.succeeded, result
    trials = seen(job).trials
    assert all(trial.values == curve(trial.params, len(trial.values)) and not trial.failure for trial in trials)
    assert kinds(records_of(exploring_cluster, job))["frozen"] >= 4
    assert not alive(list(map(int, (tmp_path / "pids").read_text().split())))


#: what it starts holds the memory, not the process that reports
LARGE = """
import sys
level, held = float(sys.argv[1]), bytearray(300 << 20)
for at in range(0, len(held), 4096):
    held[at] = 1
for epoch in range(1, 7):
    print(f"epoch {epoch}: accuracy={level * (1 - 0.5 ** epoch)}", flush=True)
"""


@pytest.mark.parametrize("stopped_mb, fit", (("200", False), ("2000", True)))
def test_the_memory_of_what_a_command_starts_counts_before_it_is_stopped(
    exploring_cluster: Configuration, write: Callable[[str, str], str], tmp_path: Path, stopped_mb: str, fit: bool
) -> None:
    sizes = {"yaq.ml.explore.slot.memory-mb": "3000", "yaq.ml.explore.stopped-memory-mb": stopped_mb}
    conf = exploring_cluster.with_overrides({**sizes, "yaq.ml.explore.images-mb": "0"})
    words = (sys.executable, write("large.py", LARGE), "{level}")
    more: dict[str, Any] = {"slots": 1, "trials": 4, "epochs": 6, "policy": "asha-promote"}
    job = submit_exploration(conf, "", terms_with(tmp_path, style="command", arguments=words, **more))
    result = finished(job)
    assert result.succeeded, result
    assert all(trial.values == curve(trial.params, len(trial.values)) for trial in seen(job).trials)
    assert (kinds(records_of(conf, job))["frozen"] > 0) == fit
