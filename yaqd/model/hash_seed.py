"""One hash seed for all processes of a job: `hash(key) % partitions` is the same number in each of them.

Python reads it when it starts, from the environment. Without one every process has its own.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

from yaqd.model import fixed_addresses

VARIABLE: Final = "PYTHONHASHSEED"
#: the seed of whoever asks for no other; prepared processes run with it
DEFAULT: Final = "0"
_MAX: Final = (1 << 32) - 1
#: in the environment of a program that takes its own place: it is not to do so again
_AGAIN: Final = "YAQ_STARTED_AGAIN"


def hash_seed(environment: Mapping[str, str]) -> str:
    """Return the seed that an environment asks for; the default where it names none, or one that differs by process."""
    text = environment.get(VARIABLE, "")
    return str(int(text)) if text.isascii() and text.isdecimal() and int(text) <= _MAX else DEFAULT


def start_again_with_seed() -> None:
    """Go on only with a fixed seed and, where the system allows it, fixed addresses: without them, this program takes
    its own place from the beginning, with them."""
    if os.environ.pop(_AGAIN, None) is not None:
        return
    seed = hash_seed(os.environ)
    if fixed_addresses.fix() or os.environ.get(VARIABLE) != seed:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {VARIABLE: seed, _AGAIN: "1"})
