"""Predict rising curves from a library of shapes: level, rise and noise in closed form, no sampling of parameters.

Shapes g are drawn once from the eleven families (`families.py`), with g = 0 at the first epoch and 1 at the last. A
curve is a + b g + noise. For each shape a, b and the noise have a conjugate normal-inverse-gamma prior, so their
posterior and the shape's evidence follow from sums of g and g^2, which depend on no curve, and of y g, which are one
matrix product for all curves and shapes. The likelihood is tempered: errors are the model's more than the noise's, so
old values count less than new ones, and all of them together as ten.

Draws are spread evenly over the shapes' weights, and over level, rise and noise by one fixed Latin hypercube. So two
calls say the same, and a curve is told nothing about the others of its batch.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from yaqd.policies.curves.families import Shapes, drawn_shapes
from yaqd.policies.curves.outlook import Seen, bounds, observed, seen
from yaqd.policies.curves.samples import Bools, Floats, Ints, picked, product

#: curves that are worked on together, so that what belongs to them stays near the processor
_BLOCK: Final = 32
#: numbers of epochs whose tables are kept
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class Level:
    """What is believed of a metric before anything is known of a curve, in the metric's own unit.

    `start`: at the first epoch. `rise`: from the first to the last. `noise`: around the model. `strength`: how many
    values the belief about the noise counts as.
    """

    start: float = 0.1
    start_sd: float = 0.1
    rise: float = 0.2
    rise_sd: float = 0.3
    noise: float = 0.025
    strength: float = 4.0

    def __post_init__(self) -> None:
        numbers = (self.start, self.rise, self.start_sd, self.rise_sd, self.noise, self.strength)
        if not np.isfinite(numbers).all() or min(numbers[2:]) <= 0.0:
            raise ValueError(f"{self}: all must be finite; deviations, noise and strength above 0")


@dataclass(frozen=True, slots=True)
class Temper:
    """How much each observed value counts: the newest as `part` values, one that is an epoch older `decay` times that.

    So a long prefix counts as part / (1 - decay) values and not as all of its own. The newest ones say most about what
    comes, as no shape fits a whole curve. `power`: of n values the newest counts part x n^power.
    """

    part: float = 2.0
    decay: float = 0.8
    power: float = 0.0

    def weights(self, epochs: int) -> Floats:
        """Return what each epoch counts when n are known, (n = 0 to `epochs`, epochs)."""
        known = np.arange(epochs + 1.0)[:, None]
        age = known - 1.0 - np.arange(epochs)
        newest = self.part * np.maximum(known, 1.0) ** self.power
        return np.asarray(np.where(age >= 0.0, newest * self.decay ** np.maximum(age, 0.0), 0.0))


@dataclass(slots=True, eq=False)
class ShapeTable:
    """The shapes at the epochs of one length of curves, and what depends on them and on how many values are known.

    Arrays (epochs + 1, shapes) have a row for each number of known values: the inverse of the posterior's precision
    (`start`, `both`, `rise`), and `log_volume`, the shape's part of the evidence that no value changes. Such a row is
    made when it is first asked for.
    """

    table: Floats
    weights: Floats
    log_prior: Floats
    level: Level
    start: Floats
    both: Floats
    rise: Floats
    log_volume: Floats
    #: the shapes one behind the other, each above the one before it: one search finds an epoch in any of them
    ladder: Floats
    is_made: Bools

    def make(self, counts: Ints) -> None:
        """Make the rows of these numbers of known values."""
        if self.is_made[counts].all():
            return
        missing = np.unique(counts[~self.is_made[counts]])
        weights = self.weights[missing]
        of_ones = weights.sum(axis=1)[:, None] + (self.level.noise / self.level.start_sd) ** 2
        of_shape = product(weights, np.ascontiguousarray(self.table.T))
        of_square = product(weights, np.ascontiguousarray(self.table.T**2))
        of_square += (self.level.noise / self.level.rise_sd) ** 2
        volume = of_ones * of_square - of_shape**2
        self.start[missing] = of_square / volume
        self.both[missing] = -of_shape / volume
        self.rise[missing] = of_ones / volume
        self.log_volume[missing] = self.log_prior - 0.5 * np.log(volume)
        self.is_made[missing] = True


def shape_table(shapes: Shapes, flat: float, epochs: int, level: Level, temper: Temper) -> ShapeTable:
    """Return the table for curves of so many epochs; the last row is the flat shape, of the chance `flat`."""
    table = np.concatenate((shapes.table(epochs), np.zeros((1, epochs))))
    # shapes in the order of how early they rise: neighbours in the draws then promise alike
    order = np.argsort(-table.mean(axis=1), kind="stable")
    table = np.ascontiguousarray(table[order])
    is_flat = order == len(shapes)
    prior = np.where(is_flat, flat, (1.0 - flat) / len(shapes))
    size = (epochs + 1, len(table))
    start, both, rise, log_volume = (np.zeros(size) for _ in range(4))
    ladder = (table + 2.0 * np.arange(len(table))[:, None]).ravel()
    log_prior = np.log(np.maximum(prior, 1e-300))
    made = np.zeros(epochs + 1, dtype=np.bool_)
    weights = temper.weights(epochs)
    return ShapeTable(table, weights, log_prior, level, start, both, rise, log_volume, ladder, made)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What is believed of each curve (rows) if it has each shape (columns).

    Given the shape, `start` and `rise` are normal with the noise's variance times the table's inverse precision. The
    noise's variance is inverse-gamma with the curve's `shape` and the `scale`. `weights` (sum 1) are the shapes'.
    """

    weights: Floats
    start: Floats
    rise: Floats
    shape: Floats
    scale: Floats


def posterior(values: Floats, counts: Ints, table: ShapeTable) -> Posterior:
    """Return the closed form; `values` is (curves, epochs), finite and 0 beyond `counts`."""
    table.make(counts)
    level, weights = table.level, table.weights[counts]
    # measured from the level believed in, which leaves the prior one term less
    weighted = weights * (values - level.start)
    of_values = weighted.sum(axis=1)[:, None]
    of_squares = (weighted * (values - level.start)).sum(axis=1)[:, None]
    precision = (level.noise / level.rise_sd) ** 2
    of_shapes = product(weighted, table.table.T) + precision * level.rise
    both = table.both[counts]
    start = table.start[counts] * of_values + both * of_shapes
    rise = table.rise[counts] * of_shapes + both * of_values
    alpha = 0.5 * (level.strength + weights.sum(axis=1))[:, None]
    least = 0.5 * level.strength * level.noise**2
    of_squares += precision * level.rise**2
    scale = np.maximum(0.5 * (of_squares - start * of_values - rise * of_shapes), 0.0) + least
    log_weights = table.log_volume[counts] - alpha * np.log(scale)
    log_weights -= log_weights.max(axis=1, keepdims=True)
    found = np.exp(log_weights)
    found /= found.sum(axis=1, keepdims=True)
    return Posterior(found, start + level.start, rise, alpha[:, 0], scale)


@dataclass(frozen=True, slots=True, eq=False)
class LibraryOutlook:
    """Draws of each curve's future, each `start + rise x shape`, (curves, samples) all.

    A draw's noise is part of its start: it is the model's error, and stays as it is from epoch to epoch.
    """

    start: Floats
    rise: Floats
    shape: Ints
    table: ShapeTable
    seen: Seen

    def reached(self, target: float) -> Floats:
        """Return the chance that the target is reached by each epoch (`Outlook.reached`).

        A shape never falls, so each draw has one epoch from which on it is there: found by bisection, all at once.
        """
        epochs, counts = self.seen.epochs, self.seen.counts[:, None]
        if not np.isfinite(target):
            return np.full((len(counts), epochs), float(target < 0.0))
        with np.errstate(all="ignore"):
            needed = (target - self.start) / self.rise
        rises = self.rise > 0.0
        needed = np.where(rises, np.minimum(np.maximum(needed, 0.0), 1.5), 1.5)
        first = np.searchsorted(self.table.ladder, needed + 2.0 * self.shape) - self.shape * epochs
        if not rises.all():
            # where a draw falls, the next epoch is its best
            best = self.table.table[self.shape, np.minimum(counts, epochs - 1)]
            first[~rises & (self.start + self.rise * best >= target)] = 0
        first = np.minimum(np.maximum(first, counts), epochs)
        places = first + np.arange(len(counts))[:, None] * (epochs + 1)
        hits = np.bincount(places.ravel(), minlength=len(counts) * (epochs + 1)).reshape(-1, epochs + 1)
        chance = np.cumsum(hits[:, :epochs], axis=1) / first.shape[1]
        return np.asarray(np.where(self.seen.reached(target), 1.0, chance))

    def drawn(self, epoch: int) -> Floats:
        """Return the draws of this epoch's metric, (curves, samples)."""
        return np.asarray(self.start + self.rise * self.table.table[self.shape, epoch - 1])

    def at(self, epoch: int, target: float) -> Floats:
        """Return the chance that this epoch's metric is at least the target (`Outlook.at`)."""
        known, value = observed(self.seen, epoch)
        return np.asarray(np.where(known, value >= target, (self.drawn(epoch) >= target).mean(axis=1)))

    def interval(self, epoch: int, part: float) -> tuple[Floats, Floats]:
        """Return bounds of this epoch's metric (`Outlook.interval`)."""
        return bounds(self.drawn(epoch), self.seen, epoch, part)

    def spread(self) -> Floats:
        """Return the standard deviation of the last epoch's metric (`Outlook.spread`)."""
        return np.where(self.seen.counts >= self.seen.epochs, 0.0, self.drawn(self.seen.epochs).std(axis=1))


class LibraryReach:
    """The predictor; shapes are drawn when it is made, tables when a length of curves is first asked for."""

    def __init__(
        self,
        seed: int = 1,
        shapes: int = 1000,
        samples: int = 200,
        level: Level = Level(),
        temper: Temper = Temper(),
        late: float = 0.3,
        flat: float = 0.1,
    ) -> None:
        """Raise ValueError where there is nothing to draw.

        `late`: part of the shapes that wait before they rise. `flat`: chance, before anything is known, that a curve
        never rises.
        """
        if shapes < 1 or samples < 1 or not 0.0 <= flat < 1.0:
            raise ValueError(f"{shapes} shapes, {samples} samples, flat {flat}: at least one each, flat in [0, 1)")
        rng = np.random.default_rng(seed)
        self._shapes = drawn_shapes(shapes, late, rng)
        self._level, self._temper, self._flat = level, temper, flat
        #: where in the weights each draw lies, and what its level, rise and noise are off by, in deviations
        self._parts = (np.arange(samples) + 0.5) / samples
        normal = np.array([NormalDist().inv_cdf(part) for part in self._parts])
        self._normals = np.stack([normal[rng.permutation(samples)] for _ in range(3)])
        self._order = rng.permutation(samples)
        self._seed = seed
        self._tables: dict[int, ShapeTable] = {}
        self._gammas: dict[float, Floats] = {}

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> LibraryOutlook:
        """Return the future of each curve (`Reach.outlook`). Raises ValueError for sizes that do not fit."""
        observed = seen(values, counts, epochs)
        table = self._table(epochs)
        size = (len(observed.counts), len(self._parts))
        outlook = LibraryOutlook(np.empty(size), np.empty(size), np.empty(size, dtype=np.int64), table, observed)
        for at in range(0, size[0], _BLOCK):
            rows = slice(at, at + _BLOCK)
            self._draw(outlook, rows, posterior(observed.values[rows], observed.counts[rows], table))
        return outlook

    def _draw(self, outlook: LibraryOutlook, rows: slice, believed: Posterior) -> None:
        total = np.cumsum(believed.weights, axis=1)
        shape = outlook.shape[rows]
        for row, sums in enumerate(total):
            shape[row] = np.searchsorted(sums, self._parts * sums[-1])
        np.minimum(shape, total.shape[1] - 1, out=shape)
        table, counts = outlook.table, outlook.seen.counts[rows, None]
        sd = np.sqrt(picked(believed.scale, shape) / self._gamma(believed.shape))
        of_start, of_both = table.start[counts, shape], table.both[counts, shape]
        root = np.sqrt(of_start)
        level, rise, noise = self._normals
        slope = of_both / root
        left = np.sqrt(np.maximum(table.rise[counts, shape] - slope**2, 0.0))
        outlook.start[rows] = picked(believed.start, shape) + sd * (root * level + noise)
        outlook.rise[rows] = picked(believed.rise, shape) + sd * (slope * level + left * rise)

    def _gamma(self, alphas: Floats) -> Floats:
        """Return the draws of a gamma variable for each curve: its quantiles, in one fixed order."""
        for alpha in set(alphas.tolist()) - self._gammas.keys():
            if len(self._gammas) > 1 << 12:
                self._gammas.clear()
            many = np.sort(np.random.default_rng(self._seed).standard_gamma(alpha, 64 * len(self._parts)))
            self._gammas[alpha] = many[32::64][self._order]
        return np.stack([self._gammas[alpha] for alpha in alphas.tolist()])

    def _table(self, epochs: int) -> ShapeTable:
        found = self._tables.get(epochs)
        if found is None:
            if len(self._tables) >= _KEPT:
                del self._tables[next(iter(self._tables))]
            found = shape_table(self._shapes, self._flat, epochs, self._level, self._temper)
            self._tables[epochs] = found
        return found
