"""What a training job reports of itself, and what it is told about its cores."""

from enum import IntEnum
from typing import Final

from yaqd.model.values import value

#: losses beyond this, either way, are taken for diverged and left out: differences of them still fit a float
LOSS_MAX: Final = 1e100
#: an iteration beyond this is left out: further ones are not told apart by a float
ITERATION_MAX: Final = 2**52
#: newest losses of a job that its curve is predicted from; of one message no more are read
WINDOW: Final = 40


class ConvergenceClass(IntEnum):
    """How a loss falls; the numbers are the wire's."""

    #: the better fit decides
    AUTO = 0
    SUBLINEAR = 1
    SUPERLINEAR = 2


@value()
class TrainingReport:
    """Losses since the last report, and the job's wishes. None: as was told before, or never."""

    #: grows with each new report of an attempt
    sequence: int
    #: the iteration of the first of `losses`
    first_iteration: int = 0
    #: one for each iteration, as the program said them: anything that a float can be
    losses: tuple[float, ...] = ()
    convergence: ConvergenceClass | None = None
    #: the loss that the user wants
    target: float | None = None
    #: of its loss against others'
    weight: float | None = None
    #: thousandths of a core
    min_milli: int | None = None
    max_milli: int | None = None
    iterations_expected: int | None = None
    #: processor time, all workers together
    cpu_ms_per_iteration: float | None = None
    #: no more workers than these have something to do
    partitions: int | None = None


@value()
class CoresOrder:
    """How many cores a job's workers may use from now on, all nodes together."""

    sequence: int
    #: thousandths of a core; None: as many as it can
    milli: int | None
    #: number of a reason of the policies
    reason: int = 0
