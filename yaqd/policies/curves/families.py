"""The eleven parametric families of learning curves of Domhan, Springenberg and Hutter (IJCAI 2015, table 1).

Each is a function of the epoch x = 1, 2, ... that rises for the parameters in its ranges. Two predictors are built on
them: `walkers.py` samples all parameters of a weighted sum, `library.py` keeps shapes drawn from the ranges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats

#: (epochs, their logarithms, one array for each parameter, which broadcasts with the epochs) -> metric
Formula = Callable[[Floats, Floats, Sequence[Floats]], Floats]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a parameter may lie when a shape is drawn: evenly between the bounds, or evenly in its logarithm."""

    low: float
    high: float
    by_logarithm: bool = True

    def at(self, part: Floats) -> Floats:
        """Return the parameter that this part of the draws lies below; `part` is in [0, 1]."""
        if self.by_logarithm:
            return np.asarray(self.low * (self.high / self.low) ** part)
        return np.asarray(self.low + (self.high - self.low) * part)


@dataclass(frozen=True, slots=True)
class Family:
    """One family: its formula, where a fit starts, and where shapes are drawn.

    `start`: the parameters that a least-squares fit begins with, as the authors publish them.
    `spans`: a place for each parameter. One of equal bounds is a level, which a shape does not depend on.
    """

    name: str
    formula: Formula
    parameters: tuple[str, ...]
    start: tuple[float, ...]
    spans: tuple[Span, ...]

    def __call__(self, epochs: Floats, parameters: Sequence[Floats]) -> Floats:
        """Return the metric at these epochs. What has no value is NaN or infinite, without a warning."""
        with np.errstate(all="ignore"):
            return self.formula(epochs, np.log(epochs), parameters)


def _vapor_pressure(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(np.exp(p[0] + p[1] / x + p[2] * log_x))


def _pow3(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - p[1] * np.exp(-p[2] * log_x))


def _log_log_linear(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(np.log(p[0] * log_x + p[1]))


def _hill3(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    # y_max x^eta / (kappa^eta + x^eta), with one exponential
    return np.asarray(p[0] / (1.0 + np.exp(p[1] * (np.log(p[2]) - log_x))))


def _log_power(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] / (1.0 + np.exp(p[2] * (log_x - p[1]))))


def _pow4(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - np.exp(-p[3] * np.log(p[1] * x + p[2])))


def _mmf(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - (p[0] - p[1]) / (1.0 + np.exp(p[3] * (np.log(p[2]) + log_x))))


def _exp4(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - np.exp(p[2] - p[1] * np.exp(p[3] * log_x)))


def _janoschek(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - (p[0] - p[1]) * np.exp(-p[2] * np.exp(p[3] * log_x)))


def _weibull(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - (p[0] - p[1]) * np.exp(-np.exp(p[3] * (np.log(p[2]) + log_x))))


def _ilog2(x: Floats, log_x: Floats, p: Sequence[Floats]) -> Floats:
    return np.asarray(p[0] - p[1] / np.log(x + 1.0))


_ONE: Final = Span(1.0, 1.0)
_ZERO: Final = Span(0.0, 0.0, by_logarithm=False)
#: epochs at which half of the way is gone, the curve's last epoch being 100
_HALF: Final = Span(1.0, 200.0)
_RATE: Final = Span(0.005, 1.0)

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        "vapor pressure", _vapor_pressure, ("a", "b", "c"), (-0.622, -0.470, 0.042),
        (_ZERO, Span(-10.0, -0.1, by_logarithm=False), Span(0.0, 0.5, by_logarithm=False)),
    ),
    Family("pow3", _pow3, ("c", "a", "alpha"), (0.84, 0.52, 0.1), (_ONE, _ONE, Span(0.05, 3.0))),
    Family("log-log linear", _log_log_linear, ("a", "b"), (1.0, 1.0), (Span(0.1, 100.0), _ONE)),
    Family("hill3", _hill3, ("y_max", "eta", "kappa"), (0.586, 2.43, 2.0), (_ONE, Span(0.5, 6.0), _HALF)),
    Family(
        "log power", _log_power, ("a", "b", "c"), (0.77, 2.98, -0.51),
        (_ONE, Span(0.0, 5.3, by_logarithm=False), Span(-6.0, -0.5, by_logarithm=False)),
    ),
    Family(
        "pow4", _pow4, ("c", "a", "b", "alpha"), (0.84, 2.0, 1.0, 0.1),
        (_ONE, Span(0.01, 1.0), _ONE, Span(0.1, 3.0)),
    ),
    Family(
        "mmf", _mmf, ("alpha", "beta", "kappa", "delta"), (0.7, 0.1, 0.1, 2.0),
        (_ONE, _ZERO, _RATE, Span(0.5, 6.0)),
    ),
    Family(
        "exp4", _exp4, ("c", "a", "b", "alpha"), (0.7, 0.8, -0.8, 0.3),
        (_ONE, Span(0.005, 3.0), _ZERO, Span(0.3, 2.5)),
    ),
    Family(
        "janoschek", _janoschek, ("alpha", "beta", "kappa", "delta"), (0.73, 0.07, 0.355, 0.46),
        (_ONE, _ZERO, Span(0.005, 3.0), Span(0.3, 2.5)),
    ),
    Family(
        "weibull", _weibull, ("alpha", "beta", "kappa", "delta"), (0.7, 0.1, 0.1, 1.0),
        (_ONE, _ZERO, _RATE, Span(0.4, 4.0)),
    ),
    Family("ilog2", _ilog2, ("c", "a"), (0.78, 0.43), (_ONE, _ONE)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Shapes drawn from the families: which family each is of, its parameters, and what its epochs are stretched by.

    `parameters`: (shapes, 4), those that a family lacks are 0. `stretch`: the last epoch of a curve is the family's
    epoch 1 + 99 x stretch. `late`: the part of the curve that a shape waits before it rises, in [0, 1).
    """

    family: Floats
    parameters: Floats
    stretch: Floats
    late: Floats

    def __len__(self) -> int:
        return len(self.stretch)

    def table(self, epochs: int) -> Floats:
        """Return the shapes at the epochs 1 to `epochs`, (shapes, epochs): 0 at the first, 1 at the last, rising."""
        part = np.linspace(0.0, 1.0, epochs) if epochs > 1 else np.ones(1)
        # a late shape begins at its own epoch 1, when its wait is over
        own = np.maximum(part - self.late[:, None], 0.0) / (1.0 - self.late[:, None])
        found = self._raw(1.0 + 99.0 * self.stretch[:, None] * own)
        first, last = self._raw(np.ones((len(self), 1))), self._raw(1.0 + 99.0 * self.stretch[:, None])
        scaled = (found - first) / (last - first)
        return np.asarray(np.clip(np.maximum.accumulate(scaled, axis=1), 0.0, 1.0))

    def _raw(self, at: Floats) -> Floats:
        found = np.empty_like(at)
        for number, family in enumerate(FAMILIES):
            mine = np.flatnonzero(self.family == number)
            own = [self.parameters[mine, place][:, None] for place in range(len(family.parameters))]
            found[mine] = family(at[mine], own)
        return found


#: a late shape waits for an exponential time of this mean, in parts of the curve
_WAIT: Final = 0.1
_WAIT_MAX: Final = 0.6
#: part of the family's time that a curve covers at least
_STRETCH: Final = Span(0.05, 1.0)
#: a shape that rises by less than this part of its own size is rounding
_RISE_MIN: Final = 1e-6


def drawn_shapes(many: int, late: float, rng: np.random.Generator) -> Shapes:
    """Draw shapes, as many of each family as of every other, give or take one.

    `late`: part of the shapes that wait before they rise.
    """
    kept: list[Shapes] = []
    for number, family in enumerate(FAMILIES):
        wanted = many // len(FAMILIES) + (number < many % len(FAMILIES))
        while wanted > 0:
            batch = _sound(_of_family(number, family, wanted, late, rng))
            kept.append(batch)
            wanted -= len(batch)
    return _picked(kept)


def _of_family(number: int, family: Family, many: int, late: float, rng: np.random.Generator) -> Shapes:
    parameters = np.zeros((many, 4))
    for place, span in enumerate(family.spans):
        parameters[:, place] = span.at(rng.random(many))
    waits = np.minimum(rng.exponential(_WAIT, many), _WAIT_MAX)
    waits = np.where(rng.random(many) < late, waits, 0.0)
    return Shapes(np.full(many, float(number)), parameters, _STRETCH.at(rng.random(many)), waits)


def _sound(drawn: Shapes) -> Shapes:
    """Leave out what does not rise or has no value somewhere: looked at with 100 epochs, whatever a curve has."""
    with np.errstate(all="ignore"):
        ends = drawn._raw(np.concatenate((np.ones((len(drawn), 1)), 1.0 + 99.0 * drawn.stretch[:, None]), axis=1))
        table = drawn.table(100)
    rises = ends[:, 1] - ends[:, 0] > _RISE_MIN * np.abs(ends).max(axis=1)
    good = np.flatnonzero(rises & np.isfinite(ends).all(axis=1) & np.isfinite(table).all(axis=1))
    return Shapes(drawn.family[good], drawn.parameters[good], drawn.stretch[good], drawn.late[good])


def _picked(kept: Sequence[Shapes]) -> Shapes:
    return Shapes(
        np.concatenate([one.family for one in kept]),
        np.concatenate([one.parameters for one in kept]),
        np.concatenate([one.stretch for one in kept]),
        np.concatenate([one.late for one in kept]),
    )
