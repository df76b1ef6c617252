"""What clients are told of an exploration that runs, and what its end says in words."""

import json
from collections.abc import Callable
from math import isnan

from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.runs import Run, TrialPhase
from tez_adapter.exploration.view import best_of
from yaqd.proto import job_exploration_pb2 as pb

#: bytes of hyperparameters in a line for people
_PARAMS_CHARS_MAX = 300


def status_of(
    machine: ExplorationMachine, version: int, slot_index: Callable[[str], int | None]
) -> pb.ExplorationStatusResponse:
    """Return the trials that changed since a version, and how the exploration stands."""
    response = pb.ExplorationStatusResponse(
        version=machine.version,
        is_over=machine.over is not None,
        ending=machine.ending if machine.over is None else machine.over.text,
        winner=machine.winner,
        reached_s=machine.reached_s,
    )
    for run in list(machine.runs.values()):
        if run.version > version:
            response.trials.append(_trial(machine, run, slot_index))
    return response


def _trial(machine: ExplorationMachine, run: Run, slot_index: Callable[[str], int | None]) -> pb.TrialStatus:
    message = pb.TrialStatus(
        number=run.number,
        state=int(machine.trials.states[run.number]),
        params=json.dumps(run.values),
        values=run.shown,
        spent_s=float(machine.trials.spent_s[run.number]),
        slot=slot_index(run.slot or run.home),
        is_stopped=run.phase is TrialPhase.FROZEN,
        begun=run.lap,
        failure=run.error,
        priority=float(machine.trials.priority[run.number]),
        checkpoint_iteration=run.checkpoint,
        broken=run.broken,
        begun_s=None if isnan(run.begun_at) else run.begun_at,
        reported_s=None if isnan(run.reported_at) else run.reported_at,
    )
    if run.verdict is not None:
        message.why, message.value, message.bound = int(run.verdict.why), run.verdict.value, run.verdict.bound
    return message


def best_line(machine: ExplorationMachine) -> str:
    """Return the best trial in words; "" where none has reported a number."""
    number, rules = machine.best, machine.rules
    if number is None:
        return ""
    run = machine.runs[number]
    found = best_of(run.shown, run.broken, rules.metric)
    params = ", ".join(f"{name}={value}" for name, value in run.values.items())[:_PARAMS_CHARS_MAX]
    reached = "" if found is None else f": {rules.metric_name} {found:g} in epoch {run.shown.index(found) + 1}"
    return f"best is trial {number}{reached} with {params}"


def begins_anew(machine: ExplorationMachine) -> bool:
    """Return whether a trial with a process has reported and makes no checkpoints: a stop leaves nothing of it."""
    return any(run.shown and not run.can_checkpoint for run in machine.placing.live())
