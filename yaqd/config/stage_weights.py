"""Weights of the policy of stages: those that ship with the package, or those of a file that a key names."""

import errno
import os
from importlib.resources import files
from pathlib import Path
from stat import S_ISREG
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
        return read_regular(Path(name), bytes_max)
    except OSError as error:
        raise conf.error(WEIGHTS_KEY, f"cannot be read: {error.strerror}", REMEDY) from None


def read_regular(path: Path, bytes_max: int) -> bytes:
    """Return a file's first bytes. Raises OSError, also where it is no regular file: a pipe would be waited for."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(bytes_max)
