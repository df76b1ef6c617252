"""What the machine writes down of a report, and how it words the end."""

from typing import Any

from tez_adapter.core.exploration import events as ev
from yaqd.policies.explore.facts import Verdict


def reached_text(number: int) -> str:
    """Say who ended the exploration."""
    return f"trial {number} reached the target"


def report_record(
    event: ev.TrialReported, risen: float, now: float, verdict: Verdict, *, reached: bool
) -> dict[str, Any]:
    """Return the record of a report with its verdict, from which the policy can be told again."""
    facts = [int(verdict.action), int(verdict.why), verdict.value, verdict.bound, float(verdict.priority)]
    return {
        "do": "report",
        "number": event.number,
        "iteration": event.iteration,
        "value": event.value,
        "risen": risen,
        "took_s": event.took_s,
        "now": now,
        "can": event.can_checkpoint,
        "metrics": dict(event.metrics),
        "verdict": facts,
        "reached": reached,
    }
