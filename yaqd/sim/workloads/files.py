"""A trace by its path: which reader it needs is told by the file itself."""

from pathlib import Path

from yaqd.sim.workload import Workload
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.history import read_history
from yaqd.sim.workloads.sls import read_sls
from yaqd.sim.workloads.swim import read_swim

_HEAD = 4096


def read_workload(path: Path, *, jobs: int | None = None) -> Workload:
    """Read SWIM (`.tsv`), SLS or rumen (`.json`), job history (`.jsonl`, `.jhist`, or a folder of them).

    Only the first `jobs` jobs of a trace. Raises WorkloadError.
    """
    if path.is_dir() or path.suffix in (".jsonl", ".jhist"):
        return read_history([path])
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).lstrip()
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    return read_sls(path, jobs=jobs) if head[:1] in (b"{", b"[") else read_swim(path, jobs=jobs)
