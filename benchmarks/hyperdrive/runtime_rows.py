"""What running trials costs: to suspend one, to change to the next in the same slot, and beside the trials' own work.

All on a cluster of ours with two nodes. Promoting ASHA parks each trial after its first epoch and takes up the best of
them again; the target is out of reach.

- `suspend`: ms from the decision until a checkpoint of 360 KB is stored, mean; at most 50 (reported: 158).
- `freeze`: ms from the decision until the process group of a program without checkpoints has stopped, mean; at most 10.
- `switch`: ms from the decision until the next trial's program begins its first epoch in the same slot, p50; at most
  200. The program imports numpy.
- `overhead`: processor time of the job manager and the nodes, as percent of the trials' own; 16 trials with ten epochs
  that burn 1 s each; at most 3. Beside it: the same with the processes of the slots around the trials.
"""

import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.options import Options, parse_options, progress, show
from benchmarks.ours import OurCluster
from benchmarks.report import Row, make_row
from benchmarks.stock.conf import NodeShape
from tez_adapter.client.exploration import submit_exploration
from tez_adapter.client.training import folder_of
from tez_adapter.exploration.store import read_records
from tez_adapter.jobspec import Exploration
from yaqd.config import Configuration

ROWS: Final = {"suspend": "ms", "freeze": "ms", "switch": "ms", "overhead": "%"}
LEAST: Final = {"suspend": "50 ms", "freeze": "10 ms", "switch": "200 ms", "overhead": "3 %"}
CHECKPOINT_BYTES: Final = 360_000
_TIMEOUT_S: Final = 500.0
_LOOK_S: Final = 0.25

_SPACE: Final = 'level = { type = "float", low = 0.1, high = 0.5 }\n'

#: arguments: a folder, bytes of a checkpoint (0: it makes none), processor time of an epoch in s
_PROGRAM: Final = """
import json
import os
import sys
import time

import numpy as np

from yaqd.ml import last_checkpoint, report
from yaqd.ml.trial import trial

folder, size, burn_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
saved = last_checkpoint()
done = int(saved[:8]) if saved else 0
square = np.ones((100, 100))
open(f"{folder}/cpu.{os.getpid()}", "w").write("0")
with open(f"{folder}/begun", "a") as lines:
    print(json.dumps([trial.number, time.time()]), file=lines)
for epoch in range(done + 1, 10_000):
    until = time.process_time() + burn_s
    while time.process_time() < until:
        square @ square
    with open(f"{folder}/cpu.{os.getpid()}", "w") as out:
        print(time.process_time(), file=out)
    state = b"%08d" % epoch + bytes(max(0, size - 8))
    accuracy = trial.params["level"] * (1 - 0.9**epoch)
    if report(epoch, accuracy=accuracy, checkpoint=(lambda: state) if size else None).stop:
        break
"""


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    wanted = [row_id for row_id in ROWS if options.wants(row_id)]
    if not wanted:
        return rows, beside
    shape = NodeShape(memory_mb=4096, vcores=8)
    with (
        tempfile.TemporaryDirectory(prefix="yaq-trials-") as folder,
        OurCluster(Path(folder) / "c", nodes=2, shape=shape) as cluster,
    ):
        for row_id in wanted:
            found = []
            for number in range(options.runs):
                (own := Path(folder) / f"{row_id}.{number}").mkdir()
                found.append(_run(cluster, own, row_id, options))
                progress(f"{row_id}: run {number}: {found[-1]}")
            values = [one.pop("value") for one in found]
            rows.append(make_row(row_id, values, None, ROWS[row_id], higher_is_better=False))
            beside[row_id] = {"at most": LEAST[row_id], **{name: [o[name] for o in found] for name in found[0]}}
    return rows, beside


def _run(cluster: OurCluster, folder: Path, row_id: str, options: Options) -> dict[str, float]:
    conf = Configuration.load(cluster.conf_dir)
    if row_id == "overhead":
        return _overhead(cluster, conf, folder, max(2, round(10 * options.scale)))
    size = 0 if row_id == "freeze" else CHECKPOINT_BYTES
    records = _explore(conf, folder, max(8, round(40 * options.scale)), 5, size, 0.02)
    if row_id == "switch":
        taken = _switches(records, folder)
        return {"value": statistics.median(taken), "p90": statistics.quantiles(taken, n=10)[-1], "times": len(taken)}
    taken = _after_decisions(records, "checkpoint" if size else "frozen")
    return {"value": statistics.fmean(taken), "most": max(taken), "times": len(taken)}


def _explore(
    conf: Configuration, folder: Path, trials: int, epochs: int, size: int, burn_s: float, slots: int = 1
) -> list[dict[str, Any]]:
    """Run an exploration to its end; return its records."""
    (script := folder / "program.py").write_text(_PROGRAM)
    own = {"yaq.ml.explore.stopped-memory-mb": "3000", "yaq.ml.explore.slot.memory-mb": "2048"}
    terms = Exploration(
        "accuracy",
        target=0.99,
        space=_SPACE,
        slots=slots,
        trials=trials,
        epochs=epochs,
        policy="asha-promote",
        arguments=(str(folder), str(size), str(burn_s)),
    )
    job = submit_exploration(conf.with_overrides(own), str(script), terms)
    result = job.wait(timeout_s=_TIMEOUT_S)
    job.close()
    if not result.succeeded:
        raise RuntimeError(f"the exploration did not succeed: {result.diagnostics}")
    return read_records(conf, folder_of(conf, job.report().user, job.application_id))


def _after_decisions(records: list[dict[str, Any]], what: str) -> list[float]:
    """Return the times from a report that suspended its trial until this record of the trial, ms."""
    decided: dict[int, float] = {}
    taken = []
    for record in records:
        if record["do"] == "report":
            decided[record["number"]] = record["now"]
        elif record["do"] == what and record["number"] in decided:
            taken.append(1000 * (record["now"] - decided.pop(record["number"])))
    return taken


def _switches(records: list[dict[str, Any]], folder: Path) -> list[float]:
    """Return the times from a report after which another trial began in the slot until that one's program did, ms."""
    started = records[0]["started"]
    programs: dict[int, list[float]] = {}
    for line in (folder / "begun").read_text().splitlines():
        number, at = json.loads(line)
        programs.setdefault(number, []).append(at - started)
    taken, reported = [], None
    for record in records:
        if record["do"] == "report":
            reported = record["now"]
        elif record["do"] == "begin":
            begun = programs[record["number"]].pop(0)
            if reported is not None:
                taken.append(1000 * (begun - reported))
            reported = None
    return taken


def _overhead(cluster: OurCluster, conf: Configuration, folder: Path, epochs: int) -> dict[str, float]:
    """Return the processor time of all that runs trials, as percent of what the trials used."""
    with _Watched(cluster, folder) as watched:
        _explore(conf, folder, 16, epochs, CHECKPOINT_BYTES, 1.0, slots=2)
    own_s = sum(float(path.read_text()) for path in folder.glob("cpu.*"))
    parts = watched.parts()
    value = 100 * (parts["job manager, s"] + parts["nodes, s"]) / own_s
    return {"value": value, "with slots": 100 * sum(parts.values()) / own_s, "trials, s": own_s, **parts}


class _Watched:
    """Looks again and again at the processor time of the processes around the trials."""

    def __init__(self, cluster: OurCluster, folder: Path) -> None:
        self._cluster, self._folder = str(cluster.directory), folder
        self._began: dict[tuple[int, float], float] = {}
        self._last: dict[tuple[int, float], tuple[str, float]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "_Watched":
        self._look(is_first=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(_LOOK_S):
            self._look()

    def _look(self, *, is_first: bool = False) -> None:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                kind = _kind(process, self._cluster)
                if kind:
                    key, used = (process.pid, process.create_time()), process.cpu_times()
                    spent = used.user + used.system
                    self._last[key] = (kind, spent)
                    if is_first:
                        self._began[key] = spent

    def parts(self) -> dict[str, float]:
        """Return seconds by what the processes are."""
        trials = {int(path.suffix[1:]) for path in self._folder.glob("cpu.*")}
        found: dict[str, float] = {}
        for key, (kind, spent) in self._last.items():
            if key[0] in trials:
                continue
            found[f"{kind}, s"] = found.get(f"{kind}, s", 0.0) + spent - self._began.get(key, 0.0)
        return found


def _kind(process: psutil.Process, cluster: str) -> str:
    """Say what a process of the cluster is, by its folder, environment and command line; "" for others."""
    cwd = process.cwd()
    if cluster in cwd and "/container_" in cwd:
        return "job manager" if "_000001" in cwd else "slots"
    if not process.environ().get("HADOOP_CONF_DIR", "").startswith(cluster):
        return ""
    return "" if " rm start " in " ".join(process.cmdline()) else "nodes"


def main() -> int:
    """Run these rows alone."""
    options = parse_options("hyperdrive.runtime_rows", "what running trials costs", tuple(ROWS), runs=1)
    return show(*measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
