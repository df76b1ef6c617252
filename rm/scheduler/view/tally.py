"""What somebody holds, as numbers that change in place.

Every container given or ended changes the totals of its application, of its user and of each queue above it. A new
`Resource` for each of them was most of what an allocation cost.
"""

from collections.abc import Mapping

from yaqd.model import Resource
from yaqd.model.resources import NO_EXTRAS


class Tally:
    """Amounts held, and in how many containers."""

    __slots__ = ("containers", "used_cores", "used_extras", "used_mb")

    def __init__(self) -> None:
        self.containers = 0
        self.used_mb = 0
        self.used_cores = 0
        #: further types, as in `Resource.extras`; another mapping after each change
        self.used_extras: Mapping[str, int] = NO_EXTRAS

    @property
    def used(self) -> Resource:
        return Resource(self.used_mb, self.used_cores, self.used_extras)

    def book(self, change: Resource, containers: int) -> None:
        """Add so much, in so many containers; less than nothing takes it away."""
        self.containers += containers
        self.used_mb += change.memory_mb
        self.used_cores += change.vcores
        if change.extras:
            self.used_extras = (Resource(0, 0, self.used_extras) + Resource(0, 0, change.extras)).extras
