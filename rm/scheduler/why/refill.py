"""How soon slots are refilled beside how long tasks run, in words: by it a queue's bound finds itself."""

from collections.abc import Sequence
from statistics import median

from yaqd.policies.queueing.tuning import BoundTuner


def how_soon(tuners: Sequence[BoundTuner]) -> str:
    """Return it for the node in the middle; there must be one. What was not observed is said to be taken so."""
    gap_s, mean_s = median(one.gap_s for one in tuners), median(one.mean_s for one in tuners)
    run = "run" if any(one.has_seen_tasks for one in tuners) else "are taken to run"
    return f"a slot is refilled within {gap_s:.3g} s, and tasks {run} {mean_s:.3g} s"
