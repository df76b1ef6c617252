"""A local exploration as somebody sees it who looks."""

from collections.abc import Sequence

from tez_adapter.exploration.local.records import LocalTrial
from tez_adapter.exploration.terms import metric_of
from tez_adapter.exploration.view import ExplorationView, TrialView
from tez_adapter.jobspec import Exploration
from yaqd.policies.explore.facts import Trials, TrialState


def shown(
    terms: Exploration,
    name: str,
    trials: Trials,
    records: Sequence[LocalTrial],
    notices: Sequence[str],
    *,
    now_s: float,
    ending: str,
    winner: int | None,
    reached_s: float | None,
) -> ExplorationView:
    """Return the view of an exploration and its trials."""
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
        now_s=now_s,
        is_over=bool(ending),
        ending=ending,
        winner=winner,
        reached_s=reached_s,
        trials=tuple(_trial(trials, record) for record in records),
        notices=tuple(notices),
    )


def _trial(trials: Trials, record: LocalTrial) -> TrialView:
    number = record.number
    return TrialView(
        number,
        record.params or {},
        TrialState(int(trials.states[number])),
        tuple(record.values),
        float(trials.spent_s[number]),
        record.why if record.begun else None,
        record.value,
        record.bound,
        record.slot,
        record.process is not None and record.process.is_stopped,
        record.begun,
        record.failure,
    )
