"""What a trial's process reports, as the machine hears it."""

import asyncio
import json

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.together import foresee
from yaqd.proto import job_exploration_pb2 as pb


def event_of(request: pb.TrialReportRequest) -> ev.TrialReported | ev.ReportLeftOut:
    """Return the event of a report. Raises ValueError."""
    trial, metrics = request.trial, {metric.name: metric.value for metric in request.metrics}
    if request.left_out:
        return ev.ReportLeftOut(trial.number, trial.lap, tuple(metrics), request.left_out)
    return ev.TrialReported(
        trial.number,
        trial.lap,
        request.iteration,
        request.value if request.HasField("value") else float("nan"),
        max(1, request.took_us) / 1e6,
        metrics,
        request.can_checkpoint,
        request.memory_mb,
        json.loads(request.drawn or "{}"),
    )


class Together:
    """Reports that have come at one time."""

    def __init__(self) -> None:
        self._events: list[ev.TrialReported] = []

    async def foresee(self, machine: ExplorationMachine, event: ev.TrialReported) -> None:
        """Let those that wait beside this one be predicted with it."""
        self._events.append(event)
        await asyncio.sleep(0)  # others that have come as well take their place first
        events, self._events = self._events, []
        foresee(machine, events)
