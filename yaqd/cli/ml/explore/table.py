"""Trials as a table and as JSON: what each has reached, what it promises, why it runs or not."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from tez_adapter.exploration.view import STATES, ExplorationView, TrialView, clean
from yaqd.cli.ml.charts import spark
from yaqd.cli.output import duration, print_table, shortened
from yaqd.policies.explore.facts import TrialState
from yaqd.policies.explore.promise import Promises, promises, reach_of
from yaqd.policies.explore.wording import worded

_HEADINGS: Final = ("trial", "state", "slot", "epochs", "best", "p", "ERT", "time", "curve", "values", "why")
_SPARK: Final = 12
_VALUES_CHARS: Final = 44
_WHY_CHARS: Final = 76
#: a chance below is shown as 0.000
_LEAST_CHANCE: Final = 0.0005
#: running ones first, then those that wait, then those that have ended, then fresh ones
_ORDER: Final[Mapping[TrialState, int]] = {
    TrialState.RUNNING: 0,
    TrialState.PARKED: 1,
    TrialState.ENDED: 2,
    TrialState.FRESH: 3,
}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial with what it promises."""

    trial: TrialView
    #: None: nothing is known, or it has ended
    chance: float | None
    expected_s: float | None
    is_promising: bool
    why: str


def rows(view: ExplorationView) -> list[TrialRow]:
    """Return the trials that a generator has proposed, the most interesting first."""
    found = _promises(view)
    made = [_row(view, at, trial, found) for at, trial in enumerate(view.trials) if trial.begun or trial.params]
    return sorted(made, key=lambda row: _rank(view, row))


def _promises(view: ExplorationView) -> Promises:
    try:
        reach = reach_of(view.level)
    except ValueError:  # of another version
        reach = reach_of("")
    return promises(view.as_trials(), view.terms, reach, view.now_s)


def _row(view: ExplorationView, at: int, trial: TrialView, found: Promises) -> TrialRow:
    chance, expected = float(found.chance[at]), float(found.expected_s[at])
    return TrialRow(
        trial,
        None if math.isnan(chance) else chance,
        None if math.isnan(expected) or trial.number == view.winner else expected,
        found.is_promising(at),
        trial.failure or ("" if trial.why is None else worded(trial.why, trial.value, trial.bound, view.metric)),
    )


def _rank(view: ExplorationView, row: TrialRow) -> tuple[int, float, float, int]:
    best = row.trial.best(view.metric)
    good = -math.inf if best is None else -best if view.metric.is_better_low else best
    if row.trial.number == view.winner:
        return -1, 0.0, 0.0, row.trial.number
    by = row.chance if row.trial.state in (TrialState.RUNNING, TrialState.PARKED) and row.chance is not None else good
    return _ORDER[row.trial.state], -by, -good, row.trial.number


def as_json(view: ExplorationView, row: TrialRow) -> dict[str, Any]:
    """Return a trial as `--json` has it."""
    trial = row.trial
    return {
        "trial": trial.number,
        "state": state_of(view, trial),
        "params": dict(trial.params),
        "epochs": len(trial.values),
        "best": trial.best(view.metric),
        "values": clean(trial.values),
        "breaks_limit": list(trial.broken),
        "p": row.chance,
        "expected_s": None if row.expected_s is None or math.isinf(row.expected_s) else round(row.expected_s, 3),
        "is_promising": row.is_promising,
        "spent_s": round(trial.spent_s, 3),
        "slot": trial.slot,
        "is_stopped_in_place": trial.is_stopped,
        "begun": trial.begun,
        "why": row.why,
        "reason": None if trial.why is None else trial.why.name,
        "failure": trial.failure or None,
    }


def summary(view: ExplorationView) -> dict[str, Any]:
    """Return an exploration's own facts as `--json` has them."""
    best = view.best
    return {
        "name": view.name,
        "metric": view.metric_name,
        "mode": view.metric.mode,
        "target": view.target,
        "limits": list(view.limits),
        "policy": view.policy,
        "generator": view.generator,
        "slots": view.slots,
        "seconds": round(view.now_s, 3),
        "is_over": view.is_over,
        "ending": view.ending or None,
        "winner": view.winner,
        "reached_s": None if view.reached_s is None else round(view.reached_s, 3),
        "best_trial": None if best is None else best.number,
        "best": None if best is None else best.best(view.metric),
        "params": None if best is None else dict(best.params),
        "started": sum(trial.begun > 0 for trial in view.trials),
        "epochs": sum(len(trial.values) for trial in view.trials),
    }


def everything(view: ExplorationView) -> dict[str, Any]:
    """Return an exploration and all its trials as `--json` has them."""
    trials = [as_json(view, row) for row in rows(view)]
    return {"application_id": view.application, **summary(view), "notices": list(view.notices), "trials": trials}


def print_rows(view: ExplorationView, found: list[TrialRow], limit: int | None, rest: str) -> None:
    """Print the table, `limit` rows at most. `rest`: where all are."""
    shown = found if limit is None else found[:limit]
    print_table(_HEADINGS, [_cells(view, row) for row in shown], empty="no trial has begun yet")
    if len(shown) < len(found):
        click.echo(f"... and {len(found) - len(shown)} more: {rest}")


def _cells(view: ExplorationView, row: TrialRow) -> tuple[object, ...]:
    trial = row.trial
    best = trial.best(view.metric)
    return (
        trial.number,
        state_text(view, row),
        "-" if trial.slot is None else str(trial.slot),
        str(len(trial.values)),
        "-" if best is None else f"{best:.5g}",
        "-" if row.chance is None else f"{row.chance:.3f}",
        "-" if row.expected_s is None or (row.chance or 0.0) < _LEAST_CHANCE else _time(row.expected_s),
        _time(trial.spent_s) if trial.spent_s else "-",
        spark(trial.values, _SPARK),
        shortened(params_text(trial.params), _VALUES_CHARS),
        shortened(row.why, _WHY_CHARS),
    )


def _time(seconds: float) -> str:
    return duration(1000 * seconds)


def state_of(view: ExplorationView, trial: TrialView) -> str:
    """Return how a trial stands, in the word that tables and JSON have for it."""
    if trial.number == view.winner:
        return "REACHED"
    if trial.failure:
        return "FAILED"
    return "STOPPED" if trial.is_stopped else STATES[trial.state]


def state_text(view: ExplorationView, row: TrialRow) -> str:
    """Return how a trial stands, with a star where it is promising."""
    state = state_of(view, row.trial)
    return f"{state}*" if row.trial.state is TrialState.RUNNING and row.is_promising else state


def best_fields(view: ExplorationView) -> dict[str, str]:
    """Return the best trial in words, for the end of an exploration."""
    best = view.best
    if best is None:
        return {"best": f"no report keeps {', '.join(view.limits)}"} if view.has_reported and view.limits else {}
    metric = best.best(view.metric)
    reached = "-" if metric is None else f"{metric:.6g}"
    return {"best": f"{view.metric_name} {reached} of trial {best.number}", "values": params_text(best.params)}


def headline(view: ExplorationView) -> str:
    """Say in a line how an exploration stands."""
    facts = summary(view)
    if facts["best"] is not None:
        best = f"best {facts['best']:.6g} (trial {facts['best_trial']})"
    else:
        best = best_fields(view).get("best", "nothing reported")
    target = "rises" if view.target is None else f"{view.target:g}"
    ending = f"; ended: {view.ending}" if view.ending else ""
    return f"{view.metric_name}: {best}, target {target}; {facts['started']} begun, {facts['epochs']} epochs{ending}"


def params_text(params: Mapping[str, Any]) -> str:
    """Write values in a line."""
    return " ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()
    )
