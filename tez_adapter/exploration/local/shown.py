"""A local exploration as somebody sees it who looks."""

import math
from collections.abc import Sequence

from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.runs import Run, TrialPhase
from tez_adapter.exploration.past import Standing, view_of
from tez_adapter.exploration.view import ExplorationView, TrialView
from tez_adapter.jobspec import Exploration
from yaqd.policies.explore.facts import TrialState


def shown(
    machine: ExplorationMachine, terms: Exploration, name: str, now_s: float, notices: Sequence[str], ending: str
) -> ExplorationView:
    """Return the view of an exploration and its trials. `ending`: why it ended, where its machine has not."""
    over = machine.over
    ending = ending or (machine.ending if over is None else over.text)
    standing = Standing(now_s, over is not None or bool(ending), ending, machine.winner, machine.reached_s)
    trials = [_trial(machine, run, is_over=standing.is_over) for run in machine.runs.values()]
    return view_of(name, terms, trials, standing, notices=tuple(notices))


def _trial(machine: ExplorationMachine, run: Run, *, is_over: bool) -> TrialView:
    state = TrialState(int(machine.trials.states[run.number]))
    verdict = run.verdict
    return TrialView(
        run.number,
        run.values,
        TrialState.PARKED if is_over and state is TrialState.RUNNING else state,
        tuple(run.shown),
        float(machine.trials.spent_s[run.number]),
        None if verdict is None else verdict.why,
        math.nan if verdict is None else verdict.value,
        math.nan if verdict is None else verdict.bound,
        int(run.slot or run.home) if (run.slot or run.home) and not is_over else None,
        run.phase is TrialPhase.FROZEN,
        run.lap,
        run.error,
        tuple(run.broken),
        run.begun_at,
        run.reported_at,
    )
