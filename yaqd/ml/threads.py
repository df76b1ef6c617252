"""Thread pools as large as the cores that a job has."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

#: read by a library when it is loaded
_POOL_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: threads of each pool as they were last set, and what keeps them so
_set: Final[dict[str, Any]] = {"threads": 0, "limits": None}


def size_pools(cores: float) -> int:
    """Have BLAS, OpenMP and PyTorch compute with as many threads as `cores` has whole or begun ones; return it.

    Pools that are loaded later are sized when the number changes next. Without threadpoolctl only PyTorch is sized.
    """
    threads = max(1, math.ceil(cores - 1e-6))
    if _set["threads"] != threads:
        _set["threads"] = threads
        try:
            from threadpoolctl import threadpool_limits
        except ImportError:
            pass
        else:
            _set["limits"] = threadpool_limits(threads)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(threads)
    return threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Have BLAS and OpenMP compute with one thread within, so that sums have one order wherever they are made.

    Libraries that are loaded within count too where the environment sizes their pools, as in a worker.
    """
    for variable in _POOL_VARIABLES:
        os.environ.setdefault(variable, "1")
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
    else:
        with threadpool_limits(1):
            yield
