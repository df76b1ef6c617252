"""Row `memory`: what the merger process takes when 100 requests of three jobs are on it at once.

The real process under its node's keeper. Ours is the most it ever had resident beyond what it has when idle (VmHWM);
theirs is the budget it was given. One job has 80 requests waiting when two others come with 10 each, all alike. First
come, first served, these would wait for all 80; with a third of the merges each they are done 30 answers after they
came. That, and what was running when they came, is what they may take: else a job starves, and the row is an error.
"""

import asyncio
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import WrongAnswer
from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from benchmarks.riffle.merge_rows import make_outputs
from nm.merger import MergerProcess, MergerProcessSettings

_MIB: Final = 1024 * 1024
_BUDGET: Final = 128 * _MIB
_JOBS: Final = tuple(f"job_1700000000000_{number:04d}" for number in (1, 2, 3))
#: of the first job, which comes before the others, and of each of these
_REQUESTS: Final = (80, 10, 10)
_RUNNING_MAX: Final = 4
_INPUTS: Final = 20
_JOB_BYTES: Final = 48 * _MIB
_TIMEOUT_S: Final = 600.0
ROWS: Final = ("memory",)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    if not options.ours:
        return [], {}
    progress("memory")
    peak_mb, waited, merged_mb = asyncio.run(_run(options.scale))
    budget_mb = _BUDGET / _MIB
    facts = {
        "answers until the late jobs had theirs": f"{waited.late}, {waited.criterion} at most, {waited.fifo} by FIFO",
        "merged": f"{merged_mb:.0f} MB by {sum(_REQUESTS)} requests of {_INPUTS} outputs",
    }
    if max(waited.late) > waited.criterion:
        raise WrongAnswer(f"a job starved: {facts}")
    return [make_row("memory", [peak_mb], [budget_mb], "MB", higher_is_better=False)], {"memory": facts}


@dataclass(frozen=True, slots=True)
class _Waited:
    """Answers that all jobs got from when the late jobs came until each of these had its last."""

    late: tuple[int, ...]
    #: had each request waited for all before it
    fifo: tuple[int, ...]

    @property
    def criterion(self) -> int:
        """Each job has its part of the merges, and those that run are not cut short."""
        return len(_REQUESTS) * max(_REQUESTS[1:]) + _RUNNING_MAX


async def _run(scale: float) -> tuple[float, _Waited, float]:
    settings = MergerProcessSettings(
        is_enabled=True,
        bind_host="127.0.0.1",
        port=0,
        budget_bytes=_BUDGET,
        running_max=_RUNNING_MAX,
        waiting_max=sum(_REQUESTS),
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
            waited = await _ask(merger, names)
            peak = _status_mb(merger.pid, "VmHWM")
            status = await merger.status()
            return peak - idle, waited, status.merged_bytes / 1e6
        finally:
            await merger.stop()


async def _ask(merger: MergerProcess, names: list[str]) -> _Waited:
    """Has all merged; the late jobs come when all of the first one's requests are with the merger."""
    ended: list[str] = []

    async def one(job: str, number: int) -> None:
        await merger.merge(job, f"{number}", names, timeout_s=_TIMEOUT_S)
        ended.append(job)

    first, *late = _JOBS
    async with asyncio.TaskGroup() as group:
        for number in range(_REQUESTS[0]):
            group.create_task(one(first, number))
        await _asked(merger, ended, _REQUESTS[0])
        before = len(ended)
        for number in range(max(_REQUESTS)):
            for job, requests in zip(late, _REQUESTS[1:], strict=True):
                if number < requests:
                    group.create_task(one(job, number))
    last = tuple(max(at for at, job in enumerate(ended, 1) if job == name) for name in late)
    total = sum(_REQUESTS)
    return _Waited(tuple(at - before for at in last), (total - 1 - before, total - before))


async def _asked(merger: MergerProcess, ended: list[str], requests: int) -> None:
    """Returns when so many requests have come to the merger."""
    known = 0
    while known < requests:
        status = await merger.status()
        known = status.queued + status.running + len(ended)


def _status_mb(pid: int | None, field: str) -> float:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
