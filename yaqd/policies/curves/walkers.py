"""Predict rising curves as POP does: a weighted sum of eleven families, all parameters sampled by walkers.

After Domhan, Springenberg and Hutter (IJCAI 2015): y = sum of w_k f_k(x) + noise, flat priors, weights and noise above
0, a last value in [0, 1.1] that is above the first. The walkers move by affine-invariant stretches (Goodman and Weare,
2010), half of them at once along the other half, as emcee does. A least-squares fit of each family is where they begin.

It is what `library.py` is measured against. All walkers are one array, so Python's part of the time is small.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from yaqd.policies.curves.families import FAMILIES, Family
from yaqd.policies.curves.outlook import DrawnOutlook, seen
from yaqd.policies.curves.samples import Floats, Ints

#: a stretch is 1/2 to 2 times the distance to the other walker
_STRETCH: Final = 2.0
#: of the first steps nothing is kept
_BURN_IN: Final = 0.4
#: kept states of each walker that curves are drawn from
_STATES: Final = 10
#: how far walkers begin from the fit, as a part of each parameter
_JITTER: Final = 0.05
_LAST_MAX: Final = 1.1
#: weight of a family whose fit ends outside of the priors, others' being 1
_SMALL: Final = 1e-3
_NOISE_MIN: Final = 1e-4
#: tries and steps of a least-squares fit
_TRIES: Final = 12
_STEPS: Final = 30
_PARAMETERS: Final = sum(len(family.parameters) for family in FAMILIES)
#: with a weight for each family and the noise
_SIZE: Final = _PARAMETERS + len(FAMILIES) + 1


class WalkersReach:
    """The predictor; a curve without values has every last value in [0, 1] with the same chance."""

    def __init__(self, seed: int = 1, walkers: int = 100, samples: int = 700) -> None:
        """Raise ValueError for fewer than 4 walkers, an odd number, or fewer than 10 samples of each."""
        if walkers < 4 or walkers % 2 or samples < 10:
            raise ValueError(f"{walkers} walkers, {samples} samples: at least 4 walkers, even, and 10 samples each")
        self._seed, self._walkers, self._samples = seed, walkers, samples

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> DrawnOutlook:
        """Return the future of each curve (`Reach.outlook`). Raises ValueError for sizes that do not fit."""
        observed = seen(values, counts, epochs)
        drawn = [self._drawn(row[:known], epochs) for row, known in zip(observed.values, observed.counts, strict=True)]
        size = (0, self._walkers * _STATES, epochs)
        return DrawnOutlook(np.stack(drawn) if drawn else np.empty(size), observed)

    def _drawn(self, known: Floats, epochs: int) -> Floats:
        """Return curves of the future, (samples, epochs), with noise."""
        rng = np.random.default_rng(self._seed)
        many = self._walkers * _STATES
        if not known.size:
            # the priors alone: a sum of eleven families may end anywhere
            return np.asarray(rng.random((many, 1)) * np.linspace(1.0 / epochs, 1.0, epochs))
        target = _Target(known, epochs)
        states = _walk(target.log_density, _begin(known, epochs, self._walkers, rng), self._samples, _STATES, rng)
        epoch = np.arange(1.0, epochs + 1.0)
        with np.errstate(all="ignore"):
            means = summed(states, epoch, np.log(epoch))
        found = means + states[:, -1:] * rng.standard_normal((many, 1))
        return np.nan_to_num(found, nan=known[-1], posinf=_LAST_MAX, neginf=0.0)


def summed(states: Floats, x: Floats, log_x: Floats) -> Floats:
    """Return the weighted sum of the families for each state, (states, epochs)."""
    total = np.zeros((len(states), len(x)))
    columns = _columns(states)
    at = 0
    for number, family in enumerate(FAMILIES):
        wide = len(family.parameters)
        total += columns[_PARAMETERS + number] * family.formula(x, log_x, columns[at : at + wide])
        at += wide
    return total


class _Target:
    """The posterior's logarithm for one curve, up to a constant."""

    def __init__(self, known: Floats, epochs: int) -> None:
        self._known = known
        self._x = np.append(np.arange(1.0, len(known) + 1.0), float(epochs))
        self._log_x = np.log(self._x)

    def log_density(self, states: Floats) -> Floats:
        """Return one number for each state; minus infinity outside of the priors."""
        noise = states[:, -1]
        with np.errstate(all="ignore"):
            model = summed(states, self._x, self._log_x)
            errors = model[:, :-1] - self._known
            found = -0.5 * np.einsum("we,we->w", errors, errors) / noise**2 - len(self._known) * np.log(noise)
            last = model[:, -1]
            allowed = (last >= 0.0) & (last <= _LAST_MAX) & (last >= model[:, 0]) & (noise > _NOISE_MIN)
            allowed &= (states[:, _PARAMETERS:-1] > 0.0).all(axis=1)
        return np.where(allowed & np.isfinite(found), found, -np.inf)


def _walk(
    density: Callable[[Floats], Floats], start: Floats, samples: int, states: int, rng: np.random.Generator
) -> Floats:
    """Return states of all walkers, evenly taken from the steps after the burn-in, (states x walkers, size)."""
    walkers, size = start.shape
    half = walkers // 2
    at = start.copy()
    level = density(at)
    wanted = set(np.linspace(int(_BURN_IN * samples), samples - 1, states).astype(int).tolist())
    kept = []
    sides = (slice(0, half), slice(half, walkers))
    for step in range(samples):
        for mine, others in (sides, sides[::-1]):
            stretch = ((_STRETCH - 1.0) * rng.random(half) + 1.0) ** 2 / _STRETCH
            other = at[others][rng.integers(half, size=half)]
            moved = other + stretch[:, None] * (at[mine] - other)
            found = density(moved)
            with np.errstate(invalid="ignore"):  # a walker outside of the priors, and a move that is too
                gain = (size - 1.0) * np.log(stretch) + found - level[mine]
            goes = np.log(rng.random(half)) < gain
            at[mine] = np.where(goes[:, None], moved, at[mine])
            level[mine] = np.where(goes, found, level[mine])
        if step in wanted:
            kept.append(at.copy())
    # of few samples a step may stand for several states
    return np.concatenate([kept[min(number * len(kept) // states, len(kept) - 1)] for number in range(states)])


def _begin(known: Floats, epochs: int, walkers: int, rng: np.random.Generator) -> Floats:
    """Return where the walkers begin: around the families' fits, equally weighted.

    A family that no fit brings to a last value within the priors begins with a small weight.
    """
    x = np.arange(1.0, len(known) + 1.0)
    centre = np.empty(_SIZE)
    weights = np.empty(len(FAMILIES))
    at = 0
    for number, family in enumerate(FAMILIES):
        fit, is_allowed = _fitted(family, x, known, epochs, rng)
        centre[at : at + len(fit)] = fit
        weights[number] = 1.0 if is_allowed else _SMALL
        at += len(fit)
    centre[_PARAMETERS:-1] = weights / weights.sum()
    centre[-1] = 1.0
    with np.errstate(all="ignore"):
        errors = summed(centre[None, :], x, np.log(x))[0] - known
    noise = float(np.sqrt(np.mean(np.square(errors))))
    centre[-1] = max(noise if np.isfinite(noise) else 0.1, 2.0 * _NOISE_MIN)
    spread = np.maximum(np.abs(centre), 1e-3) * _JITTER
    start = centre + spread * rng.standard_normal((walkers, _SIZE))
    start[:, _PARAMETERS:] = np.abs(start[:, _PARAMETERS:])
    return np.asarray(start)


def _fitted(family: Family, x: Floats, known: Floats, epochs: int, rng: np.random.Generator) -> tuple[Floats, bool]:
    """Return the least squares that Levenberg's and Marquardt's steps find, and whether its end is within the priors.

    Of several starts the best is taken whose end is. Where none is, the published parameters are.
    """
    size = len(family.start)
    middle = np.array(family.start)
    at = middle + np.maximum(np.abs(middle), 0.1) * rng.normal(0.0, 0.5, (_TRIES, size))
    at[0] = middle
    log_x = np.log(x)
    damping = np.full(_TRIES, 1e-2)

    def errors(parameters: Floats) -> Floats:
        return np.asarray(family.formula(x, log_x, _columns(parameters)) - known)

    with np.errstate(all="ignore"):
        residual = errors(at)
        loss = _losses(residual)
        for _ in range(_STEPS):
            tried = at - _step(_slopes(errors, at, residual), residual, damping)
            new = errors(tried)
            better = _losses(new) < loss
            at = np.where(better[:, None], tried, at)
            residual = np.where(better[:, None], new, residual)
            loss = np.where(better, _losses(new), loss)
            damping = np.clip(np.where(better, damping / 5.0, damping * 4.0), 1e-9, 1e6)
    ends = family(np.array([1.0, float(epochs)]), _columns(at))
    allowed = (ends[:, 1] >= 0.0) & (ends[:, 1] <= _LAST_MAX) & (ends[:, 1] >= ends[:, 0]) & np.isfinite(loss)
    best = int(np.argmin(np.where(allowed, loss, np.inf)))
    return (at[best], True) if allowed[best] else (middle, False)


def _columns(parameters: Floats) -> Sequence[Floats]:
    return [parameters[:, place : place + 1] for place in range(parameters.shape[1])]


def _slopes(errors: Callable[[Floats], Floats], at: Floats, residual: Floats) -> Floats:
    """Return the errors' derivatives by differences, (tries, epochs, parameters)."""
    steps = 1e-6 * np.maximum(np.abs(at), 1e-3)
    slopes = np.empty((*residual.shape, at.shape[1]))
    for place in range(at.shape[1]):
        moved = at.copy()
        moved[:, place] += steps[:, place]
        slopes[:, :, place] = (errors(moved) - residual) / steps[:, place : place + 1]
    return slopes


def _losses(residual: Floats) -> Floats:
    found = np.square(residual).sum(axis=1)
    return np.where(np.isfinite(found), found, np.inf)


def _step(slopes: Floats, residual: Floats, damping: Floats) -> Floats:
    """Return a damped Gauss-Newton step for each try."""
    slopes = np.nan_to_num(slopes, nan=0.0, posinf=0.0, neginf=0.0)
    normal = np.einsum("tep,teq->tpq", slopes, slopes)
    right = np.einsum("tep,te->tp", slopes, np.nan_to_num(residual, nan=0.0, posinf=0.0, neginf=0.0))
    diagonal = np.arange(normal.shape[1])
    normal[:, diagonal, diagonal] += damping[:, None] * (normal[:, diagonal, diagonal] + 1e-9) + 1e-12
    return np.asarray(np.linalg.solve(normal, right[:, :, None])[:, :, 0])
