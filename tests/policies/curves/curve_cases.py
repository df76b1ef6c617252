"""Samples for tests of predictors."""

from collections.abc import Sequence

import numpy as np

from yaqd.policies.curves.losses import LossWindows
from yaqd.policies.curves.samples import Floats, Sample


def one(losses: Sequence[float] | Floats, window: int = 40, first: float = 0.0) -> Sample:
    """Return the sample of one job that reported these losses, one by one iteration."""
    windows = LossWindows(window)
    row = windows.add()
    windows.report(row, first, losses)
    return windows.sample(np.array([row]))
