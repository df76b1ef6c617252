"""Give units of cores one by one to whom the next one is worth most, without doing it one by one.

SLAQ's Algorithm 1 keeps a priority queue and takes a step for each core. Worths are concave, so its result is: the
units with the largest marginal worths. Where they are few, all are looked at. Else a price is searched at which about
as many are bought as there are, and only the units near that price are looked at.
"""

from math import log
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.quality.levels import raised
from yaqd.policies.quality.worth import IterationRates, Worth

#: marginal worths that are looked at without a search
_FEW: Final = 60_000
#: and near a price; more are ties, which are given in equal parts
_NEAR_MAX: Final = 2_000_000
_STEPS: Final = 48
#: a marginal worth from which on a unit is worth something
_TINY: Final = 1e-15
#: a price at which everybody buys what is worth anything
_CHEAPEST: Final = _TINY * 1e-3
#: how far the price goes up at first where too many units are near it, as a part
_WIDER: Final = 0.03


class Greedy:
    """Jobs with their worths, and units of `unit` cores."""

    def __init__(
        self, worth: Worth, rates: IterationRates, unit: float, has: Ints | None = None, gaining: Floats | None = None
    ) -> None:
        """`has`: units that a job has now; what it gains beyond them counts `gaining` times its worth, at most 1."""
        self._worth = worth
        self._rates = rates
        self._unit = unit
        jobs = len(rates.work_s)
        self._has = np.zeros(jobs, dtype=np.int64) if has is None else has
        self._gaining = np.ones(jobs) if gaining is None else gaining

    def gains(self, units: Ints) -> Floats:
        """Return what each job's units are worth in the epoch."""
        return self._worth.at(self._rates.done(np.asarray(units[:, None] * self._unit, dtype=np.float64)))[:, 0]

    def fill(self, base: Ints, caps: Ints, free: int) -> Ints:
        """Return `base` with `free` units more, each where it is worth most; what is worth nothing to anybody is given
        in equal parts. None is above its cap."""
        room = np.maximum(caps - base, 0)
        free = min(free, int(room.sum()))
        if free <= 0:
            return base
        widest = min(int(room.max()), free)
        units = self._among_all(base, room, widest, free) if len(base) * widest <= _FEW else self._by_price(
            base, base + room, free
        )  # fmt: skip
        return raised(units, base + room, free - int((units - base).sum()))

    def _among_all(self, base: Ints, room: Ints, widest: int, free: int) -> Ints:
        more = np.arange(widest + 1)
        found = self._worth.at(self._rates.done(np.asarray((base[:, None] + more) * self._unit, dtype=np.float64)))
        worths = np.where(more[1:] <= room[:, None], np.diff(found, axis=1), 0.0)
        worths = np.where(base[:, None] + more[1:] > self._has[:, None], worths * self._gaining[:, None], worths)
        return base + _largest(worths.ravel(), np.repeat(np.arange(len(base)), widest), len(base), free)

    def _by_price(self, base: Ints, caps: Ints, free: int) -> Ints:
        price = _Price(self._worth, self._rates, self._unit, base, caps, self._has, self._gaining)
        dear, cheap = price.around(free)
        low, high = price.bought(dear), np.minimum(price.bought(cheap) + 1, caps)
        wider = _WIDER
        # a unit's worth lies between the prices at its two ends, so each job may own one more than it buys
        while low.sum() + len(base) > base.sum() + free and (low > base).any():
            dear *= 1.0 + wider
            wider *= 4.0
            low = price.bought(dear)
        near = high - low
        many = int(near.sum())
        if many > _NEAR_MAX:
            return raised(low, high, free - int((low - base).sum()))
        rows = np.repeat(np.arange(len(base)), near + 1)
        units = low[rows] + np.arange(many + len(base)) - np.repeat(np.cumsum(near + 1) - near - 1, near + 1)
        found = self._worth.at(self._rates.done(np.asarray(units * self._unit, dtype=np.float64), rows), rows)
        # the worth of each unit from the one before it; the first of a job is only where its next ones begin
        is_unit = rows[1:] == rows[:-1]
        worths, rows, units = np.diff(found)[is_unit], rows[1:][is_unit], units[1:][is_unit]
        worths = np.where(units > self._has[rows], worths * self._gaining[rows], worths)
        return low + _largest(worths, rows, len(base), free - int((low - base).sum()))


def _largest(worths: Floats, rows: Ints, jobs: int, many: int) -> Ints:
    """Return how many of the `many` largest worths each row has; those worth nothing are left."""
    many = min(many, int(np.count_nonzero(worths > _TINY)))
    if many <= 0:
        return np.zeros(jobs, dtype=np.int64)
    chosen = np.argpartition(worths, len(worths) - many)[len(worths) - many :]
    return np.bincount(rows[chosen], minlength=jobs)


class _Price:
    """What each job buys at a price of a core: as many as are worth more at the margin."""

    def __init__(
        self, worth: Worth, rates: IterationRates, unit: float, base: Ints, caps: Ints, has: Ints, gaining: Floats
    ) -> None:
        self._rates, self._unit, self._base, self._caps = rates, unit, base, caps
        self._has, self._gaining = has, gaining
        self._counts_moves = bool((gaining < 1.0).any())
        ahead = worth.ahead
        wide = np.diff(ahead, axis=1)
        # segments of no width are all beyond the job's end
        slopes = np.divide(np.diff(worth.worth, axis=1), wide, out=np.zeros_like(wide), where=wide > 0.0)
        # a core more does (epoch - fixed * done)^2 / (epoch * work) iterations more
        rest = np.maximum(rates.epoch_s - rates.fixed_s[:, None] * ahead[:, :-1], 0.0)
        margins = slopes * (np.square(rest) / (rates.epoch_s * rates.work_s[:, None]))
        self._margins = np.ascontiguousarray(margins.T)
        self._slopes, self._from, self._until = slopes.ravel(), ahead[:, :-1].ravel(), ahead[:, 1:].ravel()
        # where each job's numbers begin in the arrays laid flat: these are picked from far faster
        self._starts = np.arange(len(base)) * wide.shape[1]

    def bought(self, price: float) -> Ints:
        """Return units by job, at least the base and at most the cap."""
        units = self._bought(price)
        if self._counts_moves:
            units = np.maximum(self._bought(price / self._gaining), np.minimum(units, self._has))
        return np.clip(units, self._base, self._caps)

    def _bought(self, price: Floats | float) -> Ints:
        """Return the units of each job that are worth more than its price, each for itself."""
        at = (self._margins > price).view(np.int8).sum(axis=0, dtype=np.int8).astype(np.int64) - 1
        flat = self._starts + np.maximum(at, 0)
        rates = self._rates
        slopes = np.maximum(self._slopes.take(flat), 1e-300)
        rest = np.sqrt(price * rates.epoch_s * rates.work_s / slopes)
        fixed, until = rates.fixed_s, self._until.take(flat)
        ends = np.where(fixed > 0.0, (rates.epoch_s - rest) / np.where(fixed > 0.0, fixed, 1.0), until)
        done = np.where(at < 0, 0.0, np.clip(ends, self._from.take(flat), until))
        units = np.minimum(rates.cores(done) / self._unit, 1e15)
        return np.floor(units + 1e-9).astype(np.int64)

    def around(self, free: int) -> tuple[float, float]:
        """Return two near prices: at the first at most `free` units are bought, at the second as many or more."""
        wanted = int(self._base.sum()) + free
        dear, few = float(self._margins.max(initial=_TINY)) * 2.0, int(self._base.sum())
        cheap, many, cheaper = dear, few, 1.0 / 16.0
        while many <= wanted and cheap > _CHEAPEST:
            dear, few = cheap, many
            cheap, cheaper = max(cheap * cheaper, _CHEAPEST), cheaper**2
            many = int(self.bought(cheap).sum())
        for step in range(_STEPS):
            if many - few <= len(self._base) or dear <= cheap * (1.0 + 1e-9):
                break
            # halves for certain, and in between where the price would lie if sales went with a power of it
            part = 0.5 if step % 2 else log((wanted + 1) / (few + 1)) / log((many + 1) / (few + 1))
            middle = dear * (cheap / dear) ** min(max(part, 0.01), 0.99)
            bought = int(self.bought(middle).sum())
            if bought <= wanted:
                dear, few = middle, bought
            else:
                cheap, many = middle, bought
        return dear, cheap
