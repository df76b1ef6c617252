"""How a curve goes on, as the scheduler predicts it, and how far off such predictions of it have been."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from yaqd.policies.curves.drops import HORIZONS, drops_at, predicted_drops
from yaqd.policies.curves.losses import LossWindows

#: predictions of the past that the band is made of
_TRIALS: Final = 40
#: share of them that it holds
_HELD: Final = 0.9
#: losses that a prediction needs
_LEAST: Final = 5


@dataclass(frozen=True, slots=True)
class Forecast:
    """Losses to come, with a band."""

    iterations: tuple[float, ...]
    losses: tuple[float, ...]
    #: how far 90 % of the predictions so far ahead were off
    off: tuple[float, ...]


def forecast(points: Sequence[tuple[int, float]], ahead: int) -> Forecast | None:
    """Predict the losses of the next `ahead` iterations; None: there are too few losses, or the last is too large."""
    if len(points) < _LEAST:
        return None
    steps = np.arange(0.0, min(ahead, HORIZONS[-1]) + 1)
    ends = np.unique(np.linspace(_LEAST, len(points), _TRIALS).astype(int))
    windows = LossWindows()
    rows = np.array([_window(windows, points[:end]) for end in ends])
    drops = drops_at(predicted_drops(windows.sample(rows)), np.broadcast_to(steps, (len(rows), len(steps))))
    newest = windows.losses[rows, -1]
    if newest[-1] != points[-1][1]:
        return None
    predicted = newest[:, None] - drops
    known = np.array([iteration for iteration, _ in points], dtype=float)
    at = windows.iterations[rows, -1][:, None] + steps
    happened = np.interp(at, known, [loss for _, loss in points])
    errors = np.where(at <= known[-1], np.abs(predicted - happened), np.nan)
    off = [float(np.quantile(seen, _HELD)) if (seen := each[~np.isnan(each)]).size else 0.0 for each in errors.T]
    return Forecast(
        tuple(map(float, known[-1] + steps)),
        tuple(map(float, predicted[-1])),
        tuple(map(float, np.maximum.accumulate(off))),
    )


def _window(windows: LossWindows, points: Sequence[tuple[int, float]]) -> int:
    row = windows.add()
    for iteration, loss in points[-windows.window :]:
        windows.report(row, iteration, [loss])
    return row
