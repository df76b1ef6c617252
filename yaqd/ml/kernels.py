"""Which machine code BLAS and numpy compute with. The last bits of sums depend on it, so all of a job computes alike.

The libraries choose by the processor, and by these variables where somebody has set them. A container has none of its
submitter's environment, so a job takes them along.
"""

from collections.abc import Mapping
from typing import Final

#: read by OpenBLAS, MKL, BLIS and numpy when they are loaded
VARIABLES: Final = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "BLIS_ARCH_TYPE",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
)


def chosen(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the environment says of it."""
    return {name: environment[name] for name in VARIABLES if environment.get(name)}
