"""Query graphs of TPC-H on Spark, as the authors of Decima published them: read where they lie, never shipped.

The files are pickles, so a process of its own reads them (`tpch_child.py`) and hands back plain arrays.
"""

import io
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from yaqd.sim.workloads import tpch_child
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import GraphSet, graph_set

_FOLDER: Final = Path("shared/data/tpch")
_VARIABLE: Final = "YAQD_TPCH"
_PATIENCE_S: Final = 300.0


def find_tpch() -> Path:
    """Return the folder: `YAQD_TPCH`, or `shared/data/tpch` in this folder or one above. Raises WorkloadError."""
    named = os.environ.get(_VARIABLE)
    here = Path.cwd()
    places = [Path(named)] if named else [folder / _FOLDER for folder in (here, *here.parents)]
    for place in places:
        if place.is_dir():
            return place
    raise WorkloadError(
        f"{places[0]}: no such folder; {_VARIABLE} names the one with the query graphs "
        "(github.com/hongzimao/decima-sim, spark_env/tpch)"
    )


@lru_cache(maxsize=4)
def tpch(folder: Path) -> GraphSet:
    """Return all graphs of the folder, by size and query. Raises WorkloadError where a file is not what it should be.

    A process that is thrown away reads the pickles.
    """
    command = [sys.executable, "-I", str(Path(tpch_child.__file__).resolve()), str(folder.resolve())]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise WorkloadError(f"{folder}: not read within {_PATIENCE_S:g} s") from None
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip()[-500:]
        raise WorkloadError(said or f"{folder}: its reader ended with status {ended.returncode}")
    try:
        with np.load(io.BytesIO(ended.stdout), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError) as error:
        raise WorkloadError(f"{folder}: its reader's answer cannot be read: {repr(error)[:200]}") from None
    if not len(arrays["graphs"]):
        raise WorkloadError(f"{folder}: no task_duration_*.npy in it")
    return graph_set(arrays)
