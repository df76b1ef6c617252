"""What counts as a resource when a container is fitted to a node and a queue to its share.

Hadoop has two answers and a switch, `yarn.scheduler.capacity.resource-calculator`. Its default is memory alone: every
container then reports one virtual core, and cores never refuse anyone. The other is every resource, and the scarcest
one decides how large a share is (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from yaqd.model import Resource


class InvalidAsk(ValueError):
    """An application master asked for something that no node may be asked for."""


@dataclass(frozen=True, slots=True)
class AllocationBounds:
    """The smallest and the largest container (`yarn.scheduler.minimum-allocation-*`, `maximum-allocation-*`)."""

    minimum: Resource
    #: its further types are the ones that there are
    maximum: Resource

    def check(self, asked: Resource, maximum: Resource) -> None:
        """Raise `InvalidAsk`, in Hadoop's words, for a negative amount or one above `maximum`."""
        for name, amount, most in self._amounts(asked, maximum):
            if amount < 0:
                raise InvalidAsk(
                    "Invalid resource request! Cannot allocate containers as requested resource is less than 0! "
                    f"Requested resource type=[{name}], Requested resource={asked}"
                )
            if amount > most:
                raise InvalidAsk(
                    "Invalid resource request! Cannot allocate containers as requested resource is greater than "
                    f"maximum allowed allocation. Requested resource type=[{name}], Requested resource={asked}, "
                    f"maximum allowed allocation={maximum}, please note that maximum allowed allocation is calculated "
                    "by scheduler based on maximum resource of registered NodeManagers, which might be less than "
                    f"configured maximum allocation={self.maximum}"
                )

    def known(self, amount: Resource) -> Resource:
        """Return the amount without types that nobody defined, which Hadoop's readers leave out too."""
        if amount.extras.keys() <= self.maximum.extras.keys():
            return amount
        extras = {n: v for n, v in amount.extras.items() if n in self.maximum.extras}
        return Resource(amount.memory_mb, amount.vcores, extras)

    def _amounts(self, asked: Resource, maximum: Resource) -> Iterator[tuple[str, int, int]]:
        """Yield each type's name, what is asked, and the most of it."""
        yield "memory-mb", asked.memory_mb, maximum.memory_mb
        yield "vcores", asked.vcores, maximum.vcores
        for name in self.maximum.extras:
            yield name, asked.extras.get(name, 0), maximum.extras.get(name, 0)


def _round_up(amount: int, step: int) -> int:
    return -(-amount // step) * step


class Calculator(Protocol):
    """How amounts are compared."""

    #: False when virtual cores never refuse a container
    counts_vcores: bool

    def fits(self, need: Resource, room: Resource) -> bool: ...

    def fits_among(self, need: Resource, mb: int, cores: int, extras: Mapping[str, int]) -> bool:
        """Tell whether it fits room in single amounts, which change in place."""
        ...

    def share(self, used: Resource, total: Resource) -> float:
        """Return the part of `total` that `used` is; 0 when there is nothing at all."""
        ...

    def share_among(self, mb: int, cores: int, extras: Mapping[str, int], total: Resource) -> float:
        """Return the same part for use in single amounts."""
        ...

    def normalize(self, asked: Resource, bounds: AllocationBounds) -> Resource:
        """Return the container that is given for `asked`: never less than asked, in steps of the minimum."""
        ...


class MemoryOnly:
    """Hadoop's DefaultResourceCalculator."""

    counts_vcores = False

    def fits(self, need: Resource, room: Resource) -> bool:
        return need.memory_mb <= room.memory_mb

    def fits_among(self, need: Resource, mb: int, cores: int, extras: Mapping[str, int]) -> bool:
        return need.memory_mb <= mb

    def share(self, used: Resource, total: Resource) -> float:
        return used.memory_mb / total.memory_mb if total.memory_mb > 0 else 0.0

    def share_among(self, mb: int, cores: int, extras: Mapping[str, int], total: Resource) -> float:
        return mb / total.memory_mb if total.memory_mb > 0 else 0.0

    def normalize(self, asked: Resource, bounds: AllocationBounds) -> Resource:
        memory = _round_up(max(asked.memory_mb, bounds.minimum.memory_mb, 1), max(bounds.minimum.memory_mb, 1))
        return Resource(min(memory, max(bounds.maximum.memory_mb, asked.memory_mb)), 1)


class Dominant:
    """Hadoop's DominantResourceCalculator."""

    counts_vcores = True

    def fits(self, need: Resource, room: Resource) -> bool:
        return need.fits_in(room)

    def fits_among(self, need: Resource, mb: int, cores: int, extras: Mapping[str, int]) -> bool:
        if need.memory_mb > mb or need.vcores > cores:
            return False
        return not need.extras or all(v <= extras.get(n, 0) for n, v in need.extras.items())

    def share(self, used: Resource, total: Resource) -> float:
        return self.share_among(used.memory_mb, used.vcores, used.extras, total)

    def share_among(self, mb: int, cores: int, extras: Mapping[str, int], total: Resource) -> float:
        share = mb / total.memory_mb if total.memory_mb > 0 else 0.0
        if total.vcores > 0:
            of_cores = cores / total.vcores
            if of_cores > share:
                share = of_cores
        if extras:
            for name, amount in extras.items():
                whole = total.extras.get(name, 0)
                if whole > 0:
                    share = max(share, amount / whole)
        return share

    def normalize(self, asked: Resource, bounds: AllocationBounds) -> Resource:
        least, most = bounds.minimum, bounds.maximum
        memory = _round_up(max(asked.memory_mb, least.memory_mb, 1), max(least.memory_mb, 1))
        vcores = _round_up(max(asked.vcores, least.vcores, 1), max(least.vcores, 1))
        memory = min(memory, max(most.memory_mb, asked.memory_mb))
        vcores = min(vcores, max(most.vcores, asked.vcores))
        if not most.extras:
            return Resource(memory, vcores)
        extras = {}
        for name, largest in most.extras.items():
            step = least.extras.get(name, 0)
            amount = _round_up(max(asked.extras.get(name, 0), step), max(step, 1))
            if amount:
                extras[name] = min(amount, max(largest, asked.extras.get(name, 0)))
        return Resource(memory, vcores, extras)


CALCULATORS: Final[dict[str, type[MemoryOnly] | type[Dominant]]] = {
    "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator": MemoryOnly,
    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator": Dominant,
}
