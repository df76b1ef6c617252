"""Thread pools as large as the cores that a job has."""

import math
import sys
from typing import Any, Final

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
