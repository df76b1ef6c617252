"""Where a run of either trainer stands, and one step of Adam."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats

_FIRST: Final = 0.9
_SECOND: Final = 0.99


@dataclass(frozen=True, slots=True, eq=False)
class TrainingState:
    """Where a run stands."""

    generation: int
    weights: Floats = field(repr=False)
    #: Adam's means of gradients and of their squares
    first: Floats = field(repr=False)
    second: Floats = field(repr=False)


def begin_training(weights: Floats) -> TrainingState:
    """Return a run that begins at some weights."""
    return TrainingState(0, weights.copy(), np.zeros_like(weights), np.zeros_like(weights))


def stepped(state: TrainingState, gradient: Floats, size: Floats) -> TrainingState:
    """Go one step of Adam up a gradient. `size`: of the step, by weight; 0: it stays."""
    first = _FIRST * state.first + (1.0 - _FIRST) * gradient
    second = _SECOND * state.second + (1.0 - _SECOND) * gradient**2
    step = state.generation + 1
    corrected = first / (1.0 - _FIRST**step)
    root = np.sqrt(second / (1.0 - _SECOND**step)) + 1e-8
    weights = state.weights + size * np.where(size > 0.0, corrected / root, 0.0)
    return TrainingState(step, weights, first, second)
