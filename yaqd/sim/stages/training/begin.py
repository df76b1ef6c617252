"""Where training begins: weights whose linear scores are those of a heuristic, or of nothing."""

from math import log, prod
from typing import Final

import numpy as np

from yaqd.policies.clotho.shapes import AT, LIMIT_WIDE, SHAPES, SIZE, WIDE
from yaqd.policies.curves.samples import Floats

_SEED: Final = 61
#: of the linear scores: least remaining work, staying in the job, stages that are open, long chains
_SCORES: Final = {0: 1.0, 2: 3.0, 3: 1.0, 6: 0.3, 16: -30.0}


def beginning(seed: int, imitates: bool = True) -> Floats:
    """Return weights: hidden layers are random and small, linear scores those of capped SRPT."""
    rng = np.random.default_rng((seed, _SEED))
    weights = np.zeros(SIZE)
    for name, shape in SHAPES:
        if len(shape) == 2:
            many = prod(shape)
            weights[AT[name] : AT[name] + many] = rng.normal(size=many) * shape[0] ** -0.5
    if imitates:
        for at, value in _SCORES.items():
            weights[AT["score_linear"] + at] = value
        weights[AT["limit_linear"]] = log(1.4)
        weights[AT["limit_linear"] + 1] = 0.35
        weights[AT["limit_linear"] + 3] = 0.7
    else:
        weights[AT["limit_linear"]] = log(10.0)
    return weights


def scales() -> tuple[Floats, Floats]:
    """Return how far each weight is moved in one step of search: linear scores alone, and all weights."""
    linear, everything = np.zeros(SIZE), np.zeros(SIZE)
    for name, shape in SHAPES:
        everything[AT[name] : AT[name] + prod(shape)] = 0.08 if len(shape) == 2 else 0.04
    everything[AT["score_linear"] : AT["score_linear"] + WIDE] = 0.15
    everything[AT["limit_linear"] : AT["limit_linear"] + LIMIT_WIDE] = 0.04
    everything[AT["score_linear"] + 2] = 0.4
    for name, many in (("score_linear", WIDE), ("limit_linear", LIMIT_WIDE)):
        linear[AT[name] : AT[name] + many] = everything[AT[name] : AT[name] + many]
    return linear, everything
