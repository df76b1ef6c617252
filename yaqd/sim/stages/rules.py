"""How containers move in simulated time, and what comes of a load; the same for both simulators."""

from dataclasses import dataclass, field
from typing import Final

from yaqd.policies.curves.samples import Floats, Ints


@dataclass(frozen=True, slots=True)
class Rules:
    """How containers move: the preset is that of the public Decima simulator."""

    slots: int = 50
    #: a container that leaves for another job is under way for so long, s
    move_s: float = 2.0
    #: added where no duration of a container new to the job is recorded, s
    warm_s: float = 1.0


DECIMA: Final = Rules()


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """What came of a load."""

    #: (jobs,): from arrival to end, s
    took_s: Floats = field(repr=False)
    makespan_s: float
    decisions: int
    tasks: int
    #: (decisions, 3): source job or -1, stage over all jobs, containers; as many as were asked for
    trace: Ints = field(repr=False)

    @property
    def mean_s(self) -> float:
        """Mean completion time, s."""
        return float(self.took_s.mean())
