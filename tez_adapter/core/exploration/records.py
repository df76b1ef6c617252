"""What the machine writes down of a report, and how it words the end."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tez_adapter.core.exploration import events as ev
from yaqd.policies.explore.facts import Verdict


def reached_text(number: int) -> str:
    """Say who ended the exploration."""
    return f"trial {number} reached the target"


def odd_text(event: ev.TrialReported, risen: float, metric: str) -> str:
    """Say that a metric is no number. `risen`: what policies see of it."""
    what = f"trial {event.number} reports {event.value} as {metric} in iteration {event.iteration}"
    counts = "its bound" if isfinite(risen) else "the lowest of all"
    return f"{what}: such epochs count as {counts}"


def scale_text(event: ev.TrialReported, metric: str) -> str:
    """Say that a metric is not in the interval in which the policy takes it to lie."""
    return (
        f"trial {event.number} reports {event.value:g} as {metric}: the policy takes it to lie between 0 and 1, so it "
        "judges wrongly: say with --lower and --upper between which numbers it lies"
    )


def limit_text(name: str, names: Sequence[str]) -> str:
    """Say that a limit looks at what a report does not have. `names`: what it has."""
    return f"a report has no {name}, so it breaks the --limit: it has {_listed(names)}"


def absent_text(event: ev.ReportLeftOut, metric: str) -> str:
    """Say that a report does not have the metric."""
    return f"a report of trial {event.number} has no {metric} and is left out: it has {_listed(event.names)}"


def never_text(event: ev.ReportLeftOut, metric: str) -> str:
    """Say that no report of a trial has had the metric."""
    return f"none of its first {event.many} reports has {metric}: they have {_listed(event.names)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing at all"


def report_record(event: ev.TrialReported, now: float, verdict: Verdict, *, reached: bool) -> dict[str, Any]:
    """Return the record of a report with its verdict, from which the policy can be told again."""
    facts = [int(verdict.action), int(verdict.why), verdict.value, verdict.bound, float(verdict.priority)]
    return {
        "do": "report",
        "number": event.number,
        "iteration": event.iteration,
        "value": event.value,
        "took_s": event.took_s,
        "now": now,
        "can": event.can_checkpoint,
        "metrics": dict(event.metrics),
        "verdict": facts,
        "reached": reached,
    }
