"""A file of recorded curves as the taskset has them, in small."""

import json
from pathlib import Path

import numpy as np


def write_taskset(path: Path, rows: int = 30, epochs: int = 12, seed: int = 1) -> Path:
    """Write curves of which a third rise, each to another height."""
    rng = np.random.default_rng(seed)
    found = []
    for row in range(rows):
        rise = 0.5 * row / rows if row % 3 == 0 else 0.0
        losses = 0.69 - rise * -np.expm1(-0.3 * np.arange(1.0, epochs + 1)) + rng.normal(0, 0.001, epochs)
        found.append({"hp": {"b": 10.0 ** -(row % 7), "a": row / rows}, "valid": {"loss": losses.tolist()}})
    path.write_text(json.dumps(found))
    return path
