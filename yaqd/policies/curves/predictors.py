"""The single predictors: each takes a sample and steps ahead, and returns how much the loss will have fallen.

Drops are in units of the sample's scale. They are never negative, never NaN, and never fall with the steps: whoever
schedules by them gains nothing from a predicted rise.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints, Sample, picked, product

#: (sample, steps ahead by row: (jobs, horizons), growing) -> drops by row, (jobs, horizons)
Predictor = Callable[[Sample, Floats], Floats]

#: a loss counts so many times the one before it: measured, .8 predicts better than .9 and .95
DECAY: Final = 0.8
#: what is left of an exponential's distance after a step
_RATES: Final = 1.0 - np.geomspace(0.9, 0.001, 24)
#: distances from the newest loss to the asymptote that a sublinear curve may have, in units of the window's fall
_ASYMPTOTES: Final = np.geomspace(0.02, 6.0, 8)
#: changes in each of the two blocks that a damped trend compares
_BLOCK: Final = 6
#: part that each change is of the one before it, as long as there is one: the mean of nine algorithms, from .02 to 1
_FIRST_PART: Final = 0.4
#: a drop is at most so many times the window's fall: losses that grow ever faster downwards predict no miracle
_DROP_MAX: Final = 50.0
_TINY: Final = 1e-12


def repeated(sample: Sample, ahead: Floats) -> Floats:
    """Repeat the last change: the baseline that fits have to beat."""
    change = np.where(sample.counts > 1, sample.values[:, -2] - sample.values[:, -1], 0.0)
    return _safe(np.maximum(change, 0.0)[:, None] * ahead)


def damped(sample: Sample, ahead: Floats) -> Floats:
    """Let each change be the same part of the one before it; the part comes from the last two blocks of changes."""
    block = np.clip((sample.counts - 1) // 2, 1, _BLOCK)
    newer = np.where(sample.counts > 1, _back(sample, block), 0.0)
    older = _back(sample, 2 * block) - newer
    falls = newer > 0.0
    ratio = np.where(older > _TINY, newer / np.maximum(older, _TINY), 1.0)
    ratio = np.where(sample.counts > 2, ratio, _FIRST_PART)
    part = np.clip(ratio, 1e-6, 1.0) ** (1.0 / np.maximum(block, 1))
    part = np.clip(part, 1e-3, 1.0 - 1e-6)
    # the newest change as the whole newer block has it: one change alone is mostly noise where reports are noisy
    newest = newer * (1.0 - part) * part ** (block - 1) / (1.0 - part**block)
    change = np.where(falls, newest, 0.0)
    return _safe((change * part / (1.0 - part))[:, None] * (1.0 - part[:, None] ** ahead))


def exponential(sample: Sample, ahead: Floats) -> Floats:
    """Fit f(k) = mu^(k - b) + c through the newest loss: linear and superlinear convergence."""
    back, weights = _weights(sample)
    shapes = _RATES ** back[:, None] - 1.0
    weighted = np.where(sample.known, weights, 0.0)
    of_values = product(weighted * sample.values, shapes)
    of_shapes = product(weighted, shapes**2)
    height = np.maximum(of_values, 0.0) / np.maximum(of_shapes, _TINY)
    gain = height * np.maximum(of_values, 0.0)
    rate_at = np.argmax(gain, axis=1)
    rate = _RATES[rate_at]
    chosen = picked(height, rate_at[:, None])[:, 0]
    return _safe(chosen[:, None] * (1.0 - rate[:, None] ** ahead))


def sublinear(sample: Sample, ahead: Floats) -> Floats:
    """Fit f(k) = 1 / (a k^2 + b k + c) + d through the newest loss: first-order methods.

    For each asymptote d, z = 1 / (f - d) is fitted by a parabola; an error of z counts as the error of f that it makes,
    so with the power 4 of f - d. All sums over the window are polynomials of the asymptote's distance, so the window is
    read once for all asymptotes.
    """
    moments = _moments(sample)
    below = _ASYMPTOTES
    second, third, fourth = (product(moments[power], _SQUARES) for power in (2, 3, 4))
    first, quadratic = (product(moments[power], _RISES) for power in (1, 2))
    determinant = second * fourth - third**2
    is_sound = determinant > _TINY * second * fourth
    under = np.where(is_sound, determinant, 1.0)
    b = np.where(is_sound, (first * fourth - quadratic * third) / under, first / np.maximum(second, _TINY))
    a = np.where(is_sound, (second * quadratic - third * first) / under, 0.0)
    # a bow that turns, ahead or just before, would let the loss rise: a straight one instead
    turns = (b < 0.0) | (a < 0.0) | (a > b)
    b = np.where(turns, first / np.maximum(second, _TINY), b)
    a = np.where(turns, 0.0, a)
    falls = first > 0.0
    b, a = np.where(falls, b, 0.0), np.where(falls, a, 0.0)
    left = product(moments[0], _LEFT) - 2 * (b * first + a * quadratic)
    left += b**2 * second + 2 * a * b * third + a**2 * fourth
    # an asymptote lies well below every loss that was seen
    lowest = np.maximum(-sample.values.min(axis=1), 0.0)[:, None]
    best = np.argmin(np.where(below > 2.0 * lowest, left, np.inf), axis=1)[:, None]
    b, a = picked(b, best), picked(a, best)
    start = below[best]
    return _safe(np.where(sample.counts[:, None] > 1, start - 1.0 / (1.0 / start + b * ahead + a * ahead**2), 0.0))


def _moments(sample: Sample) -> list[Floats]:
    """Return by power p of the steps the weighted sums of step^p * value^q, (jobs, q), q = 0 .. 4."""
    back, weights = _weights(sample)
    steps = back[:, None] ** np.arange(5)
    part = np.where(sample.known, weights, 0.0)
    sums = []
    for _ in range(5):
        sums.append(product(part, steps))
        part = part * sample.values
    every = np.stack(sums, axis=2)
    return [np.ascontiguousarray(every[:, power]) for power in range(5)]


#: by power q of a value v, for each asymptote at distance c: the coefficients of (v + c)^4, of -v (v + c)^3 / c, which
#: is (v + c)^4 (1 / (v + c) - 1 / c), and of v^2 (v + c)^2 / c^2, which is (v + c)^4 times the square of that
_C: Final = _ASYMPTOTES
_SQUARES: Final = np.array([_C**4, 4 * _C**3, 6 * _C**2, 4 * _C, _C**0])
_RISES: Final = np.array([0 * _C, -(_C**2), -3 * _C, -3 * _C**0, -1 / _C])
_LEFT: Final = np.array([0 * _C, 0 * _C, _C**0, 2 / _C, 1 / _C**2])


def _weights(sample: Sample) -> tuple[Floats, Floats]:
    """Return steps relative to the newest value, -window+1 .. 0, and the weight of each."""
    back = np.arange(1.0 - sample.window, 1.0)
    return back, DECAY**-back


def _back(sample: Sample, steps: Ints) -> Floats:
    """Return how much the loss has fallen over the last `steps`, by row."""
    at = np.maximum(sample.window - 1 - steps, 0)
    return picked(sample.values, at[:, None])[:, 0]


def _safe(drops: Floats) -> Floats:
    """Return drops without what arithmetic may have made of a hostile window."""
    # these two take NaN for nothing
    bounded = np.fmin(np.fmax(drops, 0.0), _DROP_MAX)
    return np.maximum.accumulate(bounded, axis=1)
