"""Arithmetic of Hadoop's resource calculators, with Java's rounding.

Capacities are 32 bit floating point numbers there: 0.7 of 10,240 MB is 7,167 MB and not 7,168, and is then rounded down
to whole containers. Who wants Hadoop's decisions must round as it does.
"""

import math
import struct
from collections.abc import Iterable
from typing import Final

from yaqd.model import Resource

_FLOAT: Final = struct.Struct("<f")
NOTHING: Final = Resource()


def f32(number: float) -> float:
    """Return the nearest 32 bit floating point number."""
    rounded: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    return rounded


class Amounts:
    """Compares and rounds amounts; `DefaultResourceCalculator` or `DominantResourceCalculator`."""

    def __init__(self, total: Resource, least: Resource, *, counts_vcores: bool) -> None:
        """`total`: the cluster. `least`: the smallest container, in whole steps of which limits are."""
        self.total, self.least, self._counts_vcores = total, least, counts_vcores

    def _shares(self, amount: Resource) -> list[float]:
        """Return the parts of the cluster that it is, the largest first."""
        total = self.total
        shares = [_part(amount.memory_mb, total.memory_mb)]
        if self._counts_vcores:
            shares.append(_part(amount.vcores, total.vcores))
            shares += [_part(amount.extras.get(name, 0), whole) for name, whole in total.extras.items()]
        return sorted(shares, reverse=True)

    def compare(self, one: Resource, other: Resource) -> int:
        """Return 1, 0 or -1: by the scarcest type first, where several count."""
        total = self.total
        if not self._counts_vcores or not total.memory_mb:
            return _sign(one.memory_mb - other.memory_mb)
        if not total.extras and total.vcores:  # nearly always; it is asked for each application
            mb, cores = one.memory_mb / total.memory_mb, one.vcores / total.vcores
            other_mb, other_cores = other.memory_mb / total.memory_mb, other.vcores / total.vcores
            pair = (mb, cores) if mb >= cores else (cores, mb)
            other_pair = (other_mb, other_cores) if other_mb >= other_cores else (other_cores, other_mb)
            return _sign((pair > other_pair) - (pair < other_pair))
        shares, others = self._shares(one), self._shares(other)
        return _sign((shares > others) - (shares < others))

    def smaller(self, one: Resource, other: Resource) -> Resource:
        return one if self.compare(one, other) <= 0 else other

    def larger(self, one: Resource, other: Resource) -> Resource:
        return one if self.compare(one, other) >= 0 else other

    def fits(self, need: Resource, room: Resource) -> bool:
        return need.fits_in(room) if self._counts_vcores else need.memory_mb <= room.memory_mb

    def is_positive(self, amount: Resource) -> bool:
        """Tell whether any type that counts is above 0."""
        if not self._counts_vcores:
            return amount.memory_mb > 0
        return amount.memory_mb > 0 or amount.vcores > 0 or any(value > 0 for value in amount.extras.values())

    def part(self, amount: Resource, fraction: float) -> Resource:
        """Multiply each type and round down to whole units."""
        extras = {name: int(value * fraction) for name, value in amount.extras.items()} if amount.extras else {}
        return Resource(int(amount.memory_mb * fraction), int(amount.vcores * fraction), extras)

    def down(self, amount: Resource) -> Resource:
        """Round down to whole smallest containers."""
        rounded = [_floor(v, step) if v >= 0 else -_floor(-v, step) for v, step in _steps(amount, self.least)]
        return self._whole(amount, rounded)

    def up(self, amount: Resource) -> Resource:
        """Round up to whole smallest containers."""
        return self._whole(amount, [-_floor(-v, step) for v, step in _steps(amount, self.least)])

    def up_part(self, amount: Resource, fraction: float) -> Resource:
        """Multiply, and round up to whole smallest containers."""
        if not self._counts_vcores:
            mb = int(amount.memory_mb * fraction + 0.5)
            return Resource(-_floor(-mb, self.least.memory_mb), 0)
        raised = [(math.ceil(f32(value * fraction)), step) for value, step in _steps(amount, self.least)]
        return self._whole(amount, [-_floor(-value, step) for value, step in raised])

    def divided(self, amount: Resource, by: int) -> Resource:
        """Divide each type among so many users, rounded up."""
        divided = [math.ceil(f32(f32(value) / f32(by))) if by else 0 for value, _ in _steps(amount, self.least)]
        return self._whole(amount, divided)

    def hundredth(self, amount: Resource) -> Resource:
        return self._whole(amount, [-(-value // 100) for value, _ in _steps(amount, self.least)])

    def ratio(self, one: Resource, other: Resource) -> float:
        """Return how many times the other it is, by the type where that is most."""
        ratios = [_quotient(one.memory_mb, other.memory_mb)]
        if self._counts_vcores:
            ratios.append(_quotient(one.vcores, other.vcores))
            ratios += [_quotient(one.extras.get(name, 0), value) for name, value in other.extras.items()]
        return max(0.0, *ratios)

    def quotient(self, one: Resource, other: Resource) -> float:
        """Return the largest share of the one over the largest share of the other."""
        if not self._counts_vcores:
            return _quotient(one.memory_mb, other.memory_mb)
        shares = self._finite(one), self._finite(other)
        return f32(shares[0] / shares[1]) if shares[1] else math.inf if shares[0] else math.nan

    def _finite(self, amount: Resource) -> float:
        return max((share for share in self._shares(amount) if share != math.inf), default=0.0)

    def _whole(self, like: Resource, values: list[int]) -> Resource:
        if not self._counts_vcores:
            return Resource(values[0], 0)
        return Resource(values[0], values[1], dict(zip(like.extras, values[2:], strict=True)) if like.extras else {})


def _steps(amount: Resource, least: Resource) -> Iterable[tuple[int, int]]:
    yield amount.memory_mb, least.memory_mb
    yield amount.vcores, least.vcores
    for name, value in amount.extras.items():
        yield value, least.extras.get(name, 0)


def _floor(value: int, step: int) -> int:
    return value // step * step if step else value


def _part(amount: int, whole: int) -> float:
    return amount / whole if whole else math.inf


def _quotient(one: int, other: int) -> float:
    return f32(f32(one) / f32(other)) if other else 0.0


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
