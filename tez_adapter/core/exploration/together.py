"""Reports that wait together are predicted together, then judged one by one."""

from collections.abc import Sequence

import numpy as np

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine


def foresee(machine: ExplorationMachine, events: Sequence[ev.TrialReported]) -> None:
    """Let the policy predict what these reports will show. It changes no answer."""
    found = {}
    for event in events:
        run = machine.runs.get(event.number)
        if run is not None and machine.stale(event) is None and event.iteration > run.iteration:
            found[event.number] = machine.rules.counted(event.value, event.metrics)
    if len(found) > 1 and machine.over is None:
        machine.policy.foresee(machine.trials, np.array(list(found)), np.array(list(found.values())))
