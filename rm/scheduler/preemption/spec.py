"""When and how much is taken back by force."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreemptionSpec:
    """`yarn.resourcemanager.monitor.capacity.preemption.*`"""

    #: time between two looks, s
    interval_s: float = 3.0
    #: grace period from the notice to the kill, s
    wait_s: float = 15.0
    #: largest part of the cluster chosen at a time
    per_round: float = 0.1
    #: part of its guarantee by which a queue may be above it and is left alone
    ignored_over_capacity: float = 0.1
    #: part of what is to be given back that is chosen at a time; the rest may end by itself
    natural_termination: float = 0.2
    #: work everything out, touch nothing
    observe_only: bool = False
