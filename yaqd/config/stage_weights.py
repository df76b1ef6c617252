"""Weights that ship with the package."""

from importlib.resources import files
from typing import Final, Literal

Objective = Literal["mean", "makespan", "unseen"]
_FILES: Final[dict[Objective, str]] = {"mean": "mean.npz", "makespan": "makespan.npz", "unseen": "unseen.npz"}


def shipped_weights(objective: Objective = "mean") -> bytes:
    """Return the weights trained for the mean completion time, for the makespan, or without what `unseen` measures."""
    return files("yaqd.config").joinpath("weights", _FILES[objective]).read_bytes()
