"""Trials for other tools: JSON lines, TensorBoard, and a study of Optuna."""

import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.view import ExplorationView, TrialView
from yaqd.cli.exits import CommandError
from yaqd.cli.ml.explore.table import as_json, rows
from yaqd.ml.space import Constant, Dimension, FloatRange, IntRange, OneOf, Space
from yaqd.policies.explore.facts import TrialState

#: the folder of a trial in a folder of TensorBoard's
_RUN: Final = "trial-{:04d}"
_RUNS: Final = re.compile(r"trial-\d{4,}")
_EVENTS: Final = "events.out.tfevents."


def make_room(output: Path, form: str, *, overwrite: bool) -> None:
    """Refuse what an earlier export left, or remove it. In a folder that is TensorBoard's runs; other files stay.

    CommandError: something is there that is not to be written over, or that no export wrote; or `output` cannot be.
    """
    if form == "tensorboard":
        old = _old_runs(output)
    else:
        if output.is_dir():
            raise CommandError(f"--output {output}: a folder; the format {form} needs a file")
        refuse_lost(output, "--output")
        old = [output] if output.exists() else []
    if old and not overwrite:
        raise CommandError(f"--output {old[0]}: it is there already; --overwrite writes over it")
    for path in old:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def refuse_lost(path: Path, option: str) -> None:
    """Raises CommandError for a file whose folder is not there."""
    if not path.parent.is_dir():
        raise CommandError(f"{option} {path}: there is no folder {path.parent}")


def _old_runs(folder: Path) -> list[Path]:
    """Return the runs that an earlier export left. CommandError: one has files that no export writes."""
    if folder.is_file():
        raise CommandError(f"--output {folder}: a file; TensorBoard's event files need a folder")
    if not folder.is_dir():
        return []
    runs = sorted(path for path in folder.iterdir() if path.is_dir() and _RUNS.fullmatch(path.name))
    for run in runs:
        other = next((path for path in run.iterdir() if not path.name.startswith(_EVENTS)), None)
        if other is not None:
            raise CommandError(f"--output {folder}: {run.name} has {other.name}, which no export wrote: name another")
    return runs


def write_lines(view: ExplorationView, path: Path) -> int:
    """Write a JSON object for each trial, by number; return how many. The file is whole or not there at all."""
    found = sorted(rows(view), key=lambda row: row.trial.number)
    new = path.with_name(f".{path.name}.new")
    new.write_text("".join(json.dumps(as_json(view, row)) + "\n" for row in found))
    new.replace(path)
    return len(found)


def write_tensorboard(view: ExplorationView, folder: Path) -> int:
    """Write a run for each trial that reported, with its values as hyperparameters; return how many."""
    try:
        from tensorboardX import SummaryWriter
        from tensorboardX.summary import hparams
    except ImportError:
        raise CommandError("--format tensorboard needs tensorboardX: pip install 'yaqd[ml]'") from None
    written = 0
    for trial in _reported(view):
        writer = SummaryWriter(str(folder / _RUN.format(trial.number)))
        try:
            best = trial.best(view.metric)
            measured = {view.metric_name: 0.0 if best is None else best}
            for part in hparams(dict(trial.params), measured):
                writer.file_writer.add_summary(part)
            for epoch, value in enumerate(trial.values, 1):
                if math.isfinite(value):
                    writer.add_scalar(view.metric_name, value, epoch)
        finally:
            writer.close()
        written += 1
    return written


def write_optuna(view: ExplorationView, path: Path) -> int:
    """Write a study as an SQLite file that Optuna and its dashboard open; return how many trials it has."""
    try:
        import optuna
    except ImportError:
        raise CommandError("--format optuna needs optuna: pip install 'yaqd[ml]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = Space.parse(view.space).dimensions if view.space else {}
    trials = [_frozen(optuna, view, trial, space) for trial in _reported(view)]
    # elsewhere first: a name may have what means something in an address, and the file is whole or not there at all
    with tempfile.TemporaryDirectory(prefix="yaq-study-") as folder:
        new = Path(folder) / "study.db"
        study = optuna.create_study(
            storage=f"sqlite:///{new}",
            study_name=view.name,
            direction="minimize" if view.metric.is_better_low else "maximize",
        )
        study.add_trials(trials)
        shutil.move(new, path)
    return len(trials)


def _reported(view: ExplorationView) -> Iterator[TrialView]:
    return (trial for trial in view.trials if trial.values)


def _frozen(optuna: Any, view: ExplorationView, trial: TrialView, space: Mapping[str, Dimension]) -> Any:
    """Return a trial as Optuna has it: one that waits is pruned there, as it has no state for waiting."""
    best = trial.best(view.metric)
    is_complete = trial.state is TrialState.ENDED and best is not None and not trial.failure
    state = optuna.trial.TrialState.COMPLETE if is_complete else optuna.trial.TrialState.PRUNED
    if trial.failure:
        state = optuna.trial.TrialState.FAIL
    made = optuna.trial.create_trial(
        state=state,
        value=best if is_complete else None,
        params=dict(trial.params),
        distributions={name: _distribution(optuna, view, name, space.get(name)) for name in trial.params},
        intermediate_values={epoch: value for epoch, value in enumerate(trial.values) if not math.isnan(value)},
        user_attrs={"spent_s": trial.spent_s, "number": trial.number},
    )
    times = [view.started + at_s for at_s in (trial.begun_s, trial.reported_s)]
    if all(map(math.isfinite, times)):
        made.datetime_start, made.datetime_complete = map(datetime.fromtimestamp, times)
    return made


def _distribution(optuna: Any, view: ExplorationView, name: str, dimension: Dimension | None) -> Any:
    """Return what a hyperparameter was drawn from; of one that the space does not have what the trials' values say."""
    match dimension:
        case FloatRange(low, high, log):
            return optuna.distributions.FloatDistribution(low, high, log)
        case IntRange(low, _, log, step):
            return optuna.distributions.IntDistribution(low, low + step * (dimension.many - 1), log, step)
        case OneOf(choices):
            return optuna.distributions.CategoricalDistribution(choices)
        case Constant(value):
            return optuna.distributions.CategoricalDistribution([value])
    values = [trial.params[name] for trial in view.trials if name in trial.params]
    kinds = {type(value) for value in values}
    if kinds == {float} or kinds == {int, float}:
        return optuna.distributions.FloatDistribution(min(values), max(values))
    if kinds == {int}:
        return optuna.distributions.IntDistribution(min(values), max(values))
    return optuna.distributions.CategoricalDistribution(
        sorted(set(values), key=lambda value: (str(type(value)), value))
    )
