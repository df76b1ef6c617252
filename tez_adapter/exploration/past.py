"""Explorations as people see them: of a status that the job manager answered, or of the records that a job left."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tez_adapter.core.exploration.records import reached_text
from tez_adapter.exploration.terms import metric_of
from tez_adapter.exploration.view import ExplorationView, TrialView
from tez_adapter.jobspec import Exploration
from yaqd.policies.explore.facts import Action, TrialState, Why
from yaqd.policies.explore.metric import Limit
from yaqd.proto import job_exploration_pb2 as pb


@dataclass(frozen=True, slots=True)
class Standing:
    """How an exploration stands, beside its trials."""

    now_s: float = 0.0
    is_over: bool = False
    ending: str = ""
    winner: int | None = None
    reached_s: float | None = None
    #: epoch s
    started: float = math.nan


def view_of(
    name: str,
    terms: Exploration,
    trials: Iterable[TrialView],
    standing: Standing,
    *,
    application: str = "",
    notices: tuple[str, ...] = (),
) -> ExplorationView:
    """Return what people look at."""
    return ExplorationView(
        name=name,
        metric_name=terms.metric,
        metric=metric_of(terms),
        target=terms.target,
        kill=terms.kill,
        epochs=terms.epochs,
        slots=terms.slots,
        max_time_s=terms.max_time_s,
        policy=terms.policy,
        generator=terms.generator,
        level=terms.level,
        boundary=terms.boundary,
        now_s=standing.now_s,
        is_over=standing.is_over,
        ending=standing.ending,
        winner=standing.winner,
        reached_s=standing.reached_s,
        trials=tuple(sorted(trials, key=lambda trial: trial.number)),
        notices=notices,
        application=application,
        started=standing.started,
        space=terms.space,
        limits=tuple(f"{name} {relation} {bound:g}" for name, relation, bound in terms.limits),
    )


def trial_of(message: pb.TrialStatus) -> TrialView:
    """Return a trial as its job manager describes it."""
    return TrialView(
        message.number,
        json.loads(message.params or "{}"),
        TrialState(message.state),
        tuple(message.values),
        message.spent_s,
        Why(message.why) if message.HasField("why") else None,
        message.value if message.HasField("value") else math.nan,
        message.bound if message.HasField("bound") else math.nan,
        message.slot if message.HasField("slot") else None,
        message.is_stopped,
        message.begun,
        message.failure,
        tuple(message.broken),
        message.begun_s if message.HasField("begun_s") else math.nan,
        message.reported_s if message.HasField("reported_s") else math.nan,
    )


@dataclass(slots=True)
class _Past:
    number: int
    params: Mapping[str, Any] = field(default_factory=dict)
    state: TrialState = TrialState.FRESH
    values: list[float] = field(default_factory=list)
    spent_s: float = 0.0
    why: Why | None = None
    value: float = math.nan
    bound: float = math.nan
    begun: int = 0
    failure: str = ""
    broken: list[int] = field(default_factory=list)
    begun_s: float = math.nan
    reported_s: float = math.nan

    def judged(self, action: Action, why: Why, value: float, bound: float) -> None:
        self.why, self.value, self.bound = why, value, bound
        if action is Action.PARK:
            self.state = TrialState.PARKED
        elif action is Action.TERMINATE:
            self.state = TrialState.ENDED

    def view(self) -> TrialView:
        return TrialView(
            self.number,
            self.params,
            # nothing runs any more
            TrialState.PARKED if self.state is TrialState.RUNNING else self.state,
            tuple(self.values),
            self.spent_s,
            self.why,
            self.value,
            self.bound,
            begun=self.begun,
            failure=self.failure,
            broken=tuple(self.broken),
            begun_s=self.begun_s,
            reported_s=self.reported_s,
        )


def past_of(records: Iterable[Mapping[str, Any]]) -> tuple[list[TrialView], Standing]:
    """Return the trials of a job that has ended, and how it ended. Raises ValueError, KeyError, TypeError."""
    trials: dict[int, _Past] = {}
    now, ending, winner, reached_s = 0.0, "", None, None
    limits: list[Limit] = []
    epochs = math.nan
    epoch_s = math.nan
    for record in records:
        now = max(now, float(record.get("now", 0.0)))
        trial = trials.setdefault(record["number"], _Past(record["number"])) if "number" in record else None
        match record["do"]:
            case "allocate":
                for number, why, value, bound in record["starts"]:
                    started = trials.setdefault(number, _Past(number))
                    started.state, started.why = TrialState.RUNNING, Why(why)
                    started.value, started.bound = float(value), float(bound)
            case "header":
                epoch_s = float(record["started"])
                epochs = float(record["terms"]["epochs"])
                limits = [Limit(*limit) for limit in record["terms"]["limits"]]
            case "over" if winner is None and record["winner"] is not None:
                winner, reached_s, ending = int(record["winner"]), now, str(record["text"])
            case "over" | "stop":
                ending = str(record.get("text", record.get("reason", "")))
        if trial is not None and _add(trial, record, limits, epochs):
            winner, reached_s, ending = trial.number, now, reached_text(trial.number)
    return [trial.view() for trial in trials.values()], Standing(now, True, ending, winner, reached_s, epoch_s)


def _add(trial: _Past, record: Mapping[str, Any], limits: Iterable[Limit], epochs: float) -> bool:
    """Take in a record of one trial; return whether it reached what was looked for. `epochs`: of a trial at most."""
    match record["do"]:
        case "params":
            trial.params = {**(record["params"] or {}), **trial.params}
        case "drawn":
            trial.params = {**trial.params, **record["values"]}
        case "report":
            trial.values.append(float(record["value"]))
            trial.reported_s = float(record["now"])
            if not all(limit.holds(record["metrics"]) for limit in limits):
                trial.broken.append(len(trial.values))
            trial.spent_s += float(record["took_s"])
            action, why, value, bound, _ = record["verdict"]
            trial.judged(Action(action), Why(why), float(value), float(bound))
            return bool(record["reached"])
        case "begin":
            trial.begun = int(record["lap"])
            trial.begun_s = float(record["now"]) if math.isnan(trial.begun_s) else trial.begun_s
        case "ended":
            trial.failure, trial.state, trial.why = str(record["error"]), TrialState.ENDED, Why(int(record["why"]))
            trial.value, trial.bound = len(trial.values), epochs
    return False
