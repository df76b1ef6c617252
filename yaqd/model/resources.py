"""Amounts of memory, virtual cores and any further countable resource."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, Self

from yaqd.model.values import value

#: the extras of all who have none
NO_EXTRAS: Final[Mapping[str, int]] = MappingProxyType({})


@value()
class Resource:
    """A vector of amounts. Differences may be negative; comparisons are component by component."""

    #: mebibytes
    memory_mb: int = 0
    #: virtual cores
    vcores: int = 0
    #: further countable types by name (`yarn.io/gpu`), in single units; a missing name means 0, and 0 is left out
    extras: Mapping[str, int] = field(default_factory=lambda: NO_EXTRAS, hash=False)

    def _names(self, other: Self) -> Iterator[str]:
        yield from self.extras
        for name in other.extras:
            if name not in self.extras:
                yield name

    def __add__(self, other: Self) -> "Resource":
        extras = self.extras
        if extras or other.extras:
            extras = {n: v for n in self._names(other) if (v := self.extras.get(n, 0) + other.extras.get(n, 0))}
        return Resource(self.memory_mb + other.memory_mb, self.vcores + other.vcores, extras)

    def __sub__(self, other: Self) -> "Resource":
        extras = self.extras
        if extras or other.extras:
            extras = {n: v for n in self._names(other) if (v := self.extras.get(n, 0) - other.extras.get(n, 0))}
        return Resource(self.memory_mb - other.memory_mb, self.vcores - other.vcores, extras)

    def __mul__(self, factor: int) -> "Resource":
        extras = {n: v * factor for n, v in self.extras.items() if factor} if self.extras else self.extras
        return Resource(self.memory_mb * factor, self.vcores * factor, extras)

    def fits_in(self, room: "Resource") -> bool:
        """Return True when no component is larger than the room's."""
        if self.memory_mb > room.memory_mb or self.vcores > room.vcores:
            return False
        return not self.extras or all(v <= room.extras.get(n, 0) for n, v in self.extras.items())

    def smaller(self, other: Self) -> "Resource":
        """Return the smaller amount of each component."""
        extras = self.extras
        if extras or other.extras:
            extras = {n: v for n in self._names(other) if (v := min(self.extras.get(n, 0), other.extras.get(n, 0)))}
        return Resource(min(self.memory_mb, other.memory_mb), min(self.vcores, other.vcores), extras)

    def is_zero(self) -> bool:
        return not self.memory_mb and not self.vcores and not any(self.extras.values())

    def floored(self) -> "Resource":
        """Return the same with every negative component at 0."""
        extras = {n: v for n, v in self.extras.items() if v > 0} if self.extras else self.extras
        return Resource(max(0, self.memory_mb), max(0, self.vcores), extras)

    def __str__(self) -> str:
        more = "".join(f", {n}: {v}" for n, v in sorted(self.extras.items()))
        return f"<memory:{self.memory_mb}, vCores:{self.vcores}{more}>"
