"""What the ResourceManager counts of a container's size, and sizes compared in that alone.

A scheduler that counts memory alone (Hadoop's default, DefaultResourceCalculator) gives every container one virtual
core, whatever was asked for: a job that wants to see its two cores in a container would give all of them back. So it
compares what the ResourceManager said at the registration that it schedules by (`scheduler_resource_types`), as
MapReduce does (ResourceCalculatorUtils.computeAvailableContainers).
"""

from yaqd.model import Resource


class Counted:
    """Shared by all who compare; only the machine changes it."""

    __slots__ = ("cores",)

    def __init__(self) -> None:
        #: virtual cores, and with them all further resources, are counted beside memory
        self.cores = True

    def fits(self, need: Resource, room: Resource) -> bool:
        """Return whether the room has as much as is needed of everything that is counted."""
        return need.fits_in(room) if self.cores else need.memory_mb <= room.memory_mb
