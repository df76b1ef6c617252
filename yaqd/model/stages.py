"""Where the idle containers of a job go on, as a ResourceManager orders it."""

from yaqd.model.values import value


@value()
class StagesOrder:
    """It replaces the order before."""

    sequence: int
    #: whether the job's queue decides at all; where it does not, its master does
    decides: bool = True
    #: the most containers that it should have: idle ones beyond it are given back. None: as many as it has
    limit: int | None = None
    #: which stages get idle containers, and how many, the first first; stages by the priority of their asks
    shares: tuple[tuple[int, int], ...] = ()
