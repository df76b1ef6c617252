"""Who waits in a queue, in one value; values stand apart from what is compiled (pyproject.toml)."""

from yaqd.model.values import value


@value()
class WhoWaits:
    """Those who wait in a queue: enough to tell that nothing can be done for any of them."""

    #: since when the longest waiting one was given nothing, scheduler's seconds; inf: there is nobody. Only those count
    #: who are first in their line and have no reservation
    since: float
    #: the least memory, and the fewest cores, that anybody waits for
    least_mb: int
    least_cores: int
