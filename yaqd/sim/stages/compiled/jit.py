"""Compiles a function with numba, keeps the machine code for the next process, and keeps its type.

Numba looks at the file of a function alone, and not at those of functions that it calls. So machine code lies in a
folder that is named by all files that it is made of.
"""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from numba import config as numba_config
from numba import njit

from yaqd.policies.clotho import shapes

F = TypeVar("F", bound=Callable[..., Any])

_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yaqd"


def _sources() -> str:
    digest = sha256()
    for path in (Path(shapes.__file__), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


#: nothing compiled makes arrays, so numba need not count who holds them. Each call counted a dozen, and a run took five
#: times as long.
_TERMS: Final[Any] = {"cache": True, "nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}


def jit(function: F) -> F:
    """Return the function compiled, as exact as it was: sums keep their order. It may allocate no array."""
    config: Any = numba_config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_CACHE / f"numba-{_sources()}")
    try:
        return cast(F, njit(**_TERMS)(function))
    finally:
        config.CACHE_DIR = before
