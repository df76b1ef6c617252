"""What a quality policy is given and what it returns: arrays with one entry for each job."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from yaqd.policies.curves.samples import Bools, Floats, Ints

#: of a core, in what is divided
MILLI: Final = 1000


class Reason(IntEnum):
    """Why a job has its cores; the numbers travel on the wire."""

    #: an equal share, or one by weight
    SHARE = 1
    #: the least that every job gets
    FLOOR = 2
    #: what its predicted gain earned
    GAIN = 3
    #: as much as it may have
    CAP = 4
    #: nothing: jobs outnumber cores and others gain more
    OUTNUMBERED = 5
    #: its loss is not known yet, so it is taken for a job that falls fast
    NEW = 6
    #: it has been served least so far
    LEAST_SERVED = 7
    #: it has the least work left
    SHORTEST = 8
    #: as before: what it would gain is not worth the move
    KEPT = 9


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """What there is to divide, and for how long."""

    #: thousandths of a core
    milli: int
    #: what is given is a multiple of this, thousandths of a core: 1000 for whole cores, 50 for parts of 1/20
    unit: int = MILLI
    #: until the next division, s
    epoch_s: float = 1.0

    @property
    def units(self) -> int:
        return max(0, self.milli) // self.unit


@dataclass(frozen=True, slots=True, eq=False)
class TrainingJobs:
    """Jobs that run or want to; each field has one entry, or row, for each."""

    #: multiplies what a job's gain counts
    weight: Floats
    #: thousandths of a core
    floor: Ints
    cap: Ints
    #: core-seconds of an iteration that cores share
    work_s: Floats
    #: seconds of an iteration that no core shortens
    fixed_s: Floats
    #: iterations until its end; inf where nobody knows
    left: Floats
    #: core-seconds it has had so far
    attained_s: Floats
    #: predicted fall of its loss at each of `curves.drops.HORIZONS`, in its own unit; concave (`worth.concave`)
    drops: Floats
    #: how far its loss has fallen so far, and the largest fall in one iteration; the latter is above 0
    fallen: Floats
    largest: Floats
    #: whether it has reported enough to predict its curve
    is_known: Bools
    #: thousandths of a core that it has now
    current: Ints
    #: for how long a core that it gains computes nothing, s
    move_s: Floats
    #: thousandths of a core that it was seen to use; more are worth nothing to it
    usable: Ints

    def __len__(self) -> int:
        return len(self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What each job gets."""

    #: thousandths of a core
    milli: Ints
    #: predicted fall of its loss in the epoch with these, as a part of its whole predicted fall
    gains: Floats
    #: values of `Reason`
    reasons: Ints


def bounded(shares: Shares, jobs: TrainingJobs, division: Division) -> Shares:
    """Return shares that a cluster can give, whatever a policy of others returned.

    None is negative, off the unit or above a job's cap, and all together are at most what there is: from the last one
    on they are cut.
    """
    milli = shares.milli.clip(0, jobs.cap) // division.unit * division.unit
    over = milli.cumsum() - division.units * division.unit
    milli = milli - over.clip(0, milli)
    return Shares(milli // division.unit * division.unit, shares.gains, shares.reasons)
