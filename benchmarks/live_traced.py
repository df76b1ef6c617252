"""Runs of traces on live clusters: each is made once however many rows look at it, and kept where that is asked."""

import json
import math
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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

    def run(self, what: str, workload: Workload, variant: Variant, slots: int) -> list[Traced]:
        """The trace's runs on that variant; those that were kept are not made again."""
        key = (what, variant.name)
        if key not in self._made:
            lived = [self._one(what, workload, variant, slots, number) for number in range(self.options.runs)]
            self._made[key] = Lived(what, workload, variant, slots, lived)
        return self._made[key].runs

    def twin(self, what: str, variant: Variant) -> Twin:
        """The simulated twin of what was run."""
        made = self._made[what, variant.name]
        return twin(made, poll_s=self.poll_s, aware=self.tolerates_waiting)

    def twins(self) -> Iterator[Twin]:
        """The simulated twin of each."""
        return (twin(made, poll_s=self.poll_s, aware=self.tolerates_waiting) for made in self._made.values())

    def _one(self, what: str, workload: Workload, variant: Variant, slots: int, number: int) -> Traced:
        if not self.options.keep:
            return self._live(workload, variant, slots)
        words = (what, *variant.name.replace(",", "").split(), f"{self.options.scale:g}", str(number))
        path = Path(self.options.keep) / f"{'-'.join(words)}.json"
        of = settings_of(workload, variant, slots, aware=self.tolerates_waiting)
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


def settings_of(workload: Workload, variant: Variant, slots: int, *, aware: bool) -> dict[str, Any]:
    """Return what must be the same for a kept run to stand for another."""
    tasks = [task.duration_s for job in workload for stage in job.stages for task in stage.tasks]
    return {
        "jobs": [[job.name, job.arrival_s] for job in workload],
        "work_s": math.fsum(tasks),
        "slots": slots,
        "variant": variant.facts(),
        "aware": aware,
    }


def keep(traced: Traced, path: Path, of: dict[str, Any]) -> None:
    """Write what was measured of a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"of": of, **asdict(traced)}))


def kept(path: Path, of: dict[str, Any]) -> Traced:
    """Read what was measured of a run; raises ValueError where it is of other jobs or another variant."""
    data = json.loads(path.read_text())
    if data.pop("of") != of:
        raise ValueError(f"{path} is of other jobs or other settings: take another folder")
    failures = data.pop("failures")
    failures["by_status"] = {int(status): count for status, count in failures["by_status"].items()}
    stages = [[[TaskRecord(**task) for task in stage] for stage in job] for job in data.pop("stages")]
    return Traced(failures=Failures(**failures), stages=stages, **data)
