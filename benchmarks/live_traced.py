"""Runs of traces on live clusters: each is made once however many rows look at it, and kept where that is asked."""

import json
import math
import os
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from yaqd.ipc.loop import run
from yaqd.sim.workload import Workload

from . import live_runs as runs
from .live_cluster import Variant, running
from .live_master import Addresses, Failures
from .live_mixes import earlier_runs
from .live_runs import Traced
from .live_tasks import TaskRecord
from .live_twins import Lived, Twin, twin
from .options import Options, progress
from .stock.artifacts import HadoopJars

_ROOT: Final = Path(__file__).parents[1]
#: the packages that daemons of both sides and masters are made of, and the benchmark's own part in a run
_PACKAGES: Final = ("nm", "rm", "yaqd", "benchmarks/stock")
_LIVE: Final = ("live_cluster.py", "live_master.py", "live_runs.py", "live_tasks.py", "ours.py")


@dataclass(slots=True)
class Traces:
    """Runs each variant of a workload once per run."""

    options: Options
    jars: HadoopJars | None
    #: makes a folder for the next cluster
    place: Callable[[], Path]
    poll_s: float
    tolerates_waiting: bool
    _made: dict[tuple[str, str], Lived] = field(default_factory=dict)
    _twins: dict[tuple[str, str], Twin] = field(default_factory=dict)

    def run(self, what: str, workload: Workload, variant: Variant, slots: int) -> list[Traced]:
        """The trace's runs on that variant; those that were kept are not made again."""
        key = (what, variant.name)
        if key not in self._made:
            lived = [self._one(what, workload, variant, slots, number) for number in range(self.options.runs)]
            self._made[key] = Lived(what, workload, variant, slots, lived)
        return self._made[key].runs

    def twin(self, what: str, variant: Variant) -> Twin:
        """The simulated twin of what was run, simulated once however many rows look at it."""
        return self._twin_of((what, variant.name))

    def twins(self) -> Iterator[Twin]:
        """The simulated twin of each."""
        return map(self._twin_of, self._made)

    def _twin_of(self, key: tuple[str, str]) -> Twin:
        if key not in self._twins:
            self._twins[key] = twin(self._made[key], poll_s=self.poll_s, aware=self.tolerates_waiting)
        return self._twins[key]

    def _one(self, what: str, workload: Workload, variant: Variant, slots: int, number: int) -> Traced:
        if not self.options.keep:
            return self._live(workload, variant, slots)
        words = (what, *variant.name.replace(",", "").split(), f"{self.options.scale:g}", str(number))
        path = Path(self.options.keep) / f"{'-'.join(words)}.json"
        of = settings_of(workload, variant, slots, aware=self.tolerates_waiting, code=code_digest())
        if path.exists():
            progress(f"{what}: {variant.name}: run {number} is taken from {path}")
            return kept(path, of)
        traced = self._live(workload, variant, slots)
        keep(traced, path, of)
        return traced

    def _live(self, workload: Workload, variant: Variant, slots: int) -> Traced:
        place = self.place()
        with running(variant, self.jars, place / "cluster", slots) as where:
            run(self._play(where, place, earlier_runs(workload), variant))
            return run(self._play(where, place, workload, variant))

    def _play(self, where: Addresses, place: Path, workload: Workload, variant: Variant) -> Coroutine[Any, Any, Traced]:
        return runs.trace(
            where,
            place,
            workload,
            poll_s=self.poll_s,
            opportunistic=variant.opportunistic,
            tolerates_waiting=self.tolerates_waiting,
        )


@cache
def code_digest(root: Path = _ROOT) -> str:
    """Return the digest of all code and shipped defaults that a live run depends on.

    A commit would not do: it does not know what has been edited since. The simulator is left out, as only twins depend
    on it.
    """
    digest = sha256()
    found = (path for name in _PACKAGES for path in (root / name).rglob("*"))
    packages = (path for path in found if path.suffix in (".py", ".xml"))
    files = [*packages, *(root / "benchmarks" / name for name in _LIVE)]
    for path in sorted(path for path in files if not path.is_relative_to(root / "yaqd" / "sim")):
        digest.update(f"{path.relative_to(root)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def settings_of(workload: Workload, variant: Variant, slots: int, *, aware: bool, code: str) -> dict[str, Any]:
    """Return what must be the same for a kept run to stand for another; `code`: its digest."""
    tasks = [task.duration_s for job in workload for stage in job.stages for task in stage.tasks]
    return {
        "jobs": [[job.name, job.arrival_s] for job in workload],
        "work_s": math.fsum(tasks),
        "slots": slots,
        "variant": variant.facts(),
        "aware": aware,
        "code": code,
    }


def keep(traced: Traced, path: Path, of: dict[str, Any]) -> None:
    """Write what was measured of a run; whoever is stopped meanwhile leaves no half of it under that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps({"of": of, **asdict(traced)}))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def kept(path: Path, of: dict[str, Any]) -> Traced:
    """Read what was measured of a run; raises ValueError where it is of other jobs, another variant or other code."""
    data = json.loads(path.read_text())
    was = data.pop("of")
    others = [name for name in of if was.get(name) != of[name]]
    if others:
        raise ValueError(f"{path} was made with other {', '.join(others)}: take another folder")
    failures = data.pop("failures")
    failures["by_status"] = {int(status): count for status, count in failures["by_status"].items()}
    stages = [[[TaskRecord(**task) for task in stage] for stage in job] for job in data.pop("stages")]
    return Traced(failures=Failures(**failures), stages=stages, **data)
