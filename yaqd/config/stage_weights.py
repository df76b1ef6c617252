"""Weights of the policy of stages: those that ship with the package, or those of a file that a key names."""

from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from yaqd.config.configuration import Configuration

WEIGHTS_KEY: Final = "yaq.clotho.weights"
REMEDY: Final = "name a file that `yaq clotho train` wrote"
Objective = Literal["mean", "makespan", "unseen"]
_FILES: Final[dict[Objective, str]] = {"mean": "mean.npz", "makespan": "makespan.npz", "unseen": "unseen.npz"}


def shipped_weights(objective: Objective = "mean") -> bytes:
    """Return the weights trained for the mean completion time, for the makespan, or without what `unseen` measures."""
    return files("yaqd.config").joinpath("weights", _FILES[objective]).read_bytes()


def configured_weights(conf: Configuration, bytes_max: int) -> bytes:
    """Return what the file has that the configuration names, its first bytes alone; without one, what ships. Blocking.

    Whoever decides by them verifies them. Raises ConfigError.
    """
    name = (conf.get(WEIGHTS_KEY) or "").strip()
    if not name:
        return shipped_weights()
    if not Path(name).is_absolute():
        raise conf.error(WEIGHTS_KEY, "is not an absolute path", "give the full path")
    try:
        with Path(name).open("rb") as file:
            return file.read(bytes_max)
    except OSError as error:
        raise conf.error(WEIGHTS_KEY, f"cannot be read: {error.strerror}", REMEDY) from None
