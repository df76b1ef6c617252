"""Row `memory`: what the merger process takes when 100 requests of three jobs are on it at once.

The real process under its node's keeper. Ours is the most it ever had resident beyond what it has when idle (VmHWM);
theirs is the budget it was given. Beside it: how many of the first half of all answers each job got.
"""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from benchmarks.riffle.merge_rows import make_outputs
from nm.merger import MergerProcess, MergerProcessSettings

_MIB: Final = 1024 * 1024
_BUDGET: Final = 128 * _MIB
_JOBS: Final = tuple(f"job_1700000000000_{number:04d}" for number in (1, 2, 3))
_REQUESTS: Final = 100
_INPUTS: Final = 20
_JOB_BYTES: Final = 48 * _MIB
_TIMEOUT_S: Final = 600.0
ROWS: Final = ("memory",)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    if not options.ours:
        return [], {}
    progress("memory")
    peak_mb, first_half, merged_mb = asyncio.run(_run(options.scale))
    budget_mb = _BUDGET / _MIB
    facts = {
        "answers among the first half": {job[-1]: first_half[job] for job in _JOBS},
        "merged": f"{merged_mb:.0f} MB by {_REQUESTS} requests of {_INPUTS} outputs",
    }
    return [make_row("memory", [peak_mb], [budget_mb], "MB", higher_is_better=False)], {"memory": facts}


async def _run(scale: float) -> tuple[float, Counter[str], float]:
    settings = MergerProcessSettings(
        is_enabled=True,
        bind_host="127.0.0.1",
        port=0,
        budget_bytes=_BUDGET,
        running_max=4,
        waiting_max=_REQUESTS,
        niceness=0,
        is_idle_io=False,
        stall_s=_TIMEOUT_S,
    )
    merger = MergerProcess(settings)
    with tempfile.TemporaryDirectory(prefix="yaq-merge-") as folder:
        merger.start()
        try:
            await merger.ready()
            names: list[str] = []
            for job in _JOBS:
                names, _ = make_outputs(Path(folder) / job, _INPUTS, 64 * 1024, int(_JOB_BYTES * scale))
                merger.add_job(job, b"password", [Path(folder) / job])
            idle = _status_mb(merger.pid, "VmRSS")
            ended: list[str] = []

            async def one(number: int) -> None:
                job = _JOBS[number % len(_JOBS)]
                await merger.merge(job, f"{number}", names, timeout_s=_TIMEOUT_S)
                ended.append(job)

            await asyncio.gather(*(one(number) for number in range(_REQUESTS)))
            peak = _status_mb(merger.pid, "VmHWM")
            status = await merger.status()
            return peak - idle, Counter(ended[: _REQUESTS // 2]), status.merged_bytes / 1e6
        finally:
            await merger.stop()


def _status_mb(pid: int | None, field: str) -> float:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
